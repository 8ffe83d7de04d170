//! The settings under which policies are walked: small enough that twelve steps lead everywhere.

/// Settings, and how many permits may be out at once under them.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// What is special about them.
    pub name: &'static str,
    /// The settings. A time of 1 ms is one tick.
    pub json: &'static str,
    /// At most so many permits are out.
    pub permits: usize,
}

/// Of `consecutive`: two failures open, two probes close.
pub const THRESHOLD: Setting = Setting {
    name: "thresholds",
    json: r#"{
        "failure_threshold": 2, "success_threshold": 2, "open_for": "2ms",
        "call_timeout": null, "probe_timeout": "2ms"
    }"#,
    permits: 3,
};

/// Of `consecutive`: calls have a time-out, which is below that of probes.
pub const CALL_TIMEOUT: Setting = Setting {
    name: "a call time-out",
    json: r#"{
        "failure_threshold": 2, "success_threshold": 1, "open_for": "1ms",
        "call_timeout": "1ms", "probe_timeout": "2ms"
    }"#,
    permits: 2,
};

/// Of `consecutive`: two probes at once.
pub const TWO_PROBES: Setting = Setting {
    name: "two probes",
    json: r#"{
        "failure_threshold": 1, "success_threshold": 2, "open_for": "1ms", "probes": 2,
        "call_timeout": null, "probe_timeout": "2ms"
    }"#,
    permits: 3,
};

/// Of `consecutive`: each opening lasts twice as long as the one before, up to four ticks.
pub const BACK_OFF: Setting = Setting {
    name: "back-off",
    json: r#"{
        "failure_threshold": 1, "success_threshold": 1, "open_for": "1ms", "backoff_factor": 2, "open_for_max": "4ms",
        "call_timeout": null, "probe_timeout": "1ms"
    }"#,
    permits: 2,
};

/// Of `consecutive`: a failure's wish to be left alone is heeded.
pub const RETRY_AFTER: Setting = Setting {
    name: "retry-after heeded",
    json: r#"{
        "failure_threshold": 1, "success_threshold": 1, "open_for": "1ms", "retry_after_max": "3ms",
        "call_timeout": null, "probe_timeout": "1ms"
    }"#,
    permits: 2,
};

/// Of `outbox`: the first cool-down resets.
pub const NO_CYCLES: Setting = Setting {
    name: "reset by the first cool-down",
    json: r#"{"cooldown_count": 0}"#,
    permits: 3,
};

/// Of `outbox`: the third cool-down resets.
pub const TWO_CYCLES: Setting = Setting {
    name: "reset by the third cool-down",
    json: r#"{"cooldown_count": 2}"#,
    permits: 3,
};

/// Of [`Share`](crate::Share): one probe after one tick.
pub const HALF: Setting = Setting {
    name: "half of the calls",
    json: r#"{"open_for": "1ms", "call_timeout": null, "probe_timeout": "1ms"}"#,
    permits: 3,
};
