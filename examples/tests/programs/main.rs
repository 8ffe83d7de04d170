//! The examples as a person runs them.
#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail with the test"
)]

mod notify;
mod running;
mod swap;
