//! What was done to a policy, put into words only where it is shown.

use std::fmt;

use super::answer::Answer;
use super::answer::Command;
use super::step::Step;

/// One thing that was done.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// To which circuit, where there are two.
    pub(crate) name: &'static str,
    pub(crate) what: What,
}

/// What was done, and what came of it.
#[derive(Clone, Debug)]
pub(crate) enum What {
    Step(Step),
    Answered(Command, Answer),
    Other(String),
}

impl From<String> for Entry {
    fn from(text: String) -> Self {
        Self {
            name: "",
            what: What::Other(text),
        }
    }
}

impl From<&str> for Entry {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.name.is_empty() {
            write!(f, "[{}] ", self.name)?;
        }
        match &self.what {
            What::Step(step) => step.fmt(f),
            What::Answered(command, answer) => write!(f, "{} -> {answer}", command.text()),
            What::Other(text) => f.write_str(text),
        }
    }
}
