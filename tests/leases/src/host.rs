//! A host in small: one circuit of the native core, with or without regard to its leases.

use std::sync::Arc;

use tripwit_core::{
    Circuit, Cooled, Decision, Env, Instant, Lease, Mode, Nanoseconds, Numbers, Outcome, Policy, Rejection,
    Report, Standing, Successes, Ticket, Transition,
};

use crate::answer::{Answer, Shown};
use crate::step::{CAUSE, RETRY_AFTER, Step, TRIP_WAIT};

/// A host of one circuit.
#[derive(Clone, Debug)]
pub struct Host<P: Policy> {
    pub(crate) circuit: Circuit<P>,
    numbers: Numbers,
    pub(crate) permits: Vec<Permit>,
    heeds_leases: bool,
    /// What the host takes a lease for. A host that is no liar takes it for what it is.
    read: fn(Lease) -> Lease,
    pub(crate) lease: Lease,
    pub(crate) kept_back: u32,
    pub(crate) asked: u64,
    moves: Vec<Transition>,
    stale_results: u64,
    would_have_rejected: u64,
}

/// The permit of a call under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permit {
    /// Its number.
    pub ticket: Ticket,
    /// The generation that it counts in.
    pub generation: u64,
    /// When the call began, where it matters how long it runs.
    pub started: Option<Instant>,
    /// How long it may run.
    pub call_timeout: Option<Nanoseconds>,
}

impl<P: Policy> Host<P> {
    /// A host that asks each time.
    #[must_use]
    pub fn asking(settings: Arc<P::Settings>) -> Self {
        Self::new(settings, false, |lease| lease)
    }

    /// A host that decides by its lease as far as it reaches, and takes a lease for what `read` makes of it.
    #[must_use]
    pub fn leased(settings: Arc<P::Settings>, read: fn(Lease) -> Lease) -> Self {
        Self::new(settings, true, read)
    }

    fn new(settings: Arc<P::Settings>, heeds_leases: bool, read: fn(Lease) -> Lease) -> Self {
        let mut numbers = Numbers::default();
        let circuit = Circuit::new(settings, &mut env(0, &mut numbers));
        Self {
            lease: read(circuit.lease(0)),
            circuit,
            numbers,
            permits: Vec::new(),
            heeds_leases,
            read,
            kept_back: 0,
            asked: 0,
            moves: Vec::new(),
            stale_results: 0,
            would_have_rejected: 0,
        }
    }

    /// Does what a step says. The caller keeps the clock.
    pub fn step(&mut self, step: Step, now: Instant) -> Answer {
        match step {
            Step::Tick => Answer::Done,
            Step::Acquire => self.acquire(now),
            Step::Success(permit) => self.end(permit, Outcome::Success, now),
            Step::Failure(permit) => self.end(permit, Outcome::Failure, now),
            Step::Timeout(permit) => self.end(permit, Outcome::Timeout, now),
            Step::Ignored(permit) => self.end(permit, Outcome::Ignored, now),
            Step::Trip => Answer::Moved(self.command(now, |circuit, env| circuit.trip(None, env))),
            Step::TripFor => {
                Answer::Moved(self.command(now, |circuit, env| circuit.trip(Some(TRIP_WAIT), env)))
            }
            Step::Reset => Answer::Moved(self.command(now, Circuit::reset)),
            Step::SetMode(mode) => {
                self.cross(now, |circuit, env| circuit.set_mode(mode, env));
                Answer::Done
            }
            Step::CoolDown => self.cool_down(now),
            Step::Inspect => {
                self.hand_in(now);
                Answer::Shown(self.shown(now))
            }
        }
    }

    /// The moves that were made since this was last called.
    pub fn moves(&mut self) -> Vec<Transition> {
        std::mem::take(&mut self.moves)
    }

    /// Tells the circuit of what was kept back.
    pub fn hand_in(&mut self, now: Instant) {
        let kept_back = std::mem::take(&mut self.kept_back);
        let Standing::Admit(ticket) = self.lease.standing else {
            return;
        };
        if kept_back > 0 {
            let mut env = env(now, &mut self.numbers);
            let moved = self.circuit.settle_successes(ticket, kept_back, &mut env);
            self.moves.extend(moved);
            self.lease = (self.read)(self.circuit.lease(now));
        }
    }

    /// How the circuit stands.
    #[must_use]
    pub fn shown(&self, now: Instant) -> Shown {
        let lease = self.circuit.lease(now);
        let rejects = matches!(lease.standing, Standing::Reject(_));
        Shown {
            state: self.circuit.state(),
            mode: self.circuit.mode(),
            available: lease.mode == Mode::Shadow || !rejects,
            retry_after: self.circuit.retry_after(now),
            cooldown_count: self.circuit.cooldown_count(),
            counts: self.circuit.counts(now),
            stale_results: self.stale_results,
            would_have_rejected: self.would_have_rejected,
        }
    }

    /// All that the circuit holds: lost probes left out, and all as of now.
    pub(crate) fn held(&self, now: Instant) -> String {
        let (mut circuit, mut numbers) = (self.circuit.clone(), self.numbers.clone());
        // The end of a call that never was changes nothing, but lost probes are then given up.
        circuit.settle(0, &Report::of(Outcome::Ignored), &mut env(now, &mut numbers));
        // When the event before was is no part of the state once nothing is kept back.
        circuit.touch(&env(now, &mut numbers));
        format!("{circuit:?} {numbers:?}")
    }

    /// How many calls are under way whose end will be told.
    #[must_use]
    pub fn permits(&self) -> usize {
        self.permits.len()
    }

    fn acquire(&mut self, now: Instant) -> Answer {
        let decision = self.decided(now).unwrap_or_else(|| {
            let admission = self.cross(now, Circuit::acquire);
            self.moves.extend(admission.transition);
            admission.decision
        });
        let call_timeout = self.lease.call_timeout;
        match decision {
            Decision::Admit(ticket) => {
                let measured = call_timeout.is_some() || self.lease.slow_after.is_some();
                self.permits.push(Permit {
                    ticket,
                    generation: self.lease.generation,
                    started: measured.then_some(now),
                    call_timeout,
                });
                Answer::Admitted { call_timeout }
            }
            Decision::Pass => Answer::Passed { call_timeout },
            Decision::Reject(_) if self.lease.mode == Mode::Shadow => {
                self.would_have_rejected += 1;
                Answer::Passed { call_timeout }
            }
            Decision::Reject(Rejection { reason, retry_after }) => Answer::Rejected { reason, retry_after },
        }
    }

    /// What the lease says of a call that wants to begin, if it does.
    fn decided(&self, now: Instant) -> Option<Decision> {
        let expired = self.lease.until.is_some_and(|until| now >= until);
        if expired || !self.heeds_leases {
            return None;
        }
        match self.lease.standing {
            Standing::Admit(ticket) => Some(Decision::Admit(ticket)),
            Standing::Pass => Some(Decision::Pass),
            Standing::Reject(reason) => Some(Decision::Reject(Rejection {
                reason,
                retry_after: self.lease.until.map(|until| until.saturating_sub(now)),
            })),
            Standing::Ask => None,
        }
    }

    fn end(&mut self, permit: usize, outcome: Outcome, now: Instant) -> Answer {
        let permit = self.permits.remove(permit);
        let took = permit.started.map(|started| now.saturating_sub(started));
        let late = matches!((took, permit.call_timeout), (Some(took), Some(limit)) if took > limit);
        let outcome = match outcome {
            Outcome::Success | Outcome::Failure if late => Outcome::Timeout,
            Outcome::Success | Outcome::Failure | Outcome::Timeout | Outcome::Ignored => outcome,
        };
        if self.heeds_leases && self.settled(&permit, outcome, took, now) {
            return Answer::Done;
        }
        let failed = outcome == Outcome::Failure;
        let report = Report {
            outcome,
            took,
            retry_after: failed.then_some(RETRY_AFTER),
            cause: failed.then(|| CAUSE.to_owned()),
        };
        let settlement = self.cross(now, |circuit, env| circuit.settle(permit.ticket, &report, env));
        self.moves.extend(settlement.transition);
        self.stale_results += u64::from(!settlement.counted);
        Answer::Done
    }

    /// Whether the lease settles a call that ended, so that the circuit need not be told now.
    fn settled(
        &mut self,
        permit: &Permit,
        outcome: Outcome,
        took: Option<Nanoseconds>,
        now: Instant,
    ) -> bool {
        if permit.generation != self.lease.generation {
            self.stale_results += 1;
            return true;
        }
        let shared = self.lease.standing == Standing::Admit(permit.ticket);
        let slow = matches!((took, self.lease.slow_after), (Some(took), Some(limit)) if took > limit);
        match (outcome, self.lease.successes) {
            (Outcome::Ignored, _) => shared,
            (Outcome::Success, Successes::Never) => !slow,
            (Outcome::Success, Successes::UpTo(allowance)) => {
                let in_time = allowance.before.is_none_or(|before| now < before);
                let keeps = shared && !slow && in_time && self.kept_back < allowance.successes;
                self.kept_back += u32::from(keeps);
                keeps
            }
            (Outcome::Success, Successes::Each) | (Outcome::Failure | Outcome::Timeout, _) => false,
        }
    }

    fn command(
        &mut self,
        now: Instant,
        command: impl FnOnce(&mut Circuit<P>, &mut Env<'_>) -> Option<Transition>,
    ) -> Option<Transition> {
        let moved = self.cross(now, command);
        self.moves.extend(moved);
        moved
    }

    fn cool_down(&mut self, now: Instant) -> Answer {
        self.hand_in(now);
        match self.circuit.cool_down(&mut env(now, &mut self.numbers)) {
            Cooled::Untouched => Answer::Cooled(false),
            Cooled::Counted(moved) => {
                self.moves.extend(moved);
                self.lease = (self.read)(self.circuit.lease(now));
                Answer::Cooled(true)
            }
        }
    }

    fn cross<R>(&mut self, now: Instant, ask: impl FnOnce(&mut Circuit<P>, &mut Env<'_>) -> R) -> R {
        self.hand_in(now);
        self.asked += 1;
        let answer = ask(&mut self.circuit, &mut env(now, &mut self.numbers));
        self.lease = (self.read)(self.circuit.lease(now));
        answer
    }
}

fn env(now: Instant, numbers: &mut Numbers) -> Env<'_> {
    Env {
        now,
        key: "key",
        seed: 0,
        numbers,
    }
}
