//! A circuit as another instance, of this policy or of another, can take it over.

use core::fmt;

use crate::{Counts, Mode, Nanoseconds, State};

/// What goes over from one instance to another. Every time in it is relative to the moment it was saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Saved {
    /// The state.
    pub state: State,
    /// The mode.
    pub mode: Mode,
    /// How long the circuit stays open yet, where the clock decides. Nanoseconds.
    pub retry_after: Option<Nanoseconds>,
    /// Cool-down cycles still to go, where cycles decide.
    pub cooldown_count: Option<u32>,
    /// How many times in a row the circuit opened without closing in between.
    pub reopenings: u32,
    /// What the policy had counted.
    pub counts: Counts,
}

/// Why a snapshot makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotError {
    /// A closed circuit that waits.
    ClosedWithWait,
    /// A closed circuit that counts openings.
    ClosedWithReopenings,
    /// A half-open circuit that counts cool-down cycles.
    HalfOpenWithCycles,
    /// More time-outs than failures.
    MoreTimeoutsThanFailures,
    /// A detail that its own format does not know.
    Detail,
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ClosedWithWait => {
                "closed, and yet a wait or cool-down cycles are left; only an open circuit has them"
            }
            Self::ClosedWithReopenings => "closed, and yet it counts re-openings; closing sets them to 0",
            Self::HalfOpenWithCycles => {
                "half-open, and yet cool-down cycles are left; only an open circuit has them"
            }
            Self::MoreTimeoutsThanFailures => {
                "more time-outs than failures; each time-out is one of the failures"
            }
            Self::Detail => "its detail is damaged",
        })
    }
}

impl core::error::Error for SnapshotError {}

impl Saved {
    /// Whether its parts fit together.
    ///
    /// # Errors
    ///
    /// Names the first parts that do not.
    pub fn check(&self) -> Result<(), SnapshotError> {
        match self.state {
            State::Closed if self.retry_after.is_some() || self.cooldown_count.is_some() => {
                Err(SnapshotError::ClosedWithWait)
            }
            State::Closed if self.reopenings > 0 => Err(SnapshotError::ClosedWithReopenings),
            State::HalfOpen if self.cooldown_count.is_some() => Err(SnapshotError::HalfOpenWithCycles),
            State::Closed | State::Open | State::HalfOpen if self.counts.timeouts > self.counts.failures => {
                Err(SnapshotError::MoreTimeoutsThanFailures)
            }
            State::Closed | State::Open | State::HalfOpen => Ok(()),
        }
    }
}
