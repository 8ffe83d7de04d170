//! Many threads: one trip an opening, and everything of one circuit in the order of its moves.

use std::collections::BTreeMap;
use std::sync::{Arc, Barrier, Mutex};

use tracing::Level;
use tripwit::settings::Consecutive;
use tripwit::{Breakers, Policy};

use crate::support::{Log, Pipeline, build, outbox};

const THREADS: usize = 8;

/// How often each operation was, by the spans.
fn operations(pipeline: &Pipeline) -> BTreeMap<String, usize> {
    let mut all = BTreeMap::new();
    for span in pipeline.spans.get_finished_spans().unwrap() {
        let (_, operation) = span.name.split_once(' ').unwrap();
        *all.entry(operation.to_owned()).or_default() += 1;
    }
    all
}

/// Lets so many threads fail at once.
fn fail_at_once(breakers: &Breakers) {
    let breaker = breakers.breaker("orders").unwrap();
    let begin = Barrier::new(THREADS);
    std::thread::scope(|threads| {
        for _ in 0..THREADS {
            threads.spawn(|| {
                let permit = breaker.acquire().unwrap();
                begin.wait();
                permit.failure(tripwit::Failure::new());
            });
        }
    });
}

#[test]
fn of_failures_that_race_exactly_one_trips() {
    for _ in 0..20 {
        let pipeline = Pipeline::new();
        let builder = Breakers::builder(Policy::consecutive().unwrap())
            .settings(Consecutive::default().failure_threshold(1));
        let (breakers, _clock) = build(builder, pipeline.telemetry());
        fail_at_once(&breakers);
        assert_eq!(operations(&pipeline), [("trip".to_owned(), 1)].into());
        assert_eq!(
            pipeline.values("tripwit.circuit_breaker.stale_results")[""],
            (THREADS - 1) as f64,
            "the others came too late to count"
        );
    }
}

#[test]
fn for_outbox_the_others_are_re_trips() {
    for _ in 0..20 {
        let pipeline = Pipeline::new();
        let (breakers, _clock) = outbox(pipeline.telemetry());
        fail_at_once(&breakers);
        assert_eq!(
            operations(&pipeline),
            [("trip".to_owned(), 1), ("re_trip".to_owned(), THREADS - 1)].into()
        );
    }
}

#[test]
fn lines_spans_and_moves_of_a_circuit_come_in_the_order_of_its_moves() {
    const ROUNDS: usize = 100;
    let pipeline = Pipeline::new();
    let (breakers, _clock) = outbox(pipeline.telemetry());
    let moves = Arc::new(Mutex::new(Vec::new()));
    let list = moves.clone();
    let _subscription = breakers.subscribe(move |event| {
        let told = (event.key.to_string(), event.transition.operation.to_string());
        list.lock().unwrap().push(told);
    });
    let log = Log::from(Level::DEBUG);
    std::thread::scope(|threads| {
        for number in 0..THREADS {
            let breaker = breakers.breaker(&format!("topic{}", number % 2)).unwrap();
            let log = log.clone();
            threads.spawn(move || {
                log.during(|| {
                    for _ in 0..ROUNDS {
                        breaker.trip();
                        breaker.reset();
                    }
                });
            });
        }
    });
    assert_eq!(breakers.dropped_telemetry(), 0);
    for topic in ["topic0", "topic1"] {
        let moves: Vec<_> = moves
            .lock()
            .unwrap()
            .iter()
            .filter(|(key, _)| key == topic)
            .map(|(_, operation)| operation.clone())
            .collect();
        assert!(moves.len() >= 2 * ROUNDS, "only {} moves", moves.len());
        assert!(is_a_history(&moves), "{moves:?}");
        let spans: Vec<_> = pipeline
            .spans
            .get_finished_spans()
            .unwrap()
            .iter()
            .filter_map(|span| Some(span.name.strip_prefix(topic)?.trim().to_owned()))
            .collect();
        assert_eq!(spans, moves);
        let lines: Vec<_> = log
            .messages()
            .iter()
            .filter(|message| message.contains(&format!("topic {topic};")))
            .map(|message| {
                let verb = message.split(' ').nth(2).unwrap();
                verb.replace("re-tripped", "re_trip").replace("tripped", "trip")
            })
            .collect();
        assert_eq!(lines, moves);
    }
}

/// Whether a circuit can have made these moves in this order.
fn is_a_history(moves: &[String]) -> bool {
    let mut open = false;
    moves.iter().all(|operation| {
        let fits = (operation == "trip") != open;
        open = operation != "reset";
        fits
    })
}
