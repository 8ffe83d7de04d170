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

/// A problem of the case under way unless a condition holds. What is expected and got is only put into words then.
macro_rules! ensure {
    ($ok:expr, $expected:expr, $got:expr $(,)?) => {
        if $ok {
            Ok(())
        } else {
            let got: String = ($got)();
            Err($crate::check::problem::Problem::new($expected, got))
        }
    };
}

/// The same, as a problem of a case of its own.
macro_rules! ensure_of {
    ($case:expr, $ok:expr, $expected:expr, $got:expr $(,)?) => {
        if $ok {
            Ok(())
        } else {
            let got: String = ($got)();
            Err($crate::check::problem::Problem::of($case, $expected, got))
        }
    };
}

pub(crate) use {ensure, ensure_of};

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
