//! The words that a lease is written in.

/// Whether calls get through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Calls are admitted.
    Closed,
    /// Calls are rejected.
    Open,
    /// A few calls are admitted to find out whether the dependency is well again.
    HalfOpen,
}

/// Who decides: the policy, or an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// The policy decides.
    Automatic,
    /// Every call is rejected until an operator says otherwise.
    ForcedOpen,
    /// Every call is admitted and nothing is recorded.
    Disabled,
    /// The policy decides as ever, but the calls that it rejects are made all the same, and counted.
    Shadow,
}

/// Why a call was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RejectionReason {
    /// The circuit is open.
    Open,
    /// The circuit is half-open, and as many probes as may be are under way.
    ProbeLimit,
    /// An operator holds the circuit open.
    ForcedOpen,
    /// The policy lets only a share of the calls through.
    Throttled,
    /// Something else.
    Other,
}
