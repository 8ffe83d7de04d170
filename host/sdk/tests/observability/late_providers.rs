//! Global providers that are set after the first call. One test, since they are those of the whole process.

use opentelemetry::global;
use opentelemetry_sdk::Resource;
use tripwit::Telemetry;
use tripwit::otel::TripCounter;

use crate::support::{Pipeline, consecutive, expected, fine};

#[test]
fn providers_that_are_set_after_the_first_call_are_found() {
    let (breakers, _clock) = consecutive(Telemetry::default());
    let sms = breakers.breaker("sms").unwrap();
    sms.call_blocking(fine).unwrap();
    sms.trip();
    sms.reset();

    let pipeline = Pipeline::with(|tracers, _| {
        tracers
            .with_resource(Resource::builder_empty().build())
            .with_span_processor(TripCounter::builder().build())
    });
    global::set_tracer_provider(pipeline.tracers.clone());
    sms.trip();
    let spans = pipeline.spans.get_finished_spans().unwrap();
    assert_eq!(spans.len(), 1);
    assert_eq!(spans[0].name, "sms trip");
    assert!(pipeline.metrics().is_empty(), "no meters yet");

    global::set_meter_provider(pipeline.meters.clone());
    sms.reset();
    sms.call_blocking(fine).unwrap();
    assert_eq!(
        pipeline.values("tripwit.circuit_breaker.trips"),
        expected([("circuit_breaker.topic=sms tripwit.operation=reset", 1.0)])
    );
    let metrics = pipeline.metrics();
    assert_eq!(metrics.len(), 9, "each instrument that has a value: {metrics:?}");
    let calls = &metrics["tripwit.circuit_breaker.calls"].values;
    assert_eq!(
        calls["circuit_breaker.outcome=success"], 1.0,
        "counted since there is someone to ask"
    );
    let circuits = &metrics["tripwit.circuit_breaker.circuits"].values;
    assert_eq!(circuits["circuit_breaker.state=closed"], 1.0);
}
