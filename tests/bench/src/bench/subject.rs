//! Who is measured.

use serde::Serialize;

/// Who guards the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Subject {
    /// Nobody.
    Bare,
    Tripwit,
    Recloser,
    /// failsafe with consecutive failures alone.
    FailsafeConsecutive,
    /// failsafe as it is by default.
    FailsafeDefault,
    TowerResilience,
    /// A time-out, and no breaker.
    TokioTimeout,
}

impl Subject {
    /// As reports spell it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::Tripwit => "tripwit",
            Self::Recloser => "recloser",
            Self::FailsafeConsecutive => "failsafe-consecutive",
            Self::FailsafeDefault => "failsafe-default",
            Self::TowerResilience => "tower-resilience",
            Self::TokioTimeout => "tokio-timeout",
        }
    }
}
