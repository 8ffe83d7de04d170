//! The one place that the gate takes its atomics from.

pub(crate) use std::sync::atomic::{AtomicU64, Ordering, fence};
