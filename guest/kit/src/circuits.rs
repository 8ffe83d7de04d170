//! The circuits of one instance, by key and by number.

use alloc::{
    boxed::Box,
    collections::BTreeMap,
    format,
    string::{String, ToString},
    sync::Arc,
    vec::Vec,
};

use tripwit_core::{
    Circuit, Cooled, Counts, Decision, Env, Instant, Lease, Mode, Nanoseconds, Numbers, Outcome, Policy,
    Report, Saved, State, Ticket, Transition,
};

use crate::{
    AttachError, Instrumentation, Line, Span, Timestamp,
    telemetry::{line, mode_line, span},
};

/// The longest key, in bytes.
pub const MAX_KEY: usize = 512;
/// The longest cause that is kept, in bytes.
const MAX_CAUSE: usize = 256;
/// The most circuits of one instance.
const MAX_CIRCUITS: u32 = 1 << 20;

/// What surrounds the circuits: clocks, a log, a place for spans.
pub trait Host {
    /// A reading of the monotonic clock.
    fn monotonic(&mut self) -> Instant;
    /// A reading of the wall clock.
    fn wall(&mut self) -> Timestamp;
    /// Takes a log line.
    fn log(&mut self, line: Line);
    /// Takes a finished span.
    fn export_span(&mut self, span: Span);
}

/// What holds for a whole instance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Setup {
    /// For jitter.
    pub seed: u64,
    /// What spans carry.
    pub instrumentation: Instrumentation,
    /// Prefix of the product's own names; the policy's own when absent.
    pub namespace: Option<String>,
}

/// A circuit that was found or added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// Its number.
    pub circuit: u32,
    /// Its lease.
    pub lease: Lease,
}

/// A transition, and when it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamped {
    /// The move.
    pub transition: Transition,
    /// When.
    pub at: Timestamp,
}

/// The answer to `acquire`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admission {
    /// Whether the call may be made.
    pub decision: Decision,
    /// The lease from now on.
    pub lease: Lease,
    /// The move that was made.
    pub transition: Option<Stamped>,
}

/// The answer to `settle`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settlement {
    /// Whether the report counted.
    pub counted: bool,
    /// The lease from now on.
    pub lease: Lease,
    /// The move that was made.
    pub transition: Option<Stamped>,
}

/// Where a circuit stands after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// The lease from now on.
    pub lease: Lease,
    /// The move that was made.
    pub transition: Option<Stamped>,
}

/// What can be seen of a circuit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Its key.
    pub key: Arc<str>,
    /// Its state.
    pub state: State,
    /// Its mode.
    pub mode: Mode,
    /// When it came into this state.
    pub since: Timestamp,
    /// How long it stays open yet, where the clock decides. Nanoseconds.
    pub retry_after: Option<Nanoseconds>,
    /// Cool-down cycles still to go, where cycles decide.
    pub cooldown_count: Option<u32>,
    /// What the policy decides on.
    pub counts: Counts,
    /// When a failure last counted.
    pub last_failure: Option<Timestamp>,
    /// What it was.
    pub last_cause: Option<Box<str>>,
}

/// A circuit as another instance can take it over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Its key.
    pub key: String,
    /// Its settings, as they were written.
    pub settings: String,
    /// Its state and all that goes with it.
    pub saved: Saved,
    /// When it came into this state.
    pub since: Timestamp,
    /// When a failure last counted.
    pub last_failure: Option<Timestamp>,
    /// What it was.
    pub last_cause: Option<String>,
    /// What only the same policy understands. Empty: the policies here need nothing more.
    pub detail: Vec<u8>,
    /// The format of `detail`.
    pub detail_format: String,
}

#[derive(Debug)]
struct Slot<P: Policy> {
    key: Arc<str>,
    settings: Arc<str>,
    circuit: Circuit<P>,
    since: Timestamp,
    last_failure: Option<Timestamp>,
    last_cause: Option<Box<str>>,
}

/// The circuits of one instance. Where a number is not attached, an operation answers `None`.
#[derive(Debug)]
pub struct Circuits<P: Policy, H> {
    host: H,
    setup: Setup,
    numbers: Numbers,
    slots: Vec<Option<Slot<P>>>,
    free: Vec<u32>,
    by_key: BTreeMap<Arc<str>, u32>,
    /// Every settings text in use is read once. Sorted by text.
    settings: Vec<(Arc<str>, Arc<P::Settings>)>,
}

impl<P: Policy, H: Host> Circuits<P, H> {
    /// No circuits.
    pub fn new(host: H) -> Self {
        Self {
            host,
            setup: Setup::default(),
            numbers: Numbers::default(),
            slots: Vec::new(),
            free: Vec::new(),
            by_key: BTreeMap::new(),
            settings: Vec::new(),
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
        let (text, parsed) = self.read_settings(settings)?;
        if let Some(&number) = self.by_key.get(key) {
            let found = self
                .attached(number)
                .filter(|slot| *slot.circuit.settings() == parsed)
                .is_some();
            self.forget_settings(text, parsed);
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
            key,
            seed: self.setup.seed,
            numbers: &mut self.numbers,
        };
        let circuit = Circuit::new(parsed, &mut env);
        let lease = circuit.lease(now);
        let since = self.host.wall();
        let slot = Slot {
            key: key.into(),
            settings: text,
            circuit,
            since,
            last_failure: None,
            last_cause: None,
        };
        Ok(Attachment {
            circuit: self.insert(slot)?,
            lease,
        })
    }

    /// Changes a circuit's settings.
    pub fn configure(&mut self, number: u32, settings: &str) -> Option<Result<Moved, AttachError>> {
        self.attached(number)?;
        let (text, parsed) = match self.read_settings(settings) {
            Ok(read) => read,
            Err(error) => return Some(Err(error)),
        };
        let moved = self.command(number, |circuit, env| {
            circuit.configure(parsed, env);
            None
        })?;
        let slot = self.slots.get_mut(number as usize)?.as_mut()?;
        let old = core::mem::replace(&mut slot.settings, text);
        self.forget_text(&old);
        Some(Ok(moved))
    }

    /// Forgets a circuit. Its number may be handed out again.
    pub fn detach(&mut self, number: u32) -> Option<()> {
        let slot = self.slots.get_mut(number as usize)?.take()?;
        self.by_key.remove(&slot.key);
        self.free.push(number);
        let Slot {
            settings, circuit, ..
        } = slot;
        drop(circuit);
        self.forget_text(&settings);
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
            let slot = self.slots.get_mut(number as usize)?.as_mut()?;
            slot.last_failure = Some(at);
            slot.last_cause = report.cause.as_deref().map(shorten).map(Into::into);
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
        let slot = self.slots.get_mut(number as usize)?.as_mut()?;
        slot.last_failure = None;
        slot.last_cause = None;
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
            last_failure: slot.last_failure,
            last_cause: slot.last_cause.clone(),
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

    /// A circuit as another instance can take it over.
    pub fn save(&mut self, number: u32) -> Option<Snapshot> {
        let now = self.host.monotonic();
        let slot = self.attached(number)?;
        let detail = slot.circuit.detail(now);
        Some(Snapshot {
            key: slot.key.to_string(),
            settings: slot.settings.to_string(),
            saved: slot.circuit.save(now),
            since: slot.since,
            last_failure: slot.last_failure,
            last_cause: slot.last_cause.as_deref().map(ToString::to_string),
            detail_format: if detail.is_empty() {
                String::new()
            } else {
                P::DETAIL_FORMAT.to_string()
            },
            detail,
        })
    }

    /// Takes a circuit over, `age` after it was saved, under settings of this policy. Nanoseconds.
    ///
    /// # Errors
    ///
    /// When key, settings or snapshot do not fit, or there is no room.
    pub fn restore(
        &mut self,
        snapshot: &Snapshot,
        settings: &str,
        age: Nanoseconds,
    ) -> Result<Attachment, AttachError> {
        check_key(&snapshot.key)?;
        if snapshot.detail_format.is_empty() && !snapshot.detail.is_empty() {
            return Err(AttachError::Snapshot("a detail without a format".to_string()));
        }
        let known = snapshot.detail_format == P::DETAIL_FORMAT;
        let detail = if known { snapshot.detail.as_slice() } else { &[] };
        let (text, parsed) = self.read_settings(settings)?;
        let now = self.host.monotonic();
        let mut env = Env {
            now,
            key: &snapshot.key,
            seed: self.setup.seed,
            numbers: &mut self.numbers,
        };
        let circuit = match Circuit::restore(&snapshot.saved, detail, age, parsed, &mut env) {
            Ok(circuit) => circuit,
            Err(error) => {
                self.forget_text(&text);
                return Err(error.into());
            }
        };
        let lease = circuit.lease(now);
        let slot = Slot {
            key: snapshot.key.as_str().into(),
            settings: text,
            circuit,
            since: snapshot.since,
            last_failure: snapshot.last_failure,
            last_cause: snapshot.last_cause.as_deref().map(shorten).map(Into::into),
        };
        if let Some(&number) = self.by_key.get(snapshot.key.as_str()) {
            let old = self
                .slots
                .get_mut(number as usize)
                .and_then(|place| place.replace(slot));
            if let Some(Slot {
                settings, circuit, ..
            }) = old
            {
                drop(circuit);
                self.forget_text(&settings);
            }
            return Ok(Attachment {
                circuit: number,
                lease,
            });
        }
        Ok(Attachment {
            circuit: self.insert(slot)?,
            lease,
        })
    }

    fn attached(&self, number: u32) -> Option<&Slot<P>> {
        self.slots.get(number as usize)?.as_ref()
    }

    fn insert(&mut self, slot: Slot<P>) -> Result<u32, AttachError> {
        let number = match self.free.pop() {
            Some(number) => number,
            None if self.slots.len() >= MAX_CIRCUITS as usize => {
                let Slot {
                    settings, circuit, ..
                } = slot;
                drop(circuit);
                self.forget_text(&settings);
                return Err(AttachError::Full(MAX_CIRCUITS));
            }
            None => {
                self.slots.push(None);
                u32::try_from(self.slots.len().saturating_sub(1)).unwrap_or(u32::MAX)
            }
        };
        self.by_key.insert(slot.key.clone(), number);
        if let Some(place) = self.slots.get_mut(number as usize) {
            *place = Some(slot);
        }
        Ok(number)
    }

    fn event<R>(
        &mut self,
        number: u32,
        event: impl FnOnce(&mut Circuit<P>, &mut Env<'_>) -> R,
    ) -> Option<(R, Lease)> {
        let now = self.host.monotonic();
        let slot = self.slots.get_mut(number as usize)?.as_mut()?;
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
        let slot = self.slots.get_mut(number as usize)?.as_mut()?;
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

    fn read_settings(&mut self, text: &str) -> Result<(Arc<str>, Arc<P::Settings>), AttachError> {
        let place = self.place_of(text);
        if let Some(known) = place.ok().and_then(|place| self.settings.get(place)) {
            return Ok(known.clone());
        }
        let read = (Arc::from(text), Arc::new(P::parse(text)?));
        self.settings
            .insert(place.unwrap_or_else(|place| place), read.clone());
        Ok(read)
    }

    fn place_of(&self, text: &str) -> Result<usize, usize> {
        self.settings
            .binary_search_by(|(known, _)| known.as_ref().cmp(text))
    }

    fn forget_settings(&mut self, text: Arc<str>, parsed: Arc<P::Settings>) {
        drop(parsed);
        self.forget_text(&text);
    }

    /// Forgets a settings text that no circuit has any more: it is held by the caller and the map alone.
    fn forget_text(&mut self, text: &Arc<str>) {
        if Arc::strong_count(text) <= 2
            && let Ok(place) = self.place_of(text)
        {
            self.settings.remove(place);
        }
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
