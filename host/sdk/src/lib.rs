//! A circuit breaker whose state machine is a WebAssembly component.
//!
//! Wrap the calls to something that can fail. While it fails, the circuit opens, and further calls are rejected at once
//! instead of waiting and making things worse; after a while a few are let through to find out whether it is well again.
//! When to open and when to close is decided by a policy: a component that sees two clocks and nothing else of this
//! process. Three policies are shipped, others are loaded from a file.
//!
//! ```
//! use tripwit::settings::Consecutive;
//! use tripwit::{Breakers, CallError, Policy};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Once: the circuits of this process, under one policy.
//! let breakers = Breakers::builder(Policy::consecutive()?)
//!     .settings(Consecutive::default().failure_threshold(2))
//!     .build()?;
//!
//! // Once for each thing that is called: its circuit.
//! let payments = breakers.breaker("payments")?;
//!
//! // For each call: the call, guarded.
//! fn charge() -> Result<u32, std::io::Error> {
//!     Err(std::io::ErrorKind::ConnectionRefused.into())
//! }
//! for _ in 0..3 {
//!     match payments.call_blocking(charge) {
//!         Ok(receipt) => println!("paid: {receipt}"),
//!         Err(CallError::Rejected(rejection)) => println!("not even tried: {rejection}"),
//!         Err(error) => println!("failed: {error}"),
//!     }
//! }
//! assert_eq!(payments.state(), tripwit::State::Open);
//! # Ok(()) }
//! ```
//!
//! # Who does what
//!
//! - [`Policy`]: a component, compiled once.
//! - [`Breakers`]: circuits under one policy, found by key, spread over instances of the component.
//! - [`Breaker`]: the circuit of one key. [`call`](Breaker::call), [`call_blocking`](Breaker::call_blocking), or
//!   [`acquire`](Breaker::acquire) a [`Permit`] and say how the call ended.
//!
//! The component hands out leases: what the host may decide by itself, and until when. So a healthy call takes no lock,
//! allocates nothing and does not reach the component at all, and still every answer is the one that the component would
//! have given.
//!
//! While calls go on, [`swap`](Breakers::swap) lets another policy decide and [`reconfigure`](Breakers::reconfigure) changes
//! settings; a [`Watch`] swaps in what is dropped into a folder.
//!
//! Log lines of the component become `tracing` events of target `tripwit`, its spans go to an OpenTelemetry tracer,
//! numbers to an OpenTelemetry meter, and moves to those who [`subscribe`](Breakers::subscribe). Spans and metrics use the
//! global providers unless a [`Telemetry`] says otherwise. Every name is in docs/telemetry.md of the repository.
//!
//! A component that traps, never ends or hands out nonsense is contained: its instance is replaced, circuits that are not
//! closed are taken over, what closed ones had counted is lost, and meanwhile calls go on as
//! [`on_fault`](BreakersBuilder::on_fault) says.
//!
//! # What it does not do
//!
//! It does not make, repeat or queue calls, does not choose another destination, and shares no state between processes: a
//! restart begins with closed circuits, unless those of before were [saved](Breakers::save_to).
//!
//! # Features
//!
//! - `opentelemetry-sdk`: a span processor that counts trips and a sampler that lets it, in the module `otel`.
//! - `raw`: a component's own functions, for programs that examine policies, in the module `raw`.
//! - `tower`: a [tower](https://docs.rs/tower) layer, in the module `tower`.

mod admission;
mod anchor;
mod bindings;
mod bounds;
mod breaker;
mod breakers;
mod builder;
mod cache;
mod call;
mod circuit;
pub mod classify;
mod clock;
mod cooldown;
mod counted;
mod digest;
mod emit;
mod engine;
mod env;
mod error;
mod faults;
mod gate;
// Not within the gate: tests/gate includes its source, and has other atomics.
#[cfg(test)]
#[path = "gate/tests.rs"]
mod gate_tests;
mod handover;
mod instance;
mod instrumentation;
mod lease;
mod lease_check;
mod ledger;
mod limits;
mod loader;
mod machine;
mod meters;
mod names;
mod numbers;
#[cfg(feature = "opentelemetry-sdk")]
pub mod otel;
mod permit;
mod policy;
mod precheck;
mod processor;
mod providers;
#[cfg(feature = "raw")]
pub mod raw;
mod regime;
mod registry;
mod rejection;
mod restart;
#[cfg(feature = "wasi")]
mod sandbox;
mod seat;
pub mod settings;
mod shard;
mod snapshots;
mod state_file;
mod status;
mod subscription;
mod swap;
mod sync;
mod table;
mod tally;
mod telemetry;
mod thread_number;
#[cfg(feature = "tower")]
pub mod tower;
mod trial;
mod watch;
mod words;

pub use breaker::Breaker;
pub use breakers::Breakers;
pub use builder::{BreakersBuilder, OnFault};
pub use cache::CacheError;
pub use call::Classified;
pub use classify::{Classify, Failure, Verdict};
pub use clock::{Clock, ManualClock, SystemClock};
pub use digest::{Digest, InvalidDigest};
pub use error::{AttachError, BuildError, PolicyError, SwapError};
pub use instrumentation::Instrumentation;
pub use loader::Loader;
pub use permit::{OwnedPermit, Permit};
pub use policy::{Description, Policy};
pub use providers::Telemetry;
pub use rejection::{CallError, Rejection, RejectionReason};
pub use restart::{RestoreError, SaveError};
pub use settings::Settings;
pub use state_file::StateError;
pub use status::{
    Cause, Counts, Event, FieldValue, Mode, Moved, Operation, State, Status, Transition, UnknownMode,
};
pub use subscription::Subscription;
pub use table::SettingsTable;
pub use watch::{Watch, WatchError, Watched, Watching};

#[cfg(doctest)]
#[doc = include_str!("../../../docs/policies.md")]
struct PoliciesPage;
