//! The exports, each with its way to be wrong.

use alloc::{
    collections::BTreeMap,
    string::{String, ToString},
    vec,
    vec::Vec,
};

use spin::Mutex;
use tripwit_core::{
    Cause, Consecutive, Decision, Lease, Mode, Operation, Outcome, Policy, Rejection, RejectionReason,
    Report, Standing, State, Successes, Ticket,
};
use tripwit_policy::{
    Admission, AttachError, Attachment, Circuits, Host, Moved, Settlement, Snapshot, Stamped, Status,
    component::bindings::exports::tripwit::breaker::policy as wit,
};

use crate::ears::{Ears, made_up};
use crate::fault::{Fault, schema, split};

const MILLISECOND: u64 = 1_000_000;
const HOUR: u64 = 3_600_000 * MILLISECOND;

static INSTANCE: Mutex<Option<Instance>> = Mutex::new(None);

/// The circuits, and what is wrong with each.
struct Instance {
    circuits: Circuits<Consecutive, Ears>,
    wrongs: BTreeMap<u32, Wrong>,
    shelf: BTreeMap<String, u32>,
}

#[derive(Clone, Default)]
struct Wrong {
    fault: Fault,
    key: String,
    /// As they were written.
    settings: String,
    /// A probe that has not been settled.
    probe: Option<Ticket>,
    /// Probes that were settled.
    used: Vec<Ticket>,
}

fn with<R>(run: impl FnOnce(&mut Instance) -> R) -> R {
    let Some(mut instance) = INSTANCE.try_lock() else {
        core::arch::wasm32::unreachable();
    };
    run(instance.get_or_insert_with(|| Instance {
        circuits: Circuits::new(Ears::default()),
        wrongs: BTreeMap::new(),
        shelf: BTreeMap::new(),
    }))
}

/// Only a faulty host asks for a circuit that is not attached.
fn known<T>(answer: Option<T>) -> T {
    answer.unwrap_or_else(|| core::arch::wasm32::unreachable())
}

impl Instance {
    /// Prepares for a call about a circuit.
    fn enter(&mut self, circuit: u32) -> Fault {
        let fault = self
            .wrongs
            .get(&circuit)
            .map(|wrong| wrong.fault)
            .unwrap_or_default();
        self.circuits.host().fault = fault;
        fault
    }

    fn wrong(&mut self, circuit: u32) -> &mut Wrong {
        self.wrongs.entry(circuit).or_default()
    }

    /// Splits settings, and has the faults of those that take any settings.
    fn split(&mut self, text: &str) -> Result<(Fault, String), AttachError> {
        let unchecked = self
            .wrongs
            .values()
            .any(|wrong| wrong.fault == Fault::UncheckedSettings);
        let nameless = self
            .wrongs
            .values()
            .any(|wrong| wrong.fault == Fault::WrongPointer);
        let read = split(text).and_then(|(fault, rest)| Consecutive::parse(&rest).map(|_| (fault, rest)));
        match read {
            Err(_) if unchecked => Ok((Fault::UncheckedSettings, "{}".to_string())),
            Err(mut error) if nameless => {
                error.field = "settings".to_string();
                Err(error.into())
            }
            read => Ok(read?),
        }
    }

    fn keep(&mut self, circuit: u32, fault: Fault, key: &str, settings: &str) {
        let wrong = Wrong {
            fault,
            key: key.to_string(),
            settings: settings.to_string(),
            ..Wrong::default()
        };
        self.wrongs.entry(circuit).or_insert(wrong);
    }

    fn attach(&mut self, key: &str, settings: &str) -> Result<Attachment, AttachError> {
        let (fault, rest) = self.split(settings)?;
        self.circuits.host().fault = fault;
        let key = if fault == Fault::MixedKeys && !key.trim().is_empty() {
            key.trim()
        } else {
            key
        };
        if fault == Fault::Remembered
            && let Some(circuit) = self.shelf.remove(key)
        {
            let lease = known(self.circuits.lease_of(circuit));
            return Ok(Attachment { circuit, lease });
        }
        let mut attachment = self.circuits.attach(key, &rest)?;
        self.keep(attachment.circuit, fault, key, settings);
        self.bend(attachment.circuit, &mut attachment.lease);
        Ok(attachment)
    }

    fn configure(&mut self, circuit: u32, settings: &str) -> Result<Moved, AttachError> {
        self.enter(circuit);
        let (fault, rest) = self.split(settings)?;
        let mut moved = known(self.circuits.configure(circuit, &rest))?;
        let wrong = self.wrong(circuit);
        wrong.fault = fault;
        wrong.settings = settings.to_string();
        wrong.probe = None;
        self.bend_moved(circuit, &mut moved);
        Ok(moved)
    }

    fn detach(&mut self, circuit: u32) {
        if self.enter(circuit) == Fault::Remembered {
            let key = self.wrong(circuit).key.clone();
            self.shelf.insert(key, circuit);
            return;
        }
        self.wrongs.remove(&circuit);
        known(self.circuits.detach(circuit));
    }

    fn acquire(&mut self, circuit: u32) -> Admission {
        let fault = self.enter(circuit);
        let lease = known(self.circuits.lease_of(circuit));
        match fault {
            Fault::RestartedWait if lease.state == State::Open => self.restart_wait(circuit),
            Fault::DisabledShadow if lease.mode == Mode::Shadow => {
                let mut lease = lease;
                self.bend(circuit, &mut lease);
                return Admission {
                    decision: Decision::Pass,
                    lease,
                    transition: None,
                };
            }
            Fault::EndlessHalfOpen
                if lease.state == State::HalfOpen && self.wrong(circuit).probe.is_some() =>
            {
                let mut lease = lease;
                self.bend(circuit, &mut lease);
                return Admission {
                    decision: Decision::Reject(Rejection {
                        reason: RejectionReason::ProbeLimit,
                        retry_after: None,
                    }),
                    lease,
                    transition: None,
                };
            }
            _ => {}
        }
        let mut admission = known(self.circuits.acquire(circuit));
        if let (Decision::Admit(ticket), State::HalfOpen) = (admission.decision, admission.lease.state) {
            self.wrong(circuit).probe = Some(ticket);
        }
        self.bend(circuit, &mut admission.lease);
        bend_transition(fault, &mut admission.transition);
        admission
    }

    fn restart_wait(&mut self, circuit: u32) {
        let latest = self.circuits.host().latest;
        if self.circuits.host().monotonic() < latest {
            known(self.circuits.trip(circuit, Some(HOUR)));
        }
    }

    fn settle(&mut self, circuit: u32, ticket: Ticket, report: &Report) -> Settlement {
        let fault = self.enter(circuit);
        let before = known(self.circuits.lease_of(circuit));
        if fault == Fault::LeakedProbe
            && report.outcome == Outcome::Ignored
            && before.state == State::HalfOpen
        {
            return Settlement {
                counted: true,
                lease: before,
                transition: None,
            };
        }
        let mut settlement = known(self.circuits.settle(circuit, ticket, report));
        let failed = matches!(report.outcome, Outcome::Failure | Outcome::Timeout);
        match fault {
            Fault::LateResult if !settlement.counted && failed && before.state == State::Open => {
                settlement.lease = known(self.circuits.trip(circuit, Some(HOUR))).lease;
            }
            Fault::DoubleSettle if !settlement.counted && self.wrong(circuit).used.contains(&ticket) => {
                if let Decision::Admit(other) = known(self.circuits.acquire(circuit)).decision {
                    settlement = known(self.circuits.settle(circuit, other, report));
                }
            }
            Fault::SpanWithoutMove => {
                let key = self.wrong(circuit).key.clone();
                let host = self.circuits.host();
                let at = host.wall();
                host.export_span(made_up(&key, at));
            }
            _ => {}
        }
        let wrong = self.wrong(circuit);
        if wrong.probe == Some(ticket) {
            wrong.probe = None;
            wrong.used.push(ticket);
        }
        self.bend(circuit, &mut settlement.lease);
        bend_transition(fault, &mut settlement.transition);
        settlement
    }

    fn settle_successes(&mut self, circuit: u32, ticket: Ticket, count: u32) -> Moved {
        self.enter(circuit);
        let mut moved = known(self.circuits.settle_successes(circuit, ticket, count));
        self.bend_moved(circuit, &mut moved);
        moved
    }

    fn trip(&mut self, circuit: u32, wait: Option<u64>) -> Moved {
        let fault = self.enter(circuit);
        let open = known(self.circuits.lease_of(circuit)).state == State::Open;
        if fault == Fault::ShorterWait && open {
            // Restored with the new wait, the circuit forgets the longer one.
            let mut snapshot = known(self.circuits.save(circuit));
            snapshot.saved.retry_after = wait.or(snapshot.saved.retry_after);
            let settings = snapshot.settings.clone();
            if let Ok(restored) = self.circuits.restore(&snapshot, &settings, 0) {
                return Moved {
                    lease: restored.lease,
                    transition: None,
                };
            }
        }
        let mut moved = known(self.circuits.trip(circuit, wait));
        self.wrong(circuit).probe = None;
        self.bend_moved(circuit, &mut moved);
        moved
    }

    fn reset(&mut self, circuit: u32) -> Moved {
        let fault = self.enter(circuit);
        let mut moved = known(self.circuits.reset(circuit));
        self.wrong(circuit).probe = None;
        self.bend_moved(circuit, &mut moved);
        if fault == Fault::OlderGeneration {
            moved.lease.generation = 0;
        }
        moved
    }

    fn set_mode(&mut self, circuit: u32, mode: Mode) -> Moved {
        let fault = self.enter(circuit);
        let mut moved = if fault == Fault::IgnoredMode && mode == Mode::ForcedOpen {
            Moved {
                lease: known(self.circuits.lease_of(circuit)),
                transition: None,
            }
        } else {
            known(self.circuits.set_mode(circuit, mode))
        };
        self.wrong(circuit).probe = None;
        self.bend_moved(circuit, &mut moved);
        moved
    }

    fn cool_down(&mut self) -> Vec<(u32, Moved)> {
        let mut all = vec![];
        let touched = self
            .wrongs
            .iter()
            .filter(|(_, wrong)| wrong.fault == Fault::TouchedByCycles);
        for circuit in touched.map(|(circuit, _)| *circuit).collect::<Vec<_>>() {
            let lease = known(self.circuits.lease_of(circuit));
            all.push((
                circuit,
                Moved {
                    lease,
                    transition: None,
                },
            ));
        }
        all
    }

    fn inspect(&mut self, circuit: u32) -> Status {
        let fault = self.enter(circuit);
        if fault == Fault::MovingInspect && known(self.circuits.lease_of(circuit)).state == State::HalfOpen {
            known(self.circuits.acquire(circuit));
        }
        known(self.circuits.inspect(circuit))
    }

    fn save(&mut self, circuit: u32) -> Snapshot {
        let fault = self.enter(circuit);
        let mut snapshot = known(self.circuits.save(circuit));
        snapshot.settings = self.wrong(circuit).settings.clone();
        match fault {
            Fault::LostWait => snapshot.saved.retry_after = None,
            Fault::LostMode => snapshot.saved.mode = Mode::Automatic,
            _ => {}
        }
        snapshot
    }

    fn restore(&mut self, snapshot: &Snapshot, settings: &str, age: u64) -> Result<Attachment, AttachError> {
        let (fault, rest) = self.split(settings)?;
        self.circuits.host().fault = fault;
        if fault == Fault::ForeignDetail && !snapshot.detail_format.is_empty() {
            core::arch::wasm32::unreachable();
        }
        let mut attachment = self.circuits.restore(snapshot, &rest, age)?;
        self.wrongs.remove(&attachment.circuit);
        self.keep(attachment.circuit, fault, &snapshot.key, settings);
        self.bend(attachment.circuit, &mut attachment.lease);
        Ok(attachment)
    }

    fn lease_of(&mut self, circuit: u32) -> Lease {
        self.enter(circuit);
        let mut lease = known(self.circuits.lease_of(circuit));
        self.bend(circuit, &mut lease);
        lease
    }

    fn bend_moved(&mut self, circuit: u32, moved: &mut Moved) {
        let fault = self.wrong(circuit).fault;
        self.bend(circuit, &mut moved.lease);
        bend_transition(fault, &mut moved.transition);
    }

    /// A lease as the fault has it.
    fn bend(&mut self, circuit: u32, lease: &mut Lease) {
        let wrong = self.wrong(circuit);
        match wrong.fault {
            Fault::LyingLease if lease.state == State::Closed => lease.successes = Successes::Never,
            Fault::LongLease => lease.until = lease.until.map(|until| until.saturating_add(MILLISECOND)),
            Fault::DisabledShadow if lease.mode == Mode::Shadow => {
                lease.standing = Standing::Ask;
                lease.until = None;
            }
            Fault::EndlessHalfOpen if lease.state == State::HalfOpen && wrong.probe.is_some() => {
                lease.standing = Standing::Reject(RejectionReason::ProbeLimit);
                lease.until = None;
            }
            _ => {}
        }
    }
}

/// A move as the fault has it.
fn bend_transition(fault: Fault, transition: &mut Option<Stamped>) {
    let Some(stamped) = transition else {
        return;
    };
    let moved = &mut stamped.transition;
    match (fault, moved.operation, moved.cause) {
        (Fault::HiddenMove, Operation::HalfOpen, _) => *transition = None,
        (Fault::WrongEdge, Operation::ReTrip, _) => moved.operation = Operation::Trip,
        (Fault::WrongCause, _, Cause::Operator) => moved.cause = Cause::Policy,
        _ => {}
    }
}

struct Exports;

impl wit::Guest for Exports {
    fn describe() -> wit::Description {
        wit::Description {
            name: "wrong".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            summary: "Breaks the contract in the way that its settings choose, for tests.".into(),
            settings_schema: schema(),
            extra: Vec::new(),
        }
    }

    fn prepare(setup: wit::Setup) {
        with(|instance| instance.circuits.prepare(setup.into()));
    }

    fn attach(key: String, settings: String) -> Result<wit::Attachment, wit::AttachError> {
        let attached = with(|instance| instance.attach(&key, &settings));
        attached.map(Into::into).map_err(Into::into)
    }

    fn configure(circuit: u32, settings: String) -> Result<wit::Moved, wit::AttachError> {
        let moved = with(|instance| instance.configure(circuit, &settings));
        moved.map(Into::into).map_err(Into::into)
    }

    fn detach(circuit: u32) {
        with(|instance| instance.detach(circuit));
    }

    fn acquire(circuit: u32) -> wit::Admission {
        with(|instance| instance.acquire(circuit)).into()
    }

    fn settle(circuit: u32, ticket: u64, report: wit::Report) -> wit::Settlement {
        with(|instance| instance.settle(circuit, ticket, &report.into())).into()
    }

    fn settle_successes(circuit: u32, ticket: u64, count: u32) -> wit::Moved {
        with(|instance| instance.settle_successes(circuit, ticket, count)).into()
    }

    fn lease_of(circuit: u32) -> wit::Lease {
        with(|instance| instance.lease_of(circuit)).into()
    }

    fn trip(circuit: u32, wait: Option<u64>) -> wit::Moved {
        with(|instance| instance.trip(circuit, wait)).into()
    }

    fn reset(circuit: u32) -> wit::Moved {
        with(|instance| instance.reset(circuit)).into()
    }

    fn set_mode(circuit: u32, mode: wit::Mode) -> wit::Moved {
        with(|instance| instance.set_mode(circuit, mode.into())).into()
    }

    fn cool_down() -> Vec<(u32, wit::Moved)> {
        let moved = with(Instance::cool_down);
        moved
            .into_iter()
            .map(|(circuit, moved)| (circuit, moved.into()))
            .collect()
    }

    fn inspect(circuit: u32) -> wit::Status {
        with(|instance| instance.inspect(circuit)).into()
    }

    fn tripped() -> Vec<String> {
        with(|instance| instance.circuits.tripped())
    }

    fn save(circuit: u32) -> wit::Snapshot {
        with(|instance| instance.save(circuit)).into()
    }

    fn restore(
        snapshot: wit::Snapshot,
        settings: String,
        age: u64,
    ) -> Result<wit::Attachment, wit::AttachError> {
        let restored = with(|instance| instance.restore(&snapshot.into(), &settings, age));
        restored.map(Into::into).map_err(Into::into)
    }
}

mod exported {
    use super::Exports;

    tripwit_policy::component::bindings::export!(Exports with_types_in tripwit_policy::component::bindings);
}
