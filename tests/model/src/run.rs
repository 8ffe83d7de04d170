//! A circuit and its reference, told the same.

use std::fmt;
use std::sync::Arc;

use tripwit_core::{
    Circuit, Cooled, Decision, Env, Instant, Mode, Nanoseconds, Numbers, Operation, Policy, Rejection, State,
    Ticket, Transition,
};

use crate::event::{End, Event, MILLISECOND};
use crate::reference::{Reference, Said, Verdict};
use crate::shape::{Buckets, shape};

/// A circuit, its reference, and the clock and the permits that both have.
#[derive(Clone, Debug)]
pub struct Run<P: Policy, R: Reference> {
    circuit: Circuit<P>,
    numbers: Numbers,
    reference: R,
    clock: Instant,
    /// The largest reading of the clock that the circuit was shown.
    latest: Instant,
    permits: Vec<Permit>,
    /// How the window is cut, where it is one of time.
    window: Option<Buckets>,
}

#[derive(Clone, Copy, Debug)]
struct Permit {
    /// The reference's number.
    slot: usize,
    ticket: Ticket,
}

impl<P: Policy, R: Reference> Run<P, R> {
    /// A new circuit under these settings.
    ///
    /// # Errors
    ///
    /// When the settings are refused.
    pub fn new(settings: &str, reference: R, window: Option<Buckets>) -> Result<Self, String> {
        let settings = P::parse(settings).map_err(|error| error.to_string())?;
        let mut numbers = Numbers::default();
        let circuit = Circuit::new(Arc::new(settings), &mut env(START, &mut numbers));
        Ok(Self {
            circuit,
            numbers,
            reference,
            clock: START,
            latest: START,
            permits: Vec::new(),
            window,
        })
    }

    /// How many permits are out.
    #[must_use]
    pub fn permits(&self) -> usize {
        self.permits.len()
    }

    /// How many calls its reference still looks at.
    #[must_use]
    pub fn recorded(&self) -> usize {
        self.reference.recorded(self.now())
    }

    /// How far the clock has stepped back behind what the circuit knows. Nanoseconds.
    #[must_use]
    pub fn behind(&self) -> Nanoseconds {
        self.latest.saturating_sub(self.clock)
    }

    /// The time as the circuit has it.
    fn now(&self) -> Instant {
        self.clock.max(self.latest)
    }

    /// Puts an event to both, and says how they differ, or which rule is broken.
    ///
    /// # Errors
    ///
    /// When they differ or a rule is broken.
    pub fn step(&mut self, event: Event) -> Result<(), String> {
        let (state, generation) = (self.circuit.state(), self.circuit.lease(self.now()).generation);
        let (answered, said) = match event {
            Event::Advance(ms) => {
                self.clock += ms * MILLISECOND;
                return Ok(());
            }
            Event::StepBack(ms) => {
                self.clock = self.clock.saturating_sub(ms * MILLISECOND);
                return Ok(());
            }
            Event::Settle(place, _) if place >= self.permits.len() => return Ok(()),
            Event::Settle(place, end) => self.settle(place, end)?,
            Event::Acquire => self.acquire(),
            Event::Trip(_) | Event::Reset | Event::SetMode(_) | Event::CoolDown | Event::TakeOver(_) => {
                self.command(event)?
            }
        };
        self.latest = self.now();
        same("answers", &answered, &said)?;
        self.compare()?;
        edge_is_declared(state, self.circuit.state(), answered.moved)?;
        if self.circuit.lease(self.now()).generation < generation {
            return Err("the generation went back".into());
        }
        Ok(())
    }

    fn acquire(&mut self) -> (Said, Said) {
        let now = self.now();
        let slot = (0..)
            .find(|slot| self.permits.iter().all(|permit| permit.slot != *slot))
            .unwrap_or_default();
        let said = self.reference.acquire(now, slot);
        let admission = self.circuit.acquire(&mut env(self.clock, &mut self.numbers));
        let verdict = match admission.decision {
            Decision::Admit(ticket) => {
                self.permits.push(Permit { slot, ticket });
                Verdict::Admitted
            }
            Decision::Pass => Verdict::Passed,
            Decision::Reject(Rejection { reason, retry_after }) => Verdict::Rejected(reason, retry_after),
        };
        let answered = Said {
            verdict: Some(verdict),
            moved: operation(admission.transition),
            ..Said::default()
        };
        (answered, said)
    }

    fn settle(&mut self, place: usize, end: End) -> Result<(Said, Said), String> {
        let now = self.now();
        let permit = self.permits.remove(place);
        let before = self.seen();
        let said = self.reference.settle(now, permit.slot, end);
        let settled = self.circuit.settle(
            permit.ticket,
            &end.report(),
            &mut env(self.clock, &mut self.numbers),
        );
        if !settled.counted && before != self.seen() {
            return Err(format!(
                "a void result changed something: {before} became {}",
                self.seen()
            ));
        }
        let answered = Said {
            counted: Some(settled.counted),
            moved: operation(settled.transition),
            ..Said::default()
        };
        Ok((answered, said))
    }

    fn command(&mut self, event: Event) -> Result<(Said, Said), String> {
        let now = self.now();
        let mut env = env(self.clock, &mut self.numbers);
        let (circuit, reference) = (&mut self.circuit, &mut self.reference);
        let (moved, said) = match event {
            Event::Trip(wait) => {
                let wait = wait.map(|ms| ms * MILLISECOND);
                (circuit.trip(wait, &mut env), reference.trip(now, wait))
            }
            Event::Reset => (circuit.reset(&mut env), reference.reset(now)),
            Event::SetMode(mode) => {
                circuit.set_mode(mode, &mut env);
                (None, reference.set_mode(now, mode))
            }
            Event::CoolDown => {
                let moved = match circuit.cool_down(&mut env) {
                    Cooled::Untouched => None,
                    Cooled::Counted(transition) => transition,
                };
                (moved, reference.cool_down(now))
            }
            Event::TakeOver(ms) => {
                let age = ms * MILLISECOND;
                // The other instance has a clock of its own, which has not gone back.
                env.now = now;
                let (saved, detail) = (circuit.save(now), circuit.detail(now));
                *circuit = Circuit::restore(&saved, &detail, age, circuit.settings().clone(), &mut env)
                    .map_err(|error| format!("its own snapshot is refused: {error}"))?;
                (None, reference.take_over(now, age))
            }
            Event::Advance(_) | Event::StepBack(_) | Event::Acquire | Event::Settle(..) => {
                return Err(format!("{event} is no command"));
            }
        };
        let answered = Said {
            moved: operation(moved),
            ..Said::default()
        };
        Ok((answered, said))
    }

    /// Whether both show the same, and no more probes are out than may be.
    fn compare(&self) -> Result<(), String> {
        let (now, circuit, reference) = (self.now(), &self.circuit, &self.reference);
        same("states", &circuit.state(), &reference.state())?;
        same("modes", &circuit.mode(), &reference.mode())?;
        same("counts", &circuit.counts(now), &reference.counts(now))?;
        same("waits", &circuit.retry_after(now), &reference.retry_after(now))?;
        same("cycles", &circuit.cooldown_count(), &reference.cooldown_count())?;
        same(
            "re-openings",
            &circuit.save(now).reopenings,
            &reference.reopenings(),
        )?;
        let in_flight = circuit.counts(now).probes_in_flight;
        if in_flight > reference.probes() {
            return Err(format!("{in_flight} probes are under way"));
        }
        Ok(())
    }

    /// What a snapshot, with its detail, and a lease show.
    fn seen(&self) -> String {
        let (now, circuit) = (self.now(), &self.circuit);
        format!(
            "{:?} {:?} {:?}",
            circuit.save(now),
            circuit.detail(now),
            circuit.lease(now)
        )
    }

    /// Two runs with one key go on alike for ever.
    pub(crate) fn key(&self) -> (String, R, Nanoseconds, Nanoseconds) {
        let now = self.now();
        let circuit = format!("{:?} {:?}", self.circuit, self.permits);
        (
            shape(&circuit, now, self.window),
            self.reference.essence(now),
            self.behind(),
            self.reference.phase(now),
        )
    }

    /// Whether the circuit finds back to closed without an operator, with every permit lost that is out now, each probe a
    /// success, and nobody asking before a rejection said that it is worth it. Answers after how long.
    ///
    /// # Errors
    ///
    /// When it does not within so many calls, or a wait that a rejection gave was not true.
    pub fn recovers(&self, calls: usize) -> Result<Nanoseconds, String> {
        let mut run = self.clone();
        run.step(Event::SetMode(Mode::Automatic))?;
        let began = run.now();
        let mut waited = false;
        for _ in 0..calls {
            if run.circuit.state() == State::Closed {
                return Ok(run.now() - began);
            }
            let (answered, said) = run.acquire();
            run.latest = run.now();
            same("answers on the way to closed", &answered, &said)?;
            match answered.verdict {
                Some(Verdict::Admitted) => {
                    run.step(Event::Settle(run.permits.len().saturating_sub(1), End::Success))?;
                    waited = false;
                }
                Some(Verdict::Rejected(reason, Some(_))) if waited => {
                    return Err(format!(
                        "rejected ({reason:?}) although the wait that was given is over"
                    ));
                }
                Some(Verdict::Rejected(_, Some(wait))) => {
                    run.clock = run.now() + wait;
                    waited = true;
                }
                Some(Verdict::Rejected(_, None)) => run.step(Event::CoolDown)?,
                Some(Verdict::Passed) | None => return Err(format!("{answered:?} on the way to closed")),
            }
        }
        Err(format!("not closed after {calls} calls: {}", run.seen()))
    }
}

impl<P: Policy, R: Reference> fmt::Display for Run<P, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} beside {:?}", self.circuit, self.reference)
    }
}

/// There is room to step back.
const START: Instant = 1_000 * MILLISECOND;

fn env(now: Instant, numbers: &mut Numbers) -> Env<'_> {
    Env {
        now,
        key: "key",
        seed: 0,
        numbers,
    }
}

fn operation(transition: Option<Transition>) -> Option<Operation> {
    transition.map(|transition| transition.operation)
}

fn same<T: PartialEq + fmt::Debug>(what: &str, circuit: &T, reference: &T) -> Result<(), String> {
    if circuit == reference {
        return Ok(());
    }
    Err(format!(
        "{what} differ: {circuit:?} by the circuit, {reference:?} by the reference"
    ))
}

fn edge_is_declared(before: State, after: State, moved: Option<Operation>) -> Result<(), String> {
    let declared = match moved {
        None => before == after,
        Some(Operation::Trip) => (before, after) == (State::Closed, State::Open),
        Some(Operation::ReTrip) => before != State::Closed && after == State::Open,
        Some(Operation::HalfOpen) => (before, after) == (State::Open, State::HalfOpen),
        Some(Operation::Reset) => before != State::Closed && after == State::Closed,
    };
    if declared {
        Ok(())
    } else {
        Err(format!(
            "{before:?} to {after:?} by {moved:?} is no declared edge"
        ))
    }
}
