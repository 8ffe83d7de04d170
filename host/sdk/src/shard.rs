//! A shard: some of the circuits, the instance that decides on them, and what they have to tell.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::{Mutex, RwLock};

use crate::bindings::exports::tripwit::breaker::policy as wit;
use crate::bindings::tripwit::breaker::types;
use crate::builder::OnFault;
use crate::circuit::Circuit;
use crate::env::Env;
use crate::error::AttachError;
use crate::gate::{Admission, Answer as Decision, Outcome, View};
use crate::instance::Fault;
use crate::machine::{Answer, Cx, Machine};
use crate::registry::Registry;
use crate::rejection::Rejection;
use crate::settings::Settings;
use crate::status::{Mode, Moved, Status, Transition};
use crate::telemetry::{Outlet, clip};

/// Locks are taken in this order: registry, machine. Nothing is given out while either is held.
pub(crate) struct Shard {
    pub(crate) registry: RwLock<Registry>,
    machine: Mutex<Machine>,
    outlet: Outlet,
}

/// What a permit holds.
#[derive(Debug)]
pub(crate) struct Held {
    /// None: the end of the call is of no interest.
    pub(crate) admission: Option<Admission>,
    /// When the call began, where it matters how long it takes.
    pub(crate) started: Option<u64>,
    pub(crate) call_timeout: Option<u64>,
}

/// How a call ended.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) outcome: Outcome,
    pub(crate) retry_after: Option<u64>,
    pub(crate) cause: Option<String>,
}

impl Held {
    fn unrecorded(call_timeout: Option<u64>) -> Self {
        Self { admission: None, started: None, call_timeout }
    }

    /// How long the call ran.
    fn took(&self, now: u64) -> Option<u64> {
        self.started.map(|started| now.saturating_sub(started))
    }

    /// A call that ran too long is a time-out, whatever came of it; one that says nothing still says nothing.
    fn outcome(&self, outcome: Outcome, took: Option<u64>) -> Outcome {
        let late = matches!((took, self.call_timeout), (Some(took), Some(limit)) if took > limit);
        match outcome {
            Outcome::Success | Outcome::Failure if late => Outcome::Timeout,
            Outcome::Success | Outcome::Failure | Outcome::Timeout | Outcome::Ignored => outcome,
        }
    }
}

impl Shard {
    pub(crate) fn start(env: &Env) -> Result<Self, Fault> {
        Ok(Self {
            registry: RwLock::default(),
            machine: Mutex::new(Machine::start(env)?),
            outlet: Outlet::default(),
        })
    }

    /// Does something under the lock, with one reading of the clock, and gives out afterwards what there is to tell.
    fn locked<R>(&self, env: &Env, work: impl FnOnce(&mut Machine, &Cx<'_>) -> R) -> R {
        let result = self.quietly(env, work);
        self.outlet.give_out(env);
        result
    }

    /// The same for the holder of the registry's lock, who gives out later.
    fn quietly<R>(&self, env: &Env, work: impl FnOnce(&mut Machine, &Cx<'_>) -> R) -> R {
        let mut machine = self.machine.lock();
        let cx = Cx { env, outlet: &self.outlet, now: env.clock.monotonic() };
        work(&mut machine, &cx)
    }

    /// Asks to make one call.
    pub(crate) fn acquire(&self, env: &Env, circuit: &Circuit) -> Result<Held, Rejection> {
        if !env.ignore_leases
            && let Some(view) = circuit.gate.read()
        {
            let mut now = None;
            let answer = view.answer(|| *now.insert(env.clock.monotonic()));
            if answer != Decision::Ask {
                return decided(circuit, &view, answer, || now.unwrap_or_else(|| env.clock.monotonic()));
            }
        }
        self.locked(env, |machine, cx| acquire_locked(machine, cx, circuit))
    }

    /// Says how an admitted call ended.
    pub(crate) fn settle(&self, env: &Env, circuit: &Circuit, held: &Held, report: Report) {
        let Some(admission) = &held.admission else { return };
        if !env.ignore_leases && settled_by_lease(env, circuit, held, admission, report.outcome) {
            return;
        }
        self.locked(env, |machine, cx| settle_locked(machine, cx, circuit, held, admission, report));
    }

    /// The circuit of a key that has none yet. The caller has taken a place for it.
    pub(crate) fn attach(&self, env: &Env, key: &str, settings: &Settings) -> Result<Attached, AttachError> {
        let attached = {
            let mut registry = self.registry.write();
            match registry.get(key) {
                Some(circuit) => Ok(Attached::Found(circuit.clone())),
                None => {
                    let key = Arc::from(key);
                    self.quietly(env, |machine, cx| machine.attach(cx, &key, settings)).map(|circuit| {
                        registry.insert(&circuit);
                        Attached::Added(circuit)
                    })
                }
            }
        };
        self.outlet.give_out(env);
        attached
    }

    /// Forgets one circuit that can be done without, if there is one.
    pub(crate) fn evict(&self, env: &Env) -> bool {
        let evicted = {
            let mut registry = self.registry.write();
            let gone = registry.evict();
            if let Some(circuit) = &gone {
                self.quietly(env, |machine, cx| machine.detach(cx, circuit));
            }
            gone.is_some()
        };
        self.outlet.give_out(env);
        evicted
    }

    /// The lease as it stands, waited for.
    pub(crate) fn view(&self, circuit: &Circuit) -> View {
        let _machine = self.machine.lock();
        circuit.gate.read_locked()
    }

    /// How many entries of telemetry were dropped.
    pub(crate) fn dropped(&self) -> u64 {
        self.outlet.dropped()
    }

    pub(crate) fn is_tight(&self, env: &Env) -> bool {
        self.machine.lock().is_tight(env)
    }

    pub(crate) fn confirm(&self, env: &Env, circuit: &Circuit, settings: &Settings) -> Result<(), AttachError> {
        self.locked(env, |machine, cx| machine.confirm(cx, circuit, settings))
    }

    pub(crate) fn cool_down(&self, env: &Env) -> Vec<Moved> {
        self.locked(env, |machine, cx| machine.cool_down(cx))
    }

    pub(crate) fn trip(&self, env: &Env, circuit: &Circuit, wait: Option<u64>) -> Option<Transition> {
        self.command(env, circuit, |instance, number| instance.trip(number, wait))
    }

    pub(crate) fn reset(&self, env: &Env, circuit: &Circuit) -> Option<Transition> {
        let moved = self.command(env, circuit, |instance, number| instance.reset(number));
        circuit.recorded.store(false, Ordering::Relaxed);
        moved
    }

    fn command(
        &self,
        env: &Env,
        circuit: &Circuit,
        call: impl FnOnce(&mut crate::instance::Instance, u32) -> Result<types::Moved, Fault>,
    ) -> Option<Transition> {
        self.locked(env, |machine, cx| {
            machine.cross(cx, circuit, |instance, number| {
                let moved = call(instance, number)?;
                let transition = moved.transition.map(Transition::from);
                let Answer { lease, transition: told, value: () } = Answer::of(moved);
                Ok(Answer { lease, transition: told, value: transition })
            })
        })?
    }

    pub(crate) fn set_mode(&self, env: &Env, circuit: &Circuit, mode: Mode) {
        self.locked(env, |machine, cx| {
            if machine.set_mode_of_fallen(cx, circuit, mode) {
                return;
            }
            machine.cross(cx, circuit, |instance, number| {
                let moved = instance.set_mode(number, mode.into())?;
                if Mode::from(moved.lease.mode) != mode {
                    return Err(Fault::new("set-mode", format!("did not take the mode {mode}")));
                }
                Ok(Answer::of(moved))
            });
        });
    }

    pub(crate) fn status(&self, env: &Env, circuit: &Circuit) -> Status {
        let told = self.locked(env, |machine, cx| {
            let told = machine.cross(cx, circuit, |instance, number| {
                let status = instance.inspect(number)?;
                if *status.key != *circuit.key {
                    return Err(Fault::new("inspect", "handed out the status of another key"));
                }
                Ok(Answer { lease: None, transition: None, value: status })
            });
            told.map_or_else(|| without_component(machine, cx, circuit), Status::from)
        });
        Status {
            stale_results: circuit.stale.load(Ordering::Relaxed),
            would_have_rejected: circuit.would_have_rejected.load(Ordering::Relaxed),
            ..told
        }
    }
}

/// What `Shard::attach` comes to.
pub(crate) enum Attached {
    Added(Arc<Circuit>),
    /// Another thread was faster.
    Found(Arc<Circuit>),
}

/// What a lease's answer means for a call that wants to begin.
fn decided(
    circuit: &Circuit,
    view: &View,
    answer: Decision,
    now: impl FnOnce() -> u64,
) -> Result<Held, Rejection> {
    let lease = &view.lease;
    match answer {
        Decision::Admit(admission) => Ok(Held {
            admission: Some(admission),
            started: lease.measures().then(now),
            call_timeout: lease.call_timeout,
        }),
        Decision::Pass | Decision::Ask => Ok(Held::unrecorded(lease.call_timeout)),
        Decision::Reject { .. } if lease.mode == Mode::Shadow => {
            circuit.would_have_rejected.fetch_add(1, Ordering::Relaxed);
            Ok(Held::unrecorded(lease.call_timeout))
        }
        Decision::Reject { reason: crate::RejectionReason::Other, .. } if view.at_fault => {
            Err(Rejection::at_fault(&circuit.key))
        }
        Decision::Reject { reason, retry_after } => Err(Rejection::new(&circuit.key, reason, retry_after)),
    }
}

fn acquire_locked(machine: &mut Machine, cx: &Cx<'_>, circuit: &Circuit) -> Result<Held, Rejection> {
    let view = circuit.gate.read_locked();
    let answer = view.answer(|| cx.now);
    if answer != Decision::Ask && (!cx.env.ignore_leases || view.at_fault) {
        return decided(circuit, &view, answer, || cx.now);
    }
    let asked = machine.cross(cx, circuit, |instance, number| {
        let admission = instance.acquire(number)?;
        Ok(Answer {
            lease: Some(admission.lease),
            transition: admission.transition,
            value: admission.decision,
        })
    });
    let view = circuit.gate.read_locked();
    let answer = match asked {
        Some(wit::Decision::Admit(ticket)) => Decision::Admit(Admission {
            ticket,
            generation: view.lease.generation,
            incarnation: view.incarnation,
        }),
        Some(wit::Decision::Pass) => Decision::Pass,
        Some(wit::Decision::Reject(rejection)) => {
            Decision::Reject { reason: rejection.reason.into(), retry_after: rejection.retry_after }
        }
        // It failed: what holds without it is in the gate, and where that says 'ask', `on_fault` says.
        None => match (view.answer(|| cx.now), cx.env.on_fault) {
            (Decision::Ask, OnFault::Admit) => Decision::Pass,
            (Decision::Ask, OnFault::Reject) => return Err(Rejection::at_fault(&circuit.key)),
            (answer, OnFault::Admit | OnFault::Reject) => answer,
        },
    };
    decided(circuit, &view, answer, || cx.now)
}

/// Whether the lease as it is now settles the call, so that the component need not be told.
fn settled_by_lease(
    env: &Env,
    circuit: &Circuit,
    held: &Held,
    admission: &Admission,
    outcome: Outcome,
) -> bool {
    use crate::gate::{Keeping, Weight};
    loop {
        let Some(view) = circuit.gate.read() else { return false };
        // Only a success can depend on the clock, and only under some leases.
        let by_clock = outcome == Outcome::Success && (held.started.is_some() || view.weighs_by_the_clock());
        let now = (by_clock && !view.voids(admission)).then(|| env.clock.monotonic());
        let took = now.and_then(|now| held.took(now));
        match view.weigh(admission, held.outcome(outcome, took), took, now) {
            Weight::Void => {
                circuit.stale.fetch_add(1, Ordering::Relaxed);
                return true;
            }
            Weight::Nothing => return true,
            Weight::Keep { allowed } => match circuit.gate.keep(&view, allowed) {
                Keeping::Kept => return true,
                Keeping::Changed => {}
                Keeping::Closed => return false,
            },
            Weight::Tell => return false,
        }
    }
}

fn settle_locked(
    machine: &mut Machine,
    cx: &Cx<'_>,
    circuit: &Circuit,
    held: &Held,
    admission: &Admission,
    report: Report,
) {
    let view = circuit.gate.read_locked();
    // Told of everything, a component still knows nothing of the tickets of another instance.
    let void = if cx.env.ignore_leases { view.incarnation != admission.incarnation } else { view.voids(admission) };
    let took = held.took(cx.now);
    let counted = !void && {
        circuit.recorded.store(true, Ordering::Relaxed);
        let report = types::Report {
            outcome: match held.outcome(report.outcome, took) {
                Outcome::Success => types::Outcome::Success,
                Outcome::Failure => types::Outcome::Failure,
                Outcome::Timeout => types::Outcome::Timeout,
                Outcome::Ignored => types::Outcome::Ignored,
            },
            took,
            retry_after: report.retry_after,
            cause: report.cause.map(short),
        };
        machine
            .cross(cx, circuit, |instance, number| {
                let settled = instance.settle(number, admission.ticket, &report)?;
                Ok(Answer {
                    lease: Some(settled.lease),
                    transition: settled.transition,
                    value: settled.counted,
                })
            })
            .unwrap_or(false)
    };
    if !counted {
        circuit.stale.fetch_add(1, Ordering::Relaxed);
    }
}

/// What can be said of a circuit whose component cannot be asked.
fn without_component(machine: &Machine, cx: &Cx<'_>, circuit: &Circuit) -> Status {
    let View { lease, at_fault, .. } = circuit.gate.read_locked();
    let saved = machine.slots.get(circuit.slot).and_then(|slot| slot.saved.as_ref());
    Status {
        key: circuit.key.to_string(),
        state: lease.state,
        mode: lease.mode,
        since: crate::clock::system_time(saved.map_or(0, |saved| saved.snapshot.since)),
        retry_after: lease.until.map(|until| std::time::Duration::from_nanos(until.saturating_sub(cx.now))),
        cooldown_count: saved.and_then(|saved| saved.snapshot.cooldown_count),
        counts: crate::status::Counts::default(),
        last_failure: saved.and_then(|saved| saved.snapshot.last_failure).map(crate::clock::system_time),
        last_cause: saved.and_then(|saved| saved.snapshot.last_cause.clone()),
        stale_results: 0,
        would_have_rejected: 0,
        at_fault,
        extra: Vec::new(),
    }
}

/// A cause is for people, and kept by the component for every circuit.
fn short(cause: String) -> String {
    let mut cause = clip(cause);
    cause.truncate(cause.floor_char_boundary(MAX_CAUSE));
    cause
}

/// The longest cause that is passed on, in bytes.
const MAX_CAUSE: usize = 256;
