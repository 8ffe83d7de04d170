//! What can happen to a circuit, written down so that it can happen again.

use std::fmt;

use tripwit::raw::{Mode, Outcome};

use super::words;

/// One thing that happens. Calls under way are numbered in the order in which they began, modulo how many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Time passes. Nanoseconds.
    Advance(u64),
    /// The monotonic clock is set back by so much. Nanoseconds.
    Back(u64),
    /// A call asks to be made.
    Acquire,
    /// A call under way ends.
    End(usize, Outcome),
    /// An operator opens the circuit, for so long where it is said.
    Trip(Option<u64>),
    /// An operator closes it.
    Reset,
    /// An operator says who decides.
    SetMode(Mode),
    /// A cool-down cycle.
    CoolDown,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Advance(by) => write!(f, "{} pass", words::time(*by)),
            Self::Back(by) => write!(f, "the clock steps back by {}", words::time(*by)),
            Self::Acquire => f.write_str("acquire"),
            Self::End(call, outcome) => write!(f, "{} of call {call}", words::outcome(*outcome)),
            Self::Trip(None) => f.write_str("trip"),
            Self::Trip(Some(wait)) => write!(f, "trip for {}", words::time(*wait)),
            Self::Reset => f.write_str("reset"),
            Self::SetMode(mode) => write!(f, "set mode to {}", words::mode(*mode)),
            Self::CoolDown => f.write_str("cool-down"),
        }
    }
}
