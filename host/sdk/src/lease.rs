//! What the host may decide by itself: the component's lease in the form that the gate holds.

use crate::words::{Mode, RejectionReason, State};

/// What every `acquire` would answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Admit(u64),
    Pass,
    Reject(RejectionReason),
    Ask,
}

/// Which successes the component must hear of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Successes {
    Each,
    UpTo { count: u32, before: Option<u64> },
    Never,
}

/// A lease, as `types.lease` of the contract describes it. Times are nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lease {
    pub(crate) mode: Mode,
    pub(crate) state: State,
    pub(crate) generation: u64,
    pub(crate) standing: Standing,
    pub(crate) until: Option<u64>,
    pub(crate) successes: Successes,
    pub(crate) slow_after: Option<u64>,
    pub(crate) call_timeout: Option<u64>,
}

impl Lease {
    /// The lease of a closed circuit that no instance knows: whoever comes must ask.
    pub(crate) const UNKNOWN: Self = Self {
        mode: Mode::Automatic,
        state: State::Closed,
        generation: 0,
        standing: Standing::Ask,
        until: None,
        successes: Successes::Each,
        slow_after: None,
        call_timeout: None,
    };

    /// Whether a rejection under this lease still holds.
    pub(crate) fn rejects_at(&self, now: u64) -> bool {
        matches!(self.standing, Standing::Reject(_)) && self.until.is_none_or(|until| now < until)
    }

    /// Whether the circuit must outlive its instance as it is.
    pub(crate) fn is_worth_saving(&self) -> bool {
        self.state != State::Closed || self.mode != Mode::Automatic
    }

    /// Whether calls are admitted at any time, and at least some succeed without a word to the component.
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self.standing, Standing::Admit(_))
            && self.until.is_none()
            && matches!(self.successes, Successes::Never | Successes::UpTo { .. })
    }

    /// Whether how long a call takes means anything.
    pub(crate) fn measures(&self) -> bool {
        self.slow_after.is_some() || self.call_timeout.is_some()
    }
}
