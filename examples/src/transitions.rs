//! Prints each transition of a circuit as it happens, together with its log line and its span.
//!
//! The three come by three ways: the typed event by a subscription, the log line by `tracing`, the span by OpenTelemetry.
//! They are matched by key here, and a transition is printed as soon as all three are there, so a run that ends with one
//! of them missing shows that something was not told.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SdkTracerProvider, Span, SpanData, SpanProcessor};
use parking_lot::Mutex;
use tokio::time::Instant;
use tracing::field::{Field, Visit};
use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::layer::{self, SubscriberExt as _};
use tripwit::{Breakers, Event, State, Subscription};

use crate::terminal::{self, BAD, FAINT, GOOD, NOTICE, STRONG};

/// The target of every log line of a breaker.
const LOG_TARGET: &str = "tripwit";
/// The log field that names the circuit.
const LOG_KEY: &str = "topic";
/// The span attribute that names the circuit.
const SPAN_KEY: &str = "circuit_breaker.topic";

/// Where the transitions of this process are printed.
#[derive(Debug)]
pub struct Transitions {
    told: Arc<Told>,
    subscriptions: Mutex<Vec<Subscription>>,
}

impl Transitions {
    /// Makes this the process's subscriber of log lines and its processor of spans. Times are counted from now on.
    ///
    /// Call it once, before the first call goes through a breaker.
    ///
    /// # Errors
    ///
    /// When the process has a `tracing` subscriber already.
    pub fn install() -> anyhow::Result<Self> {
        let told = Arc::new(Told {
            started: Instant::now(),
            parts: Mutex::default(),
        });
        let subscriber = tracing_subscriber::registry().with(LogLines(Arc::clone(&told)));
        tracing::subscriber::set_global_default(subscriber).context("this process logs elsewhere already")?;
        let provider = SdkTracerProvider::builder()
            .with_span_processor(Spans(Arc::clone(&told)))
            .build();
        opentelemetry::global::set_tracer_provider(provider);
        Ok(Self {
            told,
            subscriptions: Mutex::default(),
        })
    }

    /// Prints what the circuits of `breakers` do from now on, until `self` is dropped.
    pub fn follow(&self, breakers: &Breakers) {
        let told = Arc::clone(&self.told);
        let subscription = breakers.subscribe(move |event| told.tell_transition(event));
        self.subscriptions.lock().push(subscription);
    }

    /// Prints a line of the program's own among the transitions, with the time before it.
    pub fn note(&self, text: &str) {
        terminal::say(&format!("{}  {text}", self.told.clock()));
    }

    /// How many transitions were printed.
    #[must_use]
    pub fn printed(&self) -> usize {
        self.told.parts.lock().printed
    }

    /// The circuits of which a transition, a log line or a span came without the other two; empty when all is well.
    #[must_use]
    pub fn incomplete(&self) -> Vec<String> {
        let parts = self.told.parts.lock();
        parts
            .by_key
            .iter()
            .filter(|(_, waiting)| !waiting.is_empty())
            .map(|(key, _)| key.clone())
            .collect()
    }
}

/// What was told so far, by whichever way.
#[derive(Debug)]
struct Told {
    started: Instant,
    parts: Mutex<Parts>,
}

#[derive(Debug, Default)]
struct Parts {
    by_key: BTreeMap<String, Waiting>,
    printed: usize,
}

/// What one circuit has told, in the order it came, and not yet printed.
#[derive(Debug, Default)]
struct Waiting {
    transitions: VecDeque<String>,
    log_lines: VecDeque<String>,
    spans: VecDeque<String>,
}

impl Waiting {
    fn is_empty(&self) -> bool {
        self.transitions.is_empty() && self.log_lines.is_empty() && self.spans.is_empty()
    }

    /// The oldest transition, once its log line and span are there too.
    fn take(&mut self) -> Option<[String; 3]> {
        if self.transitions.is_empty() || self.log_lines.is_empty() || self.spans.is_empty() {
            return None;
        }
        Some([
            self.transitions.pop_front()?,
            self.log_lines.pop_front()?,
            self.spans.pop_front()?,
        ])
    }
}

impl Told {
    fn clock(&self) -> String {
        terminal::paint(FAINT, &format!("{:>8.3}s", self.started.elapsed().as_secs_f64()))
    }

    fn tell_transition(&self, event: &Event) {
        self.tell(&event.key, |waiting| {
            waiting.transitions.push_back(transition_text(event))
        });
    }

    fn tell_log_line(&self, line: &LogLine) {
        match &line.key {
            Some(key) if line.tells_of_a_transition() => {
                self.tell(key, |waiting| waiting.log_lines.push_back(line.to_string()));
            }
            _ => terminal::say(&format!("{}  {line}", self.clock())),
        }
    }

    fn tell_span(&self, span: &SpanData) {
        let key = span
            .attributes
            .iter()
            .find(|attribute| attribute.key.as_str() == SPAN_KEY);
        if let Some(key) = key {
            self.tell(&key.value.as_str(), |waiting| {
                waiting.spans.push_back(span_text(span))
            });
        }
    }

    /// Adds one part, and prints the transition that is whole by it.
    fn tell(&self, key: &str, add: impl FnOnce(&mut Waiting)) {
        let mut parts = self.parts.lock();
        let waiting = parts.by_key.entry(key.to_owned()).or_default();
        add(waiting);
        let Some([transition, log_line, span]) = waiting.take() else {
            return;
        };
        parts.printed += 1;
        // Still under the lock, so that the lines of two circuits do not mix.
        terminal::say(&format!(
            "{}  {transition}\n{INDENT}{log_line}\n{INDENT}{span}",
            self.clock()
        ));
    }
}

/// Below the time.
const INDENT: &str = "             ";

fn transition_text(event: &Event) -> String {
    let transition = &event.transition;
    let mut text = format!(
        "{}  {} -> {}  {} by {}",
        terminal::paint(STRONG, &event.key),
        state_text(transition.before),
        state_text(transition.after),
        transition.operation,
        transition.cause,
    );
    if let Some(wait) = transition.wait {
        text.push_str(&format!(", for {wait:?}"));
    }
    if let Some(cycles) = transition
        .cooldown_count
        .filter(|_| transition.after != State::Closed)
    {
        text.push_str(&format!(", for {cycles} cool-down cycle(s)"));
    }
    text
}

fn state_text(state: State) -> String {
    let style = match state {
        State::Closed => GOOD,
        State::Open => BAD,
        State::HalfOpen => NOTICE,
    };
    terminal::paint(style, &state.to_string())
}

fn span_text(span: &SpanData) -> String {
    let attributes = span
        .attributes
        .iter()
        .map(|attribute| format!("{}={}", attribute.key, attribute.value));
    let attributes: Vec<_> = attributes.collect();
    let attributes = terminal::paint(FAINT, &attributes.join(" "));
    format!(
        "span  {} [{}]  {attributes}",
        span.name,
        span.instrumentation_scope.name()
    )
}

/// A span processor that hands on what ends.
#[derive(Debug)]
struct Spans(Arc<Told>);

impl SpanProcessor for Spans {
    fn on_start(&self, _span: &mut Span, _context: &opentelemetry::Context) {}

    fn on_end(&self, span: SpanData) {
        self.0.tell_span(&span);
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _timeout: Duration) -> OTelSdkResult {
        Ok(())
    }
}

/// A `tracing` layer that hears the breakers and nobody else.
#[derive(Debug)]
struct LogLines(Arc<Told>);

impl<S: Subscriber> layer::Layer<S> for LogLines {
    fn enabled(&self, metadata: &Metadata<'_>, _context: layer::Context<'_, S>) -> bool {
        metadata.target() == LOG_TARGET
    }

    fn on_event(&self, event: &tracing::Event<'_>, _context: layer::Context<'_, S>) {
        let level = *event.metadata().level();
        let mut line = LogLine {
            level,
            message: String::new(),
            key: None,
            fields: Vec::new(),
        };
        event.record(&mut line);
        self.0.tell_log_line(&line);
    }
}

/// One log line with its fields.
#[derive(Debug)]
struct LogLine {
    level: Level,
    message: String,
    key: Option<String>,
    fields: Vec<String>,
}

impl LogLine {
    /// Neither a change of mode nor a fault of the component.
    fn tells_of_a_transition(&self) -> bool {
        self.level != Level::ERROR && !self.fields.iter().any(|field| field.starts_with("mode="))
    }
}

impl Visit for LogLine {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => value.clone_into(&mut self.message),
            name => {
                if name == LOG_KEY {
                    self.key = Some(value.to_owned());
                }
                self.fields.push(format!("{name}={value}"));
            }
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

impl fmt::Display for LogLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = terminal::paint(FAINT, &self.fields.join(" "));
        write!(f, "log   {:<5} {}  {fields}", self.level.as_str(), self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told() -> Told {
        Told {
            started: Instant::now(),
            parts: Mutex::default(),
        }
    }

    fn line(level: Level, fields: &[&str]) -> LogLine {
        let fields = fields.iter().map(|field| (*field).to_owned()).collect();
        LogLine {
            level,
            message: String::new(),
            key: Some("sms".to_owned()),
            fields,
        }
    }

    #[test]
    fn a_transition_is_printed_once_all_three_parts_are_there_in_whichever_order() {
        let told = told();
        told.tell("sms", |waiting| waiting.spans.push_back("span".to_owned()));
        told.tell("push", |waiting| {
            waiting.transitions.push_back("of another circuit".to_owned())
        });
        told.tell("sms", |waiting| {
            waiting.transitions.push_back("transition".to_owned())
        });
        assert_eq!(told.parts.lock().printed, 0);
        told.tell("sms", |waiting| waiting.log_lines.push_back("log".to_owned()));

        let transitions = Transitions {
            told: Arc::new(told),
            subscriptions: Mutex::default(),
        };
        assert_eq!(transitions.printed(), 1);
        assert_eq!(transitions.incomplete(), ["push"]);
    }

    #[test]
    fn faults_and_changes_of_mode_are_no_part_of_a_transition() {
        assert!(line(Level::WARN, &["topic=sms", "wait=30s"]).tells_of_a_transition());
        assert!(!line(Level::ERROR, &["topic=sms", "call=acquire"]).tells_of_a_transition());
        assert!(!line(Level::INFO, &["topic=sms", "mode=forced-open"]).tells_of_a_transition());
    }
}
