//! `tripwit replay`, run as a person would run it.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails where something is not as it should be"
)]

mod bad_input;
mod night;
mod numbers;
mod options;
mod reference;
mod support;
