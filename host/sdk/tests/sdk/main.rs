//! The crate as its users see it, on the shipped components.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "these are tests"
)]

mod bad_input;
mod calls;
mod faults;
mod fuzz;
mod heap;
mod hostile;
#[cfg(feature = "raw")]
mod raw;
mod registry;
mod restart;
mod support;
mod swap;
mod telemetry;
#[cfg(feature = "tower")]
mod tower;
mod watch;
mod window;
