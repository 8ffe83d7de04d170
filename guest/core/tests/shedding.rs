//! A rule that sheds calls of a closed circuit, and leaves to the traits what it has no opinion on.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use tripwit_core::{
    Admission, Circuit, Context, Counts, Decision, Env, Field, Instant, Numbers, Outcome, Policy, Recovery,
    Rejection, RejectionReason, Report, Rule, Settings, SettingsError, Standing, State, Successes, Timed,
};

/// Lets every other call through while the last one failed.
#[derive(Clone, Debug, Default)]
struct EveryOther {
    failed: bool,
    turn: bool,
    recorded: u32,
}

impl Rule for EveryOther {
    type Settings = Recovery;

    const NAME: &'static str = "every-other";
    const SUMMARY: &'static str = "For the tests.";
    const FIELDS: &'static [&'static dyn Field] = &[&Recovery::OPEN_FOR];

    fn settings(settings: &Settings) -> Result<Recovery, SettingsError> {
        Recovery::read(settings)
    }

    fn recovery(settings: &Recovery) -> &Recovery {
        settings
    }

    fn fresh(_settings: &Recovery) -> Self {
        Self::default()
    }

    fn admit(&mut self, _cx: &Context<'_, Recovery>) -> bool {
        self.turn = !self.turn;
        !self.failed || self.turn
    }

    fn admits_all(&self, _settings: &Recovery, _now: Instant) -> bool {
        !self.failed
    }

    fn record(&mut self, _settings: &Recovery, report: &Report, _slow: bool, _now: Instant) -> bool {
        self.failed = report.outcome != Outcome::Success;
        self.recorded += 1;
        self.recorded == 5
    }

    fn counts(&self, _settings: &Recovery, _now: Instant) -> Counts {
        Counts {
            successes: self.recorded,
            ..Counts::default()
        }
    }
}

struct Bed {
    circuit: Circuit<Timed<EveryOther>>,
    numbers: Numbers,
    now: Instant,
}

impl Bed {
    fn new() -> Self {
        let settings = Arc::new(Timed::<EveryOther>::parse(r#"{"open_for": "1s"}"#).unwrap());
        let mut numbers = Numbers::default();
        let circuit = Circuit::new(settings, &mut env(&mut numbers, 0));
        Self {
            circuit,
            numbers,
            now: 0,
        }
    }

    fn with<R>(&mut self, run: impl FnOnce(&mut Circuit<Timed<EveryOther>>, &mut Env<'_>) -> R) -> R {
        run(&mut self.circuit, &mut env(&mut self.numbers, self.now))
    }

    fn acquire(&mut self) -> Admission {
        self.with(Circuit::acquire)
    }

    /// Makes a call that ends like this, if it may be made.
    fn call(&mut self, outcome: Outcome) -> bool {
        match self.acquire().decision {
            Decision::Admit(ticket) => {
                self.with(|circuit, env| circuit.settle(ticket, &Report::of(outcome), env))
                    .counted
            }
            Decision::Pass | Decision::Reject(_) => false,
        }
    }

    fn half_open(&mut self) {
        self.with(|circuit, env| circuit.trip(None, env)).unwrap();
        self.now += 1_000_000_000;
    }
}

fn env(numbers: &mut Numbers, now: Instant) -> Env<'_> {
    Env {
        now,
        key: "orders",
        seed: 9,
        numbers,
    }
}

#[test]
fn a_call_that_is_shed_is_rejected_as_throttled_and_moves_nothing() {
    let mut bed = Bed::new();
    assert!(bed.call(Outcome::Failure));
    let shed = bed.acquire();
    assert_eq!(
        shed.decision,
        Decision::Reject(Rejection {
            reason: RejectionReason::Throttled,
            retry_after: None
        })
    );
    assert_eq!((shed.transition, bed.circuit.state()), (None, State::Closed));
    assert!(bed.call(Outcome::Success));
    assert!(bed.call(Outcome::Success) && bed.call(Outcome::Success));
}

#[test]
fn a_lease_admits_only_while_nothing_is_shed() {
    let mut bed = Bed::new();
    let lease = bed.circuit.lease(0);
    assert_eq!(
        (lease.standing, lease.successes),
        (Standing::Admit(lease.generation), Successes::Each)
    );
    bed.call(Outcome::Failure);
    assert_eq!(bed.circuit.lease(0).standing, Standing::Ask);
}

#[test]
fn successes_that_were_kept_back_are_recorded_one_by_one_until_one_opens() {
    let mut bed = Bed::new();
    let ticket = bed.circuit.lease(0).generation;
    let moved = bed.with(|circuit, env| circuit.settle_successes(ticket, 4, env));
    assert_eq!((moved, bed.circuit.counts(0).successes), (None, 4));
    let moved = bed.with(|circuit, env| circuit.settle_successes(ticket, 9, env));
    assert_eq!(moved.unwrap().after, State::Open);
}

#[test]
fn the_first_probe_that_ends_decides() {
    let mut bed = Bed::new();
    bed.half_open();
    assert!(!bed.call(Outcome::Ignored) || bed.circuit.state() == State::HalfOpen);
    assert!(bed.call(Outcome::Success));
    assert_eq!(bed.circuit.state(), State::Closed);
    bed.half_open();
    assert!(bed.call(Outcome::Timeout));
    assert_eq!(bed.circuit.state(), State::Open);
}

#[test]
fn what_others_counted_means_nothing_to_a_rule_that_does_not_say_so() {
    let mut bed = Bed::new();
    bed.call(Outcome::Success);
    let settings = bed.circuit.settings().clone();
    bed.with(|circuit, env| circuit.configure(settings, env));
    assert_eq!(bed.circuit.counts(0), Counts::default());
    bed.half_open();
    bed.acquire();
    let saved = bed.circuit.save(bed.now);
    let settings = bed.circuit.settings().clone();
    let saved = tripwit_core::Saved {
        counts: Counts {
            successes: 3,
            failures: 2,
            ..Counts::default()
        },
        ..saved
    };
    let restored = bed.with(|_, env| Circuit::<Timed<EveryOther>>::restore(&saved, &[], 0, settings, env));
    assert_eq!(restored.unwrap().counts(bed.now), Counts::default());
}

/// Hands what a rule is told to a test.
#[derive(Clone, Debug, Default)]
struct Lots(Vec<u64>);

impl Rule for Lots {
    type Settings = Recovery;

    const NAME: &'static str = "lots";
    const SUMMARY: &'static str = "For the tests.";
    const FIELDS: &'static [&'static dyn Field] = &[];

    fn settings(settings: &Settings) -> Result<Recovery, SettingsError> {
        Recovery::read(settings)
    }

    fn recovery(settings: &Recovery) -> &Recovery {
        settings
    }

    fn fresh(_settings: &Recovery) -> Self {
        Self::default()
    }

    fn admit(&mut self, cx: &Context<'_, Recovery>) -> bool {
        self.0 = (1..=1_000).map(|number| cx.lot(number, 1, 10)).collect();
        true
    }

    fn record(&mut self, _settings: &Recovery, _report: &Report, _slow: bool, _now: Instant) -> bool {
        false
    }

    fn counts(&self, _settings: &Recovery, _now: Instant) -> Counts {
        Counts {
            // Those of one kind, and a sum that hangs on the order of all.
            successes: u32::try_from(self.0.iter().filter(|lot| **lot == 10).count()).unwrap(),
            failures: self
                .0
                .iter()
                .fold(0, |sum, lot| sum * 31 % 65_521 + u32::try_from(*lot).unwrap()),
            ..Counts::default()
        }
    }
}

/// What 1,000 lots of this seed and key come to, after so many generations.
fn lots(seed: u64, key: &str, generations: usize) -> Counts {
    let mut numbers = Numbers::default();
    let mut env = Env {
        now: 0,
        key,
        seed,
        numbers: &mut numbers,
    };
    let settings = Arc::new(Timed::<Lots>::parse("{}").unwrap());
    let mut circuit = Circuit::<Timed<Lots>>::new(settings, &mut env);
    for _ in 0..generations {
        circuit.reset(&mut env);
    }
    circuit.acquire(&mut env);
    circuit.counts(0)
}

#[test]
fn lots_are_the_same_for_the_same_seed_and_key_in_every_generation() {
    let drawn = lots(1, "a", 0);
    assert_eq!(drawn, lots(1, "a", 3));
    assert_ne!(drawn, lots(2, "a", 0));
    assert_ne!(drawn, lots(1, "b", 0));
    assert!(
        (70..130).contains(&drawn.successes),
        "about one in ten is a 10: {drawn:?}"
    );
}
