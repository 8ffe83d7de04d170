//! Brighter's concurrency test: cool-downs that race trips, on the host's public API.
#![expect(clippy::unwrap_used, reason = "these are tests")]

use std::collections::HashMap;
use std::sync::{Arc, Barrier, Mutex};

use tripwit::settings::Outbox;
use tripwit::{Breakers, Event, Operation, Policy, State};

const TOPICS: usize = 50;
const THREADS: usize = 4;
const ROUNDS: usize = 200;

/// Trips and cool-downs of topics whose count is 0, as many threads doing each as the other. Gives the moves that were
/// heard.
fn race(ignore_leases: bool) -> Vec<Event> {
    let breakers = Breakers::builder(Policy::outbox().unwrap())
        .settings(Outbox::default().cooldown_count(0))
        .ignore_leases(ignore_leases)
        .build()
        .unwrap();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let list = heard.clone();
    let _subscription = breakers.subscribe(move |event| list.lock().unwrap().push(event.clone()));
    let topics: Vec<_> = (0..TOPICS)
        .map(|number| breakers.breaker(&format!("topic-{number}")).unwrap())
        .collect();
    let start = Barrier::new(2 * THREADS);
    std::thread::scope(|threads| {
        for _ in 0..THREADS {
            threads.spawn(|| {
                start.wait();
                for _ in 0..ROUNDS {
                    breakers.cool_down();
                }
            });
            threads.spawn(|| {
                start.wait();
                for _ in 0..ROUNDS {
                    for topic in &topics {
                        topic.trip();
                    }
                }
            });
        }
    });
    breakers.cool_down();
    assert_eq!(breakers.tripped(), Vec::<String>::new());
    assert!(topics.iter().all(|topic| topic.state() == State::Closed));
    assert!(breakers.cool_down().is_empty());
    assert_eq!((breakers.faults(), breakers.dropped_telemetry()), (0, 0));
    let heard = heard.lock().unwrap();
    heard.clone()
}

/// Every trip is told, as a trip or a re-trip, and every reset answers exactly one trip.
fn nothing_is_lost(heard: &[Event]) {
    let mut by_topic: HashMap<&str, Vec<Operation>> = HashMap::new();
    for event in heard {
        by_topic
            .entry(&event.key)
            .or_default()
            .push(event.transition.operation);
    }
    assert_eq!(by_topic.len(), TOPICS);
    for (topic, operations) in by_topic {
        let count = |wanted| operations.iter().filter(|it| **it == wanted).count();
        let (trips, re_trips, resets) = (
            count(Operation::Trip),
            count(Operation::ReTrip),
            count(Operation::Reset),
        );
        assert_eq!(trips + re_trips, THREADS * ROUNDS, "{topic}");
        assert_eq!(trips, resets, "{topic}");
        let mut tripped = false;
        for operation in operations {
            let fits = match operation {
                Operation::Trip => !tripped,
                Operation::ReTrip | Operation::Reset => tripped,
                Operation::HalfOpen => false,
            };
            assert!(fits, "{topic}: {operation} out of turn");
            tripped = operation != Operation::Reset;
        }
    }
}

#[test]
fn trips_that_race_cool_downs_are_never_lost_and_one_more_cool_down_leaves_nothing_tripped() {
    nothing_is_lost(&race(false));
}

#[test]
fn the_same_holds_when_the_component_is_asked_each_time() {
    nothing_is_lost(&race(true));
}
