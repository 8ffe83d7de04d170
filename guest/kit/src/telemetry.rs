//! What a move looks like in logs and spans. The texts and names are those of Brighter's decision record 58.

use alloc::{
    borrow::ToOwned,
    format,
    string::{String, ToString},
    vec,
    vec::Vec,
};

use tripwit_core::{Mode, Operation, Transition, format_duration};

use crate::Timestamp;

/// How much a log line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// For those who look into it.
    Debug,
    /// Good to know.
    Info,
    /// Someone should look.
    Warn,
}

/// The value of a log field or span attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldValue {
    /// A text.
    Text(String),
    /// A whole number.
    Integer(i64),
}

/// A log line. The message is whole by itself; the fields repeat its parts for machines.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// How much it matters.
    pub level: Level,
    /// The text.
    pub message: String,
    /// Its parts.
    pub fields: Vec<(&'static str, FieldValue)>,
}

/// A finished span of no length.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// `{key} {operation}`.
    pub name: String,
    /// When it was.
    pub at: Timestamp,
    /// What it carries.
    pub attributes: Vec<(String, FieldValue)>,
}

/// What spans carry. The instrumentation domain is on each as soon as any is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instrumentation {
    /// The operation.
    pub request_information: bool,
    /// The topic and the cool-down count.
    pub circuit_breaker: bool,
    /// Options that choose nothing else here.
    pub other: bool,
}

impl Default for Instrumentation {
    fn default() -> Self {
        Self {
            request_information: true,
            circuit_breaker: true,
            other: true,
        }
    }
}

fn operation_name(operation: Operation) -> &'static str {
    match operation {
        Operation::Trip => "trip",
        Operation::ReTrip => "re_trip",
        Operation::HalfOpen => "half_open",
        Operation::Reset => "reset",
    }
}

pub(crate) fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Automatic => "automatic",
        Mode::ForcedOpen => "forced-open",
        Mode::Disabled => "disabled",
        Mode::Shadow => "shadow",
    }
}

pub(crate) fn mode_line(key: &str, mode: Mode) -> Line {
    let mode = mode_name(mode);
    Line {
        level: Level::Info,
        message: format!("Circuit breaker mode of topic {key} set to {mode}"),
        fields: vec![("topic", text(key)), ("mode", text(mode))],
    }
}

pub(crate) fn line(key: &str, transition: &Transition) -> Line {
    let mut fields = vec![("topic", text(key))];
    let wait = transition.wait.map(format_duration).unwrap_or_default();
    if transition.operation != Operation::Reset {
        if let Some(count) = transition.cooldown_count {
            fields.push(("cooldown_count", FieldValue::Integer(i64::from(count))));
        } else if transition.wait.is_some() {
            fields.push(("wait", text(&wait)));
        }
    }
    let (level, message) = match (transition.operation, transition.cooldown_count) {
        (Operation::Trip, Some(n)) => (
            Level::Warn,
            format!("Circuit breaker tripped for topic {key}; suppressing publish for {n} cooldown cycle(s)"),
        ),
        (Operation::ReTrip, Some(n)) => (
            Level::Debug,
            format!("Circuit breaker re-tripped for topic {key}; cooldown extended to {n} cycle(s)"),
        ),
        (Operation::Reset, Some(_)) => (
            Level::Info,
            format!("Circuit breaker reset for topic {key}; publish suppression lifted"),
        ),
        (Operation::Trip, None) => (
            Level::Warn,
            format!("Circuit breaker tripped for topic {key}; rejecting calls for {wait}"),
        ),
        (Operation::ReTrip, None) => (
            Level::Debug,
            format!("Circuit breaker re-tripped for topic {key}; rejecting calls for {wait}"),
        ),
        (Operation::HalfOpen, _) => (
            Level::Debug,
            format!("Circuit breaker half-open for topic {key}; probing"),
        ),
        (Operation::Reset, None) => (
            Level::Info,
            format!("Circuit breaker reset for topic {key}; calls admitted"),
        ),
    };
    Line {
        level,
        message,
        fields,
    }
}

pub(crate) fn span(
    key: &str,
    transition: &Transition,
    at: Timestamp,
    instrumentation: Instrumentation,
    namespace: &str,
) -> Span {
    let operation = operation_name(transition.operation);
    let Instrumentation {
        request_information,
        circuit_breaker,
        other,
    } = instrumentation;
    let mut attributes = Vec::new();
    if request_information || circuit_breaker || other {
        attributes.push(("instrumentation.domain".to_owned(), text("circuit_breaker")));
    }
    if request_information {
        attributes.push((format!("{namespace}.operation"), text(operation)));
    }
    if circuit_breaker {
        attributes.push(("circuit_breaker.topic".to_owned(), text(key)));
        if let Some(count) = transition.cooldown_count {
            let count = FieldValue::Integer(i64::from(count));
            attributes.push(("circuit_breaker.cooldown_count".to_owned(), count));
        }
    }
    Span {
        name: format!("{key} {operation}"),
        at,
        attributes,
    }
}

fn text(text: &str) -> FieldValue {
    FieldValue::Text(text.to_string())
}
