//! Log lines, spans and moves: what is in them, in which context, in which order.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use opentelemetry::trace::{SpanKind, Status, TraceContextExt, Tracer, TracerProvider};
use opentelemetry::{Context, global};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider};
use tracing::field::{Field, Visit};
use tracing_subscriber::layer::{Context as LayerContext, Layer, SubscriberExt};
use tripwit::{Clock, Instrumentation, Mode};

use crate::support::{circuits, touchy, touchy_circuits};

/// An event, as a log would write it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Line {
    pub level: String,
    pub target: String,
    pub within: Option<String>,
    pub fields: BTreeMap<String, String>,
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

pub fn logged(work: impl FnOnce()) -> Vec<Line> {
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

/// One test for all of spans, since the tracer provider is one for the process.
#[test]
fn each_move_is_one_span_under_the_callers_context() {
    let exporter = InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder()
        .with_simple_exporter(exporter.clone())
        .build();
    global::set_tracer_provider(provider.clone());

    let (builder, clock) = circuits(touchy());
    let breaker = builder.build().unwrap().breaker("sms").unwrap();
    let parent = provider.tracer("test").start("delivery");
    let context = Context::current_with_span(parent);
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

    let spans: Vec<_> = exporter
        .get_finished_spans()
        .unwrap()
        .into_iter()
        .filter(|span| span.name.starts_with("sms "))
        .collect();
    assert_eq!(
        spans.iter().map(|span| &*span.name).collect::<Vec<_>>(),
        ["sms trip", "sms reset"]
    );
    for span in &spans {
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
        let attribute = |name: &str| {
            span.attributes
                .iter()
                .find(|it| it.key.as_str() == name)
                .map(|it| it.value.to_string())
        };
        assert_eq!(
            attribute("instrumentation.domain").as_deref(),
            Some("circuit_breaker")
        );
        assert_eq!(attribute("circuit_breaker.topic").as_deref(), Some("sms"));
        assert!(attribute("tripwit.operation").is_some());
    }
    assert_eq!(spans[0].parent_span_id, parent.span_id());
    assert_eq!(spans[0].span_context.trace_id(), parent.trace_id());
    assert_ne!(spans[1].span_context.trace_id(), parent.trace_id());

    exporter.reset();
    let (builder, _clock) = circuits(touchy());
    let plain = builder
        .instrumentation(Instrumentation::NONE)
        .namespace("shop")
        .build()
        .unwrap();
    plain.breaker("bare").unwrap().trip();
    let spans = exporter.get_finished_spans().unwrap();
    let bare = spans.iter().find(|span| span.name == "bare trip").unwrap();
    assert!(bare.attributes.is_empty());
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
