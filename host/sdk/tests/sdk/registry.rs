//! Which circuits stay and which go when there are as many as may be.

use std::time::Duration;

use tripwit::settings::Consecutive;
use tripwit::{AttachError, Breakers, Failure, Mode, Operation, State};

use crate::support::{circuits, fine, refused, touchy};

fn at_most(circuits_: usize) -> Breakers {
    circuits(touchy()).0.max_circuits(circuits_).build().unwrap()
}

fn keys(breakers: &Breakers) -> Vec<String> {
    breakers.statuses().into_iter().map(|status| status.key).collect()
}

#[test]
fn a_handle_keeps_its_circuit() {
    let breakers = at_most(2);
    let held = breakers.breaker("held").unwrap();
    for key in ["a", "b", "c"] {
        breakers.breaker(key).unwrap();
    }
    assert_eq!(keys(&breakers), ["c", "held"]);
    drop(held);
    for key in ["d", "e"] {
        breakers.breaker(key).unwrap();
    }
    assert_eq!(keys(&breakers), ["d", "e"]);
}

#[test]
fn an_owned_permit_keeps_its_circuit() {
    let breakers = at_most(1);
    let permit = breakers.breaker("held").unwrap().acquire_owned().unwrap();
    assert_eq!(
        breakers.breaker("a").unwrap_err(),
        AttachError::Full {
            key: "a".into(),
            limit: 1
        }
    );
    permit.success();
    assert!(breakers.breaker("a").is_ok());
}

#[test]
fn full_is_an_error_that_names_the_limit_and_leaves_nothing_behind() {
    let breakers = at_most(1);
    let _held = breakers.breaker("held").unwrap();
    let error = breakers.breaker("more").unwrap_err();
    assert_eq!(
        error.to_string(),
        "no circuit for key \"more\": all 1 are in use or not closed; raise `max_circuits` or use fewer keys"
    );
    assert_eq!(keys(&breakers), ["held"]);
}

#[test]
fn circuits_that_are_not_closed_or_not_automatic_stay() {
    let breakers = at_most(3);
    breakers.breaker("open").unwrap().trip();
    breakers.breaker("forced").unwrap().set_mode(Mode::ForcedOpen);
    for key in ["a", "b", "c"] {
        breakers.breaker(key).unwrap();
    }
    assert_eq!(keys(&breakers), ["c", "forced", "open"]);
    assert_eq!(breakers.breaker("open").unwrap().state(), State::Open);
    breakers.breaker("open").unwrap().reset();
    for key in ["d", "e"] {
        breakers.breaker(key).unwrap();
    }
    assert_eq!(
        keys(&breakers),
        ["d", "e", "forced"],
        "once closed, it goes as any other"
    );
}

#[test]
fn circuits_with_nothing_recorded_go_first() {
    let breakers = at_most(2);
    breakers
        .breaker("failing")
        .unwrap()
        .call_blocking(refused)
        .unwrap_err();
    for number in 0..10 {
        breakers
            .breaker(&format!("passing {number}"))
            .unwrap()
            .call_blocking(fine)
            .unwrap();
    }
    assert_eq!(keys(&breakers), ["failing", "passing 9"]);
    let failing = breakers.breaker("failing").unwrap();
    failing.call_blocking(refused).unwrap_err();
    assert_eq!(
        failing.state(),
        State::Open,
        "what was recorded was not wiped out"
    );
}

#[test]
fn recorded_circuits_go_when_there_are_no_others() {
    let breakers = at_most(2);
    for key in ["a", "b", "c"] {
        breakers.breaker(key).unwrap().call_blocking(refused).unwrap_err();
    }
    assert_eq!(keys(&breakers), ["b", "c"]);
}

#[test]
fn room_is_made_in_another_shard_where_it_must_be() {
    let breakers = circuits(touchy()).0.max_circuits(1).shards(8).build().unwrap();
    for number in 0..64 {
        breakers.breaker(&number.to_string()).unwrap();
        assert_eq!(breakers.len(), 1);
    }
}

#[test]
fn many_keys_stay_within_the_limit() {
    let breakers = circuits(touchy()).0.max_circuits(100).shards(2).build().unwrap();
    let open = breakers.breaker("open").unwrap();
    open.trip_for(Duration::from_secs(3_600));
    drop(open);
    for number in 0..20_000 {
        let breaker = breakers.breaker(&format!("key {number}")).unwrap();
        if number % 3 == 0 {
            breaker.call_blocking(refused).unwrap_err();
        }
    }
    assert_eq!(breakers.len(), 100);
    assert_eq!(breakers.tripped(), ["open"]);
    assert_eq!(breakers.faults(), 0);
}

#[test]
fn the_one_circuit_of_many_that_can_go_is_found() {
    let breakers = at_most(600);
    let mut held: Vec<_> = (0..600)
        .map(|number| breakers.breaker(&number.to_string()).unwrap())
        .collect();
    assert!(matches!(
        breakers.breaker("more").unwrap_err(),
        AttachError::Full { .. }
    ));
    drop(held.remove(500));
    breakers.breaker("more").unwrap();
    assert_eq!(breakers.len(), 600);
}

#[test]
fn what_a_subscriber_records_on_a_reset_is_not_wiped_out() {
    let breakers = at_most(2);
    let failing = breakers.breaker("failing").unwrap();
    failing.trip();
    let subscriber = failing.clone();
    let subscription = breakers.subscribe(move |event| {
        if event.transition.operation == Operation::Reset {
            subscriber.call_blocking(refused).unwrap_err();
        }
    });
    failing.reset();
    drop((subscription, failing));
    for key in ["a", "b"] {
        breakers.breaker(key).unwrap();
    }
    assert_eq!(keys(&breakers), ["b", "failing"]);
}

#[test]
fn keys_of_strangers_cannot_use_up_the_components_memory() {
    let breakers = circuits(touchy())
        .0
        .shards(1)
        .max_memory(2 << 20)
        .build()
        .unwrap();
    let long = "k".repeat(500);
    for number in 0..6_000 {
        breakers.breaker(&format!("{number} {long}")).unwrap();
    }
    assert!(breakers.len() < 6_000);
    assert_eq!(breakers.faults(), 0);
}

#[test]
fn nor_can_the_causes_of_their_failures() {
    let one_failure = Consecutive::default().failure_threshold(1_000);
    let cause = || Failure::new().cause("c".repeat(256));
    for megabytes in [2, 4, 8, 16] {
        let breakers = circuits(one_failure.clone())
            .0
            .shards(1)
            .max_memory(megabytes << 20)
            .build()
            .unwrap();
        let mut last = 0;
        // As many as fit, and then each fails.
        for number in 0.. {
            let before = breakers.len();
            breakers.breaker(&number.to_string()).unwrap();
            if breakers.len() == before {
                last = number;
                break;
            }
        }
        for key in keys(&breakers) {
            breakers
                .breaker(&key)
                .unwrap()
                .acquire()
                .unwrap()
                .failure(cause());
        }
        assert_eq!(breakers.faults(), 0, "{megabytes} MiB, {last} circuits");
        // And more of them, each of which fails at once.
        for number in last..last + 5_000 {
            let breaker = breakers.breaker(&number.to_string()).unwrap();
            breaker.acquire().unwrap().failure(cause());
        }
        assert_eq!(breakers.faults(), 0, "{megabytes} MiB, {last} circuits");
    }
}

#[test]
fn one_shard_has_room_for_the_default_number_of_circuits() {
    let breakers = circuits(touchy()).0.shards(1).build().unwrap();
    for number in 0..100_000 {
        breakers.breaker(&format!("key-{number:012}")).unwrap();
    }
    assert_eq!((breakers.len(), breakers.faults()), (100_000, 0));
    breakers.breaker("one more").unwrap();
    assert_eq!((breakers.len(), breakers.faults()), (100_000, 0));
}
