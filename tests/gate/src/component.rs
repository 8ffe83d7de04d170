//! A component as plain as can be: one circuit, whose leases are true.

use crate::lease::{Lease, Standing, Successes};
use crate::words::{Mode, RejectionReason, State};

/// What a closed circuit decides on, with what it has counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// So many failures in a row open it: a success sets the count to nothing.
    Streak {
        /// So many open it.
        threshold: u32,
        /// So many there were.
        failures: u32,
    },
    /// At least so many calls, half of which failed, open it.
    Share {
        /// So many calls at least.
        minimum: u32,
        /// So many ended.
        total: u32,
        /// So many of them failed.
        failures: u32,
        /// The counts begin anew each time that so many instants have passed; `None`: never.
        width: Option<u64>,
        /// How often they have begun anew.
        bucket: u64,
    },
}

/// A circuit, as a component keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Component {
    rule: Rule,
    phase: Phase,
    generation: u64,
    tickets: u64,
    /// How many instances there have been of it. The host's number, which the component does not know.
    incarnation: u64,
    /// When it was last told anything.
    latest: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Phase {
    Closed,
    Open { until: u64 },
    HalfOpen { probe: Option<u64> },
}

/// More successes than a model has.
const ENOUGH: u32 = 1_000;

/// For how long it opens.
const WAIT: u64 = 9;

impl Rule {
    /// What no count has been added to.
    fn fresh(self, now: u64) -> Self {
        match self {
            Self::Streak { threshold, .. } => Self::Streak {
                threshold,
                failures: 0,
            },
            Self::Share { minimum, width, .. } => Self::Share {
                minimum,
                total: 0,
                failures: 0,
                width,
                bucket: width.map_or(0, |width| now / width),
            },
        }
    }

    /// Begins anew where it is time to.
    fn roll(&mut self, now: u64) {
        if let Self::Share {
            width: Some(width),
            bucket,
            ..
        } = *self
            && now / width != bucket
        {
            *self = self.fresh(now);
        }
    }

    /// Counts a call, and says whether that opens the circuit.
    fn count(&mut self, failed: bool) -> bool {
        match self {
            Self::Streak { threshold, failures } => {
                *failures = if failed { *failures + 1 } else { 0 };
                failures >= threshold
            }
            Self::Share {
                minimum,
                total,
                failures,
                ..
            } => {
                *total += 1;
                *failures += u32::from(failed);
                total >= minimum && *failures * 2 >= *total
            }
        }
    }

    fn successes(&self) -> Successes {
        match *self {
            Self::Streak { failures: 0, .. } => Successes::Never,
            Self::Streak { .. } => Successes::Each,
            Self::Share {
                minimum,
                total,
                failures,
                width,
                bucket,
            } => {
                let judged_at = minimum.max(total + 1);
                let before = width.map(|width| (bucket + 1) * width);
                let allowed = if failures * 2 < judged_at {
                    ENOUGH
                } else {
                    judged_at - total - 1
                };
                match allowed {
                    0 => Successes::Each,
                    count => Successes::UpTo { count, before },
                }
            }
        }
    }
}

impl Component {
    /// A closed circuit that has counted this.
    #[must_use]
    pub fn closed(rule: Rule) -> Self {
        Self {
            rule,
            phase: Phase::Closed,
            generation: 1,
            tickets: 0,
            incarnation: 1,
            latest: 0,
        }
    }

    /// An open circuit whose wait is over at the instant 1.
    #[must_use]
    pub fn open(rule: Rule) -> Self {
        Self {
            phase: Phase::Open { until: 1 },
            ..Self::closed(rule)
        }
    }

    pub(crate) fn lease(&self, now: u64) -> Lease {
        let reject = |reason| (Standing::Reject(reason), Successes::Each);
        let (state, (standing, successes), until) = match self.phase {
            Phase::Closed => (
                State::Closed,
                (Standing::Admit(self.generation), self.rule.successes()),
                None,
            ),
            Phase::Open { until } if now < until => (State::Open, reject(RejectionReason::Open), Some(until)),
            Phase::Open { .. } => (State::Open, (Standing::Ask, Successes::Each), None),
            Phase::HalfOpen { probe: None } => (State::HalfOpen, (Standing::Ask, Successes::Each), None),
            Phase::HalfOpen { probe: Some(_) } => {
                (State::HalfOpen, reject(RejectionReason::ProbeLimit), None)
            }
        };
        Lease {
            mode: Mode::Automatic,
            state,
            generation: self.generation,
            standing,
            until,
            successes,
            slow_after: None,
            call_timeout: None,
        }
    }

    /// The lease that it gave last.
    pub(crate) fn last_lease(&self) -> Lease {
        self.lease(self.latest)
    }

    pub(crate) fn acquire(&mut self, now: u64) -> Result<u64, RejectionReason> {
        self.look_at(now);
        if let Phase::Open { until } = self.phase
            && now >= until
        {
            self.enter(Phase::HalfOpen { probe: None });
        }
        match self.phase {
            Phase::Closed => Ok(self.generation),
            Phase::Open { .. } => Err(RejectionReason::Open),
            Phase::HalfOpen { probe: Some(_) } => Err(RejectionReason::ProbeLimit),
            Phase::HalfOpen { probe: None } => {
                // Far from the numbers of generations, which closed circuits hand out.
                self.tickets += 1;
                let ticket = 1_000 + self.tickets;
                self.phase = Phase::HalfOpen { probe: Some(ticket) };
                Ok(ticket)
            }
        }
    }

    pub(crate) fn settle(&mut self, now: u64, ticket: u64, failed: bool) {
        self.look_at(now);
        match self.phase {
            Phase::Closed if ticket == self.generation => {
                if self.rule.count(failed) {
                    self.enter(Phase::Open { until: now + WAIT });
                }
            }
            Phase::HalfOpen { probe } if probe == Some(ticket) => {
                self.enter(if failed {
                    Phase::Open { until: now + WAIT }
                } else {
                    Phase::Closed
                });
            }
            Phase::Closed | Phase::Open { .. } | Phase::HalfOpen { .. } => {}
        }
    }

    /// Takes what was kept back, as of when it was last told anything.
    pub(crate) fn settle_successes(&mut self, ticket: u64, count: u32) {
        assert!(
            self.phase == Phase::Closed && ticket == self.generation,
            "{count} successes of ticket {ticket} were handed in to {self:?}"
        );
        for _ in 0..count {
            assert!(
                !self.rule.count(false),
                "the allowance was exceeded: {count} successes opened {self:?}"
            );
        }
    }

    pub(crate) fn trip(&mut self, now: u64) {
        self.look_at(now);
        self.enter(Phase::Open { until: now + WAIT });
    }

    pub(crate) fn reset(&mut self, now: u64) {
        self.look_at(now);
        self.enter(Phase::Closed);
    }

    /// It has failed, and another instance takes its place, which counts its numbers from the start.
    pub(crate) fn rebuild(&mut self, now: u64) {
        *self = Self {
            incarnation: self.incarnation + 1,
            latest: now,
            ..Self::closed(self.rule.fresh(now))
        };
    }

    pub(crate) fn incarnation(&self) -> u64 {
        self.incarnation
    }

    /// How many calls it has counted, where it counts successes.
    pub(crate) fn inspect(&mut self, now: u64) -> u32 {
        self.look_at(now);
        match self.rule {
            Rule::Streak { failures, .. } => failures,
            Rule::Share { total, .. } => total,
        }
    }

    /// As it stands at that instant.
    pub(crate) fn as_of(&self, now: u64) -> Self {
        let mut then = self.clone();
        then.look_at(now);
        then
    }

    fn look_at(&mut self, now: u64) {
        self.latest = self.latest.max(now);
        self.rule.roll(self.latest);
    }

    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.generation += 1;
        self.rule = self.rule.fresh(self.latest);
    }
}
