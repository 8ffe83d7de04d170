//! The words of a breaker: states, modes, outcomes, rejections, moves.

use alloc::string::String;

use crate::{Nanoseconds, Ticket};

/// Where a circuit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Calls are admitted and counted.
    Closed,
    /// Calls are rejected.
    Open,
    /// A few calls are let through as probes.
    HalfOpen,
}

/// Who decides: the policy, or an operator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// The policy decides.
    #[default]
    Automatic,
    /// Every call is rejected until an operator says otherwise; the state beneath stands still.
    ForcedOpen,
    /// Every call is admitted and nothing is recorded; the state beneath stands still.
    Disabled,
    /// The policy answers as in `Automatic`; the host makes the calls that it rejects all the same.
    Shadow,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The dependency did its work.
    Success,
    /// It did not.
    Failure,
    /// It took too long, whatever came of it. Counts as a failure.
    Timeout,
    /// The call says nothing about the dependency: cancelled, filtered out, never sent.
    Ignored,
}

/// How an admitted call ended, with what is known beside.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Report {
    /// How it ended.
    pub outcome: Outcome,
    /// How long it ran, where the lease asks for it. Nanoseconds.
    pub took: Option<Nanoseconds>,
    /// How long the dependency asked to be left alone. Nanoseconds.
    pub retry_after: Option<Nanoseconds>,
    /// What went wrong, for people.
    pub cause: Option<String>,
}

impl Report {
    /// A report of this outcome and nothing else.
    #[must_use]
    pub const fn of(outcome: Outcome) -> Self {
        Self {
            outcome,
            took: None,
            retry_after: None,
            cause: None,
        }
    }
}

/// Why a call is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RejectionReason {
    /// The circuit is open.
    Open,
    /// As many probes as may be are under way.
    ProbeLimit,
    /// An operator forced the circuit open.
    ForcedOpen,
    /// Shed by a policy that lets a share of the calls through.
    Throttled,
    /// Anything else.
    Other,
}

/// A call that is not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rejection {
    /// Why.
    pub reason: RejectionReason,
    /// How long until it is worth asking again, where a clock decides. Nanoseconds.
    pub retry_after: Option<Nanoseconds>,
}

/// The answer to one `acquire`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Decision {
    /// Admitted: say how the call ended, with this ticket.
    Admit(Ticket),
    /// Admitted, and its end is of no interest.
    Pass,
    /// Not admitted.
    Reject(Rejection),
}

/// What a move is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// From closed to open.
    Trip,
    /// Open again: a failed probe, or a further failure where a policy counts in cycles.
    ReTrip,
    /// From open to half-open.
    HalfOpen,
    /// Back to closed.
    Reset,
}

/// Who made a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The policy, by what calls did or time passed.
    Policy,
    /// An operator, by `trip` or `reset`.
    Operator,
    /// A cool-down cycle.
    CoolDown,
}

/// One move of a circuit. A re-trip may stay in its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Transition {
    /// What it is called.
    pub operation: Operation,
    /// Who made it.
    pub cause: Cause,
    /// The state it left.
    pub before: State,
    /// The state it came to.
    pub after: State,
    /// How long the circuit stays open, where the clock decides. Nanoseconds.
    pub wait: Option<Nanoseconds>,
    /// How many cool-down cycles it stays open, where cycles decide; 0 in their reset.
    pub cooldown_count: Option<u32>,
}

/// What a policy decides on now: of its window, or of this stay in half-open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Counts {
    /// Successes, where the policy needs to count them.
    pub successes: u32,
    /// Failed calls, time-outs among them.
    pub failures: u32,
    /// Calls that timed out.
    pub timeouts: u32,
    /// Slow calls, however they ended.
    pub slow: u32,
    /// Successes since the last failure, where the policy needs to count them.
    pub consecutive_successes: u32,
    /// Failures since the last success.
    pub consecutive_failures: u32,
    /// Probes that are out and not given up.
    pub probes_in_flight: u32,
}

impl Counts {
    /// Adds one ended call. Counters stop at their maximum.
    pub fn add(&mut self, outcome: Outcome, slow: bool) {
        let failed = match outcome {
            Outcome::Ignored => return,
            Outcome::Success => false,
            Outcome::Failure | Outcome::Timeout => true,
        };
        if slow {
            self.slow = self.slow.saturating_add(1);
        }
        if outcome == Outcome::Timeout {
            self.timeouts = self.timeouts.saturating_add(1);
        }
        if failed {
            self.failures = self.failures.saturating_add(1);
            self.consecutive_failures = self.consecutive_failures.saturating_add(1);
            self.consecutive_successes = 0;
        } else {
            self.successes = self.successes.saturating_add(1);
            self.consecutive_successes = self.consecutive_successes.saturating_add(1);
            self.consecutive_failures = 0;
        }
    }
}
