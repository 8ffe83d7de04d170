//! Calls that ended, and what can be counted of them.

use tripwit_core::{Counts, Instant, Outcome};

use crate::event::End;

/// A call that ended and counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Call {
    pub(crate) at: Instant,
    pub(crate) outcome: Outcome,
    pub(crate) slow: bool,
}

impl Call {
    pub(crate) fn new(at: Instant, end: End) -> Self {
        Self {
            at,
            outcome: end.outcome(),
            slow: end.is_slow(),
        }
    }

    pub(crate) fn failed(&self) -> bool {
        self.outcome != Outcome::Success
    }
}

pub(crate) fn failures_in_a_row(calls: &[Call]) -> usize {
    calls.iter().rev().take_while(|call| call.failed()).count()
}

/// Counts calls, those of `slow` only where they are told apart.
pub(crate) fn tally(calls: &[Call], slow: bool) -> Counts {
    let count = |those: &dyn Fn(&Call) -> bool| {
        u32::try_from(calls.iter().filter(|call| those(call)).count()).unwrap_or(u32::MAX)
    };
    Counts {
        successes: count(&|call| !call.failed()),
        failures: count(&Call::failed),
        timeouts: count(&|call| call.outcome == Outcome::Timeout),
        slow: if slow { count(&|call| call.slow) } else { 0 },
        ..Counts::default()
    }
}

/// Calls whose time does not matter.
pub(crate) fn untimed(calls: &[Call]) -> Vec<Call> {
    calls.iter().map(|call| Call { at: 0, ..*call }).collect()
}
