//! Turns queue entries into `tracing` events, OpenTelemetry spans and calls of subscribers.

use std::fmt;

use opentelemetry::trace::{Span as _, SpanBuilder, SpanKind, Status, Tracer as _};
use opentelemetry::{KeyValue, Value};

use crate::bindings::tripwit::breaker::log::Level;
use crate::clock::system_time;
use crate::env::Env;
use crate::regime::Regime;
use crate::status::FieldValue;
use crate::telemetry::{Entry, Line, Span, Told, What};

/// Gives out one entry, in the context that its crossing was made in.
pub(crate) fn emit(env: &Env, entry: Entry) {
    let Entry {
        what,
        regime,
        context,
        caller,
    } = entry;
    match what {
        What::Told(Told::Span(span)) => export(&regime, span, &context),
        What::Told(Told::Log(line)) => {
            let _current = context.attach();
            caller.in_scope(|| write(&line));
        }
        What::Moved(event) => {
            env.connect();
            env.subscribers.tell(&event);
        }
        What::Fault { key, fault } => {
            let _current = context.attach();
            caller.in_scope(|| {
                tracing::error!(
                    target: "tripwit",
                    topic = key.as_deref(),
                    policy = regime.policy.description().name,
                    call = fault.call,
                    problem = fault.problem,
                    "The breaker component failed; calls go on as `on_fault` says until it is restored"
                );
            });
        }
        What::Overflow => tracing::warn!(
            target: "tripwit",
            "More log lines, spans and moves than can be queued; some are dropped"
        ),
    }
}

fn export(regime: &Regime, span: Span, parent: &opentelemetry::Context) {
    let attributes = span
        .attributes
        .into_iter()
        .map(|(name, value)| KeyValue::new(name, to_otel(value)));
    let builder = SpanBuilder::from_name(span.name)
        .with_kind(SpanKind::Internal)
        .with_start_time(system_time(span.start))
        // Samplers see what a span has when it starts, and nothing else.
        .with_attributes(attributes);
    let mut exported = regime
        .tracers
        .with(|tracer| tracer.build_with_context(builder, parent));
    exported.set_status(Status::Ok);
    exported.end_with_timestamp(system_time(span.end));
}

fn to_otel(value: FieldValue) -> Value {
    match value {
        FieldValue::Text(text) => text.into(),
        FieldValue::Integer(number) => number.into(),
        FieldValue::Number(number) => number.into(),
        FieldValue::Boolean(yes) => yes.into(),
    }
}

/// Writes one event. Its message is the component's; the fields that policies commonly have keep their names, since
/// `tracing` knows field names at compile time only, and the rest come as one text.
fn write(line: &Line) {
    let text = |name: &str| {
        line.fields
            .iter()
            .find(|field| field.0 == name)
            .map(|field| field.1.to_string())
    };
    let topic = text("topic");
    let wait = text("wait");
    let mode = text("mode");
    let cooldown_count = line.fields.iter().find_map(|field| match field {
        (name, FieldValue::Integer(number)) if name == "cooldown_count" => Some(*number),
        _ => None,
    });
    let others = Others(line);
    let fields = others.any().then(|| tracing::field::display(others));
    macro_rules! event {
        ($level:ident) => {
            tracing::event!(
                target: "tripwit",
                tracing::Level::$level,
                topic = topic.as_deref(),
                cooldown_count,
                wait = wait.as_deref(),
                mode = mode.as_deref(),
                fields,
                "{}",
                line.message
            )
        };
    }
    match line.level {
        Level::Trace => event!(TRACE),
        Level::Debug => event!(DEBUG),
        Level::Info => event!(INFO),
        Level::Warn => event!(WARN),
        Level::Error | Level::Critical => event!(ERROR),
    }
}

/// The fields of a line that have no name of their own in `tracing`.
#[derive(Clone, Copy)]
struct Others<'a>(&'a Line);

impl<'a> Others<'a> {
    fn iter(self) -> impl Iterator<Item = &'a (String, FieldValue)> {
        self.0.fields.iter().filter(|(name, value)| match name.as_str() {
            "topic" | "wait" | "mode" => false,
            "cooldown_count" => !matches!(value, FieldValue::Integer(_)),
            _ => true,
        })
    }

    fn any(self) -> bool {
        self.iter().next().is_some()
    }
}

impl fmt::Display for Others<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, value)) in self.iter().enumerate() {
            let space = if index == 0 { "" } else { " " };
            write!(f, "{space}{name}={value}")?;
        }
        Ok(())
    }
}
