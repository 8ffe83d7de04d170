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
    /// Of calls and buckets it matters how many ticks ago they began, up to so many.
    pub memory: u64,
    /// It matters where the clock stands among so many ticks.
    pub phases: u64,
}

/// Of `consecutive`: two failures open, two probes close.
pub const THRESHOLD: Setting = Setting {
    name: "thresholds",
    json: r#"{
        "failure_threshold": 2, "success_threshold": 2, "open_for": "2ms",
        "call_timeout": null, "probe_timeout": "2ms"
    }"#,
    permits: 3,
    memory: 0,
    phases: 1,
};

/// Of `consecutive`: calls have a time-out, which is below that of probes.
pub const CALL_TIMEOUT: Setting = Setting {
    name: "a call time-out",
    json: r#"{
        "failure_threshold": 2, "success_threshold": 1, "open_for": "1ms",
        "call_timeout": "1ms", "probe_timeout": "2ms"
    }"#,
    permits: 2,
    memory: 2,
    phases: 1,
};

/// Of `consecutive`: two probes at once.
pub const TWO_PROBES: Setting = Setting {
    name: "two probes",
    json: r#"{
        "failure_threshold": 1, "success_threshold": 2, "open_for": "1ms", "probes": 2,
        "call_timeout": null, "probe_timeout": "2ms"
    }"#,
    permits: 3,
    memory: 0,
    phases: 1,
};

/// Of `consecutive`: each opening lasts twice as long as the one before, up to four ticks.
pub const BACK_OFF: Setting = Setting {
    name: "back-off",
    json: r#"{
        "failure_threshold": 1, "success_threshold": 1, "open_for": "1ms", "backoff_factor": 2, "open_for_max": "4ms",
        "call_timeout": null, "probe_timeout": "1ms"
    }"#,
    permits: 2,
    memory: 0,
    phases: 1,
};

/// Of `consecutive`: a failure's wish to be left alone is heeded.
pub const RETRY_AFTER: Setting = Setting {
    name: "retry-after heeded",
    json: r#"{
        "failure_threshold": 1, "success_threshold": 1, "open_for": "1ms", "retry_after_max": "3ms",
        "call_timeout": null, "probe_timeout": "1ms"
    }"#,
    permits: 2,
    memory: 0,
    phases: 1,
};

/// Of `window`: half of the last four calls; two probes.
pub const LAST_CALLS: Setting = Setting {
    name: "the last calls",
    json: r#"{
        "window_calls": 4, "failure_rate": 50, "probe_calls": 2, "open_for": "1ms",
        "call_timeout": null, "probe_timeout": "1ms"
    }"#,
    permits: 2,
    memory: 0,
    phases: 1,
};

/// Of `window`: half of the calls of two buckets of two ticks each, once there are three; one probe.
pub const LAST_TICKS: Setting = Setting {
    name: "the calls of the last ticks",
    json: r#"{
        "window_time": "4ms", "buckets": 2, "minimum_calls": 3, "failure_rate": 50, "probe_calls": 1, "open_for": "1ms",
        "call_timeout": null, "probe_timeout": "1ms"
    }"#,
    permits: 1,
    memory: 4,
    phases: 2,
};

/// Of `window`: slow calls open the circuit.
pub const SLOW_CALLS: Setting = Setting {
    name: "slow calls",
    json: r#"{
        "window_calls": 2, "failure_rate": 100, "slow_after": "1ms", "slow_rate": 50, "probe_calls": 1, "open_for": "1ms",
        "call_timeout": null, "probe_timeout": "2ms"
    }"#,
    permits: 2,
    memory: 2,
    phases: 1,
};

/// Of `outbox`: the first cool-down resets.
pub const NO_CYCLES: Setting = Setting {
    name: "reset by the first cool-down",
    json: r#"{"cooldown_count": 0}"#,
    permits: 3,
    memory: 0,
    phases: 1,
};

/// Of `outbox`: the third cool-down resets.
pub const TWO_CYCLES: Setting = Setting {
    name: "reset by the third cool-down",
    json: r#"{"cooldown_count": 2}"#,
    permits: 3,
    memory: 0,
    phases: 1,
};
