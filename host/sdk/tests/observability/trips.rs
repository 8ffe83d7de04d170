//! The counter that is derived from spans.

use opentelemetry::trace::{Span, Tracer, TracerProvider};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{Sampler, TracerProviderBuilder};
use tracing::Level;
use tripwit::otel::{RecordBreakerSpans, TripCounter};
use tripwit::{Instrumentation, Telemetry};

use crate::support::{Log, Pipeline, consecutive, expected, outbox, refused};

const OUTBOX: &str = "paramore.brighter.circuit_breaker.trips";
const OTHERS: &str = "tripwit.circuit_breaker.trips";

/// Only spans reach this pipeline: whatever it counts comes from them.
fn spans_only(pipeline: &Pipeline) -> Telemetry {
    Telemetry::default()
        .tracer_provider(pipeline.tracers.clone())
        .meter_provider(opentelemetry::metrics::NoopMeterProvider::new())
}

#[test]
fn each_move_is_counted_by_operation_and_topic() {
    let pipeline = Pipeline::with(counting_nameless);
    let (breakers, _clock) = outbox(spans_only(&pipeline));
    let orders = breakers.breaker("orders").unwrap();
    orders.call_blocking(refused).unwrap_err();
    orders.trip();
    orders.trip();
    breakers.breaker("mail").unwrap().trip();
    orders.reset();
    let metrics = pipeline.metrics();
    assert_eq!(metrics.keys().collect::<Vec<_>>(), [OUTBOX]);
    let trips = &metrics[OUTBOX];
    assert_eq!(
        trips.description,
        "Number of times a topic's outbox circuit breaker tripped, re-tripped, or reset."
    );
    assert_eq!((&*trips.unit, trips.kind), ("{trip}", "counter"));
    assert_eq!(
        trips.scope,
        format!("Paramore.Brighter {}", env!("CARGO_PKG_VERSION"))
    );
    let series =
        |topic, operation| format!("circuit_breaker.topic={topic} paramore.brighter.operation={operation}");
    assert_eq!(
        trips.values,
        expected([
            (&series("orders", "trip"), 1.0),
            (&series("orders", "re_trip"), 2.0),
            (&series("orders", "reset"), 1.0),
            (&series("mail", "trip"), 1.0),
        ])
    );
}

#[test]
fn of_the_resource_the_service_is_kept_and_nothing_else() {
    let resource = Resource::builder_empty()
        .with_attributes([
            KeyValue::new("service.name", "shop"),
            KeyValue::new("service.instance.id", "7"),
            KeyValue::new("host.name", "h"),
        ])
        .build();
    let pipeline = Pipeline::with(|tracers, meters| {
        tracers
            .with_resource(resource)
            .with_span_processor(TripCounter::new(meters))
    });
    let (breakers, _clock) = consecutive(spans_only(&pipeline));
    breakers.breaker("sms").unwrap().trip();
    assert_eq!(
        pipeline.values(OTHERS),
        expected([(
            "circuit_breaker.topic=sms service.instance.id=7 service.name=shop tripwit.operation=trip",
            1.0
        )])
    );
}

#[test]
fn re_trips_count_where_their_log_lines_are_off() {
    let pipeline = Pipeline::with(counting_nameless);
    let (breakers, _clock) = outbox(spans_only(&pipeline));
    let orders = breakers.breaker("orders").unwrap();
    let log = Log::from(Level::INFO);
    log.during(|| {
        orders.trip();
        orders.trip();
    });
    assert_eq!(
        log.messages(),
        ["Circuit breaker tripped for topic orders; suppressing publish for 10 cooldown cycle(s)"]
    );
    assert_eq!(
        pipeline.values(OUTBOX),
        expected([
            (
                "circuit_breaker.topic=orders paramore.brighter.operation=trip",
                1.0
            ),
            (
                "circuit_breaker.topic=orders paramore.brighter.operation=re_trip",
                1.0
            ),
        ])
    );
}

/// Without any attributes of the resource.
fn counting_nameless(
    tracers: TracerProviderBuilder,
    meters: &opentelemetry_sdk::metrics::SdkMeterProvider,
) -> TracerProviderBuilder {
    tracers
        .with_resource(Resource::builder_empty().build())
        .with_span_processor(TripCounter::new(meters))
}

#[test]
fn every_move_counts_under_a_sampler_that_drops_everything() {
    let pipeline = Pipeline::with(|tracers, meters| {
        counting_nameless(tracers, meters).with_sampler(RecordBreakerSpans(Sampler::AlwaysOff))
    });
    let (breakers, _clock) = consecutive(spans_only(&pipeline));
    breakers.breaker("sms").unwrap().trip();
    let mut other = pipeline.tracers.tracer("test").start("not of a breaker");
    assert!(!other.is_recording(), "everything else is dropped as before");
    other.end();
    assert_eq!(
        pipeline.values(OTHERS),
        expected([("circuit_breaker.topic=sms tripwit.operation=trip", 1.0)])
    );
    assert!(
        pipeline.spans.get_finished_spans().unwrap().is_empty(),
        "recorded is not exported"
    );
}

#[test]
fn a_sampler_that_keeps_spans_is_left_alone() {
    let pipeline = Pipeline::with(|tracers, meters| {
        counting_nameless(tracers, meters).with_sampler(RecordBreakerSpans(Sampler::AlwaysOn))
    });
    let (breakers, _clock) = consecutive(spans_only(&pipeline));
    breakers.breaker("sms").unwrap().trip();
    assert_eq!(pipeline.spans.get_finished_spans().unwrap().len(), 1);
}

#[test]
fn spans_of_others_are_not_counted() {
    let pipeline = Pipeline::with(counting_nameless);
    let tracer = pipeline.tracers.tracer("test");
    for attributes in [
        vec![KeyValue::new("circuit_breaker.topic", "sms")],
        vec![KeyValue::new("instrumentation.domain", "messaging")],
    ] {
        let builder = tracer.span_builder("other").with_attributes(attributes);
        tracer.build_with_context(builder, &Context::new()).end();
    }
    assert!(pipeline.metrics().is_empty());
}

#[test]
fn a_span_without_an_operation_is_counted_by_its_scope() {
    let pipeline = Pipeline::with(counting_nameless);
    let telemetry = || spans_only(&pipeline).instrumentation(Instrumentation::from_bits(128));
    let (topics, _clock) = outbox(telemetry());
    topics.breaker("orders").unwrap().trip();
    let (channels, _clock) = consecutive(telemetry());
    channels.breaker("sms").unwrap().trip();
    assert_eq!(
        pipeline.values(OUTBOX),
        expected([("circuit_breaker.topic=orders", 1.0)])
    );
    assert_eq!(
        pipeline.values(OTHERS),
        expected([("circuit_breaker.topic=sms", 1.0)])
    );
}

#[test]
fn a_namespace_of_the_users_own_has_a_counter_of_its_own() {
    let pipeline = Pipeline::with(|tracers, meters| {
        let counter = TripCounter::builder()
            .meter_provider(meters.clone())
            .namespace("shop")
            .build();
        tracers
            .with_resource(Resource::builder_empty().build())
            .with_span_processor(counter)
    });
    let (own, _clock) = consecutive(spans_only(&pipeline).namespace("shop"));
    own.breaker("sms").unwrap().trip();
    let (shipped, _clock) = consecutive(spans_only(&pipeline));
    shipped.breaker("sms").unwrap().trip();
    assert_eq!(
        pipeline.values("shop.circuit_breaker.trips"),
        expected([("circuit_breaker.topic=sms shop.operation=trip", 1.0)])
    );
    assert_eq!(
        pipeline.values(OTHERS),
        expected([("circuit_breaker.topic=sms tripwit.operation=trip", 1.0)])
    );
}
