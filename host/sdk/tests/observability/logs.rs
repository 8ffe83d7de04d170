//! Each log line with its level and fields.

use opentelemetry::Context;
use opentelemetry::logs::{AnyValue, Severity};
use opentelemetry::trace::{TraceContextExt, Tracer, TracerProvider};
use opentelemetry_appender_tracing::layer::OpenTelemetryTracingBridge;
use opentelemetry_sdk::logs::{InMemoryLogExporter, SdkLoggerProvider};
use tracing::Level;
use tracing_subscriber::layer::SubscriberExt;
use tripwit::{Mode, Telemetry};

use crate::support::{Log, Pipeline, WAIT, consecutive, line, outbox, refused};

#[test]
fn the_lines_of_outbox_are_those_of_the_first_seed() {
    let (breakers, _clock) = outbox(Telemetry::default());
    let orders = breakers.breaker("orders").unwrap();
    let log = Log::from(Level::DEBUG);
    log.during(|| {
        orders.call_blocking(refused).unwrap_err();
        orders.trip();
        (0..11).for_each(|_| drop(breakers.cool_down()));
    });
    assert_eq!(
        log.lines(),
        [
            line(
                "WARN",
                "Circuit breaker tripped for topic orders; suppressing publish for 10 cooldown cycle(s)",
                &[("cooldown_count", &10), ("topic", &"orders")]
            ),
            line(
                "DEBUG",
                "Circuit breaker re-tripped for topic orders; cooldown extended to 10 cycle(s)",
                &[("cooldown_count", &10), ("topic", &"orders")]
            ),
            line(
                "INFO",
                "Circuit breaker reset for topic orders; publish suppression lifted",
                &[("topic", &"orders")]
            ),
        ]
    );
}

#[test]
fn the_lines_of_policies_with_a_clock_name_the_wait() {
    let (breakers, clock) = consecutive(Telemetry::default());
    let sms = breakers.breaker("sms").unwrap();
    let log = Log::from(Level::DEBUG);
    log.during(|| {
        (0..2).for_each(|_| drop(sms.call_blocking(refused).unwrap_err()));
        clock.advance(WAIT);
        sms.call_blocking(refused).unwrap_err();
        sms.reset();
        sms.set_mode(Mode::ForcedOpen);
    });
    assert_eq!(
        log.lines(),
        [
            line(
                "WARN",
                "Circuit breaker tripped for topic sms; rejecting calls for 5s",
                &[("topic", &"sms"), ("wait", &"5s")]
            ),
            line(
                "DEBUG",
                "Circuit breaker half-open for topic sms; probing",
                &[("topic", &"sms")]
            ),
            line(
                "DEBUG",
                "Circuit breaker re-tripped for topic sms; rejecting calls for 5s",
                &[("topic", &"sms"), ("wait", &"5s")]
            ),
            line(
                "INFO",
                "Circuit breaker reset for topic sms; calls admitted",
                &[("topic", &"sms")]
            ),
            line(
                "INFO",
                "Circuit breaker mode of topic sms set to forced-open",
                &[("mode", &"forced-open"), ("topic", &"sms")]
            ),
        ]
    );
}

#[test]
fn a_line_becomes_an_opentelemetry_record_in_the_trace_of_the_call() {
    let pipeline = Pipeline::new();
    let (breakers, _clock) = outbox(pipeline.telemetry());
    let orders = breakers.breaker("orders").unwrap();
    let records = InMemoryLogExporter::default();
    let logger = SdkLoggerProvider::builder()
        .with_simple_exporter(records.clone())
        .build();
    let bridge = OpenTelemetryTracingBridge::new(&logger);
    let context = Context::current_with_span(pipeline.tracers.tracer("test").start("publish"));
    let publish = context.span().span_context().clone();
    tracing::subscriber::with_default(tracing_subscriber::registry().with(bridge), || {
        let _current = context.attach();
        orders.trip();
    });
    let records = records.get_emitted_logs().unwrap();
    assert_eq!(records.len(), 1);
    let record = &records[0].record;
    assert_eq!(record.severity_number(), Some(Severity::Warn));
    assert_eq!(record.target().map(AsRef::as_ref), Some("tripwit"));
    let message = "Circuit breaker tripped for topic orders; suppressing publish for 10 cooldown cycle(s)";
    assert_eq!(record.body(), Some(&AnyValue::from(message)));
    let attribute = |name: &str| {
        let found = record.attributes_iter().find(|(key, _)| key.as_str() == name);
        found.map(|(_, value)| value.clone())
    };
    assert_eq!(attribute("topic"), Some(AnyValue::from("orders")));
    assert_eq!(attribute("cooldown_count"), Some(AnyValue::Int(10)));
    let trace = record.trace_context().unwrap();
    assert_eq!(
        (trace.trace_id, trace.span_id),
        (publish.trace_id(), publish.span_id())
    );
}
