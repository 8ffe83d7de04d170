//! The shipped component does what the native core does: every answer, and every log line and span, to the byte.
//!
//! [`every_step`] takes every step from every state that `tripwit-leases` finds; [`random()`] goes a long way at random, with
//! other settings, instances, take-overs and hostile input on the way.

mod pair;
mod paths;
mod random;
mod steps;

pub use paths::{Replayed, every_step};
pub use random::{Walked, random};

use crate::verb::PolicyName;

/// A policy that is there natively and as a component, and settings to go about at random with.
#[derive(Clone, Copy, Debug)]
pub struct Refined {
    pub(crate) policy: PolicyName,
    pub(crate) settings: &'static [&'static str],
}

/// The policy `consecutive`.
pub const CONSECUTIVE: Refined = Refined {
    policy: PolicyName::Consecutive,
    settings: &[
        "{}",
        r#"{"failure_threshold": 2, "success_threshold": 1, "open_for": "1ms", "probe_timeout": "2ms", "call_timeout": null}"#,
        r#"{"failure_threshold": 1, "success_threshold": 3, "probes": 3, "open_for": "3ms", "call_timeout": "1ms"}"#,
        r#"{"failure_threshold": 1, "open_for": "1s", "backoff_factor": 2.5, "open_for_max": "1m", "jitter": 0.25}"#,
        r#"{"failure_threshold": 3, "open_for": "24h", "backoff_factor": 100, "open_for_max": "24h", "jitter": 1, "retry_after_max": "24h"}"#,
    ],
};

/// The policy `outbox`.
pub const OUTBOX: Refined = Refined {
    policy: PolicyName::Outbox,
    settings: &[
        "{}",
        r#"{"cooldown_count": 0}"#,
        r#"{"cooldown_count": 2}"#,
        r#"{"cooldown_count": 1000000}"#,
    ],
};

/// The policy `window`.
pub const WINDOW: Refined = Refined {
    policy: PolicyName::Window,
    settings: &[
        "{}",
        r#"{"window_calls": 4, "failure_rate": 50, "probe_calls": 2, "open_for": "1ms", "probe_timeout": "1ms", "call_timeout": null}"#,
        r#"{"window_calls": 50, "minimum_calls": 5, "failure_rate": 33.333, "slow_after": "1ms", "slow_rate": 60, "probes": 3, "probe_calls": 5, "open_for": "2ms"}"#,
        r#"{"window_time": "10ms", "buckets": 5, "minimum_calls": 3, "failure_rate": 40, "probe_calls": 1, "open_for": "3ms", "backoff_factor": 3}"#,
        r#"{"window_time": "1h", "buckets": 60, "minimum_calls": 2, "failure_rate": 100, "slow_after": "1s", "slow_rate": 0.001, "jitter": 0.5, "retry_after_max": "1m"}"#,
    ],
};
