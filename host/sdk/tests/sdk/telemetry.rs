//! Log lines, spans and moves: what is in them, in which context, in which order.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use opentelemetry::trace::{SpanKind, Status, TraceContextExt, Tracer, TracerProvider};
use opentelemetry::{Context, global};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use tracing::field::{Field, Visit};
use tracing_subscriber::layer::{Context as LayerContext, Layer, SubscriberExt};
use tripwit::{Clock, Instrumentation, Mode, Operation};

use crate::support::{circuits, moves, touchy, touchy_circuits};

/// An event, as a log would write it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Line {
    pub(crate) level: String,
    pub(crate) target: String,
    pub(crate) within: Option<String>,
    pub(crate) fields: BTreeMap<String, String>,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.fields.insert(field.name().into(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.insert(field.name().into(), value.into());
    }
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<Line>>>);

impl<S> Layer<S> for Log
where
    S: tracing::Subscriber + for<'a> tracing_subscriber::registry::LookupSpan<'a>,
{
    fn on_event(&self, event: &tracing::Event<'_>, cx: LayerContext<'_, S>) {
        let metadata = event.metadata();
        let mut line = Line {
            level: metadata.level().to_string(),
            target: metadata.target().into(),
            within: cx.lookup_current().map(|span| span.name().into()),
            ..Line::default()
        };
        event.record(&mut line);
        self.0.lock().unwrap().push(line);
    }
}

pub(crate) fn logged(work: impl FnOnce()) -> Vec<Line> {
    let log = Log::default();
    tracing::subscriber::with_default(tracing_subscriber::registry().with(log.clone()), work);
    let lines = log.0.lock().unwrap();
    lines.clone()
}

#[test]
fn each_move_is_one_log_line_with_fields_in_the_callers_span() {
    let (breakers, clock) = touchy_circuits();
    let breaker = breakers.breaker("sms").unwrap();
    let lines = logged(|| {
        tracing::info_span!("delivery").in_scope(|| breaker.trip());
        clock.advance(Duration::from_secs(5));
        breaker.acquire().unwrap().success();
        breaker.set_mode(Mode::Shadow);
    });
    let told: Vec<_> = lines
        .iter()
        .map(|line| (&*line.level, &*line.fields["message"]))
        .collect();
    assert_eq!(
        told,
        [
            (
                "WARN",
                "Circuit breaker tripped for topic sms; rejecting calls for 5s"
            ),
            ("DEBUG", "Circuit breaker half-open for topic sms; probing"),
            ("INFO", "Circuit breaker reset for topic sms; calls admitted"),
            ("INFO", "Circuit breaker mode of topic sms set to shadow"),
        ]
    );
    assert!(
        lines
            .iter()
            .all(|line| line.target == "tripwit" && line.fields["topic"] == "sms")
    );
    let within: Vec<_> = lines.iter().map(|line| line.within.as_deref()).collect();
    assert_eq!(within, [Some("delivery"), None, None, None]);
}

#[test]
fn the_outbox_policy_tells_how_many_cycles() {
    let policy = tripwit::Policy::outbox().unwrap();
    let breaker = tripwit::Breakers::new(policy).unwrap().breaker("orders").unwrap();
    let lines = logged(|| {
        breaker.trip();
    });
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0].fields["cooldown_count"], "10");
    assert_eq!(
        lines[0].fields["message"],
        "Circuit breaker tripped for topic orders; suppressing publish for 10 cooldown cycle(s)"
    );
}

/// Where the spans of this process go. The keys of each test are its own.
fn exporter() -> (InMemorySpanExporter, SdkTracerProvider) {
    static EXPORTER: LazyLock<(InMemorySpanExporter, SdkTracerProvider)> = LazyLock::new(|| {
        let exporter = InMemorySpanExporter::default();
        let provider = SdkTracerProvider::builder()
            .with_simple_exporter(exporter.clone())
            .build();
        global::set_tracer_provider(provider.clone());
        (exporter, provider)
    });
    EXPORTER.clone()
}

/// The finished spans of one circuit.
fn spans_of(key: &str) -> Vec<SpanData> {
    let mut spans = exporter().0.get_finished_spans().unwrap();
    spans.retain(|span| {
        span.name
            .strip_prefix(key)
            .is_some_and(|rest| rest.starts_with(' '))
    });
    spans
}

#[test]
fn each_move_is_one_span_with_attributes() {
    exporter();
    let (breakers, clock) = touchy_circuits();
    let breaker = breakers.breaker("attributes").unwrap();
    breaker.trip();
    breaker.reset();
    let spans = spans_of("attributes");
    assert_eq!(
        spans.iter().map(|span| &*span.name).collect::<Vec<_>>(),
        ["attributes trip", "attributes reset"]
    );
    for (span, operation) in spans.iter().zip(["trip", "reset"]) {
        assert_eq!(
            (&span.span_kind, &span.status),
            (&SpanKind::Internal, &Status::Ok)
        );
        assert_eq!((span.start_time, span.end_time), (clock.wall(), clock.wall()));
        assert_eq!(span.instrumentation_scope.name(), "tripwit");
        assert_eq!(
            span.instrumentation_scope.version(),
            Some(env!("CARGO_PKG_VERSION"))
        );
        let attributes: BTreeMap<_, _> = span
            .attributes
            .iter()
            .map(|it| (it.key.as_str(), it.value.to_string()))
            .collect();
        let expected = [
            ("circuit_breaker.topic", "attributes"),
            ("instrumentation.domain", "circuit_breaker"),
            ("tripwit.operation", operation),
        ];
        assert_eq!(
            attributes,
            expected.map(|(name, value)| (name, value.to_owned())).into()
        );
    }
}

#[test]
fn a_span_has_the_callers_span_for_its_parent() {
    let (_, provider) = exporter();
    let (breakers, _clock) = touchy_circuits();
    let breaker = breakers.breaker("parents").unwrap();
    let context = Context::current_with_span(provider.tracer("test").start("delivery"));
    let parent = context.span().span_context().clone();
    {
        let _current = context.attach();
        breaker.trip();
        assert_eq!(
            Context::current().span().span_context(),
            &parent,
            "the caller's context is as it was"
        );
    }
    breaker.reset();
    let spans = spans_of("parents");
    assert_eq!(spans[0].parent_span_id, parent.span_id());
    assert_eq!(spans[0].span_context.trace_id(), parent.trace_id());
    assert_ne!(spans[1].span_context.trace_id(), parent.trace_id());
}

#[test]
fn spans_carry_no_more_than_they_are_told_to() {
    exporter();
    let (builder, _clock) = circuits(touchy());
    let plain = builder.instrumentation(Instrumentation::NONE).build().unwrap();
    plain.breaker("bare").unwrap().trip();
    assert!(spans_of("bare")[0].attributes.is_empty());
    let (builder, _clock) = circuits(touchy());
    let named = builder.namespace("shop").build().unwrap();
    named.breaker("named").unwrap().trip();
    assert!(
        spans_of("named")[0]
            .attributes
            .iter()
            .any(|it| it.key.as_str() == "shop.operation")
    );
}

#[test]
fn the_outbox_policy_has_a_scope_and_a_namespace_of_its_own() {
    exporter();
    let breakers = tripwit::Breakers::new(tripwit::Policy::outbox().unwrap()).unwrap();
    breakers.breaker("scoped").unwrap().trip();
    let span = &spans_of("scoped")[0];
    assert_eq!(span.instrumentation_scope.name(), "Paramore.Brighter");
    assert!(
        span.attributes
            .iter()
            .any(|it| it.key.as_str() == "paramore.brighter.operation")
    );
}

#[test]
fn moves_of_many_threads_are_told_in_order_and_none_is_lost() {
    let (breakers, _clock) = touchy_circuits();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let list = heard.clone();
    let _subscription = breakers.subscribe(move |event| list.lock().unwrap().push(event.clone()));
    std::thread::scope(|threads| {
        for number in 0..4 {
            let breaker = breakers.breaker(&format!("key {number}")).unwrap();
            threads.spawn(move || {
                for _ in 0..300 {
                    breaker.trip();
                    breaker.reset();
                }
            });
        }
    });
    let heard = heard.lock().unwrap();
    assert_eq!(heard.len(), 4 * 600);
    for number in 0..4 {
        let key = format!("key {number}");
        let own: Vec<_> = heard
            .iter()
            .filter(|event| *event.key == *key)
            .map(|it| &it.transition)
            .collect();
        assert!(
            own.windows(2).all(|pair| pair[0].after == pair[1].before),
            "{own:?}"
        );
    }
}

#[test]
fn a_trip_by_a_permit_that_a_panic_drops_is_told_by_the_next_rejection() {
    let (breakers, _clock) = touchy_circuits();
    let breaker = breakers.breaker("sms").unwrap();
    let (heard, _subscription) = moves(&breakers);
    for _ in 0..2 {
        let dropped = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _permit = breaker.acquire().unwrap();
            panic!("no answer");
        }));
        assert!(dropped.is_err());
    }
    assert!(
        heard.lock().unwrap().is_empty(),
        "a thread that unwinds tells nobody"
    );
    breaker.acquire().unwrap_err();
    assert_eq!(*heard.lock().unwrap(), [Operation::Trip]);
}

#[test]
fn a_subscriber_that_blocks_keeps_nobody_from_calling() {
    let (breakers, _clock) = touchy_circuits();
    let (entered, has_entered) = std::sync::mpsc::channel();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let released = Mutex::new(released);
    let _subscription = breakers.subscribe(move |event| {
        if &*event.key == "slow" {
            entered.send(()).unwrap();
            released.lock().unwrap().recv().unwrap();
        }
    });
    std::thread::scope(|threads| {
        threads.spawn(|| breakers.breaker("slow").unwrap().trip());
        has_entered.recv().unwrap();
        let other = breakers.breaker("other").unwrap();
        other.trip();
        assert!(other.acquire().is_err());
        release.send(()).unwrap();
    });
}
