//! What must hold after every single answer, whatever the policy.

use tripwit::raw::{
    Admission, Decision, Lease, Mode, Operation, RejectionReason, Standing, State, SuccessReporting,
    Transition,
};

use super::answer::{Command, Did};
use super::case::Case;
use super::circuit::Circuit;
use super::problem::{Checked, ensure_of};
use super::words;

impl Circuit<'_> {
    /// Takes an answer, and holds it against everything that is always so.
    pub(crate) fn after(
        &mut self,
        command: Command,
        did: &Did,
        lease: Lease,
        transition: Option<Transition>,
    ) -> Checked {
        let before = std::mem::replace(&mut self.lease, lease);
        self.answered(command, self.answer(*did, transition));
        let subject = self.subject;
        subject.mind(self.judge_move(command, before.state, transition.as_ref()))?;
        let told = self.judge_told(command, transition.as_ref());
        subject.mind(told)?;
        subject.mind(self.judge_lease(before.generation))?;
        if before.state != lease.state {
            self.since = self.wall();
        }
        if let Some(transition) = &transition {
            subject.mind(judge_edge(command, transition))?;
            subject.mind(self.judge_frozen(command, transition))?;
        }
        Ok(())
    }

    /// Holds a decision against what the lease before it promised, and against the mode.
    pub(crate) fn judge_decision(&self, before: &Lease, admission: &Admission, now: u64) -> Checked {
        let got = || format!("{:?}", admission.decision);
        let by_mode = match self.mode {
            Mode::ForcedOpen => {
                matches!(&admission.decision, Decision::Reject(r) if r.reason == RejectionReason::ForcedOpen)
            }
            Mode::Disabled => matches!(admission.decision, Decision::Pass),
            Mode::Automatic | Mode::Shadow => {
                !matches!(&admission.decision, Decision::Reject(r) if r.reason == RejectionReason::ForcedOpen)
            }
        };
        ensure_of!(
            Case::Modes,
            by_mode,
            format!("the decision that {} asks for", words::mode(self.mode)),
            got,
        )?;
        let holds = before.until.is_none_or(|until| now < until);
        let case = if self.stepped_back {
            Case::Clock
        } else {
            Case::Leases
        };
        ensure_of!(
            case,
            !holds || keeps(before, admission),
            format!("what the lease promised: {}", words::lease(before)),
            got,
        )?;
        if let (Decision::Reject(rejection), Standing::Reject(_)) = (&admission.decision, self.lease.standing)
        {
            let left = self.lease.until.map(|until| until.saturating_sub(now));
            ensure_of!(
                Case::Leases,
                self.now() < now || rejection.retry_after == left,
                format!(
                    "retry after {}, the lease's `until` less now",
                    words::optional_time(left)
                ),
                || format!("retry after {}", words::optional_time(rejection.retry_after)),
            )?;
        }
        Ok(())
    }

    fn judge_move(&self, command: Command, before: State, transition: Option<&Transition>) -> Checked {
        let after = self.lease.state;
        let Some(transition) = transition else {
            return ensure_of!(
                Case::Moves,
                before == after,
                "a move in the answer: the state changed",
                || {
                    format!(
                        "no move, and the lease went from {} to {}",
                        words::state(before),
                        words::state(after)
                    )
                },
            );
        };
        let told = (transition.before, transition.after);
        ensure_of!(
            Case::Moves,
            told == (before, after),
            format!("a move from {} to {}", words::state(before), words::state(after)),
            || words::moved(Some(transition)),
        )?;
        ensure_of!(
            Case::Moves,
            transition.at == self.wall(),
            format!("a move at {} by the wall clock", self.wall()),
            || format!("one at {}", transition.at),
        )?;
        ensure_of!(
            Case::Modes,
            command.cause().is_some(),
            format!("{} makes no move", command.text()),
            || words::moved(Some(transition)),
        )
    }

    fn judge_lease(&self, generation: u64) -> Checked {
        let lease = &self.lease;
        let got = || words::lease(lease);
        ensure_of!(
            Case::Generations,
            lease.generation >= generation,
            format!("generation {generation} or a later one"),
            || format!("generation {}", lease.generation),
        )?;
        ensure_of!(
            Case::Modes,
            lease.mode == self.mode,
            format!("mode {}", words::mode(self.mode)),
            got,
        )?;
        let by_mode = match self.mode {
            Mode::ForcedOpen => matches!(
                lease.standing,
                Standing::Reject(RejectionReason::ForcedOpen) | Standing::Ask
            ),
            Mode::Disabled => matches!(lease.standing, Standing::Pass | Standing::Ask),
            Mode::Automatic | Mode::Shadow => true,
        };
        ensure_of!(
            Case::Modes,
            by_mode,
            format!("a lease as {} asks for", words::mode(self.mode)),
            got,
        )?;
        let ended = lease.standing != Standing::Ask && lease.until.is_some_and(|until| until <= self.now());
        ensure_of!(
            Case::Leases,
            !ended,
            format!("a lease that holds beyond {}", words::time(self.now())),
            got,
        )?;
        let nothing =
            matches!(lease.successes, SuccessReporting::UpTo(allowance) if allowance.successes == 0);
        ensure_of!(Case::Leases, !nothing, "an allowance of at least 1", got)
    }

    fn judge_frozen(&self, command: Command, transition: &Transition) -> Checked {
        let frozen = matches!(self.mode, Mode::ForcedOpen | Mode::Disabled);
        let commanded = matches!(command, Command::Trip(_) | Command::Reset);
        ensure_of!(
            Case::Modes,
            !frozen || commanded,
            format!("the state stands still in {}", words::mode(self.mode)),
            || words::moved(Some(transition)),
        )
    }
}

/// Whether a move keeps to the edges that there are.
fn judge_edge(command: Command, transition: &Transition) -> Checked {
    let declared = match (transition.operation, transition.before, transition.after) {
        (Operation::Trip, State::Closed, State::Open)
        | (Operation::ReTrip, State::Open | State::HalfOpen, State::Open)
        | (Operation::HalfOpen, State::Open, State::HalfOpen)
        | (Operation::Reset, State::Open | State::HalfOpen, State::Closed) => true,
        (Operation::Trip | Operation::ReTrip | Operation::HalfOpen | Operation::Reset, _, _) => false,
    };
    ensure_of!(
        Case::Edges,
        declared,
        "trip: closed to open; half-open: open to half-open; re-trip: open or half-open to open; reset: to closed",
        || words::moved(Some(transition)),
    )?;
    let cause = command.cause();
    ensure_of!(
        Case::Edges,
        cause.is_none_or(|cause| cause == transition.cause),
        format!("a move by {}", cause.map_or("nobody", words::cause)),
        || words::moved(Some(transition)),
    )
}

/// Whether this lease promised this decision.
fn keeps(before: &Lease, admission: &Admission) -> bool {
    match (before.standing, &admission.decision) {
        (Standing::Ask, _) | (Standing::Pass, Decision::Pass) => true,
        (Standing::Admit(promised), Decision::Admit(ticket)) => promised == *ticket,
        (Standing::Reject(reason), Decision::Reject(rejection)) => reason == rejection.reason,
        (Standing::Admit(_) | Standing::Pass | Standing::Reject(_), _) => false,
    }
}
