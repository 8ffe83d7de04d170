//! What can happen to a circuit.

use std::fmt;

use tripwit_core::{Mode, Nanoseconds};

/// The clock moves in these: one millisecond, the least that settings know.
pub const UNIT: Nanoseconds = 1_000_000;

/// For how long an operator opens a circuit who says so.
pub(crate) const TRIP_WAIT: Nanoseconds = 3 * UNIT;

/// How long every failure asks to be left alone. Heeded only where the settings say so.
pub(crate) const RETRY_AFTER: Nanoseconds = 2 * UNIT;

/// What every failure gives as its cause.
pub(crate) const CAUSE: &str = "refused";

/// One thing that happens. Permits are numbered in the order in which they were given, those that ended left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// The clock moves on by [`UNIT`].
    Tick,
    /// A call asks to be made.
    Acquire,
    /// The call of a permit ends well.
    Success(usize),
    /// It fails.
    Failure(usize),
    /// It is given up for running too long.
    Timeout(usize),
    /// It says nothing.
    Ignored(usize),
    /// An operator opens the circuit.
    Trip,
    /// An operator opens it for three units.
    TripFor,
    /// An operator closes it.
    Reset,
    /// An operator says who decides.
    SetMode(Mode),
    /// A cool-down cycle.
    CoolDown,
    /// Somebody looks.
    Inspect,
}

impl Step {
    /// Everything that can happen while so many permits are out.
    pub fn all(permits: usize) -> impl Iterator<Item = Self> {
        let endings = (0..permits).flat_map(|permit| {
            [Self::Success, Self::Failure, Self::Timeout, Self::Ignored].map(|ending| ending(permit))
        });
        Self::ANY_TIME.into_iter().chain(endings)
    }

    const ANY_TIME: [Self; 11] = [
        Self::Tick,
        Self::Acquire,
        Self::Trip,
        Self::TripFor,
        Self::Reset,
        Self::SetMode(Mode::Automatic),
        Self::SetMode(Mode::ForcedOpen),
        Self::SetMode(Mode::Disabled),
        Self::SetMode(Mode::Shadow),
        Self::CoolDown,
        Self::Inspect,
    ];
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tick => f.write_str("tick"),
            Self::Acquire => f.write_str("acquire"),
            Self::Success(permit) => write!(f, "success of {permit}"),
            Self::Failure(permit) => write!(f, "failure of {permit}"),
            Self::Timeout(permit) => write!(f, "time-out of {permit}"),
            Self::Ignored(permit) => write!(f, "ignored of {permit}"),
            Self::Trip => f.write_str("trip"),
            Self::TripFor => f.write_str("trip for 3"),
            Self::Reset => f.write_str("reset"),
            Self::SetMode(mode) => write!(f, "mode {mode:?}"),
            Self::CoolDown => f.write_str("cool-down"),
            Self::Inspect => f.write_str("inspect"),
        }
    }
}

/// Steps one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace(pub Vec<Step>);

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, step) in self.0.iter().enumerate() {
            let comma = if place == 0 { "" } else { ", " };
            write!(f, "{comma}{step}")?;
        }
        Ok(())
    }
}
