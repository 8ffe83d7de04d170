//! The state machines of Tripwit: what a circuit breaker decides, and nothing else.
//!
//! A [`Circuit`] is one guarded dependency under one [`Policy`]. It is told what happens (`acquire`, `settle`, an
//! operator's `trip`, ...) and when, and answers with a decision and the [`Transition`] it made, if any. **Time is an
//! argument: a circuit reads no clock, calls nothing back, and its getters move nothing.** Who hands out numbers, keys
//! and wall-clock times is the caller's business: `tripwit-policy` turns a policy into a component that does so.
//!
//! ```
//! use tripwit_core::{Circuit, Consecutive, Decision, Env, Numbers, Outcome, Policy, Report, State};
//!
//! let settings = Consecutive::parse(r#"{"failure_threshold": 1, "open_for": "5s"}"#).unwrap();
//! let mut numbers = Numbers::default();
//! let mut env = Env { now: 0, key: "payments", seed: 0, numbers: &mut numbers };
//! let mut circuit = Circuit::<Consecutive>::new(settings.into(), &mut env);
//!
//! let Decision::Admit(ticket) = circuit.acquire(&mut env).decision else { unreachable!() };
//! env.now += 1_000_000;
//! let settlement = circuit.settle(ticket, &Report::of(Outcome::Failure), &mut env);
//! assert_eq!(settlement.transition.unwrap().after, State::Open);
//! assert!(matches!(circuit.acquire(&mut env).decision, Decision::Reject(_)));
//! ```
//!
//! What it does not do: deliver calls, fall back, keep keys apart, share state between processes.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod circuit;
mod duration;
mod half_open;
mod lease;
mod policies;
mod policy;
mod recovery;
mod rule;
mod settings;
mod snapshot;
mod timed;
mod transition;

pub use circuit::{Admission, Circuit, Env, Numbers, Settlement};
pub use duration::{DurationError, format_duration, parse_duration};
pub use lease::{Allowance, Lease, Standing, Successes};
pub use policies::{
    Calls, Consecutive, ConsecutiveFailures, ConsecutiveSettings, Outbox, OutboxSettings, Window,
    WindowSettings,
};
pub use policy::{Context, Cooled, Policy, Telemetry, Terms};
pub use recovery::Recovery;
pub use rule::{Rule, Verdict};
pub use settings::{Decimal, Field, Given, Integer, OptionalTime, Settings, SettingsError, Time};
pub use snapshot::{Saved, SnapshotError};
pub use timed::Timed;
pub use transition::{
    Cause, Counts, Decision, Mode, Operation, Outcome, Rejection, RejectionReason, Report, State, Transition,
};

/// A length of time in nanoseconds.
pub type Nanoseconds = u64;
/// A reading of a monotonic clock, in nanoseconds since a moment of that clock's own.
pub type Instant = u64;
/// The number of a permit. Unique within an instance for as long as it lives; means nothing in another.
pub type Ticket = u64;
