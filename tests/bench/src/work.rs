//! The call that is guarded.

use std::hint::black_box;

/// The error of a call that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused;

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("refused")
    }
}

impl std::error::Error for Refused {}

/// Some nanoseconds of real work, which no compiler can leave out or draw into its caller.
///
/// # Errors
///
/// For the inputs that [`Inputs`] marks as failing.
#[inline(never)]
pub fn work(input: u64) -> Result<u64, Refused> {
    let mut x = black_box(input) | 1;
    for _ in 0..4 {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    if input & FAILS == 0 { Ok(x) } else { Err(Refused) }
}

/// What calls are made with, over and over again: it says which of them fail.
#[derive(Clone, Debug)]
pub struct Inputs(Vec<u64>);

impl Inputs {
    /// After so many calls, or a multiple of them, every pattern is at its end.
    pub const PERIOD: u64 = 200;

    /// Of every `out_of` calls so many fail, and then the others succeed.
    ///
    /// # Panics
    ///
    /// When the pattern does not fit into the period.
    #[must_use]
    pub fn failing(failures: u64, out_of: u64) -> Self {
        assert!(
            Self::PERIOD.is_multiple_of(out_of),
            "{out_of} does not divide {}",
            Self::PERIOD
        );
        let input = |at: u64| if at % out_of < failures { at | FAILS } else { at };
        Self((0..Self::PERIOD).map(input).collect())
    }

    /// No call fails.
    #[must_use]
    pub fn healthy() -> Self {
        Self::failing(0, 1)
    }

    /// No call fails, and one input says little about the next one.
    #[must_use]
    pub fn healthy_at_random() -> Self {
        let spread = |at: u64| at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 1;
        Self((0..500 * Self::PERIOD).map(spread).collect())
    }

    /// So many inputs, one after the other, and from the beginning again.
    pub fn each(&self, calls: u64) -> impl Iterator<Item = u64> {
        let calls = usize::try_from(calls).unwrap_or(usize::MAX);
        self.0.iter().copied().cycle().take(calls)
    }
}

/// The bit of an input that makes the call fail.
const FAILS: u64 = 1 << 63;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_calls_fail_as_were_asked_for() {
        for (failures, out_of) in [(0, 1), (1, 1), (4, 5), (1, 2), (1, 100)] {
            let inputs = Inputs::failing(failures, out_of);
            let failed = inputs.each(1_000).filter(|input| work(*input).is_err()).count();
            assert_eq!(failed as u64, 1_000 * failures / out_of);
        }
    }
}
