//! Each instrument that is looked at when metrics are asked for.

use std::time::Duration;

use opentelemetry_sdk::metrics::{InMemoryMetricExporter, SdkMeterProvider};
use tripwit::{Breakers, Failure, Mode, Policy, Telemetry};

use crate::support::{Pipeline, WAIT, build, consecutive, expected, fine, outbox, refused, touchy, values};

fn named(name: &str) -> String {
    format!("tripwit.circuit_breaker.{name}")
}

const INSTRUMENTS: &str = "
tripwit.circuit_breaker.calls | {call} | counter | Number of calls by how they ended, rejected ones by reason.
tripwit.circuit_breaker.circuits | {circuit} | up-down counter | Number of circuits in each state now.
tripwit.circuit_breaker.component_faults | {fault} | counter | Number of times the policy component trapped, overran its deadline or handed out nonsense.
tripwit.circuit_breaker.dropped_entries | {entry} | counter | Number of log lines, spans and moves dropped because the queue was full.
tripwit.circuit_breaker.open_time | s | counter | Time that circuits spent open, added up over all of them; half-open is not open.
tripwit.circuit_breaker.shadow_rejections | {call} | counter | Number of calls made in shadow mode that automatic mode would have rejected.
tripwit.circuit_breaker.stale_results | {result} | counter | Number of results that came too late to count.
tripwit.circuit_breaker.state | {circuit} | gauge | 1 for the state that a circuit is in, while it is not closed.
tripwit.circuit_breaker.swaps | {swap} | counter | Number of times the policy was exchanged while calls went on.
tripwit.circuit_breaker.trips | {trip} | counter | Number of times a topic's outbox circuit breaker tripped, re-tripped, or reset.
";

#[test]
fn each_instrument_has_its_name_unit_kind_and_description() {
    let pipeline = Pipeline::new();
    let (breakers, _clock) = consecutive(pipeline.telemetry());
    breakers.breaker("sms").unwrap().trip();
    let metrics = pipeline.metrics();
    let shown: Vec<_> = metrics
        .iter()
        .map(|(name, it)| format!("{name} | {} | {} | {}", it.unit, it.kind, it.description))
        .collect();
    assert_eq!(shown.join("\n"), INSTRUMENTS.trim());
    let scope = format!("tripwit {}", env!("CARGO_PKG_VERSION"));
    assert!(metrics.values().all(|it| it.scope == scope));
}

#[test]
fn outbox_reports_under_brighters_names() {
    let pipeline = Pipeline::new();
    let (breakers, _clock) = outbox(pipeline.telemetry());
    breakers.breaker("orders").unwrap().trip();
    let metrics = pipeline.metrics();
    assert_eq!(metrics.len(), 10);
    let scope = format!("Paramore.Brighter {}", env!("CARGO_PKG_VERSION"));
    for (name, shown) in &metrics {
        assert!(name.starts_with("paramore.brighter.circuit_breaker."), "{name}");
        assert_eq!(shown.scope, scope);
    }
}

#[test]
fn calls_are_counted_by_outcome_and_rejections_by_reason() {
    let pipeline = Pipeline::new();
    let (breakers, clock) = consecutive(pipeline.telemetry());
    let sms = breakers.breaker("sms").unwrap();
    (0..5).for_each(|_| sms.call_blocking(fine).unwrap());
    sms.acquire().unwrap().ignored();
    drop(sms.acquire().unwrap());
    sms.acquire().unwrap().timeout();
    let late = sms.acquire().unwrap();
    clock.advance(Duration::from_secs(11));
    late.success();
    (0..3).for_each(|_| drop(sms.acquire().unwrap_err()));
    clock.advance(WAIT);
    let probe = sms.acquire().unwrap();
    sms.acquire().unwrap_err();
    probe.failure(Failure::new());
    sms.set_mode(Mode::ForcedOpen);
    sms.acquire().unwrap_err();
    let outcome = |name| format!("circuit_breaker.outcome={name}");
    let reason = |name| format!("circuit_breaker.outcome=rejected circuit_breaker.rejection_reason={name}");
    assert_eq!(
        pipeline.values(&named("calls")),
        expected([
            (&outcome("success"), 5.0),
            (&outcome("failure"), 1.0),
            (&outcome("timeout"), 2.0),
            (&outcome("ignored"), 2.0),
            (&reason("open"), 3.0),
            (&reason("probe_limit"), 1.0),
            (&reason("forced_open"), 1.0),
            (&reason("throttled"), 0.0),
            (&reason("other"), 0.0),
        ])
    );
}

#[test]
fn calls_of_all_threads_are_added_up_also_of_those_that_have_ended() {
    let pipeline = Pipeline::new();
    let (breakers, _clock) = consecutive(pipeline.telemetry());
    let sms = breakers.breaker("sms").unwrap();
    std::thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| (0..1_000).for_each(|_| sms.call_blocking(fine).unwrap()));
        }
    });
    sms.call_blocking(fine).unwrap();
    assert_eq!(
        pipeline.values(&named("calls"))["circuit_breaker.outcome=success"],
        4_001.0
    );
}

fn states(closed: f64, open: f64, half_open: f64) -> std::collections::BTreeMap<String, f64> {
    expected([
        ("circuit_breaker.state=closed", closed),
        ("circuit_breaker.state=open", open),
        ("circuit_breaker.state=half_open", half_open),
    ])
}

#[test]
fn circuits_are_counted_in_every_state_and_have_a_series_while_not_closed() {
    let pipeline = Pipeline::new();
    let (breakers, clock) = consecutive(pipeline.telemetry());
    let read = || {
        let mut metrics = pipeline.metrics();
        let mut values = |name| metrics.remove(&named(name)).map(|it| it.values);
        (values("circuits").unwrap(), values("state").unwrap_or_default())
    };
    assert_eq!(read().0, states(0.0, 0.0, 0.0));
    let _others: Vec<_> = ["a", "b"].map(|key| breakers.breaker(key).unwrap()).into();
    let sms = breakers.breaker("sms").unwrap();
    assert_eq!(read(), (states(3.0, 0.0, 0.0), expected([])));
    let series = |state| format!("circuit_breaker.state={state} circuit_breaker.topic=sms");
    let (open, half_open) = (series("open"), series("half_open"));

    sms.trip();
    assert_eq!(read(), (states(2.0, 1.0, 0.0), expected([(&open, 1.0)])));
    clock.advance(WAIT);
    let probe = sms.acquire().unwrap();
    assert_eq!(
        read(),
        (states(2.0, 0.0, 1.0), expected([(&open, 0.0), (&half_open, 1.0)]))
    );
    probe.success();
    let both_left = expected([(&open, 0.0), (&half_open, 0.0)]);
    assert_eq!(read(), (states(3.0, 0.0, 0.0), both_left.clone()));
    clock.advance(Duration::from_secs(299));
    assert_eq!(
        read().1,
        both_left,
        "the states that were left are told for five minutes"
    );
    sms.trip();
    assert_eq!(read().1, expected([(&open, 1.0), (&half_open, 0.0)]));
    clock.advance(Duration::from_secs(1));
    assert_eq!(read().1, expected([(&open, 1.0)]), "and are gone");
}

#[test]
fn each_of_two_readers_sees_that_a_state_was_left() {
    let readers = [
        InMemoryMetricExporter::default(),
        InMemoryMetricExporter::default(),
    ];
    let [one, other] = readers.clone();
    let meters = SdkMeterProvider::builder()
        .with_periodic_exporter(one)
        .with_periodic_exporter(other)
        .build();
    let (breakers, clock) = consecutive(Telemetry::default().meter_provider(meters.clone()));
    let sms = breakers.breaker("sms").unwrap();
    let read = || {
        meters.force_flush().unwrap();
        readers.each_ref().map(|reader| {
            let told = values(reader, &named("state"));
            reader.reset();
            told
        })
    };
    let series = "circuit_breaker.state=open circuit_breaker.topic=sms";
    sms.trip();
    assert_eq!(read(), [expected([(series, 1.0)]), expected([(series, 1.0)])]);
    sms.reset();
    for _ in 0..3 {
        assert_eq!(read(), [expected([(series, 0.0)]), expected([(series, 0.0)])]);
    }
    clock.advance(Duration::from_secs(300));
    // One reader is still given what the other one asked for before.
    let _last = read();
    assert_eq!(read(), [expected([]), expected([])]);
}

#[test]
fn an_evicted_circuit_is_gone_from_the_metrics() {
    let pipeline = Pipeline::new();
    let builder = Breakers::builder(Policy::consecutive().unwrap())
        .settings(touchy())
        .max_circuits(1);
    let (breakers, clock) = build(builder, pipeline.telemetry());
    let first = breakers.breaker("first").unwrap();
    first.trip();
    assert_eq!(pipeline.values(&named("state")).len(), 1);
    first.reset();
    drop(first);
    let _second = breakers.breaker("second").unwrap();
    assert!(
        pipeline
            .values(&named("state"))
            .values()
            .all(|value| *value == 0.0),
        "told for a time"
    );
    clock.advance(Duration::from_secs(300));
    assert_eq!(pipeline.values(&named("state")), expected([]));
    assert_eq!(pipeline.values(&named("circuits")), states(1.0, 0.0, 0.0));
}

#[test]
fn series_of_single_circuits_are_bounded_and_those_that_have_one_keep_it() {
    let pipeline = Pipeline::new();
    let (breakers, clock) = consecutive(pipeline.telemetry().state_series(2));
    let open = |keys: [&str; 2]| {
        for key in keys {
            breakers.breaker(key).unwrap().trip();
        }
    };
    let topics = || -> Vec<_> {
        let told = pipeline.values(&named("state"));
        told.into_iter()
            .map(|(series, value)| (series.rsplit('=').next().unwrap().to_owned(), value))
            .collect()
    };
    let of = |all: [(&str, f64); 2]| all.map(|(topic, value)| (topic.to_owned(), value));
    open(["m", "n"]);
    assert_eq!(topics(), of([("m", 1.0), ("n", 1.0)]));
    open(["a", "z"]);
    assert_eq!(topics(), of([("m", 1.0), ("n", 1.0)]));
    assert_eq!(
        pipeline.values(&named("circuits"))["circuit_breaker.state=open"],
        4.0,
        "the totals have all"
    );
    breakers.breaker("m").unwrap().reset();
    assert_eq!(topics().len(), 3, "one closed, one kept, one new");
    clock.advance(Duration::from_secs(300));
    assert_eq!(topics(), of([("a", 1.0), ("n", 1.0)]));
    for key in 0..20 {
        let breaker = breakers.breaker(&key.to_string()).unwrap();
        breakers.breaker("a").unwrap().reset();
        breaker.trip();
        assert!(topics().len() <= 6, "two are told, and twice as many were left");
        breaker.reset();
        breakers.breaker("a").unwrap().trip();
        clock.advance(Duration::from_secs(1));
    }
}

#[test]
fn time_spent_open_counts_while_it_lasts_and_half_open_does_not() {
    let pipeline = Pipeline::new();
    let (breakers, clock) = consecutive(pipeline.telemetry());
    let sms = breakers.breaker("sms").unwrap();
    let open_time = || pipeline.values(&named("open_time"))[""];
    clock.advance(WAIT);
    assert_eq!(open_time(), 0.0);
    sms.trip();
    clock.advance(Duration::from_millis(1_500));
    assert_eq!(open_time(), 1.5);
    clock.advance(WAIT);
    let probe = sms.acquire().unwrap();
    clock.advance(WAIT);
    assert_eq!(open_time(), 6.5);
    probe.success();
    clock.advance(WAIT);
    assert_eq!(open_time(), 6.5);
}

#[test]
fn stale_results_and_shadow_rejections_are_counted() {
    let pipeline = Pipeline::new();
    let (breakers, _clock) = consecutive(pipeline.telemetry());
    let sms = breakers.breaker("sms").unwrap();
    let late = sms.acquire().unwrap();
    sms.reset();
    sms.trip();
    late.success();
    assert_eq!(pipeline.values(&named("stale_results")), expected([("", 1.0)]));
    sms.set_mode(Mode::Shadow);
    sms.trip();
    (0..3).for_each(|_| sms.call_blocking(fine).unwrap());
    assert_eq!(
        pipeline.values(&named("shadow_rejections")),
        expected([("", 3.0)])
    );
    assert_eq!(
        pipeline.values(&named("calls"))["circuit_breaker.outcome=success"],
        4.0,
        "they were made all the same"
    );
}

#[test]
fn faults_of_the_component_are_counted() {
    let pipeline = Pipeline::new();
    let policy = Policy::from_bytes(include_bytes!("../guests/faulty.wasm")).unwrap();
    let (breakers, _clock) = build(Breakers::builder(policy), pipeline.telemetry());
    let breaker = breakers.breaker("trap:settle").unwrap();
    breaker.call_blocking(refused).unwrap_err();
    let name = named("component_faults");
    assert_eq!(pipeline.values(&name), expected([("", 1.0)]));
    assert_eq!(pipeline.values(&named("swaps")), expected([("", 0.0)]));
}

#[test]
fn swaps_that_are_made_are_counted_and_states_and_names_stay() {
    let pipeline = Pipeline::new();
    let (breakers, _clock) = consecutive(pipeline.telemetry());
    breakers.breaker("sms").unwrap().trip();
    breakers.breaker("email").unwrap();
    breakers.swap(Policy::outbox().unwrap(), "{}").unwrap();
    breakers
        .swap(Policy::outbox().unwrap(), "no settings")
        .unwrap_err();
    breakers.reconfigure(r#"{"cooldown_count":3}"#).unwrap();
    assert_eq!(pipeline.values(&named("swaps")), expected([("", 1.0)]));
    assert_eq!(pipeline.values(&named("circuits")), states(1.0, 1.0, 0.0));
    breakers.breaker("email").unwrap().trip();
    assert_eq!(pipeline.values(&named("circuits")), states(0.0, 2.0, 0.0));
    let spans = pipeline.spans.get_finished_spans().unwrap();
    let scopes: Vec<_> = spans
        .iter()
        .map(|span| span.instrumentation_scope.name().to_owned())
        .collect();
    assert_eq!(scopes, ["tripwit", "Paramore.Brighter"]);
}

#[test]
fn sets_of_circuits_that_share_telemetry_are_added_up_and_no_total_steps_back() {
    let pipeline = Pipeline::new();
    let telemetry = pipeline.telemetry();
    let (one, clock) = consecutive(telemetry.clone());
    let (other, _clock) = consecutive(telemetry.clone());
    for (breakers, calls) in [(&one, 2), (&other, 3)] {
        let sms = breakers.breaker("sms").unwrap();
        (0..calls).for_each(|_| sms.call_blocking(fine).unwrap());
        sms.trip();
    }
    clock.advance(Duration::from_secs(4));
    let success = || pipeline.values(&named("calls"))["circuit_breaker.outcome=success"];
    assert_eq!(success(), 5.0);
    assert_eq!(pipeline.values(&named("circuits")), states(0.0, 2.0, 0.0));
    drop(one);
    assert_eq!(success(), 5.0);
    assert_eq!(pipeline.values(&named("open_time")), expected([("", 4.0)]));
    assert_eq!(pipeline.values(&named("circuits")), states(0.0, 1.0, 0.0));
    drop(other);
    assert_eq!(success(), 5.0);
    assert_eq!(pipeline.values(&named("circuits")), states(0.0, 0.0, 0.0));
    let (_third, _clock) = consecutive(telemetry);
    assert_eq!(success(), 5.0);
}
