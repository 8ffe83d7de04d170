//! The circuits of one instance, by key and by number.

mod key;
mod slots;
mod take_over;
mod texts;
mod words;

use alloc::{
    boxed::Box,
    collections::BTreeMap,
    format,
    string::{String, ToString},
    sync::Arc,
    vec::Vec,
};

use tripwit_core::{
    Circuit, Cooled, Env, Lease, Mode, Nanoseconds, Numbers, Outcome, Policy, Report, State, Ticket,
    Transition,
};

use key::Key;
use slots::Slots;
use texts::Texts;
pub use words::{Admission, Attachment, Host, Moved, Settlement, Setup, Snapshot, Stamped, Status};

use crate::{
    AttachError, Timestamp,
    telemetry::{line, mode_line, span},
};

/// The longest key, in bytes.
pub const MAX_KEY: usize = 512;
/// The longest cause that is kept, in bytes.
const MAX_CAUSE: usize = 256;
/// The most circuits of one instance.
const MAX_CIRCUITS: u32 = 1 << 20;

#[derive(Debug)]
struct Slot<P: Policy> {
    key: Arc<str>,
    settings: Arc<str>,
    circuit: Circuit<P>,
    since: Timestamp,
    /// Boxed, since of many circuits few have one.
    last_failure: Option<Box<Failure>>,
}

/// The last failure that counted.
#[derive(Debug)]
struct Failure {
    at: Timestamp,
    cause: Option<Box<str>>,
}

impl Failure {
    fn new(at: Timestamp, cause: Option<&str>) -> Box<Self> {
        let cause = cause.map(shorten).map(Into::into);
        Box::new(Self { at, cause })
    }
}

/// The circuits of one instance. Where a number is not attached, an operation answers `None`.
#[derive(Debug)]
pub struct Circuits<P: Policy, H> {
    host: H,
    setup: Setup,
    numbers: Numbers,
    slots: Slots<Slot<P>>,
    by_key: BTreeMap<Key, u32>,
    texts: Texts<P>,
}

impl<P: Policy, H: Host> Circuits<P, H> {
    /// No circuits.
    pub fn new(host: H) -> Self {
        Self {
            host,
            setup: Setup::default(),
            numbers: Numbers::default(),
            slots: Slots::new(),
            by_key: BTreeMap::new(),
            texts: Texts::new(),
        }
    }

    /// What surrounds the circuits.
    pub fn host(&mut self) -> &mut H {
        &mut self.host
    }

    /// Says what holds for the whole instance from now on.
    pub fn prepare(&mut self, setup: Setup) {
        self.setup = setup;
    }

    /// Adds a closed circuit, or finds the one that has this key and equal settings.
    ///
    /// # Errors
    ///
    /// When key or settings do not fit, the key has other settings already, or there is no room.
    pub fn attach(&mut self, key: &str, settings: &str) -> Result<Attachment, AttachError> {
        check_key(key)?;
        let (text, parsed) = self.texts.read(settings)?;
        let key: Arc<str> = key.into();
        if let Some(&number) = self.by_key.get(&Key(key.clone())) {
            let found = self
                .attached(number)
                .filter(|slot| *slot.circuit.settings() == parsed)
                .is_some();
            drop(parsed);
            self.texts.forget(&text);
            let lease = self
                .lease_of(number)
                .filter(|_| found)
                .ok_or(AttachError::Conflict)?;
            return Ok(Attachment {
                circuit: number,
                lease,
            });
        }
        let now = self.host.monotonic();
        let mut env = Env {
            now,
            key: &key,
            seed: self.setup.seed,
            numbers: &mut self.numbers,
        };
        let circuit = Circuit::new(parsed, &mut env);
        let lease = circuit.lease(now);
        let since = self.host.wall();
        let slot = Slot {
            key,
            settings: text,
            circuit,
            since,
            last_failure: None,
        };
        Ok(Attachment {
            circuit: self.insert(slot)?,
            lease,
        })
    }

    /// Changes a circuit's settings.
    pub fn configure(&mut self, number: u32, settings: &str) -> Option<Result<Moved, AttachError>> {
        self.attached(number)?;
        let (text, parsed) = match self.texts.read(settings) {
            Ok(read) => read,
            Err(error) => return Some(Err(error.into())),
        };
        let moved = self.command(number, |circuit, env| {
            circuit.configure(parsed, env);
            None
        })?;
        let slot = self.slots.get_mut(number)?;
        let old = core::mem::replace(&mut slot.settings, text);
        self.texts.forget(&old);
        Some(Ok(moved))
    }

    /// Forgets a circuit. Its number may be handed out again.
    pub fn detach(&mut self, number: u32) -> Option<()> {
        let slot = self.slots.remove(number)?;
        let Slot {
            key,
            settings,
            circuit,
            ..
        } = slot;
        self.by_key.remove(&Key(key));
        drop(circuit);
        self.texts.forget(&settings);
        Some(())
    }

    /// Asks to make one call.
    pub fn acquire(&mut self, number: u32) -> Option<Admission> {
        let (admission, lease) = self.event(number, Circuit::acquire)?;
        let transition = self.tell(number, admission.transition);
        Some(Admission {
            decision: admission.decision,
            lease,
            transition,
        })
    }

    /// Says how an admitted call ended.
    pub fn settle(&mut self, number: u32, ticket: Ticket, report: &Report) -> Option<Settlement> {
        let (settlement, lease) = self.event(number, |circuit, env| circuit.settle(ticket, report, env))?;
        let failed = match report.outcome {
            Outcome::Failure | Outcome::Timeout => settlement.counted,
            Outcome::Success | Outcome::Ignored => false,
        };
        let transition = self.tell(number, settlement.transition);
        if failed {
            let at = transition.map_or_else(|| self.host.wall(), |stamped| stamped.at);
            let slot = self.slots.get_mut(number)?;
            slot.last_failure = Some(Failure::new(at, report.cause.as_deref()));
        }
        Some(Settlement {
            counted: settlement.counted,
            lease,
            transition,
        })
    }

    /// Hands in successes that were kept back under the lease with this ticket.
    pub fn settle_successes(&mut self, number: u32, ticket: Ticket, count: u32) -> Option<Moved> {
        self.command(number, |circuit, env| {
            circuit.settle_successes(ticket, count, env)
        })
    }

    /// The lease as it stands.
    pub fn lease_of(&mut self, number: u32) -> Option<Lease> {
        self.event(number, |circuit, env| circuit.touch(env))
            .map(|(_, lease)| lease)
    }

    /// Opens the circuit, for `wait` where it is given. Nanoseconds.
    pub fn trip(&mut self, number: u32, wait: Option<Nanoseconds>) -> Option<Moved> {
        self.command(number, |circuit, env| circuit.trip(wait, env))
    }

    /// Closes the circuit and forgets what was recorded.
    pub fn reset(&mut self, number: u32) -> Option<Moved> {
        let moved = self.command(number, Circuit::reset)?;
        let slot = self.slots.get_mut(number)?;
        slot.last_failure = None;
        Some(moved)
    }

    /// Changes who decides.
    pub fn set_mode(&mut self, number: u32, mode: Mode) -> Option<Moved> {
        let (changed, lease) = self.event(number, |circuit, env| circuit.set_mode(mode, env))?;
        if changed {
            let line = mode_line(&self.attached(number)?.key, mode);
            self.host.log(line);
        }
        Some(Moved {
            lease,
            transition: None,
        })
    }

    /// One cool-down cycle over every circuit that counts cycles. Returns those that counted.
    pub fn cool_down(&mut self) -> Vec<(u32, Moved)> {
        let numbers: Vec<u32> = self.by_key.values().copied().collect();
        numbers
            .into_iter()
            .filter_map(|number| {
                let (cooled, lease) = self.event(number, Circuit::cool_down)?;
                let Cooled::Counted(transition) = cooled else {
                    return None;
                };
                let transition = self.tell(number, transition);
                Some((number, Moved { lease, transition }))
            })
            .collect()
    }

    /// What can be seen of a circuit.
    pub fn inspect(&mut self, number: u32) -> Option<Status> {
        let now = self.host.monotonic();
        let slot = self.attached(number)?;
        Some(Status {
            key: slot.key.clone(),
            state: slot.circuit.state(),
            mode: slot.circuit.mode(),
            since: slot.since,
            retry_after: slot.circuit.retry_after(now),
            cooldown_count: slot.circuit.cooldown_count(),
            counts: slot.circuit.counts(now),
            last_failure: slot.last_failure.as_ref().map(|failure| failure.at),
            last_cause: slot
                .last_failure
                .as_ref()
                .and_then(|failure| failure.cause.clone()),
        })
    }

    /// The keys whose circuit is not closed, in their order.
    #[must_use]
    pub fn tripped(&self) -> Vec<String> {
        self.by_key
            .values()
            .filter_map(|number| self.attached(*number))
            .filter(|slot| slot.circuit.state() != State::Closed)
            .map(|slot| slot.key.to_string())
            .collect()
    }

    fn attached(&self, number: u32) -> Option<&Slot<P>> {
        self.slots.get(number)
    }

    fn insert(&mut self, slot: Slot<P>) -> Result<u32, AttachError> {
        let key = slot.key.clone();
        match self.slots.insert(slot) {
            Ok(number) => {
                self.by_key.insert(Key(key), number);
                Ok(number)
            }
            Err(Slot {
                settings, circuit, ..
            }) => {
                drop(circuit);
                self.texts.forget(&settings);
                Err(AttachError::Full(MAX_CIRCUITS))
            }
        }
    }

    fn event<R>(
        &mut self,
        number: u32,
        event: impl FnOnce(&mut Circuit<P>, &mut Env<'_>) -> R,
    ) -> Option<(R, Lease)> {
        let now = self.host.monotonic();
        let slot = self.slots.get_mut(number)?;
        let mut env = Env {
            now,
            key: &slot.key,
            seed: self.setup.seed,
            numbers: &mut self.numbers,
        };
        let answer = event(&mut slot.circuit, &mut env);
        Some((answer, slot.circuit.lease(now)))
    }

    fn command(
        &mut self,
        number: u32,
        command: impl FnOnce(&mut Circuit<P>, &mut Env<'_>) -> Option<Transition>,
    ) -> Option<Moved> {
        let (transition, lease) = self.event(number, command)?;
        let transition = self.tell(number, transition);
        Some(Moved { lease, transition })
    }

    /// Stamps a move and tells it: one span, one log line.
    fn tell(&mut self, number: u32, transition: Option<Transition>) -> Option<Stamped> {
        let transition = transition?;
        let at = self.host.wall();
        let slot = self.slots.get_mut(number)?;
        if transition.before != transition.after {
            slot.since = at;
        }
        let namespace = self.setup.namespace.as_deref().unwrap_or(P::TELEMETRY.namespace);
        self.host.export_span(span(
            &slot.key,
            &transition,
            at,
            self.setup.instrumentation,
            namespace,
        ));
        self.host.log(line(&slot.key, &transition));
        Some(Stamped { transition, at })
    }
}

fn check_key(key: &str) -> Result<(), AttachError> {
    if key.is_empty() {
        return Err(AttachError::Key(
            "the key is empty; name what the circuit guards".to_string(),
        ));
    }
    if key.len() > MAX_KEY {
        return Err(AttachError::Key(format!(
            "the key has {} bytes; {MAX_KEY} are the most",
            key.len()
        )));
    }
    Ok(())
}

fn shorten(cause: &str) -> &str {
    cause
        .get(..cause.floor_char_boundary(MAX_CAUSE))
        .unwrap_or_default()
}
