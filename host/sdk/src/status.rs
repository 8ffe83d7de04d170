//! What can be seen of a circuit: its state, its moves, its counts.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::bindings::exports::tripwit::breaker::policy as wit;
use crate::bindings::tripwit::breaker::types as wit_types;
use crate::clock::system_time;
pub use crate::words::{Mode, State};

/// What kind of move a circuit made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Closed to open.
    Trip,
    /// Open once more: a failed probe, or a failure that prolongs a wait counted in cycles.
    ReTrip,
    /// Open to half-open.
    HalfOpen,
    /// To closed.
    Reset,
}

/// What made a circuit move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The policy, by what it saw.
    Policy,
    /// An operator, by `trip` or `reset`.
    Operator,
    /// A cool-down cycle.
    CoolDown,
}

/// One move of a circuit.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Transition {
    /// What kind of move.
    pub operation: Operation,
    /// What made it.
    pub cause: Cause,
    /// The state it came from.
    pub before: State,
    /// The state it came to; a re-trip may stay where it was.
    pub after: State,
    /// When, by the wall clock.
    pub at: SystemTime,
    /// How long the circuit stays open, where the clock decides.
    pub wait: Option<Duration>,
    /// How many cool-down cycles it stays open, where cycles decide.
    pub cooldown_count: Option<u32>,
}

/// A move, and the circuit that made it: what subscribers get.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// The circuit's key.
    pub key: Arc<str>,
    /// Its move.
    pub transition: Transition,
}

/// A circuit that a cool-down cycle changed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Moved {
    /// The circuit's key.
    pub key: Arc<str>,
    /// The move it made; `None` when only its count of cycles went down.
    pub transition: Option<Transition>,
}

/// What the policy decides on now: of its window, or of this stay in half-open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Calls that ended well. Those that change nothing need not be counted.
    pub successes: u32,
    /// Calls that failed.
    pub failures: u32,
    /// Calls that ran too long.
    pub timeouts: u32,
    /// Calls that were slow.
    pub slow: u32,
    /// Successes in a row.
    pub consecutive_successes: u32,
    /// Failures and time-outs in a row.
    pub consecutive_failures: u32,
    /// Probes that are under way.
    pub probes_in_flight: u32,
}

/// A named value that a policy hands out beyond the common ones.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldValue {
    /// A text.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A number.
    Number(f64),
    /// Yes or no.
    Boolean(bool),
}

/// Everything there is to see of one circuit.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Status {
    /// The circuit's key.
    pub key: String,
    /// Its state. An open circuit whose wait is over stays open until the next call.
    pub state: State,
    /// Its mode.
    pub mode: Mode,
    /// When it came into this state.
    pub since: SystemTime,
    /// How long until it is worth asking again.
    pub retry_after: Option<Duration>,
    /// Cool-down cycles still to go, for policies that count in cycles.
    pub cooldown_count: Option<u32>,
    /// What the policy decides on.
    pub counts: Counts,
    /// When a call last failed.
    pub last_failure: Option<SystemTime>,
    /// What went wrong then.
    pub last_cause: Option<String>,
    /// Results that came too late to count. The host's own total.
    pub stale_results: u64,
    /// Calls made in shadow mode that the policy would have rejected. The host's own total.
    pub would_have_rejected: u64,
    /// The component is at fault so often that this circuit is no longer asked for: what
    /// [`on_fault`](crate::BreakersBuilder::on_fault) says holds.
    pub at_fault: bool,
    /// What else the policy has to say.
    pub extra: Vec<(String, FieldValue)>,
}

/// What a text is when it names no mode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is no mode; write automatic, forced-open, disabled or shadow")]
pub struct UnknownMode {
    found: String,
}

impl FromStr for Mode {
    type Err = UnknownMode;

    fn from_str(text: &str) -> Result<Self, UnknownMode> {
        [Self::Automatic, Self::ForcedOpen, Self::Disabled, Self::Shadow]
            .into_iter()
            .find(|mode| mode.name() == text)
            .ok_or_else(|| UnknownMode { found: text.into() })
    }
}

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Self::Automatic => "automatic",
            Self::ForcedOpen => "forced-open",
            Self::Disabled => "disabled",
            Self::Shadow => "shadow",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half-open",
        })
    }
}

impl fmt::Display for Operation {
    /// As spans write it: `trip`, `re_trip`, `half_open`, `reset`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Trip => "trip",
            Self::ReTrip => "re_trip",
            Self::HalfOpen => "half_open",
            Self::Reset => "reset",
        })
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Policy => "policy",
            Self::Operator => "operator",
            Self::CoolDown => "cool-down",
        })
    }
}

impl fmt::Display for FieldValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.pad(text),
            Self::Integer(number) => number.fmt(f),
            Self::Number(number) => number.fmt(f),
            Self::Boolean(yes) => yes.fmt(f),
        }
    }
}

impl From<wit_types::State> for State {
    fn from(state: wit_types::State) -> Self {
        match state {
            wit_types::State::Closed => Self::Closed,
            wit_types::State::Open => Self::Open,
            wit_types::State::HalfOpen => Self::HalfOpen,
        }
    }
}

impl From<wit_types::Mode> for Mode {
    fn from(mode: wit_types::Mode) -> Self {
        match mode {
            wit_types::Mode::Automatic => Self::Automatic,
            wit_types::Mode::ForcedOpen => Self::ForcedOpen,
            wit_types::Mode::Disabled => Self::Disabled,
            wit_types::Mode::Shadow => Self::Shadow,
        }
    }
}

impl From<Mode> for wit_types::Mode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Automatic => Self::Automatic,
            Mode::ForcedOpen => Self::ForcedOpen,
            Mode::Disabled => Self::Disabled,
            Mode::Shadow => Self::Shadow,
        }
    }
}

impl From<wit_types::Transition> for Transition {
    fn from(from: wit_types::Transition) -> Self {
        Self {
            operation: match from.operation {
                wit_types::Operation::Trip => Operation::Trip,
                wit_types::Operation::ReTrip => Operation::ReTrip,
                wit_types::Operation::HalfOpen => Operation::HalfOpen,
                wit_types::Operation::Reset => Operation::Reset,
            },
            cause: match from.cause {
                wit_types::Cause::Policy => Cause::Policy,
                wit_types::Cause::Operator => Cause::Operator,
                wit_types::Cause::CoolDown => Cause::CoolDown,
            },
            before: from.before.into(),
            after: from.after.into(),
            at: system_time(from.at),
            wait: from.wait.map(Duration::from_nanos),
            cooldown_count: from.cooldown_count,
        }
    }
}

impl From<wit_types::Value> for FieldValue {
    fn from(value: wit_types::Value) -> Self {
        match value {
            wit_types::Value::Text(text) => Self::Text(text),
            wit_types::Value::Integer(number) => Self::Integer(number),
            wit_types::Value::Number(number) => Self::Number(number),
            wit_types::Value::Boolean(yes) => Self::Boolean(yes),
        }
    }
}

impl From<wit::Counts> for Counts {
    fn from(from: wit::Counts) -> Self {
        Self {
            successes: from.successes,
            failures: from.failures,
            timeouts: from.timeouts,
            slow: from.slow,
            consecutive_successes: from.consecutive_successes,
            consecutive_failures: from.consecutive_failures,
            probes_in_flight: from.probes_in_flight,
        }
    }
}

impl From<wit::Status> for Status {
    fn from(from: wit::Status) -> Self {
        Self {
            key: from.key,
            state: from.state.into(),
            mode: from.mode.into(),
            since: system_time(from.since),
            retry_after: from.retry_after.map(Duration::from_nanos),
            cooldown_count: from.cooldown_count,
            counts: from.counts.into(),
            last_failure: from.last_failure.map(system_time),
            last_cause: from.last_cause,
            stale_results: 0,
            would_have_rejected: 0,
            at_fault: false,
            extra: fields(from.extra),
        }
    }
}

/// The fields of the contract, as pairs.
pub(crate) fn fields(from: Vec<wit_types::Field>) -> Vec<(String, FieldValue)> {
    from.into_iter()
        .map(|field| (field.name, field.value.into()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mode_reads_back_as_it_is_written() {
        for mode in [Mode::Automatic, Mode::ForcedOpen, Mode::Disabled, Mode::Shadow] {
            assert_eq!(mode.to_string().parse(), Ok(mode));
        }
    }

    #[test]
    fn an_unknown_mode_is_named_with_those_that_there_are() {
        let error = "open".parse::<Mode>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "\"open\" is no mode; write automatic, forced-open, disabled or shadow"
        );
    }
}
