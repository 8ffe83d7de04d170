//! Typed settings of the shipped policies.

use std::time::Duration;

use serde::Serialize;

use super::{Settings, Text};

/// Settings of the policy [`consecutive`](crate::Policy::consecutive). What is not set has the policy's default.
///
/// ```
/// use std::time::Duration;
/// use tripwit::Settings;
/// use tripwit::settings::Consecutive;
///
/// let settings = Settings::from(Consecutive::default().failure_threshold(3).open_for(Duration::from_secs(90)));
/// assert_eq!(settings.as_str(), r#"{"failure_threshold":3,"open_for":"1m30s"}"#);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Consecutive {
    #[serde(skip_serializing_if = "Option::is_none")]
    failure_threshold: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    success_threshold: Option<u32>,
    #[serde(flatten)]
    recovery: Recovery,
}

/// Settings of the policy [`window`](crate::Policy::window). What is not set has the policy's default.
///
/// ```
/// use std::time::Duration;
/// use tripwit::Settings;
/// use tripwit::settings::Window;
///
/// let settings = Settings::from(Window::default().window_time(Duration::from_secs(10)).failure_rate(25.0));
/// assert_eq!(settings.as_str(), r#"{"window_time":"10s","failure_rate":25.0}"#);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Window {
    #[serde(skip_serializing_if = "Option::is_none")]
    window_calls: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    window_time: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    buckets: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    minimum_calls: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure_rate: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    slow_after: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    slow_rate: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    probe_calls: Option<u32>,
    #[serde(flatten)]
    recovery: Recovery,
}

/// How an open circuit comes back: the settings of every policy that waits by the clock.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct Recovery {
    #[serde(skip_serializing_if = "Option::is_none")]
    open_for: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    backoff_factor: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    open_for_max: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    jitter: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_max: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    probes: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    probe_timeout: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    call_timeout: Option<Option<Text>>,
}

impl Consecutive {
    /// At so many failures in a row the circuit opens. Range: 1 to 1,000,000. Default: 5.
    #[must_use]
    pub fn failure_threshold(mut self, failures: u32) -> Self {
        self.failure_threshold = Some(failures);
        self
    }

    /// At so many good probes it closes. Range: 1 to 1,000,000. Default: 2.
    #[must_use]
    pub fn success_threshold(mut self, successes: u32) -> Self {
        self.success_threshold = Some(successes);
        self
    }
}

impl Window {
    /// The window holds the last so many calls. Not together with [`window_time`](Self::window_time). Range: 1 to 10,000.
    /// Default: 100.
    #[must_use]
    pub fn window_calls(mut self, calls: u32) -> Self {
        self.window_calls = Some(calls);
        self
    }

    /// The window holds the calls that ended within the last so much time, to a bucket. Range: 1 ms to 24 h. Default: the
    /// window holds calls by number.
    #[must_use]
    pub fn window_time(mut self, time: Duration) -> Self {
        self.window_time = Some(Text(time));
        self
    }

    /// Into so many buckets the time of the window is cut; the oldest is dropped as a whole. Range: 1 to 1,000. Default: 10.
    #[must_use]
    pub fn buckets(mut self, buckets: u32) -> Self {
        self.buckets = Some(buckets);
        self
    }

    /// Below so many calls in the window nothing is decided. Not above `window_calls`. Range: 1 to 1,000,000. Default: 20, or
    /// `window_calls` where that is less.
    #[must_use]
    pub fn minimum_calls(mut self, calls: u32) -> Self {
        self.minimum_calls = Some(calls);
        self
    }

    /// When at least this percentage of the calls in the window failed, the circuit opens. Range: 0.001 to 100. Default: 50.
    #[must_use]
    pub fn failure_rate(mut self, percent: f64) -> Self {
        self.failure_rate = Some(percent);
        self
    }

    /// A call that took strictly longer is slow, however it ended. Below the call time-out. Range: 1 ms to 24 h. Default: no
    /// call is slow.
    #[must_use]
    pub fn slow_after(mut self, limit: Duration) -> Self {
        self.slow_after = Some(Text(limit));
        self
    }

    /// When at least this percentage of the calls in the window were slow, the circuit opens. Range: 0.001 to 100.
    /// Default: 100.
    #[must_use]
    pub fn slow_rate(mut self, percent: f64) -> Self {
        self.slow_rate = Some(percent);
        self
    }

    /// So many probes are judged in half-open, by the same two rates. They go out one after the other unless
    /// [`probes`](Self::probes) says otherwise. Range: 1 to 1,000. Default: 10.
    #[must_use]
    pub fn probe_calls(mut self, probes: u32) -> Self {
        self.probe_calls = Some(probes);
        self
    }
}

macro_rules! recovery {
    ($($typed:ty),*) => {$(
        impl $typed {
            /// How long the circuit stays open. Range: 1 ms to 24 h. Default: 30 s.
            #[must_use]
            pub fn open_for(mut self, wait: Duration) -> Self {
                self.recovery.open_for = Some(Text(wait));
                self
            }

            /// Each time that the circuit opens without having closed, it stays open so many times longer. Range: 1 to 100.
            /// Default: 1.
            #[must_use]
            pub fn backoff_factor(mut self, factor: f64) -> Self {
                self.recovery.backoff_factor = Some(factor);
                self
            }

            /// The longest wait that back-off comes to. Not below `open_for`. Default: 1 h.
            #[must_use]
            pub fn open_for_max(mut self, wait: Duration) -> Self {
                self.recovery.open_for_max = Some(Text(wait));
                self
            }

            /// The wait is drawn from so large a part of it below and above, but never above `open_for_max`. Range: 0 to 1.
            /// Default: 0.
            #[must_use]
            pub fn jitter(mut self, part: f64) -> Self {
                self.recovery.jitter = Some(part);
                self
            }

            /// A failure's own retry-after is a lower bound of the wait, up to this. Default: it is not heeded.
            #[must_use]
            pub fn retry_after_max(mut self, wait: Duration) -> Self {
                self.recovery.retry_after_max = Some(Text(wait));
                self
            }

            /// So many probes may be under way at once. Range: 1 to 1,000. Default: 1.
            #[must_use]
            pub fn probes(mut self, probes: u32) -> Self {
                self.recovery.probes = Some(probes);
                self
            }

            /// A probe that has not ended by then is lost, and its place is free. Not below the call time-out. Default: twice
            /// the call time-out, or 60 s without one.
            #[must_use]
            pub fn probe_timeout(mut self, limit: Duration) -> Self {
                self.recovery.probe_timeout = Some(Text(limit));
                self
            }

            /// A call that runs strictly longer is given up and counts as a failure. Range: 1 ms to 24 h. Default: 10 s.
            #[must_use]
            pub fn call_timeout(mut self, limit: Duration) -> Self {
                self.recovery.call_timeout = Some(Some(Text(limit)));
                self
            }

            /// Calls may run as long as they like.
            #[must_use]
            pub fn no_call_timeout(mut self) -> Self {
                self.recovery.call_timeout = Some(None);
                self
            }
        }
    )*};
}

recovery!(Consecutive, Window);

/// Settings of the policy [`outbox`](crate::Policy::outbox). What is not set has the policy's default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Outbox {
    #[serde(skip_serializing_if = "Option::is_none")]
    cooldown_count: Option<u32>,
}

impl Outbox {
    /// A tripped circuit closes at the cool-down cycle after so many. Range: 0 to 1,000,000. Default: 10.
    #[must_use]
    pub fn cooldown_count(mut self, cycles: u32) -> Self {
        self.cooldown_count = Some(cycles);
        self
    }
}

macro_rules! into_settings {
    ($($typed:ty),*) => {$(
        impl From<$typed> for Settings {
            fn from(typed: $typed) -> Self {
                // Numbers and texts under fixed names: nothing in it can fail to be written.
                Self(serde_json::to_string(&typed).unwrap_or_default().into())
            }
        }
    )*};
}

into_settings!(Consecutive, Window, Outbox);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_of_window_is_written_under_its_own_name() {
        let second = Duration::from_secs(1);
        let all = Window::default()
            .window_time(second)
            .window_calls(2)
            .buckets(3)
            .minimum_calls(4)
            .failure_rate(5.5)
            .slow_after(second * 6)
            .slow_rate(7.0)
            .probe_calls(8)
            .open_for(second * 9)
            .backoff_factor(10.0)
            .open_for_max(second * 11)
            .jitter(0.5)
            .retry_after_max(second * 13)
            .probes(14)
            .probe_timeout(second * 15)
            .no_call_timeout();
        let written: serde_json::Value = serde_json::from_str(Settings::from(all).as_str()).unwrap();
        let expected = serde_json::json!({
            "window_calls": 2, "window_time": "1s", "buckets": 3, "minimum_calls": 4, "failure_rate": 5.5,
            "slow_after": "6s", "slow_rate": 7.0, "probe_calls": 8, "open_for": "9s", "backoff_factor": 10.0,
            "open_for_max": "11s", "jitter": 0.5, "retry_after_max": "13s", "probes": 14, "probe_timeout": "15s",
            "call_timeout": null,
        });
        assert_eq!(written, expected);
        assert_eq!(Settings::from(Window::default()).as_str(), "{}");
        let limited = Settings::from(Window::default().call_timeout(second));
        assert_eq!(limited.as_str(), r#"{"call_timeout":"1s"}"#);
    }
}
