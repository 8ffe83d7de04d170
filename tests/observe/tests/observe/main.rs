//! `examples/observe` as Prometheus and an OpenTelemetry collector see it, and its alerts and dashboard.
//!
//! `.ci/observe-setup` installs what these tests need. Without it they fail and say so.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "these are tests"
)]

mod collector;
mod program;
mod prometheus;
mod rules;
