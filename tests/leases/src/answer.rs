//! What a host gets to know at a step.

use tripwit_core::{Counts, Mode, Nanoseconds, RejectionReason, State, Transition};

/// What came of a step, as far as it can be seen from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The call is made, and its end is told.
    Admitted {
        /// How long it may run.
        call_timeout: Option<Nanoseconds>,
    },
    /// The call is made, and its end is of no interest.
    Passed {
        /// How long it may run.
        call_timeout: Option<Nanoseconds>,
    },
    /// The call is not made.
    Rejected {
        /// Why.
        reason: RejectionReason,
        /// When to ask again.
        retry_after: Option<Nanoseconds>,
    },
    /// An operator's command made this move.
    Moved(Option<Transition>),
    /// A cool-down cycle; whether it counted.
    Cooled(bool),
    /// How the circuit stands.
    Shown(Shown),
    /// Nothing is answered.
    Done,
}

/// How a circuit stands, with what a host counts itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Where it is.
    pub state: State,
    /// Who decides.
    pub mode: Mode,
    /// Whether a call would be admitted, as far as a lease tells.
    pub available: bool,
    /// How long it stays open yet.
    pub retry_after: Option<Nanoseconds>,
    /// Cool-down cycles still to go.
    pub cooldown_count: Option<u32>,
    /// What the policy decides on.
    pub counts: Counts,
    /// Results that came too late to count.
    pub stale_results: u64,
    /// Calls made in shadow mode that the policy would have rejected.
    pub would_have_rejected: u64,
}
