//! Each span with its attributes, its parent, and what the options make of it.

use opentelemetry::Context;
use opentelemetry::trace::{SpanKind, Status, TraceContextExt, Tracer, TracerProvider};
use opentelemetry_sdk::trace::SpanData;
use tripwit::{Clock, Instrumentation, Telemetry};

use crate::support::{Pipeline, WAIT, consecutive, outbox, refused, written};

/// Name and attributes of each.
fn told(spans: &[SpanData]) -> Vec<(String, String)> {
    spans
        .iter()
        .map(|span| (span.name.to_string(), written(&span.attributes)))
        .collect()
}

fn pair(name: &str, attributes: &str) -> (String, String) {
    (name.into(), attributes.into())
}

#[test]
fn the_spans_of_outbox_are_those_of_the_first_seed() {
    let pipeline = Pipeline::new();
    let (breakers, clock) = outbox(pipeline.telemetry());
    let orders = breakers.breaker("orders").unwrap();
    orders.call_blocking(refused).unwrap_err();
    orders.trip();
    (0..11).for_each(|_| drop(breakers.cool_down()));
    let spans = pipeline.spans.get_finished_spans().unwrap();
    assert_eq!(
        told(&spans),
        [
            pair(
                "orders trip",
                "circuit_breaker.cooldown_count=10 circuit_breaker.topic=orders \
                 instrumentation.domain=circuit_breaker paramore.brighter.operation=trip"
            ),
            pair(
                "orders re_trip",
                "circuit_breaker.cooldown_count=10 circuit_breaker.topic=orders \
                 instrumentation.domain=circuit_breaker paramore.brighter.operation=re_trip"
            ),
            pair(
                "orders reset",
                "circuit_breaker.cooldown_count=0 circuit_breaker.topic=orders \
                 instrumentation.domain=circuit_breaker paramore.brighter.operation=reset"
            ),
        ]
    );
    for span in &spans {
        assert_eq!(
            (&span.span_kind, &span.status),
            (&SpanKind::Internal, &Status::Ok)
        );
        assert_eq!((span.start_time, span.end_time), (clock.wall(), clock.wall()));
        let scope = &span.instrumentation_scope;
        assert_eq!(
            (scope.name(), scope.version()),
            ("Paramore.Brighter", Some(env!("CARGO_PKG_VERSION")))
        );
    }
}

#[test]
fn the_spans_of_other_policies_have_their_own_namespace_and_scope() {
    let pipeline = Pipeline::new();
    let (breakers, clock) = consecutive(pipeline.telemetry());
    let sms = breakers.breaker("sms").unwrap();
    sms.trip();
    clock.advance(WAIT);
    sms.call_blocking(refused).unwrap_err();
    let attributes = |operation| {
        format!(
            "circuit_breaker.topic=sms instrumentation.domain=circuit_breaker tripwit.operation={operation}"
        )
    };
    let spans = pipeline.spans.get_finished_spans().unwrap();
    assert_eq!(
        told(&spans),
        [
            pair("sms trip", &attributes("trip")),
            pair("sms half_open", &attributes("half_open")),
            pair("sms re_trip", &attributes("re_trip")),
        ]
    );
    assert!(
        spans
            .iter()
            .all(|span| span.instrumentation_scope.name() == "tripwit")
    );
}

#[test]
fn each_option_chooses_its_attributes() {
    let domain = "instrumentation.domain=circuit_breaker";
    let detail = "circuit_breaker.cooldown_count=10 circuit_breaker.topic=orders";
    let operation = "paramore.brighter.operation=trip";
    let cases = [
        (0, String::new()),
        (1, format!("{domain} {operation}")),
        (2, domain.to_owned()),
        (64, domain.to_owned()),
        (128, format!("{detail} {domain}")),
        (1 << 20, domain.to_owned()),
        (255, format!("{detail} {domain} {operation}")),
    ];
    for (bits, attributes) in cases {
        let pipeline = Pipeline::new();
        let (breakers, _clock) = outbox(
            pipeline
                .telemetry()
                .instrumentation(Instrumentation::from_bits(bits)),
        );
        breakers.breaker("orders").unwrap().trip();
        let spans = pipeline.spans.get_finished_spans().unwrap();
        assert_eq!(told(&spans), [pair("orders trip", &attributes)], "options {bits}");
    }
}

#[test]
fn a_namespace_of_the_users_own_is_in_the_attributes() {
    let pipeline = Pipeline::new();
    let (breakers, _clock) = consecutive(pipeline.telemetry().namespace("shop"));
    breakers.breaker("sms").unwrap().trip();
    let spans = pipeline.spans.get_finished_spans().unwrap();
    assert!(written(&spans[0].attributes).ends_with("shop.operation=trip"));
}

#[test]
fn a_namespace_that_names_no_instrument_is_refused() {
    let builder = tripwit::Breakers::builder(tripwit::Policy::outbox().unwrap());
    let error = builder
        .telemetry(Telemetry::default().namespace("two words"))
        .build()
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "namespace \"two words\": it may have ASCII letters, digits, `_`, `.`, `-` and `/` only"
    );
}

#[test]
fn a_span_is_the_child_of_the_one_that_is_current_where_the_call_is_made() {
    let pipeline = Pipeline::new();
    let (breakers, _clock) = consecutive(pipeline.telemetry());
    let sms = breakers.breaker("sms").unwrap();
    let parent = pipeline.tracers.tracer("test").start("delivery");
    let context = Context::current_with_span(parent);
    let parent = context.span().span_context().clone();
    {
        let _current = context.attach();
        (0..2).for_each(|_| drop(sms.call_blocking(refused).unwrap_err()));
        assert_eq!(
            Context::current().span().span_context(),
            &parent,
            "the caller's own is as it was"
        );
    }
    assert!(!Context::current().has_active_span());
    sms.reset();
    assert!(!Context::current().has_active_span());
    let mut spans = pipeline.spans.get_finished_spans().unwrap();
    spans.retain(|span| span.name != "delivery");
    assert_eq!(
        (spans[0].span_context.trace_id(), spans[0].parent_span_id),
        (parent.trace_id(), parent.span_id())
    );
    assert_eq!(spans[1].parent_span_id, opentelemetry::trace::SpanId::INVALID);
    assert_ne!(spans[1].span_context.trace_id(), parent.trace_id());
}
