//! What came of a case that found nothing wrong.

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ran {
    /// In a line: what was done, or why there was nothing to do.
    pub(crate) what: String,
    /// Whether there was anything to do.
    pub(crate) applicable: bool,
}

impl Ran {
    pub(crate) fn done(what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            applicable: true,
        }
    }

    pub(crate) fn not_applicable(why: impl Into<String>) -> Self {
        Self {
            what: why.into(),
            applicable: false,
        }
    }
}
