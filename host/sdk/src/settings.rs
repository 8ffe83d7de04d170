//! Settings of circuits: any JSON text, or typed builders for the shipped policies.

use std::sync::Arc;
use std::time::Duration;

use serde::{Serialize, Serializer};

/// Settings of a circuit, as the JSON text that its policy reads.
///
/// The policy checks it: unknown fields are refused, and each error names its field. The default, `{}`, is the policy's
/// defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings(Arc<str>);

impl Settings {
    /// The JSON text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self("{}".into())
    }
}

impl From<&str> for Settings {
    fn from(json: &str) -> Self {
        Self(json.into())
    }
}

impl From<String> for Settings {
    fn from(json: String) -> Self {
        Self(json.into())
    }
}

impl From<&String> for Settings {
    fn from(json: &String) -> Self {
        Self(json.as_str().into())
    }
}

impl From<serde_json::Value> for Settings {
    fn from(json: serde_json::Value) -> Self {
        Self(json.to_string().into())
    }
}

impl From<&Self> for Settings {
    fn from(settings: &Self) -> Self {
        settings.clone()
    }
}

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
    open_for: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    success_threshold: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    probes: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    call_timeout: Option<Option<Text>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    probe_timeout: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    backoff_factor: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    open_for_max: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    jitter: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_max: Option<Text>,
}

impl Consecutive {
    /// At so many failures in a row the circuit opens. Range: 1 to 1,000,000. Default: 5.
    #[must_use]
    pub fn failure_threshold(mut self, failures: u32) -> Self {
        self.failure_threshold = Some(failures);
        self
    }

    /// How long it stays open. Range: 1 ms to 24 h. Default: 30 s.
    #[must_use]
    pub fn open_for(mut self, wait: Duration) -> Self {
        self.open_for = Some(Text(wait));
        self
    }

    /// At so many good probes it closes. Range: 1 to 1,000,000. Default: 2.
    #[must_use]
    pub fn success_threshold(mut self, successes: u32) -> Self {
        self.success_threshold = Some(successes);
        self
    }

    /// So many probes may be under way at once. Range: 1 to 1,000. Default: 1.
    #[must_use]
    pub fn probes(mut self, probes: u32) -> Self {
        self.probes = Some(probes);
        self
    }

    /// A call that runs strictly longer is given up and counts as a failure. Range: 1 ms to 24 h. Default: 10 s.
    #[must_use]
    pub fn call_timeout(mut self, limit: Duration) -> Self {
        self.call_timeout = Some(Some(Text(limit)));
        self
    }

    /// Calls may run as long as they like.
    #[must_use]
    pub fn no_call_timeout(mut self) -> Self {
        self.call_timeout = Some(None);
        self
    }

    /// A probe that has not ended by then is lost, and its place is free. Not below the call time-out. Default: twice
    /// the call time-out, or 60 s without one.
    #[must_use]
    pub fn probe_timeout(mut self, limit: Duration) -> Self {
        self.probe_timeout = Some(Text(limit));
        self
    }

    /// Each time that the circuit opens without having closed, it stays open so many times longer. Range: 1 to 100.
    /// Default: 1.
    #[must_use]
    pub fn backoff_factor(mut self, factor: f64) -> Self {
        self.backoff_factor = Some(factor);
        self
    }

    /// The longest wait that back-off comes to. Not below `open_for`. Default: 1 h.
    #[must_use]
    pub fn open_for_max(mut self, wait: Duration) -> Self {
        self.open_for_max = Some(Text(wait));
        self
    }

    /// The wait is drawn from so large a part of it below and above, but never above `open_for_max`. Range: 0 to 1.
    /// Default: 0.
    #[must_use]
    pub fn jitter(mut self, part: f64) -> Self {
        self.jitter = Some(part);
        self
    }

    /// A failure's own retry-after is a lower bound of the wait, up to this. Default: it is not heeded.
    #[must_use]
    pub fn retry_after_max(mut self, wait: Duration) -> Self {
        self.retry_after_max = Some(Text(wait));
        self
    }
}

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

into_settings!(Consecutive, Outbox);

/// A duration that is written as settings write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Text(Duration);

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&duration_text(self.0))
    }
}

/// A duration in the largest units that need no fractions: `1m30s`, `500ms`.
fn duration_text(duration: Duration) -> String {
    let nanoseconds = duration.subsec_nanos();
    let seconds = duration.as_secs();
    let parts = [
        (seconds / 3_600, "h"),
        (seconds / 60 % 60, "m"),
        (seconds % 60, "s"),
        (u64::from(nanoseconds / 1_000_000), "ms"),
        (u64::from(nanoseconds / 1_000 % 1_000), "us"),
        (u64::from(nanoseconds % 1_000), "ns"),
    ];
    let text: String = parts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, unit)| format!("{count}{unit}"))
        .collect();
    if text.is_empty() { "0s".into() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_as_settings_write_them() {
        for (duration, text) in [
            (Duration::ZERO, "0s"),
            (Duration::from_millis(500), "500ms"),
            (Duration::from_secs(90), "1m30s"),
            (Duration::from_secs(86_400), "24h"),
            (Duration::new(3_601, 1_002_003), "1h1s1ms2us3ns"),
        ] {
            assert_eq!(duration_text(duration), text);
        }
    }

    #[test]
    fn only_what_is_set_is_written() {
        assert_eq!(Settings::from(Consecutive::default()).as_str(), "{}");
        assert_eq!(
            Settings::from(Consecutive::default().no_call_timeout()).as_str(),
            r#"{"call_timeout":null}"#
        );
        assert_eq!(
            Settings::from(Outbox::default().cooldown_count(0)).as_str(),
            r#"{"cooldown_count":0}"#
        );
    }
}
