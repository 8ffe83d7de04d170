//! The clock of the run.

use std::time::{Duration, SystemTime};

use tripwit::{Clock, SystemClock};

/// The clocks of the operating system, except that the time of day never steps. So the dates of transitions can be held
/// against readings of the clock that decides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SteadyClock {
    /// The time of day when the other clock stood at 0.
    origin: SystemTime,
}

impl SteadyClock {
    pub(crate) fn new() -> Self {
        let passed = Duration::from_nanos(SystemClock.monotonic());
        let origin = SystemClock.wall().checked_sub(passed);
        Self {
            origin: origin.unwrap_or(SystemTime::UNIX_EPOCH),
        }
    }

    /// What the clock that decides showed at this date.
    pub(crate) fn at(&self, date: SystemTime) -> u64 {
        let passed = date.duration_since(self.origin).unwrap_or_default();
        u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX)
    }
}

impl Clock for SteadyClock {
    fn monotonic(&self) -> u64 {
        SystemClock.monotonic()
    }

    fn wall(&self) -> SystemTime {
        self.origin + Duration::from_nanos(self.monotonic())
    }

    fn never_steps_back(&self) -> bool {
        SystemClock.never_steps_back()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_what_the_clock_that_decides_showed_then() {
        let clock = SteadyClock::new();
        let before = clock.monotonic();
        let date = clock.wall();
        let after = clock.monotonic();
        // Some systems date no finer than 100 ns.
        assert!((before.saturating_sub(100)..=after).contains(&clock.at(date)));
        assert_eq!(clock.at(SystemTime::UNIX_EPOCH), 0);
    }
}
