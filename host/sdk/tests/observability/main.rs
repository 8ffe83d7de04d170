//! Logs, spans and metrics as docs/telemetry.md promises them, in a pipeline of the OpenTelemetry SDK.
#![cfg(feature = "opentelemetry-sdk")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

mod concurrency;
mod docs;
mod exporters;
mod late_providers;
mod logs;
mod metrics;
mod spans;
mod support;
mod trips;
