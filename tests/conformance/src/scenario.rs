//! The format of the files, as README.md describes it. Whatever is not described is refused.

use anyhow::{Context, bail};
use serde::Deserialize;
use serde_json::{Map, Value};
use tripwit_policy::{Instrumentation, Setup};

use crate::verb::{PolicyName, Verb};

/// One file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    pub(crate) policy: PolicyName,
    /// What the file holds, in a sentence.
    pub(crate) about: String,
    pub(crate) scenarios: Vec<Scenario>,
}

/// One scenario.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scenario {
    /// A sentence.
    pub(crate) name: String,
    /// Where it comes from.
    pub(crate) source: String,
    /// Of every circuit that is not attached with its own.
    #[serde(default = "no_settings")]
    pub(crate) settings: Value,
    #[serde(default)]
    pub(crate) setup: SetupText,
    /// Absent: every subject. Else exactly the guests, where a step needs it.
    pub(crate) subjects: Option<[GuestName; 2]>,
    pub(crate) steps: Vec<Step>,
}

/// What is left out.
pub(crate) fn no_settings() -> Value {
    Value::Object(Map::new())
}

/// A subject without a host around it.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum GuestName {
    Native,
    Component,
}

/// What holds for a whole instance.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct SetupText {
    #[serde(default)]
    pub(crate) seed: u64,
    pub(crate) instrumentation: Option<Vec<OptionName>>,
    pub(crate) namespace: Option<String>,
}

/// One option of what spans carry.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum OptionName {
    RequestInformation,
    CircuitBreaker,
    Other,
}

impl From<&SetupText> for Setup {
    fn from(text: &SetupText) -> Self {
        let has = |option| {
            text.instrumentation
                .as_ref()
                .is_none_or(|options| options.contains(&option))
        };
        Self {
            seed: text.seed,
            instrumentation: Instrumentation {
                request_information: has(OptionName::RequestInformation),
                circuit_breaker: has(OptionName::CircuitBreaker),
                other: has(OptionName::Other),
            },
            namespace: text.namespace.clone(),
        }
    }
}

/// One step: what is done to one circuit, and what must come of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Map<String, Value>")]
pub(crate) struct Step {
    /// As it is written, for people.
    pub(crate) text: String,
    pub(crate) key: String,
    pub(crate) verb: Verb,
    /// What must be in the answer.
    pub(crate) expect: Option<Value>,
    /// Exactly the lines that must come.
    pub(crate) log: Vec<ExpectedLine>,
    /// Exactly the spans that must come.
    pub(crate) spans: Vec<ExpectedSpan>,
}

/// A log line: `LEVEL message`, with its fields where they are written.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "LineText")]
pub(crate) struct ExpectedLine {
    pub(crate) line: String,
    pub(crate) fields: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum LineText {
    Line(String),
    Full(FullLine),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FullLine {
    line: String,
    fields: Map<String, Value>,
}

impl From<LineText> for ExpectedLine {
    fn from(text: LineText) -> Self {
        match text {
            LineText::Line(line) => Self { line, fields: None },
            LineText::Full(FullLine { line, fields }) => Self {
                line,
                fields: Some(fields),
            },
        }
    }
}

/// A span: its name, and its attributes and time where they are written.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "SpanText")]
pub(crate) struct ExpectedSpan {
    pub(crate) name: String,
    pub(crate) attributes: Option<Map<String, Value>>,
    pub(crate) at: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum SpanText {
    Name(String),
    Full(FullSpan),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FullSpan {
    name: String,
    attributes: Option<Map<String, Value>>,
    at: Option<String>,
}

impl From<SpanText> for ExpectedSpan {
    fn from(text: SpanText) -> Self {
        match text {
            SpanText::Name(name) => Self {
                name,
                attributes: None,
                at: None,
            },
            SpanText::Full(FullSpan { name, attributes, at }) => Self { name, attributes, at },
        }
    }
}

impl TryFrom<Map<String, Value>> for Step {
    type Error = String;

    fn try_from(map: Map<String, Value>) -> Result<Self, String> {
        let text = Value::Object(map.clone()).to_string();
        Self::from_map(map, &text).map_err(|error| format!("{error:#}, in {text}"))
    }
}

impl Step {
    fn from_map(mut map: Map<String, Value>, text: &str) -> anyhow::Result<Self> {
        let key = match map.remove("key") {
            None => DEFAULT_KEY.to_owned(),
            Some(Value::String(key)) => key,
            Some(other) => bail!("the key {other} is no text"),
        };
        let expect = map.remove("expect");
        let log = map.remove("log").map(serde_json::from_value);
        let spans = map.remove("spans").map(serde_json::from_value);
        Ok(Self {
            text: text.to_owned(),
            key,
            expect,
            log: log.transpose().context("log")?.unwrap_or_default(),
            spans: spans.transpose().context("spans")?.unwrap_or_default(),
            verb: Verb::from_map(map)?,
        })
    }
}

/// The circuit of a step that names none.
const DEFAULT_KEY: &str = "orders";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(step: Value) -> Result<Step, String> {
        serde_json::from_value(step).map_err(|error| error.to_string())
    }

    #[test]
    fn a_step_with_two_verbs_or_none_is_refused() {
        for step in [json!({"acquire": "a", "wait": "1s"}), json!({"expect": {}})] {
            assert!(read(step).unwrap_err().contains("exactly one verb"));
        }
    }

    #[test]
    fn an_argument_of_another_verb_is_refused() {
        let error = read(json!({"acquire": "a", "outcome": "success"})).unwrap_err();
        assert!(error.contains("unknown field `outcome`"), "{error}");
    }

    #[test]
    fn a_verb_that_needs_no_value_takes_true_only() {
        assert!(read(json!({"reset": true})).is_ok());
        assert!(read(json!({"reset": false})).is_err());
    }

    #[test]
    fn a_restart_keeps_nothing_or_the_state() {
        for restart in [json!(true), json!("state")] {
            assert!(read(json!({"restart": restart, "at": "5s"})).is_ok());
        }
        for restart in [json!(false), json!("half")] {
            assert!(read(json!({"restart": restart})).is_err());
        }
    }

    #[test]
    fn times_are_read_to_the_nanosecond_and_nonsense_is_refused() {
        let step = read(json!({"wait": "29s999ms999us999ns"})).unwrap();
        assert!(matches!(step.verb, Verb::Wait { value } if value.0 == 29_999_999_999));
        assert!(read(json!({"wait": "soon"})).is_err());
    }

    #[test]
    fn a_step_that_names_no_key_is_about_orders() {
        assert_eq!(read(json!({"acquire": "a"})).unwrap().key, "orders");
        assert_eq!(read(json!({"acquire": "a", "key": "sms"})).unwrap().key, "sms");
    }
}
