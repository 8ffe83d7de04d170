//! What is not the same, and how it came to that.

use std::fmt;

use crate::step::Trace;

/// Asking each time and deciding by leases are not the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// What led to it; the last step shows it.
    pub trace: Trace,
    /// What differs.
    pub problem: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "after {}: {}", self.trace, self.problem)
    }
}

impl std::error::Error for Difference {}

/// Says of two of a kind, each with the name of who gave it, how they differ.
pub(crate) fn same<T: PartialEq + fmt::Debug>(
    what: &str,
    (one_by, one): (&str, &T),
    (other_by, other): (&str, &T),
) -> Result<(), String> {
    if one == other {
        Ok(())
    } else {
        Err(format!("{what} differ: {one:?} {one_by}, {other:?} {other_by}"))
    }
}
