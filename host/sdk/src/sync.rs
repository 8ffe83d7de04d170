//! The one place that the gate and the clock's anchor take their atomics from.

pub(crate) use std::sync::atomic::{AtomicU64, Ordering, fence};
