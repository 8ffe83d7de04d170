//! What a subject tells beside its answers: log lines and spans, in words that are the same for each subject.

use serde::Serialize;
use serde_json::{Map, Value};
use tripwit_core::format_duration;

/// A log line.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Line {
    /// `LEVEL message`.
    pub(crate) line: String,
    pub(crate) fields: Map<String, Value>,
}

/// A finished span.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Span {
    pub(crate) name: String,
    /// When it began, and, since a move takes no time, ended.
    pub(crate) at: String,
    pub(crate) attributes: Map<String, Value>,
}

/// Everything that was told since this was last asked for, in order.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Told {
    pub(crate) log: Vec<Line>,
    pub(crate) spans: Vec<Span>,
}

impl Line {
    pub(crate) fn new(level: &str, message: &str, fields: Map<String, Value>) -> Self {
        Self {
            line: format!("{level} {message}"),
            fields,
        }
    }
}

impl Span {
    /// Times are nanoseconds since the Unix epoch.
    pub(crate) fn new(name: String, start: u64, end: u64, attributes: Map<String, Value>) -> Self {
        let at = if start == end {
            format_duration(start)
        } else {
            format!("{} to {}", format_duration(start), format_duration(end))
        };
        Self { name, at, attributes }
    }
}

/// Named values as an object. A name that comes twice, which the contract forbids, shows.
pub(crate) fn fields(from: impl IntoIterator<Item = (String, Value)>) -> Map<String, Value> {
    let mut map = Map::new();
    for (name, value) in from {
        if let Some(first) = map.insert(name.clone(), value) {
            map.insert(format!("{name} (before)"), first);
        }
    }
    map
}
