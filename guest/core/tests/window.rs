//! The window against a brute-force model, its leases against asking each time, and its snapshots against going on.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use proptest::prelude::*;
use tripwit_core::{
    Circuit, Decision, Env, Instant, Lease, Numbers, Outcome, Policy, Report, Standing, State, Successes,
    Window,
};

const MS: u64 = 1_000_000;
const SLOW_AFTER: u64 = 2 * MS;

#[derive(Clone, Copy, Debug)]
struct Ended {
    at: Instant,
    outcome: Outcome,
    took: u64,
}

/// One call a step: how it ends, how long it took, and how long after the one before. Milliseconds.
fn calls() -> impl Strategy<Value = Vec<(Outcome, u64, u64)>> {
    let outcome = prop_oneof![
        5 => Just(Outcome::Success),
        3 => Just(Outcome::Failure),
        1 => Just(Outcome::Timeout),
        1 => Just(Outcome::Ignored),
    ];
    prop::collection::vec(
        (outcome, 0_u64..4, prop_oneof![4 => 0_u64..4, 1 => 10_u64..80]),
        1..120,
    )
}

#[derive(Clone, Copy, Debug)]
struct Shape {
    /// Calls, or buckets of 10 ms.
    calls: Option<u64>,
    buckets: u64,
    minimum: u64,
    failure_rate: u64,
    slow_rate: u64,
}

fn shapes() -> impl Strategy<Value = Shape> {
    (
        prop::option::of(1_u64..12),
        1_u64..5,
        1_u64..8,
        1_u64..=100,
        1_u64..=100,
    )
        .prop_map(|(calls, buckets, minimum, failure_rate, slow_rate)| Shape {
            calls,
            buckets,
            minimum: minimum.min(calls.unwrap_or(u64::MAX)),
            failure_rate,
            slow_rate,
        })
}

impl Shape {
    fn settings(self) -> String {
        let reach = match self.calls {
            Some(calls) => format!(r#""window_calls":{calls}"#),
            None => format!(
                r#""window_time":"{}ms","buckets":{}"#,
                self.buckets * 10,
                self.buckets
            ),
        };
        let Self {
            minimum,
            failure_rate,
            slow_rate,
            ..
        } = self;
        format!(
            r#"{{{reach},"minimum_calls":{minimum},"failure_rate":{failure_rate},"slow_after":"2ms","slow_rate":{slow_rate},"probe_calls":1}}"#
        )
    }

    /// By looking at every call again.
    fn opens(self, ended: &[Ended], now: Instant) -> bool {
        let kept = self.kept(ended, now);
        let total = kept.len() as u64;
        let failed = kept
            .iter()
            .filter(|call| call.outcome != Outcome::Success)
            .count() as u64;
        let slow = kept.iter().filter(|call| call.took > SLOW_AFTER).count() as u64;
        total >= self.minimum
            && (failed * 100 >= self.failure_rate * total || slow * 100 >= self.slow_rate * total)
    }

    fn kept(self, ended: &[Ended], now: Instant) -> Vec<Ended> {
        let counted = ended
            .iter()
            .copied()
            .filter(|call| call.outcome != Outcome::Ignored);
        match self.calls {
            Some(calls) => {
                let mut last: Vec<Ended> = counted.collect();
                last.split_off(last.len().saturating_sub(usize::try_from(calls).unwrap()))
            }
            None => {
                let bucket = |at: Instant| at / (10 * MS);
                counted
                    .filter(|call| bucket(call.at) + self.buckets > bucket(now))
                    .collect()
            }
        }
    }
}

struct Guest {
    circuit: Circuit<Window>,
    numbers: Numbers,
}

impl Guest {
    fn new(settings: &str) -> Self {
        let mut numbers = Numbers::default();
        let mut env = Env {
            now: 0,
            key: "k",
            seed: 0,
            numbers: &mut numbers,
        };
        let circuit = Circuit::new(Arc::new(Window::parse(settings).unwrap()), &mut env);
        Self { circuit, numbers }
    }

    fn call(&mut self, ended: Ended) {
        let mut env = Env {
            now: ended.at,
            key: "k",
            seed: 0,
            numbers: &mut self.numbers,
        };
        if let Decision::Admit(ticket) = self.circuit.acquire(&mut env).decision {
            let report = Report {
                took: Some(ended.took),
                ..Report::of(ended.outcome)
            };
            self.circuit.settle(ticket, &report, &mut env);
        }
    }

    fn hand_in(&mut self, lease: &Lease, kept: u32, now: Instant) {
        let Standing::Admit(ticket) = lease.standing else {
            return;
        };
        let mut env = Env {
            now,
            key: "k",
            seed: 0,
            numbers: &mut self.numbers,
        };
        let moved = self.circuit.settle_successes(ticket, kept, &mut env);
        assert_eq!(moved, None, "the lease allowed what moves the state");
    }

    fn seen(&self, now: Instant) -> String {
        format!(
            "{:?} {:?}",
            self.circuit.save(now),
            self.circuit.lease(now).successes
        )
    }
}

fn timed(calls: &[(Outcome, u64, u64)]) -> Vec<Ended> {
    let mut at = 0;
    let end = |(outcome, took, after): &(Outcome, u64, u64)| {
        at += after * MS;
        Ended {
            at,
            outcome: *outcome,
            took: took * MS,
        }
    };
    calls.iter().map(end).collect()
}

/// Another policy may say how many calls were slow and leave successes at 0.
#[test]
fn counts_of_more_slow_calls_than_calls_make_a_window_that_can_be_saved() {
    let settings = Window::parse(r#"{"window_time":"10s","minimum_calls":1000}"#).unwrap();
    let settings = Arc::new(settings);
    let saved = tripwit_core::Saved {
        state: State::Closed,
        mode: tripwit_core::Mode::Automatic,
        retry_after: None,
        cooldown_count: None,
        reopenings: 0,
        counts: tripwit_core::Counts {
            failures: 14,
            slow: 15,
            ..tripwit_core::Counts::default()
        },
    };
    let mut numbers = Numbers::default();
    let mut env = Env {
        now: MS,
        key: "k",
        seed: 0,
        numbers: &mut numbers,
    };
    let taken = Circuit::<Window>::restore(&saved, &[], 0, settings.clone(), &mut env).unwrap();
    let detail = taken.detail(MS);
    let again = Circuit::<Window>::restore(&taken.save(MS), &detail, 0, settings, &mut env).unwrap();
    assert_eq!(again.counts(MS), taken.counts(MS));
    assert_eq!((again.counts(MS).failures, again.counts(MS).slow), (14, 14));
}

#[test]
fn a_window_that_is_cut_otherwise_keeps_its_counts() {
    let by_time = r#"{"window_time":"40ms","buckets":4,"minimum_calls":9}"#;
    let wider = r#"{"window_time":"80ms","buckets":4,"minimum_calls":9}"#;
    let by_calls = r#"{"window_calls":20,"minimum_calls":9}"#;
    let smaller = r#"{"window_calls":9,"minimum_calls":9}"#;
    for (old, new) in [
        (by_time, wider),
        (by_time, by_calls),
        (by_calls, by_time),
        (by_calls, smaller),
    ] {
        let mut guest = Guest::new(old);
        for (at, outcome) in [
            Outcome::Failure,
            Outcome::Success,
            Outcome::Success,
            Outcome::Failure,
        ]
        .into_iter()
        .enumerate()
        {
            guest.call(Ended {
                at: at as u64 * MS,
                outcome,
                took: 0,
            });
        }
        let before = guest.circuit.counts(5 * MS);
        let mut env = Env {
            now: 5 * MS,
            key: "k",
            seed: 0,
            numbers: &mut guest.numbers,
        };
        guest
            .circuit
            .configure(Arc::new(Window::parse(new).unwrap()), &mut env);
        assert_eq!(guest.circuit.counts(5 * MS), before, "{old} to {new}");
        assert_eq!((before.failures, before.successes), (2, 2));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn a_window_opens_where_looking_at_every_call_again_says_so(shape in shapes(), calls in calls()) {
        let ended = timed(&calls);
        let mut guest = Guest::new(&shape.settings());
        for (place, call) in ended.iter().enumerate() {
            guest.call(*call);
            let so_far = &ended[..=place];
            let opens = call.outcome != Outcome::Ignored && shape.opens(so_far, call.at);
            prop_assert_eq!(guest.circuit.state() == State::Open, opens, "{:?} {:?}", shape, so_far);
            if opens {
                return Ok(());
            }
            let counts = guest.circuit.counts(call.at);
            let kept = shape.kept(so_far, call.at);
            prop_assert_eq!((counts.successes + counts.failures) as usize, kept.len());
            prop_assert_eq!(counts.slow as usize, kept.iter().filter(|call| call.took > SLOW_AFTER).count());
        }
    }

    #[test]
    fn keeping_successes_back_as_a_lease_allows_changes_nothing(shape in shapes(), calls in calls()) {
        let mut asked = Guest::new(&shape.settings());
        let mut leased = Guest::new(&shape.settings());
        let mut lease = leased.circuit.lease(0);
        let mut kept = 0;
        for call in timed(&calls) {
            asked.call(call);
            let slow = call.took > SLOW_AFTER;
            let may_keep = call.outcome == Outcome::Success && !slow && match lease.successes {
                Successes::Each => false,
                Successes::UpTo(allowance) => {
                    kept < allowance.successes && allowance.before.is_none_or(|before| call.at < before)
                }
                Successes::Never => true,
            };
            if may_keep {
                kept += u32::from(lease.successes != Successes::Never);
            } else {
                leased.hand_in(&lease, kept, call.at);
                leased.call(call);
                lease = leased.circuit.lease(call.at);
                kept = 0;
            }
            if lease.state != State::Closed {
                break;
            }
        }
        let end = timed(&calls).last().unwrap().at;
        leased.hand_in(&lease, kept, end);
        prop_assert_eq!(asked.seen(end), leased.seen(end));
    }

    #[test]
    fn a_window_that_was_saved_goes_on_as_if_it_had_not_been(
        shape in shapes(), calls in calls(), place in 0_usize..120,
    ) {
        let ended = timed(&calls);
        let mut stayed = Guest::new(&shape.settings());
        let mut moved = Guest::new(&shape.settings());
        for (at, call) in ended.iter().enumerate() {
            stayed.call(*call);
            moved.call(*call);
            if at == place {
                let (saved, detail) = (moved.circuit.save(call.at), moved.circuit.detail(call.at));
                let settings = moved.circuit.settings().clone();
                let mut env = Env { now: call.at, key: "k", seed: 0, numbers: &mut moved.numbers };
                moved.circuit = Circuit::restore(&saved, &detail, 0, settings, &mut env).unwrap();
            }
            prop_assert_eq!(stayed.seen(call.at), moved.seen(call.at));
        }
    }

    #[test]
    fn no_detail_makes_a_restore_panic(shape in shapes(), detail in prop::collection::vec(0_u8..9, 0..60)) {
        let mut guest = Guest::new(&shape.settings());
        let (saved, settings) = (guest.circuit.save(0), guest.circuit.settings().clone());
        let mut env = Env { now: 5, key: "k", seed: 0, numbers: &mut guest.numbers };
        let _ = Circuit::<Window>::restore(&saved, &detail, 7, settings, &mut env);
    }
}
