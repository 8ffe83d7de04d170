//! What can happen to a circuit.

use std::fmt;

use tripwit_core::{Mode, Nanoseconds, Outcome, Report};

/// Times of events are whole milliseconds: the least that settings know.
pub const MILLISECOND: Nanoseconds = 1_000_000;

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// The clock moves on. Milliseconds.
    Advance(u64),
    /// It steps back. Milliseconds.
    StepBack(u64),
    /// A call asks to be made.
    Acquire,
    /// The call of a permit ends. Permits are numbered in the order in which they were given, those that ended left out.
    Settle(usize, End),
    /// An operator opens the circuit, for so long where it is given. Milliseconds.
    Trip(Option<u64>),
    /// An operator closes it.
    Reset,
    /// An operator says who decides.
    SetMode(Mode),
    /// A cool-down cycle.
    CoolDown,
    /// Another instance takes it over, so long after it was saved. Milliseconds.
    TakeOver(u64),
}

/// How a call ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// Well.
    Success,
    /// Well, after more than [`End::SLOW`].
    SlowSuccess,
    /// Not well.
    Failure,
    /// Not well, after more than [`End::SLOW`].
    SlowFailure,
    /// Not well, and the dependency asks to be left alone for [`End::RETRY_AFTER`].
    Refusal,
    /// After too long.
    Timeout,
    /// It says nothing.
    Ignored,
}

impl End {
    /// Calls that take longer are slow, where anything is. Nanoseconds.
    pub const SLOW: Nanoseconds = 5 * MILLISECOND;
    /// How long a [`End::Refusal`] asks to be left alone. Nanoseconds.
    pub const RETRY_AFTER: Nanoseconds = 2 * MILLISECOND;

    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Success,
        Self::SlowSuccess,
        Self::Failure,
        Self::SlowFailure,
        Self::Refusal,
        Self::Timeout,
        Self::Ignored,
    ];

    pub(crate) fn outcome(self) -> Outcome {
        match self {
            Self::Success | Self::SlowSuccess => Outcome::Success,
            Self::Failure | Self::SlowFailure | Self::Refusal => Outcome::Failure,
            Self::Timeout => Outcome::Timeout,
            Self::Ignored => Outcome::Ignored,
        }
    }

    pub(crate) fn is_slow(self) -> bool {
        match self {
            Self::SlowSuccess | Self::SlowFailure => true,
            Self::Success | Self::Failure | Self::Refusal | Self::Timeout | Self::Ignored => false,
        }
    }

    pub(crate) fn retry_after(self) -> Option<Nanoseconds> {
        (self == Self::Refusal).then_some(Self::RETRY_AFTER)
    }

    pub(crate) fn report(self) -> Report {
        Report {
            // What takes exactly as long as the limit is not slow.
            took: Some(Self::SLOW + u64::from(self.is_slow())),
            retry_after: self.retry_after(),
            ..Report::of(self.outcome())
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Advance(ms) => write!(f, "{ms} ms on"),
            Self::StepBack(ms) => write!(f, "{ms} ms back"),
            Self::Acquire => f.write_str("acquire"),
            Self::Settle(permit, end) => write!(f, "{end:?} of {permit}"),
            Self::Trip(None) => f.write_str("trip"),
            Self::Trip(Some(ms)) => write!(f, "trip for {ms} ms"),
            Self::Reset => f.write_str("reset"),
            Self::SetMode(mode) => write!(f, "mode {mode:?}"),
            Self::CoolDown => f.write_str("cool-down"),
            Self::TakeOver(ms) => write!(f, "taken over after {ms} ms"),
        }
    }
}
