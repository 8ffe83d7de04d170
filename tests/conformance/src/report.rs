//! What came of all scenarios on one subject.

use std::fmt;

use crate::subject::Subject;

/// What came of all scenarios on one subject. Shown, it says how many of how many ran, and what did not hold.
#[derive(Clone, Debug)]
pub struct Report {
    subject: Subject,
    files: usize,
    scenarios: usize,
    steps: usize,
    left_out: usize,
    failures: Vec<String>,
}

impl Report {
    pub(crate) fn new(subject: Subject, files: usize) -> Self {
        Self {
            subject,
            files,
            scenarios: 0,
            steps: 0,
            left_out: 0,
            failures: Vec::new(),
        }
    }

    pub(crate) fn ran(&mut self, file: &str, name: &str, steps: usize, failure: Option<String>) {
        self.scenarios += 1;
        self.steps += steps;
        if let Some(failure) = failure {
            self.failures.push(format!("{file}: {name}\n    {failure}"));
        }
    }

    pub(crate) fn left_out(&mut self) {
        self.left_out += 1;
    }

    /// Whether something ran and everything that ran held.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.scenarios > 0 && self.failures.is_empty()
    }

    /// How many scenarios were played.
    #[must_use]
    pub fn scenarios(&self) -> usize {
        self.scenarios
    }

    /// How many scenarios were not played, since a step of theirs is beyond the subject.
    #[must_use]
    pub fn scenarios_left_out(&self) -> usize {
        self.left_out
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            subject,
            files,
            scenarios,
            steps,
            left_out,
            failures,
        } = self;
        write!(
            f,
            "{subject}: {scenarios} of {} scenarios of {files} files played ({steps} steps)",
            scenarios + left_out
        )?;
        if *left_out > 0 {
            write!(f, ", {left_out} are for the native core and the component only")?;
        }
        write!(
            f,
            "; {} held, {} did not",
            scenarios - failures.len(),
            failures.len()
        )?;
        for failure in failures {
            write!(f, "\n  {failure}")?;
        }
        Ok(())
    }
}
