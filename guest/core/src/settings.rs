//! Settings: a JSON object, read field by field, each field declared once with its bounds, default and meaning.

use alloc::{
    format,
    string::{String, ToString},
};
use core::fmt;

use serde_json::{Map, Value};

use crate::{Nanoseconds, format_duration, parse_duration};

/// The longest text that is read, in bytes.
const MAX_TEXT: usize = 64 * 1024;

/// A setting that does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsError {
    /// JSON Pointer of the field; empty for the whole text.
    pub field: String,
    /// What is wrong, and what would be right.
    pub problem: String,
}

impl SettingsError {
    /// A problem of the field `name`.
    #[must_use]
    pub fn new(name: &str, problem: impl Into<String>) -> Self {
        Self {
            field: pointer(name),
            problem: problem.into(),
        }
    }

    fn whole(problem: impl Into<String>) -> Self {
        Self {
            field: String::new(),
            problem: problem.into(),
        }
    }
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.field.is_empty() {
            f.write_str(&self.problem)
        } else {
            write!(f, "{}: {}", self.field, self.problem)
        }
    }
}

impl core::error::Error for SettingsError {}

fn pointer(name: &str) -> String {
    format!("/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// A JSON object of which every field is known.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings(Map<String, Value>);

impl Settings {
    /// Reads a text and refuses fields that are not among `fields`.
    ///
    /// # Errors
    ///
    /// When the text is no JSON object, longer than 64 KiB, or has an unknown field.
    pub fn parse(text: &str, fields: &[&dyn Field]) -> Result<Self, SettingsError> {
        if text.len() > MAX_TEXT {
            return Err(SettingsError::whole(format!("longer than {MAX_TEXT} bytes")));
        }
        let value: Value =
            serde_json::from_str(text).map_err(|error| SettingsError::whole(format!("not JSON: {error}")))?;
        let Value::Object(object) = value else {
            return Err(SettingsError::whole(
                "not a JSON object; write one such as {} for the defaults",
            ));
        };
        if let Some(name) = object
            .keys()
            .find(|name| fields.iter().all(|field| field.name() != name.as_str()))
        {
            let known = fields
                .iter()
                .map(|field| field.name())
                .collect::<alloc::vec::Vec<_>>()
                .join(", ");
            return Err(SettingsError::new(
                name,
                format!("no such setting; there are {known}"),
            ));
        }
        Ok(Self(object))
    }

    /// Whether a field is written.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }
}

/// One setting. (Not `Debug`: a trait object would bring all of that into every component, some 13 KB.)
pub trait Field: Sync {
    /// Its name.
    fn name(&self) -> &'static str;
    /// What the JSON Schema says of it: type, bounds, default, meaning. Written, not built, since a component carries this code.
    fn schema(&self) -> String;
}

pub(crate) fn schema(name: &str, summary: &str, fields: &[&dyn Field]) -> String {
    let mut properties = String::new();
    for field in fields {
        let comma = if properties.is_empty() { "" } else { "," };
        properties += comma;
        properties += "\"";
        properties += field.name();
        properties += "\":{";
        properties += &field.schema();
        properties += "}";
    }
    format!(
        r#"{{"$schema":"https://json-schema.org/draft/2020-12/schema","title":"{name}","description":"{summary}","type":"object","properties":{{{properties}}},"additionalProperties":false}}"#
    )
}

/// A whole number.
#[derive(Debug)]
pub struct Integer {
    /// Its name.
    pub name: &'static str,
    /// The least it may be.
    pub min: u32,
    /// The most it may be.
    pub max: u32,
    /// What it is when it is left out.
    pub default: u32,
    /// What it means.
    pub about: &'static str,
}

impl Integer {
    /// Reads it.
    ///
    /// # Errors
    ///
    /// When it is no whole number or out of range.
    pub fn read(&self, settings: &Settings) -> Result<u32, SettingsError> {
        let Some(value) = settings.0.get(self.name) else {
            return Ok(self.default);
        };
        value
            .as_u64()
            .and_then(|n| u32::try_from(n).ok())
            .filter(|n| (self.min..=self.max).contains(n))
            .ok_or_else(|| {
                SettingsError::new(
                    self.name,
                    format!(
                        "{} is not a whole number from {} to {}",
                        shown(value),
                        self.min,
                        self.max
                    ),
                )
            })
    }
}

impl Field for Integer {
    fn name(&self) -> &'static str {
        self.name
    }

    fn schema(&self) -> String {
        let Self {
            min,
            max,
            default,
            about,
            ..
        } = self;
        format!(
            r#""type":"integer","minimum":{min},"maximum":{max},"default":{default},"description":"{about}""#
        )
    }
}

/// A number with up to three decimals, kept in thousandths.
#[derive(Debug)]
pub struct Decimal {
    /// Its name.
    pub name: &'static str,
    /// The least it may be, in thousandths.
    pub min: u32,
    /// The most it may be, in thousandths.
    pub max: u32,
    /// What it is when it is left out, in thousandths.
    pub default: u32,
    /// What it means.
    pub about: &'static str,
}

impl Decimal {
    /// Reads it, in thousandths; further decimals are rounded.
    ///
    /// # Errors
    ///
    /// When it is no number or out of range.
    pub fn read(&self, settings: &Settings) -> Result<u32, SettingsError> {
        let Some(value) = settings.0.get(self.name) else {
            return Ok(self.default);
        };
        let in_range = |x: &f64| (f64::from(self.min)..=f64::from(self.max)).contains(&(x * 1000.0));
        let number = value.as_f64().filter(in_range).ok_or_else(|| {
            let (min, max) = (thousandths(self.min), thousandths(self.max));
            SettingsError::new(
                self.name,
                format!("{} is not a number from {min} to {max}", shown(value)),
            )
        })?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "held against u32 bounds above"
        )]
        Ok((number * 1000.0 + 0.5) as u32)
    }
}

impl Field for Decimal {
    fn name(&self) -> &'static str {
        self.name
    }

    fn schema(&self) -> String {
        let (min, max, default) = (
            thousandths(self.min),
            thousandths(self.max),
            thousandths(self.default),
        );
        let about = self.about;
        format!(
            r#""type":"number","minimum":{min},"maximum":{max},"default":{default},"description":"{about}""#
        )
    }
}

fn thousandths(n: u32) -> String {
    let (whole, rest) = (n / 1000, n % 1000);
    if rest == 0 {
        whole.to_string()
    } else {
        format!("{whole}.{rest:03}")
    }
}

/// A duration.
#[derive(Debug)]
pub struct Time {
    /// Its name.
    pub name: &'static str,
    /// The least it may be, in nanoseconds.
    pub min: Nanoseconds,
    /// The most it may be, in nanoseconds.
    pub max: Nanoseconds,
    /// What it is when it is left out, in nanoseconds.
    pub default: Nanoseconds,
    /// What it means.
    pub about: &'static str,
}

impl Time {
    /// Reads it, in nanoseconds.
    ///
    /// # Errors
    ///
    /// When it is no duration or out of range.
    pub fn read(&self, settings: &Settings) -> Result<Nanoseconds, SettingsError> {
        match settings.0.get(self.name) {
            None => Ok(self.default),
            Some(value) => read_time(self.name, value, self.min, self.max),
        }
    }
}

impl Field for Time {
    fn name(&self) -> &'static str {
        self.name
    }

    fn schema(&self) -> String {
        time_schema("\"string\"", self.min, self.max, Some(self.default), self.about)
    }
}

/// A duration that may be left out.
#[derive(Debug)]
pub struct OptionalTime {
    /// Its name.
    pub name: &'static str,
    /// The least it may be, in nanoseconds.
    pub min: Nanoseconds,
    /// The most it may be, in nanoseconds.
    pub max: Nanoseconds,
    /// What it is when it is left out, in nanoseconds; none where that depends, as `about` says.
    pub default: Option<Nanoseconds>,
    /// Whether `null` may be written.
    pub nullable: bool,
    /// What it means.
    pub about: &'static str,
}

/// What was written for an [`OptionalTime`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    /// Nothing.
    Absent,
    /// `null`.
    Null,
    /// A duration, in nanoseconds.
    Value(Nanoseconds),
}

impl OptionalTime {
    /// Reads it.
    ///
    /// # Errors
    ///
    /// When it is no duration, out of range, or `null` where that may not be written.
    pub fn read(&self, settings: &Settings) -> Result<Given, SettingsError> {
        match settings.0.get(self.name) {
            None => Ok(self.default.map_or(Given::Absent, Given::Value)),
            Some(Value::Null) if self.nullable => Ok(Given::Null),
            Some(value) => read_time(self.name, value, self.min, self.max).map(Given::Value),
        }
    }
}

impl Field for OptionalTime {
    fn name(&self) -> &'static str {
        self.name
    }

    fn schema(&self) -> String {
        let kind = if self.nullable {
            r#"["string","null"]"#
        } else {
            "\"string\""
        };
        time_schema(kind, self.min, self.max, self.default, self.about)
    }
}

/// A value as an error tells it. (Writing JSON would bring a writer into every component.)
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".to_string(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(number), _) => number.to_string(),
            (None, Some(number)) => number.to_string(),
            (None, None) => "this number".to_string(),
        },
        Value::String(text) => format!("\"{text}\""),
        Value::Array(_) => "a list".to_string(),
        Value::Object(_) => "an object".to_string(),
    }
}

fn read_time(name: &str, value: &Value, min: u64, max: u64) -> Result<Nanoseconds, SettingsError> {
    let Value::String(text) = value else {
        return Err(SettingsError::new(
            name,
            format!("{} is not a duration; write a text such as \"30s\"", shown(value)),
        ));
    };
    let nanoseconds = parse_duration(text)
        .map_err(|error| SettingsError::new(name, format!("{}: {error}", shown(value))))?;
    if (min..=max).contains(&nanoseconds) {
        Ok(nanoseconds)
    } else {
        let (min, max) = (format_duration(min), format_duration(max));
        Err(SettingsError::new(
            name,
            format!("{} is not from {min} to {max}", shown(value)),
        ))
    }
}

fn time_schema(kind: &str, min: u64, max: u64, default: Option<u64>, about: &str) -> String {
    let default = default
        .map(|default| format!(r#""default":"{}","#, format_duration(default)))
        .unwrap_or_default();
    let (min, max) = (format_duration(min), format_duration(max));
    format!(
        r#""type":{kind},{default}"description":"{about}","x-unit":"duration","x-minimum":"{min}","x-maximum":"{max}""#
    )
}
