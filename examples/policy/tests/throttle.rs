//! How the policy decides, without WebAssembly: a circuit is a value, and the clock an argument.

use std::sync::Arc;

use throttle::Throttle;
use tripwit_core::{
    Circuit, Decision, Env, Numbers, Outcome, Policy, RejectionReason, Report, Standing, State,
};

const MINUTE: u64 = 60_000_000_000;

struct Client {
    circuit: Circuit<Throttle>,
    numbers: Numbers,
    now: u64,
    seed: u64,
}

impl Client {
    fn new(settings: &str, seed: u64) -> Self {
        let settings = Arc::new(Throttle::parse(settings).unwrap());
        let mut numbers = Numbers::default();
        let mut env = Env {
            now: 0,
            key: "backend",
            seed,
            numbers: &mut numbers,
        };
        let circuit = Circuit::new(settings, &mut env);
        Self {
            circuit,
            numbers,
            now: 0,
            seed,
        }
    }

    /// Asks for a call that ends like this. Whether it was made.
    fn call(&mut self, outcome: Outcome) -> bool {
        let mut env = Env {
            now: self.now,
            key: "backend",
            seed: self.seed,
            numbers: &mut self.numbers,
        };
        match self.circuit.acquire(&mut env).decision {
            Decision::Admit(ticket) => {
                self.circuit
                    .settle(ticket, &Report::of(outcome), &mut env)
                    .counted
            }
            Decision::Pass => panic!("a call that nobody counts"),
            Decision::Reject(rejection) => {
                assert_eq!(rejection.reason, RejectionReason::Throttled);
                false
            }
        }
    }

    /// So many calls of a dependency that fails. How many were made.
    fn failing(&mut self, calls: u32) -> u32 {
        (0..calls).map(|_| u32::from(self.call(Outcome::Failure))).sum()
    }

    fn answers_by_itself(&self) -> bool {
        matches!(self.circuit.lease(self.now).standing, Standing::Admit(_))
    }
}

#[test]
fn nothing_is_shed_while_at_most_as_many_are_asked_for_as_the_multiplier_allows() {
    let mut client = Client::new("{}", 1);
    assert!((0..100).all(|_| client.call(Outcome::Success)));
    assert_eq!(client.failing(100), 100, "200 were asked for, and 100 ended well");
    assert!(client.answers_by_itself());
    assert!(client.call(Outcome::Failure), "the 201st is the first too many");
    assert!(!client.answers_by_itself(), "from now on it depends");
}

#[test]
fn a_dead_dependency_hears_little_and_never_nothing() {
    let mut client = Client::new("{}", 1);
    let made = client.failing(10_000);
    // The harmonic series: one call in (requests + 1) goes through.
    assert!((4..40).contains(&made), "{made} of 10,000 were made");
    assert_eq!(client.circuit.state(), State::Closed);
}

#[test]
fn an_overloaded_dependency_is_asked_for_the_multiplier_times_what_it_takes() {
    // It has room for every fourth call.
    let made = |settings| {
        let mut client = Client::new(settings, 7);
        let (mut made, mut room) = (0_u32, 0_u32);
        for call in 0..30_000 {
            room = (room + u32::from(call % 4 == 0)).min(1);
            let ends = if room > 0 {
                Outcome::Success
            } else {
                Outcome::Failure
            };
            if client.call(ends) {
                made += 1;
                room = 0;
            }
        }
        made
    };
    let (twice, four_times) = (made("{}"), made(r#"{"multiplier": 4}"#));
    assert!((11_000..17_000).contains(&twice), "{twice} of 30,000 were made");
    assert_eq!(four_times, 30_000);
}

#[test]
fn the_same_seed_draws_the_same_lots_and_another_one_others() {
    let made = |seed| {
        let mut client = Client::new("{}", seed);
        (0..200)
            .map(|_| client.call(Outcome::Failure))
            .collect::<Vec<_>>()
    };
    assert_eq!(made(3), made(3));
    assert_ne!(made(3), made(4));
}

#[test]
fn time_alone_ends_shedding_and_never_begins_it() {
    let mut client = Client::new(r#"{"half_life": "1m"}"#, 1);
    client.failing(50);
    assert!(!client.answers_by_itself());
    client.now = 10 * MINUTE;
    assert!(client.answers_by_itself(), "50 halved ten times are none");

    for (accepts, failures) in
        (1..8).flat_map(|accepts| (0..=accepts).map(move |failures| (accepts, failures)))
    {
        let mut client = Client::new("{}", 1);
        assert!((0..accepts).all(|_| client.call(Outcome::Success)));
        client.failing(failures);
        for minute in 0..8 {
            client.now = minute * MINUTE;
            assert!(
                client.answers_by_itself(),
                "{accepts} good, {failures} bad, minute {minute}"
            );
        }
    }
}

#[test]
fn whoever_takes_over_goes_on_as_the_one_that_was_saved() {
    let settings = Arc::new(Throttle::parse("{}").unwrap());
    let mut saved = Client::new("{}", 5);
    saved.failing(20);
    let mut numbers = Numbers::default();
    let mut env = Env {
        now: 0,
        key: "backend",
        seed: 5,
        numbers: &mut numbers,
    };
    let (snapshot, detail) = (saved.circuit.save(0), saved.circuit.detail(0));
    let circuit = Circuit::restore(&snapshot, &detail, 0, settings.clone(), &mut env).unwrap();
    assert!(Circuit::<Throttle>::restore(&snapshot, &detail[1..], 0, settings.clone(), &mut env).is_err());
    let long_after =
        Circuit::<Throttle>::restore(&snapshot, &detail, 60 * MINUTE, settings, &mut env).unwrap();
    assert!(
        matches!(long_after.lease(0).standing, Standing::Admit(_)),
        "all is forgotten by then"
    );
    let mut restored = Client {
        circuit,
        numbers,
        now: 0,
        seed: 5,
    };
    for call in 0..500 {
        assert_eq!(
            saved.call(Outcome::Failure),
            restored.call(Outcome::Failure),
            "call {call}"
        );
    }
}

#[test]
fn only_an_operator_opens_the_circuit_and_a_probe_closes_it() {
    let mut client = Client::new(r#"{"open_for": "10s"}"#, 1);
    client.failing(1_000);
    let mut env = Env {
        now: 0,
        key: "backend",
        seed: 1,
        numbers: &mut client.numbers,
    };
    let trip = client.circuit.trip(None, &mut env).unwrap();
    assert_eq!((trip.after, trip.wait), (State::Open, Some(10_000_000_000)));
    client.now = 10_000_000_000;
    assert!(client.call(Outcome::Success), "the probe");
    assert_eq!(client.circuit.state(), State::Closed);
    assert!(client.answers_by_itself(), "with nothing counted");
}
