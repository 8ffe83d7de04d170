//! Why a circuit cannot be added.

use alloc::string::String;
use core::fmt;

use tripwit_core::{SettingsError, SnapshotError};

/// Why a circuit cannot be added, changed or taken over. Nothing is left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttachError {
    /// The key is empty or too long.
    Key(String),
    /// The settings do not fit.
    Settings(SettingsError),
    /// The key is attached already, with other settings.
    Conflict,
    /// No circuit can be added; the number is the limit.
    Full(u32),
    /// The snapshot is damaged or makes no sense.
    Snapshot(String),
}

impl fmt::Display for AttachError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(problem) => f.write_str(problem),
            Self::Settings(error) => write!(f, "settings {error}"),
            Self::Conflict => f.write_str("attached already, with other settings"),
            Self::Full(limit) => write!(f, "no circuit can be added to the {limit} there are"),
            Self::Snapshot(problem) => write!(f, "snapshot: {problem}"),
        }
    }
}

impl core::error::Error for AttachError {}

impl From<SettingsError> for AttachError {
    fn from(error: SettingsError) -> Self {
        Self::Settings(error)
    }
}

impl From<SnapshotError> for AttachError {
    fn from(error: SnapshotError) -> Self {
        use alloc::string::ToString;
        Self::Snapshot(error.to_string())
    }
}
