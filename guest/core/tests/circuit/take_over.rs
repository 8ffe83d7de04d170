//! What goes over to another instance, of this policy or of another.

use std::sync::Arc;

use tripwit_core::{
    Calls, Circuit, Consecutive, Counts, Mode, Numbers, Outbox, Outcome, Policy, Rule, Saved, State, Window,
};

use crate::guest::{Guest, SECOND, env};

fn saved(state: State, counts: Counts) -> Saved {
    Saved {
        state,
        mode: Mode::Automatic,
        retry_after: None,
        cooldown_count: None,
        reopenings: u32::from(state != State::Closed),
        counts,
    }
}

fn taken_over<P: Policy>(saved: &Saved, settings: &str) -> Guest<P> {
    let mut numbers = Numbers::default();
    let settings = Arc::new(P::parse(settings).unwrap());
    let circuit = Circuit::restore(saved, &[], 0, settings, &mut env(0, &mut numbers)).unwrap();
    Guest {
        circuit,
        numbers,
        now: 0,
    }
}

#[test]
fn no_probe_goes_over_to_another_instance() {
    let (guest, _) = Guest::<Consecutive>::probing("{}");
    assert_eq!(guest.circuit.counts(guest.now).probes_in_flight, 1);
    assert_eq!(guest.circuit.save(guest.now).counts.probes_in_flight, 0);
}

#[test]
fn what_a_window_of_calls_takes_over_it_counts() {
    let counts = Counts {
        successes: 5,
        failures: 4,
        timeouts: 2,
        slow: 3,
        consecutive_failures: 2,
        ..Counts::default()
    };
    for settings in [
        r#"{"window_calls":20,"minimum_calls":20}"#,
        r#"{"window_time":"10s"}"#,
    ] {
        let guest = taken_over::<Window>(&saved(State::Closed, counts), settings);
        assert_eq!(guest.counts(), counts, "{settings}");
    }
}

#[test]
fn failures_in_a_row_are_taken_over_up_to_the_last_before_the_circuit_opens() {
    let failed = |failures, timeouts| Counts {
        failures,
        timeouts,
        consecutive_failures: failures,
        ..Counts::default()
    };
    for (before, after) in [
        ((2, 1), (2, 1)),
        ((2, 2), (2, 2)),
        ((9, 9), (2, 2)),
        ((9, 0), (2, 0)),
    ] {
        let saved = saved(State::Closed, failed(before.0, before.1));
        let mut guest = taken_over::<Consecutive>(&saved, r#"{"failure_threshold":3}"#);
        assert_eq!(guest.counts(), failed(after.0, after.1), "{before:?}");
        let ticket = guest.admitted();
        guest.settle(ticket, Outcome::Failure);
        assert_eq!(guest.circuit.state(), State::Open);
    }
}

#[test]
fn probes_that_succeeded_are_taken_over_up_to_the_last_before_the_circuit_closes() {
    for (before, after) in [(1, 1), (9, 2)] {
        let counts = Counts {
            successes: before,
            consecutive_successes: before,
            ..Counts::default()
        };
        let mut guest =
            taken_over::<Consecutive>(&saved(State::HalfOpen, counts), r#"{"success_threshold":3}"#);
        assert_eq!(guest.counts().successes, after);
        assert_eq!(guest.counts().consecutive_successes, after);
        for left in (0..3 - after).rev() {
            let ticket = guest.admitted();
            guest.settle(ticket, Outcome::Success);
            assert_eq!(guest.circuit.state() == State::Closed, left == 0);
        }
    }
}

#[test]
fn a_window_takes_over_what_its_probes_proved_but_none_that_is_under_way() {
    let settings = Window::parse(r#"{"probe_calls":4}"#).unwrap();
    let ended = |successes, failures, probes_in_flight| Counts {
        successes,
        failures,
        probes_in_flight,
        ..Counts::default()
    };
    assert_eq!(Calls::adopt_probes(&settings, &ended(2, 1, 3)), ended(2, 1, 0));
    // What would decide at once decides nothing.
    assert_eq!(Calls::adopt_probes(&settings, &ended(4, 0, 3)), Counts::default());
    assert_eq!(Calls::adopt_probes(&settings, &ended(0, 2, 3)), Counts::default());
}

#[test]
fn an_open_circuit_of_a_policy_without_a_clock_waits_as_one_that_opened_as_often() {
    let settings = r#"{"open_for":"10s","backoff_factor":2,"open_for_max":"1h"}"#;
    for (reopenings, wait) in [(0, 10), (1, 10), (2, 20), (3, 40), (u32::MAX, 3600)] {
        let saved = Saved {
            reopenings,
            cooldown_count: Some(3),
            ..saved(State::Open, Counts::default())
        };
        let guest = taken_over::<Consecutive>(&saved, settings);
        assert_eq!(guest.circuit.retry_after(0), Some(wait * SECOND), "{reopenings}");
    }
}

#[test]
fn the_wait_after_any_number_of_openings_costs_no_more_than_after_one() {
    for reopenings in u32::MAX - 50..=u32::MAX {
        let saved = Saved {
            reopenings,
            ..saved(State::Open, Counts::default())
        };
        let guest = taken_over::<Consecutive>(&saved, "{}");
        assert_eq!(guest.circuit.retry_after(0), Some(30 * SECOND));
    }
}

#[test]
fn an_outbox_takes_over_an_open_or_half_open_circuit_as_tripped() {
    for state in [State::Open, State::HalfOpen] {
        let guest = taken_over::<Outbox>(&saved(state, Counts::default()), "{}");
        assert_eq!(guest.circuit.cooldown_count(), Some(10), "{state:?}");
    }
    let cooled = Saved {
        cooldown_count: Some(3),
        ..saved(State::Open, Counts::default())
    };
    assert_eq!(
        taken_over::<Outbox>(&cooled, "{}").circuit.cooldown_count(),
        Some(3)
    );
}
