//! What a circuit is told, and what it answers.

use std::fmt;

use tripwit::raw::{Cause, Lease, Mode, Outcome, RejectionReason, Report, Status, Transition};

use super::step::Step;
use super::words;

/// What a circuit was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Acquire,
    Settle(Outcome),
    Trip(Option<u64>),
    Reset,
    SetMode(Mode),
    CoolDown,
    Configure,
}

impl Command {
    pub(crate) fn text(self) -> String {
        match self {
            Self::Acquire => "acquire".into(),
            Self::Settle(outcome) => format!("settle {}", words::outcome(outcome)),
            Self::Trip(wait) => Step::Trip(wait).to_string(),
            Self::Reset => "reset".into(),
            Self::SetMode(mode) => Step::SetMode(mode).to_string(),
            Self::CoolDown => "cool-down".into(),
            Self::Configure => "configure".into(),
        }
    }

    /// Who makes the moves that it makes; `None`: it makes none.
    pub(super) fn cause(self) -> Option<Cause> {
        match self {
            Self::Acquire | Self::Settle(_) => Some(Cause::Policy),
            Self::Trip(_) | Self::Reset => Some(Cause::Operator),
            Self::CoolDown => Some(Cause::CoolDown),
            Self::SetMode(_) | Self::Configure => None,
        }
    }
}

/// What came of a step, as far as two circuits can be compared by it: without tickets and generations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) did: Did,
    pub(crate) transition: Option<Transition>,
    /// The lease that came with it, if one did.
    pub(crate) lease: Option<Lease>,
}

/// What was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Did {
    Nothing,
    Admitted,
    Passed,
    Rejected(RejectionReason, Option<u64>),
    Settled(bool),
    Cooled(bool),
}

impl Answer {
    /// None: nothing was asked.
    pub(super) const NOTHING: Self = Self {
        did: Did::Nothing,
        transition: None,
        lease: None,
    };
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.did {
            Did::Nothing => {}
            Did::Admitted => f.write_str("admitted, ")?,
            Did::Passed => f.write_str("passed, ")?,
            Did::Rejected(reason, retry_after) => write!(
                f,
                "rejected ({}, retry after {}), ",
                words::reason(reason),
                words::optional_time(retry_after)
            )?,
            Did::Settled(true) => f.write_str("counted, ")?,
            Did::Settled(false) => f.write_str("not counted, ")?,
            Did::Cooled(true) => f.write_str("returned, ")?,
            Did::Cooled(false) => f.write_str("not returned, ")?,
        }
        f.write_str(&words::moved(self.transition.as_ref()))?;
        match &self.lease {
            Some(lease) => write!(f, "; {}", words::lease(lease)),
            None => Ok(()),
        }
    }
}

/// A report of this outcome and nothing else.
pub(crate) fn report(outcome: Outcome) -> Report {
    Report {
        outcome,
        took: None,
        retry_after: None,
        cause: matches!(outcome, Outcome::Failure | Outcome::Timeout).then(|| "refused".into()),
    }
}

/// How a status differs from another, if it does.
pub(crate) fn differences(before: &Status, after: &Status) -> Option<String> {
    let mut found = Vec::new();
    let mut note = |what: &str, before: String, after: String| {
        if before != after {
            found.push(format!("{what} was {before} and became {after}"));
        }
    };
    note(
        "state",
        words::state(before.state).into(),
        words::state(after.state).into(),
    );
    note(
        "mode",
        words::mode(before.mode).into(),
        words::mode(after.mode).into(),
    );
    note(
        "retry-after",
        words::optional_time(before.retry_after),
        words::optional_time(after.retry_after),
    );
    note(
        "cooldown-count",
        format!("{:?}", before.cooldown_count),
        format!("{:?}", after.cooldown_count),
    );
    note("since", before.since.to_string(), after.since.to_string());
    note(
        "counts",
        format!("{:?}", before.counts),
        format!("{:?}", after.counts),
    );
    note(
        "last-failure",
        format!("{:?}", before.last_failure),
        format!("{:?}", after.last_failure),
    );
    note(
        "last-cause",
        format!("{:?}", before.last_cause),
        format!("{:?}", after.last_cause),
    );
    note("key", before.key.clone(), after.key.clone());
    note(
        "extra",
        format!("{:?}", before.extra),
        format!("{:?}", after.extra),
    );
    (!found.is_empty()).then(|| found.join("; "))
}

/// A status without what the next call to come finds lost.
pub(super) fn without_lost(status: &Status) -> Status {
    let mut status = status.clone();
    status.counts.probes_in_flight = 0;
    status
}
