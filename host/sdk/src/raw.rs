//! One instance of a policy's component and the functions that it exports, with no host around it.
//!
//! For programs that examine policies, such as `tripwit check`. Whoever guards calls wants [`Breakers`](crate::Breakers): nothing here keeps the rules
//! that the contract has for hosts. The instance has the limits and the deadline that every instance has: what it may import and use is as
//! [`Policy`] and [`BreakersBuilder`](crate::BreakersBuilder) say.
//!
//! The types are those of the contract, `wit/` in the repository, where they are documented; an `Instant`, a length of time or a timestamp is a `u64` of
//! nanoseconds.
//!
//! ```
//! use tripwit::raw::{Decision, Instance, Setup};
//! use tripwit::{ManualClock, Policy};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut instance = Instance::start(&Policy::consecutive()?, ManualClock::new(), &Setup::default())?;
//! let attached = instance.attach("payments", "{}")?.map_err(|error| format!("{error:?}"))?;
//! assert!(matches!(instance.acquire(attached.circuit)?.decision, Decision::Admit(_)));
//! # Ok(()) }
//! ```

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::bindings::exports::tripwit::breaker::policy as wit;
pub use crate::bindings::exports::tripwit::breaker::policy::{
    Admission, AttachError, Attachment, Counts, Decision, Description, SettingsError, Settlement, Snapshot,
    Status,
};
pub use crate::bindings::tripwit::breaker::log::Level;
pub use crate::bindings::tripwit::breaker::types::{
    Allowance, Cause, Field, Lease, Mode, Moved, Operation, Outcome, Rejection, RejectionReason, Report,
    Standing, State, SuccessReporting, Transition, Value,
};
use crate::clock::Clock;
use crate::instance::{self, Start};
use crate::instrumentation::Instrumentation;
use crate::policy::Policy;
use crate::shard::MAX_IN_SHARD;
use crate::status::FieldValue;
use crate::telemetry;

/// A component that trapped, overran its deadline of about two seconds or could not be started. The instance is of no use after that.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{call}`: {problem}")]
#[non_exhaustive]
pub struct Fault {
    /// The function that it was in, as the contract spells it.
    pub call: &'static str,
    /// What happened.
    pub problem: String,
}

/// Something that a component told through its imports.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    /// A log line.
    Line {
        /// How much it matters.
        level: Level,
        /// The text.
        message: String,
        /// Its parts.
        fields: Vec<(String, FieldValue)>,
    },
    /// A finished span. Times are nanoseconds since the Unix epoch.
    Span {
        /// Its name.
        name: String,
        /// When it began.
        start: u64,
        /// When it ended.
        end: u64,
        /// What it carries.
        attributes: Vec<(String, FieldValue)>,
    },
}

/// What holds for a whole instance. The default is what an instance that was never set up has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// For jitter.
    pub seed: u64,
    /// What spans carry.
    pub instrumentation: Instrumentation,
    /// Prefix of the product's own names; the policy's own when absent.
    pub namespace: Option<String>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            seed: 0,
            instrumentation: Instrumentation::ALL,
            namespace: None,
        }
    }
}

impl From<&Setup> for wit::Setup {
    fn from(setup: &Setup) -> Self {
        Self {
            seed: setup.seed,
            instrumentation: setup.instrumentation.into(),
            namespace: setup.namespace.clone(),
        }
    }
}

/// Everything that a component told since it was last asked.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Heard {
    /// In the order in which it came; texts are shortened as the host shortens them.
    pub told: Vec<Told>,
    /// How much more there was than the host takes from one crossing.
    pub dropped: u64,
}

/// An instance of a component. Every function may end in a [`Fault`].
pub struct Instance {
    inner: instance::Instance,
    clock: Arc<dyn Clock>,
    memory: Arc<AtomicUsize>,
}

impl Instance {
    /// Starts an instance that may have as much memory as the policy's loader says, and calls `prepare`. The component reads this clock, unsteadied: once a call, before it.
    ///
    /// # Errors
    ///
    /// When it fails at that.
    pub fn start(policy: &Policy, clock: impl Clock + 'static, setup: &Setup) -> Result<Self, Fault> {
        let (clock, memory): (Arc<dyn Clock>, _) = (Arc::new(clock), Arc::default());
        let start = Start {
            clock: clock.clone(),
            setup: setup.into(),
            max_memory: policy.max_memory(),
            memory: &memory,
        };
        Ok(Self {
            inner: instance::Instance::start(policy.pre(), start)?,
            clock,
            memory,
        })
    }

    /// What the component has told since this was last called.
    pub fn heard(&mut self) -> Heard {
        let (told, dropped) = self.inner.take_told().into_parts();
        Heard {
            told: told.into_iter().map(Into::into).collect(),
            dropped,
        }
    }

    /// Calls `prepare`.
    ///
    /// # Errors
    ///
    /// When the component traps or overruns its deadline.
    pub fn prepare(&mut self, setup: &Setup) -> Result<(), Fault> {
        self.inner.set_now(self.clock.monotonic());
        Ok(self.inner.prepare(&setup.into())?)
    }

    /// The size of the component's memory, in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.memory.load(Ordering::Relaxed)
    }
}

macro_rules! exports {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),*) -> $result:ty;)*) => {
        impl Instance {$(
            $(#[$doc])*
            ///
            /// # Errors
            ///
            /// When the component traps or overruns its deadline.
            pub fn $name(&mut self, $($arg: $type),*) -> Result<$result, Fault> {
                self.inner.set_now(self.clock.monotonic());
                Ok(self.inner.$name($($arg),*)?)
            }
        )*}
    };
}

exports! {
    /// Calls `describe`.
    fn describe() -> Description;
    /// Calls `attach`. The inner error is the component's refusal.
    fn attach(key: &str, settings: &str) -> Result<Attachment, AttachError>;
    /// Calls `configure`. The inner error is the component's refusal.
    fn configure(circuit: u32, settings: &str) -> Result<Moved, AttachError>;
    /// Calls `detach`.
    fn detach(circuit: u32) -> ();
    /// Calls `acquire`.
    fn acquire(circuit: u32) -> Admission;
    /// Calls `settle`.
    fn settle(circuit: u32, ticket: u64, report: &Report) -> Settlement;
    /// Calls `settle-successes`.
    fn settle_successes(circuit: u32, ticket: u64, count: u32) -> Moved;
    /// Calls `lease-of`.
    fn lease_of(circuit: u32) -> Lease;
    /// Calls `trip`. The wait is in nanoseconds.
    fn trip(circuit: u32, wait: Option<u64>) -> Moved;
    /// Calls `reset`.
    fn reset(circuit: u32) -> Moved;
    /// Calls `set-mode`.
    fn set_mode(circuit: u32, mode: Mode) -> Moved;
    /// Calls `inspect`.
    fn inspect(circuit: u32) -> Status;
    /// Calls `tripped`.
    fn tripped() -> Vec<String>;
    /// Calls `save`.
    fn save(circuit: u32) -> Snapshot;
    /// Calls `restore`. The age is in nanoseconds; the inner error is the component's refusal.
    fn restore(snapshot: &Snapshot, settings: &str, age: u64) -> Result<Attachment, AttachError>;
}

impl Instance {
    /// Calls `cool-down`.
    ///
    /// # Errors
    ///
    /// When the component traps, overruns its deadline, or tells of more circuits than one instance may have.
    pub fn cool_down(&mut self) -> Result<Vec<(u32, Moved)>, Fault> {
        self.inner.set_now(self.clock.monotonic());
        Ok(self.inner.cool_down(MAX_IN_SHARD)?)
    }
}

impl fmt::Debug for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Instance")
            .field("memory", &self.memory())
            .finish_non_exhaustive()
    }
}

impl From<instance::Fault> for Fault {
    fn from(instance::Fault { call, problem }: instance::Fault) -> Self {
        Self { call, problem }
    }
}

impl From<telemetry::Told> for Told {
    fn from(told: telemetry::Told) -> Self {
        match told {
            telemetry::Told::Log(line) => Self::Line {
                level: line.level,
                message: line.message,
                fields: line.fields,
            },
            telemetry::Told::Span(span) => Self::Span {
                name: span.name,
                start: span.start,
                end: span.end,
                attributes: span.attributes,
            },
        }
    }
}
