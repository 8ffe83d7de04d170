//! Catches the host's log lines, which are `tracing` events, and its spans, which go to OpenTelemetry's global tracer.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::LazyLock;

use anyhow::{Result, bail, ensure};
use opentelemetry::trace::{SpanId, SpanKind, Status};
use opentelemetry::{Value as OtelValue, global};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

use super::words::point;
use crate::told::{Line, Span, Told, fields};

/// Catches what is told from when it is made.
pub(super) struct Capture {
    dispatch: tracing::Dispatch,
    lines: Arc<Mutex<Vec<Line>>>,
    /// That every span must have.
    scope: String,
}

/// The exporter of the provider that is global from its first use on.
static EXPORTER: LazyLock<InMemorySpanExporter> = LazyLock::new(|| {
    let exporter = InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder()
        .with_simple_exporter(exporter.clone())
        .build();
    global::set_tracer_provider(provider);
    exporter
});

impl Capture {
    pub(super) fn start(scope: String) -> Self {
        EXPORTER.reset();
        let lines = Arc::default();
        let layer = Lines(Arc::clone(&lines));
        Self {
            dispatch: tracing_subscriber::registry().with(layer).into(),
            lines,
            scope,
        }
    }

    /// Says of which scope spans must be from now on.
    pub(super) fn expect_scope(&mut self, scope: String) {
        self.scope = scope;
    }

    /// Takes the one line that the host has written in its own name, and nothing else.
    pub(super) fn take_announcement(&self) -> Result<Line> {
        let mut lines = std::mem::take(&mut *self.lines.lock());
        match (lines.pop(), lines.is_empty()) {
            (Some(line), true) => Ok(line),
            (last, _) => bail!("one line must be written, and not {lines:?} and {last:?}"),
        }
    }

    /// Catches the lines of this thread for as long as the guard lives.
    pub(super) fn log(&self) -> DefaultGuard {
        tracing::dispatcher::set_default(&self.dispatch)
    }

    pub(super) fn take(&self) -> Result<Told> {
        let spans = EXPORTER.get_finished_spans()?;
        EXPORTER.reset();
        Ok(Told {
            log: std::mem::take(&mut *self.lines.lock()),
            spans: spans
                .into_iter()
                .map(|span| self.span(span))
                .collect::<Result<_>>()?,
        })
    }

    fn span(&self, span: SpanData) -> Result<Span> {
        ensure!(
            span.span_kind == SpanKind::Internal && span.status == Status::Ok,
            "{} is of kind {:?} and status {:?}",
            span.name,
            span.span_kind,
            span.status
        );
        let scope = span.instrumentation_scope.name();
        ensure!(scope == self.scope, "{} is of scope {scope:?}", span.name);
        ensure!(
            span.parent_span_id == SpanId::INVALID && span.events.is_empty() && span.links.is_empty(),
            "{} has a parent, events or links",
            span.name
        );
        let attributes = span
            .attributes
            .into_iter()
            .map(|it| (it.key.to_string(), value(it.value)));
        let (start, end) = (point(span.start_time), point(span.end_time));
        let at = if start == end {
            start
        } else {
            format!("{start} to {end}")
        };
        Ok(Span {
            name: span.name.into_owned(),
            at,
            attributes: fields(attributes),
        })
    }
}

fn value(from: OtelValue) -> Value {
    if let OtelValue::I64(number) = from {
        number.into()
    } else if let OtelValue::Bool(yes) = from {
        yes.into()
    } else {
        from.as_str().into()
    }
}

/// A layer that keeps the events of target `tripwit`.
struct Lines(Arc<Mutex<Vec<Line>>>);

impl<S: tracing::Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() != "tripwit" {
            return;
        }
        let mut parts = Parts::default();
        event.record(&mut parts);
        let level = event.metadata().level().as_str();
        self.0.lock().push(Line::new(level, &parts.message, parts.fields));
    }
}

#[derive(Default)]
struct Parts {
    message: String,
    fields: Map<String, Value>,
}

impl Parts {
    fn set(&mut self, field: &Field, value: Value) {
        self.fields.insert(field.name().to_owned(), value);
    }
}

impl Visit for Parts {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let text = format!("{value:?}");
        if field.name() == "message" {
            self.message = text;
        } else {
            self.set(field, text.into());
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field, value.into());
    }
}
