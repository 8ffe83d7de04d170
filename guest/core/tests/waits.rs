//! How long a circuit stays open: back-off, cap, jitter, and a failure's own wish.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::collections::HashSet;
use std::sync::Arc;

use proptest::prelude::*;
use tripwit_core::{Circuit, Consecutive, Decision, Env, Numbers, Outcome, Policy, Report, State};

const SECOND: u64 = 1_000_000_000;

/// A circuit that fails whenever it is asked.
struct Failing {
    circuit: Circuit<Consecutive>,
    numbers: Numbers,
    seed: u64,
    key: &'static str,
    now: u64,
}

impl Failing {
    fn new(settings: &str, seed: u64) -> Self {
        Self::with_key(settings, seed, "payments")
    }

    fn with_key(settings: &str, seed: u64, key: &'static str) -> Self {
        let settings = Arc::new(Consecutive::parse(settings).unwrap());
        let mut numbers = Numbers::default();
        let mut env = Env {
            now: 0,
            key,
            seed,
            numbers: &mut numbers,
        };
        let circuit = Circuit::new(settings, &mut env);
        Self {
            circuit,
            numbers,
            seed,
            key,
            now: 0,
        }
    }

    /// Fails the next call that is admitted, and answers the wait that follows.
    fn fail(&mut self, retry_after: Option<u64>) -> u64 {
        let mut env = Env {
            now: self.now,
            key: self.key,
            seed: self.seed,
            numbers: &mut self.numbers,
        };
        let Decision::Admit(ticket) = self.circuit.acquire(&mut env).decision else {
            panic!("not admitted")
        };
        let report = Report {
            retry_after,
            ..Report::of(Outcome::Failure)
        };
        let transition = self
            .circuit
            .settle(ticket, &report, &mut env)
            .transition
            .expect("a move");
        assert_eq!(transition.after, State::Open);
        let wait = transition.wait.expect("a wait");
        self.now = self.now.saturating_add(wait);
        wait
    }

    fn waits<const N: usize>(mut self) -> [u64; N] {
        std::array::from_fn(|_| self.fail(None))
    }
}

#[test]
fn the_wait_grows_by_the_factor_with_each_opening_in_a_row_up_to_the_cap() {
    let settings = r#"{"failure_threshold":1,"open_for":"10s","backoff_factor":1.5,"open_for_max":"30s"}"#;
    let waits = Failing::new(settings, 0).waits::<5>();
    assert_eq!(
        waits,
        [10 * SECOND, 15 * SECOND, 22_500_000_000, 30 * SECOND, 30 * SECOND]
    );
}

#[test]
fn without_a_factor_every_wait_is_the_same() {
    assert_eq!(
        Failing::new(r#"{"failure_threshold":1}"#, 0).waits::<3>(),
        [30 * SECOND; 3]
    );
}

#[test]
fn a_wish_to_be_left_alone_is_a_lower_bound_where_the_settings_heed_it() {
    let heeded = r#"{"failure_threshold":1,"open_for":"10s","retry_after_max":"60s"}"#;
    for (wish, wait) in [(5, 10), (20, 20), (60, 60), (3600, 60)] {
        assert_eq!(
            Failing::new(heeded, 0).fail(Some(wish * SECOND)),
            wait * SECOND,
            "{wish} s"
        );
    }
    let ignored = r#"{"failure_threshold":1,"open_for":"10s"}"#;
    assert_eq!(Failing::new(ignored, 0).fail(Some(60 * SECOND)), 10 * SECOND);
}

#[test]
fn replicas_with_other_seeds_probe_at_other_times_and_the_same_seed_repeats_a_run() {
    let settings = r#"{"failure_threshold":1,"open_for":"10s","jitter":0.5}"#;
    let run = |seed| Failing::new(settings, seed).waits::<8>();
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}

/// The waits of the first openings under a jitter that leaves no two alike by chance.
fn strays(seed: u64, key: &'static str) -> [u64; 4] {
    let settings = r#"{"failure_threshold":1,"open_for":"1h","open_for_max":"24h","jitter":1}"#;
    Failing::with_key(settings, seed, key).waits()
}

#[test]
fn whatever_the_seed_each_opening_and_each_key_has_a_wait_of_its_own() {
    // Seeds with no bit and with every bit, and those next to them, which the first generation makes into such.
    for seed in [0, 1, u64::MAX - 1, u64::MAX] {
        let (one, another) = (strays(seed, "a"), strays(seed, "c"));
        let all: HashSet<u64> = one.into_iter().chain(another).collect();
        assert_eq!(all.len(), 8, "{seed}: {one:?} {another:?}");
    }
}

proptest! {
    #[test]
    fn jitter_stays_within_its_share_and_below_the_cap(seed: u64, jitter in 0_u32..=1000) {
        let jitter_text = f64::from(jitter) / 1000.0;
        let settings = format!(
            r#"{{"failure_threshold":1,"open_for":"10s","open_for_max":"12s","jitter":{jitter_text}}}"#
        );
        let stray = 10 * SECOND * u64::from(jitter) / 1000;
        for wait in Failing::new(&settings, seed).waits::<4>() {
            prop_assert!((10 * SECOND - stray..=(10 * SECOND + stray).min(12 * SECOND)).contains(&wait), "{wait}");
        }
    }

    #[test]
    fn any_number_of_openings_under_the_steepest_settings_keeps_to_the_cap(openings in 1_usize..200) {
        let settings = r#"{"failure_threshold":1,"open_for":"24h","backoff_factor":100,"open_for_max":"24h"}"#;
        let mut failing = Failing::new(settings, 0);
        for _ in 0..openings {
            prop_assert_eq!(failing.fail(None), 24 * 3600 * SECOND);
        }
    }
}
