//! Settings of circuits: any JSON text, or typed builders for the shipped policies.

use std::sync::Arc;
use std::time::Duration;

use serde::{Serialize, Serializer};

mod typed;

pub use typed::{Consecutive, Outbox, Window};

/// Settings of a circuit, as the JSON text that its policy reads.
///
/// The policy checks it: unknown fields are refused, and each error names its field. The default, `{}`, is the policy's
/// defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings(
    /// One word, since each of very many circuits has them.
    Arc<String>,
);

impl Settings {
    /// The JSON text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Settings {
    fn default() -> Self {
        "{}".into()
    }
}

impl From<&str> for Settings {
    fn from(json: &str) -> Self {
        json.to_owned().into()
    }
}

impl From<String> for Settings {
    fn from(json: String) -> Self {
        Self(Arc::new(json))
    }
}

impl From<&String> for Settings {
    fn from(json: &String) -> Self {
        json.clone().into()
    }
}

impl From<serde_json::Value> for Settings {
    fn from(json: serde_json::Value) -> Self {
        json.to_string().into()
    }
}

impl From<&Self> for Settings {
    fn from(settings: &Self) -> Self {
        settings.clone()
    }
}

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
