//! What goes into circuits and comes out of them.

use alloc::{boxed::Box, string::String, sync::Arc, vec::Vec};

use tripwit_core::{Counts, Decision, Instant, Lease, Mode, Nanoseconds, Saved, State, Transition};

use crate::{Instrumentation, Line, Span, Timestamp};

/// What surrounds the circuits: clocks, a log, a place for spans.
pub trait Host {
    /// A reading of the monotonic clock.
    fn monotonic(&mut self) -> Instant;
    /// A reading of the wall clock.
    fn wall(&mut self) -> Timestamp;
    /// Takes a log line.
    fn log(&mut self, line: Line);
    /// Takes a finished span.
    fn export_span(&mut self, span: Span);
}

/// What holds for a whole instance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Setup {
    /// For jitter.
    pub seed: u64,
    /// What spans carry.
    pub instrumentation: Instrumentation,
    /// Prefix of the product's own names; the policy's own when absent.
    pub namespace: Option<String>,
}

/// A circuit that was found or added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// Its number.
    pub circuit: u32,
    /// Its lease.
    pub lease: Lease,
}

/// A transition, and when it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamped {
    /// The move.
    pub transition: Transition,
    /// When.
    pub at: Timestamp,
}

/// The answer to `acquire`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admission {
    /// Whether the call may be made.
    pub decision: Decision,
    /// The lease from now on.
    pub lease: Lease,
    /// The move that was made.
    pub transition: Option<Stamped>,
}

/// The answer to `settle`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settlement {
    /// Whether the report counted.
    pub counted: bool,
    /// The lease from now on.
    pub lease: Lease,
    /// The move that was made.
    pub transition: Option<Stamped>,
}

/// Where a circuit stands after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// The lease from now on.
    pub lease: Lease,
    /// The move that was made.
    pub transition: Option<Stamped>,
}

/// What can be seen of a circuit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Its key.
    pub key: Arc<str>,
    /// Its state.
    pub state: State,
    /// Its mode.
    pub mode: Mode,
    /// When it came into this state.
    pub since: Timestamp,
    /// How long it stays open yet, where the clock decides. Nanoseconds.
    pub retry_after: Option<Nanoseconds>,
    /// Cool-down cycles still to go, where cycles decide.
    pub cooldown_count: Option<u32>,
    /// What the policy decides on.
    pub counts: Counts,
    /// When a failure last counted.
    pub last_failure: Option<Timestamp>,
    /// What it was.
    pub last_cause: Option<Box<str>>,
}

/// A circuit as another instance can take it over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Its key.
    pub key: String,
    /// Its settings, as they were written.
    pub settings: String,
    /// Its state and all that goes with it.
    pub saved: Saved,
    /// When it came into this state.
    pub since: Timestamp,
    /// When a failure last counted.
    pub last_failure: Option<Timestamp>,
    /// What it was.
    pub last_cause: Option<String>,
    /// What only the same policy understands; empty where there is nothing more.
    pub detail: Vec<u8>,
    /// The format of `detail`.
    pub detail_format: String,
}
