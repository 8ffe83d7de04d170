//! What holds of a circuit under any policy: new settings, leases, successes that were kept back, and taking over.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod guest;
mod kept_back;
mod leases;
mod settings;
mod take_over;
