//! The policies.

mod consecutive;
mod outbox;
mod window;

pub use consecutive::{Consecutive, ConsecutiveFailures, ConsecutiveSettings};
pub use outbox::{Outbox, OutboxSettings};
pub use window::{Calls, Window, WindowSettings};
