//! How much faster than real life an example runs.

use std::fmt;
use std::time::Duration;

/// The scale at which the 20 seconds of a default run are meant.
const DEFAULT_SCALE: u32 = 30;
/// How long a run at the default scale may take.
const DEFAULT_DEADLINE: Duration = Duration::from_secs(20);

/// The number by which every wait and time-out is divided.
///
/// Flatten it into the arguments of a program with `#[command(flatten)]`.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Scale {
    /// Divides every wait and time-out; 1 runs the real values.
    #[arg(
        id = "scale",
        long = "scale",
        value_name = "N",
        default_value_t = DEFAULT_SCALE,
        value_parser = clap::value_parser!(u32).range(1..=100)
    )]
    divisor: u32,
}

impl Scale {
    /// A scale of `divisor`; 0 counts as 1.
    #[must_use]
    pub fn new(divisor: u32) -> Self {
        Self {
            divisor: divisor.max(1),
        }
    }

    /// A real wait, divided. Whole milliseconds, and at least one.
    #[must_use]
    pub fn wait(self, real: Duration) -> Duration {
        let scaled = real / self.divisor.max(1);
        Duration::from_millis(u64::try_from(scaled.as_millis()).unwrap_or(u64::MAX).max(1))
    }

    /// A real wait of so many seconds, divided.
    #[must_use]
    pub fn secs(self, real: u64) -> Duration {
        self.wait(Duration::from_secs(real))
    }

    /// The real time that passed when so much scaled time has.
    #[must_use]
    pub fn real(self, scaled: Duration) -> Duration {
        scaled.saturating_mul(self.divisor)
    }

    /// How long the whole run may take: 20 seconds, and longer only where the scale is slower than the default.
    #[must_use]
    pub fn deadline(self) -> Duration {
        DEFAULT_DEADLINE.max(DEFAULT_DEADLINE * DEFAULT_SCALE / self.divisor.max(1))
    }
}

impl Default for Scale {
    fn default() -> Self {
        Self::new(DEFAULT_SCALE)
    }
}

/// What a program prints first.
impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.divisor {
            1 => write!(f, "scale 1: waits and time-outs are the real ones"),
            n => write!(
                f,
                "scale {n}: waits and time-outs are divided by {n} (--scale 1 runs the real ones)"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_divided_and_rounded_down_to_milliseconds() {
        let scale = Scale::new(30);
        assert_eq!(scale.secs(60), Duration::from_secs(2));
        assert_eq!(scale.secs(5), Duration::from_millis(166));
    }

    #[test]
    fn a_wait_never_becomes_nothing() {
        assert_eq!(
            Scale::new(100).wait(Duration::from_millis(1)),
            Duration::from_millis(1)
        );
    }

    #[test]
    fn only_scales_slower_than_the_default_may_take_longer_than_twenty_seconds() {
        assert_eq!(Scale::new(100).deadline(), Duration::from_secs(20));
        assert_eq!(Scale::default().deadline(), Duration::from_secs(20));
        assert_eq!(Scale::new(1).deadline(), Duration::from_secs(600));
    }
}
