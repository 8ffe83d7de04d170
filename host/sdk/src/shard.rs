//! A shard: some of the circuits, the instance that decides on them, and what they have to tell.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard, RwLock};

use crate::admission::{Report, acquire_locked, decided, settle_locked, settled_by_lease};
use crate::bindings::tripwit::breaker::types;
use crate::circuit::{Circuit, Key};
use crate::clock::{Pace, Stopwatch};
use crate::env::Env;
use crate::error::AttachError;
use crate::gate::{Admission, Answer as Decision, Held, Outcome, View};
use crate::instance::Fault;
use crate::machine::{Answer, Cx, Machine};
use crate::regime::Regime;
use crate::registry::Registry;
use crate::rejection::{Rejection, RejectionReason};
use crate::settings::Settings;
use crate::snapshots::Room;
use crate::status::{Mode, Moved, Status, Transition};
use crate::tally::Ending;
use crate::telemetry::Outlet;

/// Locks are taken in this order: registry, machine. Nothing is given out while either is held.
pub(crate) struct Shard {
    pub(crate) registry: RwLock<Registry>,
    machine: Mutex<Machine>,
    outlet: Outlet,
    room: Room,
}

impl Shard {
    pub(crate) fn start(env: &Env, regime: &Arc<Regime>) -> Result<Self, Fault> {
        Ok(Self {
            registry: RwLock::default(),
            machine: Mutex::new(Machine::start(env, regime)?),
            outlet: Outlet::new(&env.ledger),
            room: Room::default(),
        })
    }

    /// Does something under the lock, with one reading of the clock, and gives out afterwards what there is to tell.
    pub(crate) fn locked<R>(&self, env: &Env, work: impl FnOnce(&mut Machine, &Cx<'_>) -> R) -> R {
        let result = self.quietly(env, work);
        self.outlet.give_out(env);
        result
    }

    /// The same for the holder of the registry's lock, who gives out later.
    fn quietly<R>(&self, env: &Env, work: impl FnOnce(&mut Machine, &Cx<'_>) -> R) -> R {
        let mut machine = self.machine.lock();
        work(&mut machine, &self.cx(env))
    }

    /// What everything done under one hold of the lock shares.
    fn cx<'a>(&'a self, env: &'a Env) -> Cx<'a> {
        Cx {
            env,
            outlet: &self.outlet,
            room: &self.room,
            now: env.clock.monotonic(),
        }
    }

    /// Does something long bit by bit, until `work` says that there is no more of it, and sleeps between two bits: see [`Pace`].
    pub(crate) fn in_batches(
        &self,
        env: &Env,
        mut work: impl FnMut(&mut Machine, &Cx<'_>, &Stopwatch) -> bool,
    ) {
        let mut pace = Pace::begin();
        while self.batch(env, &mut work) {
            pace.make_way();
        }
    }

    /// Does a bit of something long, for as long as a batch may hold the lock, and lets whoever waits for the lock have it
    /// before the next one.
    pub(crate) fn batch<R>(&self, env: &Env, work: impl FnOnce(&mut Machine, &Cx<'_>, &Stopwatch) -> R) -> R {
        let mut machine = self.machine.lock();
        let result = work(&mut machine, &self.cx(env), &Stopwatch::start(BATCH));
        MutexGuard::unlock_fair(machine);
        self.outlet.give_out(env);
        result
    }

    /// Takes note of a call that was rejected by its circuit's lease.
    #[inline(always)]
    pub(crate) fn reject(&self, env: &Env, reason: RejectionReason) {
        self.outlet.give_out_left(env);
        env.count(Ending::Rejected(reason));
    }

    /// Asks to make one call.
    pub(crate) fn acquire(&self, env: &Env, circuit: &Circuit) -> Result<Held, Rejection> {
        let held = self.ask(env, circuit);
        if let Err(rejection) = &held {
            env.count(Ending::Rejected(rejection.reason()));
        }
        held
    }

    #[inline(always)]
    fn ask(&self, env: &Env, circuit: &Circuit) -> Result<Held, Rejection> {
        if !env.ignore_leases
            && let Some(view) = circuit.gate.read()
        {
            let mut now = None;
            let answer = view.answer(|| *now.insert(env.clock.monotonic()));
            if matches!(answer, Decision::Reject { .. }) {
                self.outlet.give_out_left(env);
            }
            if answer != Decision::Ask {
                return decided(env, circuit, view, answer, || {
                    now.unwrap_or_else(|| env.clock.monotonic())
                });
            }
        }
        self.locked(env, |machine, cx| acquire_locked(machine, cx, circuit))
    }

    /// Says how an admitted call ended.
    pub(crate) fn settle(&self, env: &Env, circuit: &Circuit, held: &Held, report: Report) {
        let outcome = match held.admission() {
            Some(admission) => self.settle_admitted(env, circuit, held, &admission, report),
            None => report.outcome,
        };
        env.count(Ending::Ended(outcome));
    }

    #[inline(always)]
    fn settle_admitted(
        &self,
        env: &Env,
        circuit: &Circuit,
        held: &Held,
        admission: &Admission,
        report: Report,
    ) -> Outcome {
        if !env.ignore_leases
            && let Some(outcome) = settled_by_lease(env, circuit, held, admission, report.outcome)
        {
            return outcome;
        }
        self.locked(env, |machine, cx| {
            settle_locked(machine, cx, circuit, held, admission, report)
        })
    }

    /// The circuit of a key that has none yet. The caller has taken a place for it.
    pub(crate) fn attach(
        &self,
        env: &Env,
        key: &str,
        own: Option<&Settings>,
    ) -> Result<Attached, AttachError> {
        let attached = {
            let mut registry = self.registry.write();
            match registry.get(key) {
                Some(circuit) => Ok(Attached::Found(circuit.clone())),
                None => {
                    let key = Key::from(key);
                    self.quietly(env, |machine, cx| machine.attach(cx, &key, own))
                        .map(|circuit| {
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

    /// Whether there are as many circuits as the shipped policies take in one instance.
    pub(crate) fn is_full(&self) -> bool {
        self.registry.read().len() >= MAX_IN_SHARD
    }

    pub(crate) fn is_tight(&self, env: &Env) -> bool {
        self.machine.lock().newest().is_tight(env)
    }

    pub(crate) fn confirm(
        &self,
        env: &Env,
        circuit: &Circuit,
        settings: &Settings,
    ) -> Result<(), AttachError> {
        self.locked(env, |machine, cx| machine.confirm(cx, circuit, settings))
    }

    pub(crate) fn cool_down(&self, env: &Env) -> Vec<Moved> {
        self.locked(env, |machine, cx| machine.cool_down(cx))
    }

    pub(crate) fn trip(&self, env: &Env, circuit: &Circuit, wait: Option<u64>) -> Option<Transition> {
        self.command(env, circuit, |instance, number| instance.trip(number, wait))
    }

    pub(crate) fn reset(&self, env: &Env, circuit: &Circuit) -> Option<Transition> {
        self.command(env, circuit, |instance, number| {
            let moved = instance.reset(number)?;
            // Under the lock, so that nothing is wiped out that was recorded since.
            circuit.recorded.store(false, Ordering::Relaxed);
            Ok(moved)
        })
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
                let Answer {
                    lease,
                    transition: told,
                    value: (),
                } = Answer::of(moved);
                Ok(Answer {
                    lease,
                    transition: told,
                    value: transition,
                })
            })
        })?
    }

    pub(crate) fn set_mode(&self, env: &Env, circuit: &Circuit, mode: Mode) {
        self.locked(env, |machine, cx| machine.set_mode(cx, circuit, mode));
    }

    pub(crate) fn status(&self, env: &Env, circuit: &Circuit) -> Status {
        let told = self.locked(env, |machine, cx| {
            let told = machine.cross(cx, circuit, |instance, number| {
                let status = instance.inspect(number)?;
                if *status.key != *circuit.key {
                    return Err(Fault::new("inspect", "handed out the status of another key"));
                }
                Ok(Answer {
                    lease: None,
                    transition: None,
                    value: status,
                })
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

/// How long a batch may begin something new: with what it does last it holds the lock for well under a millisecond.
const BATCH: Duration = Duration::from_micros(200);

/// The most circuits of one shard: what the shipped policies take in one instance.
pub(crate) const MAX_IN_SHARD: usize = 1 << 20;

/// What `Shard::attach` comes to.
pub(crate) enum Attached {
    Added(Arc<Circuit>),
    /// Another thread was faster.
    Found(Arc<Circuit>),
}

/// What can be said of a circuit whose component cannot be asked.
fn without_component(machine: &Machine, cx: &Cx<'_>, circuit: &Circuit) -> Status {
    let View { lease, at_fault, .. } = circuit.gate.read_locked();
    let saved = machine
        .slots
        .get(circuit.slot())
        .and_then(|slot| slot.saved.as_ref());
    Status {
        key: circuit.key.to_string(),
        state: lease.state,
        mode: lease.mode,
        since: crate::clock::system_time(saved.map_or(0, |saved| saved.snapshot.since)),
        retry_after: lease
            .until
            .map(|until| Duration::from_nanos(until.saturating_sub(cx.now))),
        cooldown_count: saved.and_then(|saved| saved.snapshot.cooldown_count),
        counts: crate::status::Counts::default(),
        last_failure: saved
            .and_then(|saved| saved.snapshot.last_failure)
            .map(crate::clock::system_time),
        last_cause: saved.and_then(|saved| saved.snapshot.last_cause.clone()),
        stale_results: 0,
        would_have_rejected: 0,
        at_fault,
        extra: Vec::new(),
    }
}
