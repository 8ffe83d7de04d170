//! The one place that the gate takes its atomics from, so that a model checker can stand in for them.

pub(crate) use std::sync::atomic::{AtomicU64, Ordering, fence};
