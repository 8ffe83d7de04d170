//! What a host may decide by itself, and until when.

use crate::{Instant, Mode, Nanoseconds, RejectionReason, State, Ticket};

/// What every `acquire` would answer for as long as the lease holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Standing {
    /// Admitted, with this ticket, which any number of calls may share.
    Admit(Ticket),
    /// Admitted, and its end is of no interest.
    Pass,
    /// Rejected.
    Reject(RejectionReason),
    /// It depends: ask.
    Ask,
}

/// So many successes (at least one), as long as they end before that instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Allowance {
    /// How many successes may be kept back.
    pub successes: u32,
    /// They must end before this instant, where there is one.
    pub before: Option<Instant>,
}

/// Which successes the policy must hear of, and when, among those that are not slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Successes {
    /// Each one, at once.
    Each,
    /// Some may be kept back and handed in together, before anything else.
    UpTo(Allowance),
    /// None: they change nothing.
    Never,
}

/// A promise: until it ends, asking each time would give just these answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lease {
    /// Who decides.
    pub mode: Mode,
    /// Results of an older generation change nothing. Only grows, and never repeats within an instance.
    pub generation: u64,
    /// The state that the policy is in.
    pub state: State,
    /// What every `acquire` answers.
    pub standing: Standing,
    /// From this instant on `standing` no longer holds.
    pub until: Option<Instant>,
    /// Which successes must be reported.
    pub successes: Successes,
    /// A success that took strictly longer than this is slow and is reported at once. Nanoseconds.
    pub slow_after: Option<Nanoseconds>,
    /// A call that runs strictly longer than this is a time-out. Nanoseconds.
    pub call_timeout: Option<Nanoseconds>,
}
