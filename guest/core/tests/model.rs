//! Random interleavings against a model that was written from the documents alone, as plainly as possible.
//!
//! After each step the circuit must have answered as the model does, and keep what holds of every breaker: no more probes
//! under way than allowed, moves along declared edges only, generations that grow, and void results that change nothing.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::sync::Arc;

use proptest::prelude::*;
use tripwit_core::{
    Circuit, Consecutive, Cooled, Decision, Env, Instant, Mode, Numbers, Operation, Outbox, Outcome, Policy,
    Rejection, RejectionReason, Report, State, Ticket, Transition,
};

const MS: u64 = 1_000_000;

#[derive(Clone, Copy, Debug)]
enum Op {
    Acquire,
    Settle(usize, Outcome),
    Advance(u64),
    StepBack(u64),
    Trip(Option<u64>),
    Reset,
    Mode(Mode),
    CoolDown,
    TakeOver(u64),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let outcome = prop_oneof![
        3 => Just(Outcome::Failure),
        2 => Just(Outcome::Success),
        1 => Just(Outcome::Timeout),
        1 => Just(Outcome::Ignored),
    ];
    let mode = prop_oneof![
        3 => Just(Mode::Automatic),
        1 => Just(Mode::ForcedOpen),
        1 => Just(Mode::Disabled),
        1 => Just(Mode::Shadow),
    ];
    let op = prop_oneof![
        8 => Just(Op::Acquire),
        10 => (0_usize..8, outcome).prop_map(|(permit, outcome)| Op::Settle(permit, outcome)),
        6 => (0_u64..8).prop_map(Op::Advance),
        1 => (1_u64..20).prop_map(Op::StepBack),
        1 => prop::option::of(0_u64..12).prop_map(Op::Trip),
        1 => Just(Op::Reset),
        1 => mode.prop_map(Op::Mode),
        2 => Just(Op::CoolDown),
        1 => (0_u64..8).prop_map(Op::TakeOver),
    ];
    prop::collection::vec(op, 1..200)
}

/// What a model says of one step.
#[derive(Debug, PartialEq)]
struct Said {
    /// Admitted as a probe or not, passed, or rejected and until when.
    decision: Option<Verdict>,
    counted: Option<bool>,
    moved: Option<Operation>,
}

#[derive(Debug, PartialEq)]
enum Verdict {
    Admitted,
    Passed,
    Rejected(RejectionReason, Option<u64>),
}

/// A model: told the same as the circuit, in the same order. Permits are told apart by their place in the run.
trait Model {
    fn acquire(&mut self, now: u64, permit: usize) -> Said;
    fn settle(&mut self, now: u64, permit: usize, outcome: Outcome) -> Said;
    fn trip(&mut self, now: u64, wait: Option<u64>) -> Said;
    fn reset(&mut self) -> Said;
    fn mode(&mut self, mode: Mode) -> Said;
    fn cool_down(&mut self) -> Said;
    fn take_over(&mut self, now: u64, age: u64) -> Said;
    fn state(&self) -> State;
    fn probes_in_flight(&self, now: u64) -> usize;
}

fn nothing() -> Said {
    Said {
        decision: None,
        counted: None,
        moved: None,
    }
}

#[derive(Clone, Debug)]
struct ConsecutiveModel {
    failure_threshold: u32,
    success_threshold: u32,
    open_for: u64,
    probes: usize,
    probe_timeout: u64,
    mode: Mode,
    state: State,
    failures: u32,
    successes: u32,
    open_until: u64,
    /// Permits of calls that were admitted in this stay in closed.
    calls: Vec<usize>,
    /// Probes of this stay in half-open, and when each is lost.
    out: Vec<(usize, u64)>,
}

impl ConsecutiveModel {
    fn enter(&mut self, state: State) {
        self.state = state;
        self.failures = 0;
        self.successes = 0;
        self.calls.clear();
        self.out.clear();
    }

    fn open(&mut self, until: u64) -> Option<Operation> {
        let operation = if self.state == State::Closed {
            Operation::Trip
        } else {
            Operation::ReTrip
        };
        self.enter(State::Open);
        self.open_until = until;
        Some(operation)
    }

    fn decides(&self) -> bool {
        self.mode == Mode::Automatic || self.mode == Mode::Shadow
    }
}

impl Model for ConsecutiveModel {
    fn acquire(&mut self, now: u64, permit: usize) -> Said {
        let decided = |decision, moved| Said {
            decision: Some(decision),
            counted: None,
            moved,
        };
        if self.mode == Mode::Disabled {
            return decided(Verdict::Passed, None);
        }
        if self.mode == Mode::ForcedOpen {
            return decided(Verdict::Rejected(RejectionReason::ForcedOpen, None), None);
        }
        let mut moved = None;
        if self.state == State::Open {
            if now < self.open_until {
                return decided(
                    Verdict::Rejected(RejectionReason::Open, Some(self.open_until - now)),
                    None,
                );
            }
            self.enter(State::HalfOpen);
            moved = Some(Operation::HalfOpen);
        }
        if self.state == State::Closed {
            self.calls.push(permit);
            return decided(Verdict::Admitted, None);
        }
        self.out.retain(|(_, lost_at)| now < *lost_at);
        if self.out.len() < self.probes {
            self.out.push((permit, now + self.probe_timeout));
            return decided(Verdict::Admitted, moved);
        }
        let next = self.out.iter().map(|(_, lost_at)| lost_at - now).min();
        decided(Verdict::Rejected(RejectionReason::ProbeLimit, next), moved)
    }

    fn settle(&mut self, now: u64, permit: usize, outcome: Outcome) -> Said {
        let said = |counted, moved| Said {
            decision: None,
            counted: Some(counted),
            moved,
        };
        if !self.decides() {
            return said(false, None);
        }
        let failed = outcome == Outcome::Failure || outcome == Outcome::Timeout;
        if self.state == State::Closed && self.calls.contains(&permit) {
            self.calls.retain(|call| *call != permit);
            if outcome == Outcome::Success {
                self.failures = 0;
            }
            self.failures += u32::from(failed);
            let opens = self.failures >= self.failure_threshold;
            let moved = if opens {
                self.open(now + self.open_for)
            } else {
                None
            };
            return said(true, moved);
        }
        self.out.retain(|(_, lost_at)| now < *lost_at);
        if self.state == State::HalfOpen && self.out.iter().any(|(probe, _)| *probe == permit) {
            self.out.retain(|(probe, _)| *probe != permit);
            self.successes += u32::from(outcome == Outcome::Success);
            let mut moved = None;
            if failed {
                moved = self.open(now + self.open_for);
            } else if self.successes >= self.success_threshold {
                self.enter(State::Closed);
                moved = Some(Operation::Reset);
            }
            return said(true, moved);
        }
        said(false, None)
    }

    fn trip(&mut self, now: u64, wait: Option<u64>) -> Said {
        let until = now + wait.unwrap_or(self.open_for);
        if self.state == State::Open {
            self.open_until = self.open_until.max(until);
            return nothing();
        }
        Said {
            moved: self.open(until),
            ..nothing()
        }
    }

    fn reset(&mut self) -> Said {
        let moved = (self.state != State::Closed).then_some(Operation::Reset);
        self.enter(State::Closed);
        Said { moved, ..nothing() }
    }

    fn mode(&mut self, mode: Mode) -> Said {
        if mode != self.mode {
            self.mode = mode;
            self.enter(self.state);
        }
        nothing()
    }

    fn cool_down(&mut self) -> Said {
        nothing()
    }

    fn take_over(&mut self, now: u64, age: u64) -> Said {
        let (failures, successes) = (self.failures, self.successes);
        let left = self.open_until.saturating_sub(now).saturating_sub(age);
        self.enter(self.state);
        (self.failures, self.successes) = (failures, successes);
        self.open_until = now + left;
        nothing()
    }

    fn state(&self) -> State {
        self.state
    }

    fn probes_in_flight(&self, now: u64) -> usize {
        self.out.iter().filter(|(_, lost_at)| now < *lost_at).count()
    }
}

#[derive(Clone, Debug)]
struct OutboxModel {
    cooldown_count: i64,
    mode: Mode,
    /// As in Brighter: no entry while the topic is healthy.
    counter: Option<i64>,
    /// Permits that an operator's reset, a change of mode or a take-over has not made void.
    permits: Vec<usize>,
}

impl OutboxModel {
    fn fail(&mut self) -> Option<Operation> {
        let moved = if self.counter.is_some() {
            Operation::ReTrip
        } else {
            Operation::Trip
        };
        self.counter = Some(self.cooldown_count);
        Some(moved)
    }

    fn stands_still(&self) -> bool {
        self.mode == Mode::ForcedOpen || self.mode == Mode::Disabled
    }
}

impl Model for OutboxModel {
    fn acquire(&mut self, _now: u64, permit: usize) -> Said {
        let verdict = match (self.mode, self.counter) {
            (Mode::ForcedOpen, _) => Verdict::Rejected(RejectionReason::ForcedOpen, None),
            (Mode::Disabled, _) => Verdict::Passed,
            (Mode::Automatic | Mode::Shadow, Some(_)) => Verdict::Rejected(RejectionReason::Open, None),
            (Mode::Automatic | Mode::Shadow, None) => {
                self.permits.push(permit);
                Verdict::Admitted
            }
        };
        Said {
            decision: Some(verdict),
            ..nothing()
        }
    }

    fn settle(&mut self, _now: u64, permit: usize, outcome: Outcome) -> Said {
        let counted = !self.stands_still() && self.permits.contains(&permit);
        let failed = outcome == Outcome::Failure || outcome == Outcome::Timeout;
        let moved = if counted && failed { self.fail() } else { None };
        Said {
            counted: Some(counted),
            moved,
            ..nothing()
        }
    }

    fn trip(&mut self, _now: u64, _wait: Option<u64>) -> Said {
        Said {
            moved: self.fail(),
            ..nothing()
        }
    }

    fn reset(&mut self) -> Said {
        self.permits.clear();
        Said {
            moved: self.counter.take().map(|_| Operation::Reset),
            ..nothing()
        }
    }

    fn mode(&mut self, mode: Mode) -> Said {
        if mode != self.mode {
            self.mode = mode;
            self.permits.clear();
        }
        nothing()
    }

    fn cool_down(&mut self) -> Said {
        if self.stands_still() {
            return nothing();
        }
        let cooled = self.counter.map(|counter| counter - 1);
        self.counter = cooled.filter(|counter| *counter >= 0);
        let gone = cooled.is_some_and(|counter| counter < 0);
        Said {
            moved: gone.then_some(Operation::Reset),
            ..nothing()
        }
    }

    fn take_over(&mut self, _now: u64, _age: u64) -> Said {
        self.permits.clear();
        nothing()
    }

    fn state(&self) -> State {
        if self.counter.is_some() {
            State::Open
        } else {
            State::Closed
        }
    }

    fn probes_in_flight(&self, _now: u64) -> usize {
        0
    }
}

/// The circuit, and the clock and permits around it.
struct Run<P: Policy> {
    circuit: Circuit<P>,
    numbers: Numbers,
    clock: Instant,
    latest: Instant,
    permits: Vec<(usize, Ticket)>,
    admitted: usize,
}

impl<P: Policy> Run<P> {
    fn new(settings: &str) -> Self {
        let mut numbers = Numbers::default();
        let mut env = Env {
            now: 100 * MS,
            key: "k",
            seed: 0,
            numbers: &mut numbers,
        };
        let circuit = Circuit::new(Arc::new(P::parse(settings).unwrap()), &mut env);
        Self {
            circuit,
            numbers,
            clock: 100 * MS,
            latest: 100 * MS,
            permits: Vec::new(),
            admitted: 0,
        }
    }

    /// Takes a step on both sides.
    fn step(&mut self, model: &mut impl Model, op: Op) -> (Said, Said) {
        let now = self.clock.max(self.latest);
        let both = match op {
            Op::Advance(ms) => {
                self.clock += ms * MS;
                return (nothing(), nothing());
            }
            Op::StepBack(ms) => {
                self.clock = self.clock.saturating_sub(ms * MS);
                return (nothing(), nothing());
            }
            Op::Settle(which, _) if self.permits.len() <= which => return (nothing(), nothing()),
            Op::Acquire => self.acquire(model, now),
            Op::Settle(which, outcome) => self.settle(model, now, which, outcome),
            Op::Trip(wait) => {
                let wait = wait.map(|ms| ms * MS);
                (
                    model.trip(now, wait),
                    self.command(|circuit, env| circuit.trip(wait, env)),
                )
            }
            Op::Reset => (model.reset(), self.command(Circuit::reset)),
            Op::Mode(mode) => {
                let answered = self.command(|circuit, env| {
                    circuit.set_mode(mode, env);
                    None
                });
                (model.mode(mode), answered)
            }
            Op::CoolDown => {
                let answered = self.command(|circuit, env| match circuit.cool_down(env) {
                    Cooled::Untouched => None,
                    Cooled::Counted(transition) => transition,
                });
                (model.cool_down(), answered)
            }
            Op::TakeOver(age) => {
                let answered = self.command(|circuit, env| {
                    env.now = now;
                    let (saved, settings) = (circuit.save(now), circuit.settings().clone());
                    *circuit = Circuit::restore(&saved, &[], age * MS, settings, env).unwrap();
                    None
                });
                (model.take_over(now, age * MS), answered)
            }
        };
        self.latest = now;
        both
    }

    fn command(&mut self, command: impl FnOnce(&mut Circuit<P>, &mut Env<'_>) -> Option<Transition>) -> Said {
        let mut env = Env {
            now: self.clock,
            key: "k",
            seed: 0,
            numbers: &mut self.numbers,
        };
        let transition = command(&mut self.circuit, &mut env);
        Said {
            moved: transition.map(|transition| transition.operation),
            ..nothing()
        }
    }

    fn acquire(&mut self, model: &mut impl Model, now: Instant) -> (Said, Said) {
        let said = model.acquire(now, self.admitted);
        let mut decision = Decision::Pass;
        let moved = self.command(|circuit, env| {
            let admission = circuit.acquire(env);
            decision = admission.decision;
            admission.transition
        });
        let verdict = match decision {
            Decision::Admit(ticket) => {
                self.permits.push((self.admitted, ticket));
                Verdict::Admitted
            }
            Decision::Pass => Verdict::Passed,
            Decision::Reject(Rejection { reason, retry_after }) => Verdict::Rejected(reason, retry_after),
        };
        self.admitted += 1;
        (
            said,
            Said {
                decision: Some(verdict),
                ..moved
            },
        )
    }

    fn settle(
        &mut self,
        model: &mut impl Model,
        now: Instant,
        which: usize,
        outcome: Outcome,
    ) -> (Said, Said) {
        let (permit, ticket) = self.permits.remove(which);
        let before = format!("{:?}", self.circuit.save(now));
        let mut counted = false;
        let moved = self.command(|circuit, env| {
            let settled = circuit.settle(ticket, &Report::of(outcome), env);
            counted = settled.counted;
            settled.transition
        });
        if !counted {
            assert_eq!(
                before,
                format!("{:?}", self.circuit.save(now)),
                "a void result changed something"
            );
        }
        (
            model.settle(now, permit, outcome),
            Said {
                counted: Some(counted),
                ..moved
            },
        )
    }

    fn agrees(&mut self, model: &mut impl Model, probes: usize, ops: &[Op]) {
        let mut generation = 0;
        for (place, op) in ops.iter().enumerate() {
            let state = self.circuit.state();
            let (said, answered) = self.step(model, *op);
            let trace = || format!("step {place} of {:?}", &ops[..=place]);
            assert_eq!(said, answered, "{}", trace());
            assert_eq!(model.state(), self.circuit.state(), "{}", trace());
            let now = self.clock.max(self.latest);
            let in_flight = self.circuit.counts(now).probes_in_flight as usize;
            assert_eq!(model.probes_in_flight(now), in_flight, "{}", trace());
            assert!(in_flight <= probes, "{}", trace());
            let lease = self.circuit.lease(now);
            assert!(lease.generation >= generation, "{}", trace());
            generation = lease.generation;
            edge_is_declared(state, self.circuit.state(), answered.moved);
        }
    }
}

fn edge_is_declared(before: State, after: State, moved: Option<Operation>) {
    let declared = match moved {
        None => before == after,
        Some(Operation::Trip) => (before, after) == (State::Closed, State::Open),
        Some(Operation::ReTrip) => before != State::Closed && after == State::Open,
        Some(Operation::HalfOpen) => (before, after) == (State::Open, State::HalfOpen),
        Some(Operation::Reset) => before != State::Closed && after == State::Closed,
    };
    assert!(declared, "{before:?} to {after:?} by {moved:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn consecutive_does_what_its_model_does(
        failure_threshold in 1_u32..4,
        success_threshold in 1_u32..4,
        open_for in 1_u64..10,
        probes in 1_usize..4,
        probe_timeout in 1_u64..10,
        ops in ops(),
    ) {
        let settings = format!(
            r#"{{"failure_threshold":{failure_threshold},"success_threshold":{success_threshold},"open_for":"{open_for}ms","probes":{probes},"call_timeout":null,"probe_timeout":"{probe_timeout}ms"}}"#
        );
        let mut model = ConsecutiveModel {
            failure_threshold,
            success_threshold,
            open_for: open_for * MS,
            probes,
            probe_timeout: probe_timeout * MS,
            mode: Mode::Automatic,
            state: State::Closed,
            failures: 0,
            successes: 0,
            open_until: 0,
            calls: Vec::new(),
            out: Vec::new(),
        };
        Run::<Consecutive>::new(&settings).agrees(&mut model, probes, &ops);
    }

    #[test]
    fn outbox_does_what_its_model_does(cooldown_count in 0_i64..5, ops in ops()) {
        let settings = format!(r#"{{"cooldown_count":{cooldown_count}}}"#);
        let mut model =
            OutboxModel { cooldown_count, mode: Mode::Automatic, counter: None, permits: Vec::new() };
        Run::<Outbox>::new(&settings).agrees(&mut model, 0, &ops);
    }
}
