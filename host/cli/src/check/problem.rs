//! What is wrong with a policy.

use tripwit::raw::{AttachError, Fault};

use super::case::Case;

/// Something that is not as the contract has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// Whose promise is broken. `None`: that of the case under way.
    pub(crate) case: Option<Case>,
    pub(crate) expected: String,
    pub(crate) got: String,
}

/// What comes of a check.
pub(crate) type Checked<T = ()> = Result<T, Problem>;

impl Problem {
    /// A problem of the case under way.
    pub(crate) fn new(expected: impl Into<String>, got: impl Into<String>) -> Self {
        Self {
            case: None,
            expected: expected.into(),
            got: got.into(),
        }
    }

    /// A problem of this case, whichever is under way.
    pub(crate) fn of(case: Case, expected: impl Into<String>, got: impl Into<String>) -> Self {
        Self {
            case: Some(case),
            ..Self::new(expected, got)
        }
    }

    /// Settings that should have been accepted.
    pub(crate) fn refused(error: &AttachError) -> Self {
        Self::new("settings, key or snapshot accepted", refusal(error))
    }
}

impl From<Fault> for Problem {
    fn from(fault: Fault) -> Self {
        Self::new("an answer", fault.to_string())
    }
}

/// Fails unless `ok`.
pub(crate) fn ensure(ok: bool, expected: impl Into<String>, got: impl FnOnce() -> String) -> Checked {
    if ok {
        Ok(())
    } else {
        Err(Problem::new(expected, got()))
    }
}

/// Fails with a problem of this case unless `ok`.
pub(crate) fn ensure_of(
    case: Case,
    ok: bool,
    expected: impl Into<String>,
    got: impl FnOnce() -> String,
) -> Checked {
    if ok {
        Ok(())
    } else {
        Err(Problem::of(case, expected, got()))
    }
}

/// A refusal in words.
pub(crate) fn refusal(error: &AttachError) -> String {
    match error {
        AttachError::Key(problem) => format!("key error: {problem}"),
        AttachError::Settings(error) => format!("settings error at {:?}: {}", error.field, error.problem),
        AttachError::Conflict => "conflict".into(),
        AttachError::Full(limit) => format!("full at {limit} circuits"),
        AttachError::Snapshot(problem) => format!("snapshot error: {problem}"),
        AttachError::Other(problem) => format!("another error: {problem}"),
    }
}
