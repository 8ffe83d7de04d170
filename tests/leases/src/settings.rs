//! The settings under which policies are walked.

use crate::walk::Bounds;

/// Settings small enough that twelve steps lead everywhere.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// What is special about them.
    pub name: &'static str,
    /// The settings.
    pub json: &'static str,
    /// How far they are walked.
    pub bounds: Bounds,
}

const fn setting(permits: usize, name: &'static str, json: &'static str) -> Setting {
    let bounds = Bounds { steps: 12, permits };
    Setting { name, json, bounds }
}

/// Settings of `consecutive`. A time of 1 ms is one tick.
pub const CONSECUTIVE: &[Setting] = &[
    setting(
        3,
        "threshold 2",
        r#"{"failure_threshold": 2, "open_for": "2ms", "success_threshold": 2, "call_timeout": null, "probe_timeout": "2ms"}"#,
    ),
    setting(
        3,
        "call time-out",
        r#"{"failure_threshold": 2, "open_for": "1ms", "success_threshold": 1, "call_timeout": "1ms", "probe_timeout": "2ms"}"#,
    ),
    setting(
        3,
        "two probes",
        r#"{"failure_threshold": 1, "open_for": "1ms", "success_threshold": 2, "probes": 2, "call_timeout": null, "probe_timeout": "2ms"}"#,
    ),
    setting(
        3,
        "back-off",
        r#"{"failure_threshold": 1, "open_for": "1ms", "success_threshold": 1, "call_timeout": null, "probe_timeout": "1ms", "backoff_factor": 2, "open_for_max": "4ms"}"#,
    ),
    setting(
        3,
        "retry-after",
        r#"{"failure_threshold": 1, "open_for": "1ms", "success_threshold": 1, "call_timeout": null, "probe_timeout": "1ms", "retry_after_max": "3ms"}"#,
    ),
];

/// Settings of `outbox`.
pub const OUTBOX: &[Setting] = &[
    setting(3, "gone at the first cool-down", r#"{"cooldown_count": 0}"#),
    setting(3, "two cool-downs more", r#"{"cooldown_count": 2}"#),
];

/// Settings of [`Share`](crate::Share).
pub const SHARE: &[Setting] = &[setting(2, "half of at least three", "{}")];
