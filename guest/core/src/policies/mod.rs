//! The policies.

mod consecutive;
mod outbox;

pub use consecutive::{Consecutive, ConsecutiveFailures, ConsecutiveSettings};
pub use outbox::{Outbox, OutboxSettings};
