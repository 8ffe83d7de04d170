//! One call, as it was or as a script says.

/// A call that was made, or would be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    /// When it begins, in nanoseconds since the Unix epoch.
    pub(crate) begin: u64,
    /// When it ends; not before it begins.
    pub(crate) end: u64,
    /// Its place among calls: of two things at one instant the one of the earlier call comes first.
    pub(crate) place: u64,
    /// The number of its circuit.
    pub(crate) circuit: usize,
    /// How it ends, where it is made.
    pub(crate) ended: Ended,
    /// The status that it ends with, where it has one.
    pub(crate) status: Option<u16>,
    /// How long the other side asks to be left alone, in nanoseconds.
    pub(crate) retry_after: Option<u64>,
}

/// How a call ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Well.
    Success,
    /// Badly.
    Failure,
    /// Too late, whatever the policy's own limit.
    Timeout,
    /// Without saying anything about what was called.
    Ignored,
}
