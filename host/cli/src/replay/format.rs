//! How lines are read: in a layout, as JSON, as CSV.

use std::borrow::Cow;
use std::fmt;

use clap::ValueEnum;
use csv_core::{ReadRecordResult, Reader, ReaderBuilder};
use serde_json::Value;

use super::fields::Fields;
use super::layout::{self, Layout};
use super::role::{Mapping, Meaning, Names};

/// How a log is written, as the command line says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Kind {
    /// By its first lines: JSON, or the combined layout that nginx and Apache write by default
    Auto,
    /// Nginx's combined or common layout, and fields such as `rt=0.12 urt="0.1"` after it
    Nginx,
    /// The same as Apache writes it: its time is that of the request's beginning
    Apache,
    /// A JSON object a line
    Json,
    /// Comma-separated values, with a header unless --map gives columns by number
    Csv,
}

/// Reads lines of one format.
#[derive(Debug)]
pub(super) enum Format {
    Layout { name: &'static str, layout: Layout },
    Json(Box<Json>),
    Csv(Box<Csv>),
}

impl Format {
    /// A format that was named.
    ///
    /// # Errors
    ///
    /// When the layout is none.
    pub(super) fn new(kind: Kind, names: Names, delimiter: u8) -> Result<Option<Self>, String> {
        let layout = |name, text, names| {
            let layout = Layout::combined(text, names)?;
            Ok(Some(Self::Layout { name, layout }))
        };
        match kind {
            Kind::Auto => Ok(None),
            Kind::Nginx => layout("nginx's layout", layout::NGINX, names),
            Kind::Apache => layout("Apache's layout", layout::APACHE, names),
            Kind::Json => Ok(Some(Self::Json(Box::new(Json::new(names))))),
            Kind::Csv => Ok(Some(Self::Csv(Box::new(Csv::new(names, delimiter))))),
        }
    }

    /// Finds out which format the first lines are in.
    pub(super) fn detect<'a>(lines: impl Iterator<Item = &'a str>, names: &Names) -> Option<Self> {
        let combined = Layout::combined(layout::NGINX, names.clone()).ok()?;
        for line in lines {
            if line.trim_start().starts_with('{') && serde_json::from_str::<Value>(line).is_ok() {
                return Some(Self::Json(Box::new(Json::new(names.clone()))));
            }
            if combined.read(line).is_ok() {
                return Some(Self::Layout {
                    name: "combined",
                    layout: combined,
                });
            }
        }
        None
    }

    /// A format that a layout describes.
    ///
    /// # Errors
    ///
    /// When it is none.
    pub(super) fn described(text: &str) -> Result<Self, String> {
        Ok(Self::Layout {
            name: "--layout",
            layout: Layout::new(text)?,
        })
    }

    /// Reads a line; none where it is no entry but a header. The error says what is wrong.
    pub(super) fn read<'a>(&'a mut self, line: &'a str) -> Result<Option<Fields<'a>>, String> {
        match self {
            Self::Layout { layout, .. } => layout.read(line).map(Some),
            Self::Json(json) => json.read(line).map(Some),
            Self::Csv(csv) => csv.read(line),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Layout { name, .. } => f.write_str(name),
            Self::Json(_) => f.write_str("JSON lines"),
            Self::Csv(_) => f.write_str("CSV"),
        }
    }
}

/// Reads a JSON object a line.
#[derive(Debug)]
pub(super) struct Json {
    names: Names,
    line: Value,
}

impl Json {
    fn new(names: Names) -> Self {
        Self {
            names,
            line: Value::Null,
        }
    }

    fn read(&mut self, line: &str) -> Result<Fields<'_>, String> {
        self.line = serde_json::from_str(line).map_err(|error| format!("no JSON: {error}"))?;
        let object = self.line.as_object().ok_or("no JSON object")?;
        let mut fields = Fields::default();
        for (name, value) in object {
            if let Some(meaning) = self.names.of(name)
                && let Some(text) = text(value)
            {
                fields.put(meaning, text);
            }
        }
        for mapping in self.names.mapped() {
            if mapping.field.starts_with('/')
                && let Some(text) = self.line.pointer(&mapping.field).and_then(text)
            {
                fields.put(mapping.meaning, text);
            }
        }
        Ok(fields)
    }
}

/// A value as a log would write it; null is nothing, and what has parts has no text.
fn text(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::Null | Value::Bool(false) => Some(Cow::Borrowed("")),
        Value::Bool(true) => Some(Cow::Borrowed("true")),
        Value::Number(number) => Some(Cow::Owned(number.to_string())),
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Array(_) | Value::Object(_) => None,
    }
}

/// Reads comma-separated values, a record a line.
#[derive(Debug)]
pub(super) struct Csv {
    reader: Reader,
    names: Names,
    /// What the columns mean; none until the header has been read.
    columns: Option<Vec<Option<Meaning>>>,
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl Csv {
    fn new(names: Names, delimiter: u8) -> Self {
        Self {
            reader: ReaderBuilder::new().delimiter(delimiter).build(),
            columns: numbered(names.mapped()),
            names,
            text: Vec::new(),
            ends: Vec::new(),
        }
    }

    fn read(&mut self, line: &str) -> Result<Option<Fields<'_>>, String> {
        let values = split(&mut self.reader, line, &mut self.text, &mut self.ends)?;
        let Some(columns) = &self.columns else {
            let columns: Vec<_> = values.map(|name| self.names.of(name.trim())).collect();
            let missing = self
                .names
                .mapped()
                .iter()
                .find(|mapping| !columns.contains(&Some(mapping.meaning)));
            if let Some(mapping) = missing {
                return Err(format!("the header has no column {:?}", mapping.field));
            }
            self.columns = Some(columns);
            return Ok(None);
        };
        let mut fields = Fields::default();
        for (column, value) in columns.iter().zip(values) {
            if let Some(meaning) = column {
                fields.put(*meaning, value.trim());
            }
        }
        Ok(Some(fields))
    }
}

/// What the columns mean, where every one is mapped by its number, from 1.
fn numbered(mapped: &[Mapping]) -> Option<Vec<Option<Meaning>>> {
    let numbers: Option<Vec<usize>> = mapped
        .iter()
        .map(|mapping| {
            mapping
                .field
                .parse()
                .ok()
                .filter(|number| (1..=4_096).contains(number))
        })
        .collect();
    let numbers = numbers.filter(|numbers| !numbers.is_empty())?;
    let mut columns = vec![None; numbers.iter().copied().max().unwrap_or(0)];
    for (number, mapping) in numbers.into_iter().zip(mapped) {
        if let Some(column) = columns.get_mut(number - 1) {
            *column = Some(mapping.meaning);
        }
    }
    Some(columns)
}

/// Splits one record.
fn split<'a>(
    reader: &mut Reader,
    line: &str,
    text: &'a mut Vec<u8>,
    ends: &'a mut Vec<usize>,
) -> Result<impl Iterator<Item = &'a str>, String> {
    // No value is longer than the line, and there are no more values than bytes, but for one.
    text.resize(line.len() + 1, 0);
    ends.resize(line.len() + 2, 0);
    reader.reset();
    let (_, _, written, some) = reader.read_record(line.as_bytes(), text, ends);
    let (result, _, more, others) = reader.read_record(
        &[],
        text.get_mut(written..).unwrap_or_default(),
        ends.get_mut(some..).unwrap_or_default(),
    );
    if !matches!(result, ReadRecordResult::Record) {
        return Err("no CSV record".into());
    }
    let text = text.get(..written + more).unwrap_or_default();
    let text = std::str::from_utf8(text).map_err(|error| error.to_string())?;
    let ends = ends.get(..some + others).unwrap_or_default();
    let starts = std::iter::once(0).chain(ends.iter().copied());
    Ok(starts
        .zip(ends)
        .map(|(from, to)| text.get(from..*to).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::role::{Role, mapping};

    fn names(mapped: &[&str]) -> Names {
        Names::new(mapped.iter().map(|text| mapping(text).unwrap()).collect())
    }

    #[test]
    fn json_fields_are_found_by_name_and_by_pointer() {
        let mut json = Json::new(names(&["host=/request/host", "took=latency:ms"]));
        let read = json
            .read(r#"{"ts": 1767225600.25, "status": 503, "request": {"host": "a.example"}, "latency": 12.5, "error": null}"#)
            .unwrap();
        assert_eq!(read.text(Role::Time), Some("1767225600.25"));
        assert_eq!(read.text(Role::Status), Some("503"));
        assert_eq!(read.text(Role::Host), Some("a.example"));
        assert_eq!(read.text(Role::Took), Some("12.5"));
        assert!(read.field(Role::Error).is_some() && read.text(Role::Error).is_none());
        assert!(json.read("[1]").unwrap_err().contains("no JSON object"));
        assert!(json.read("{").unwrap_err().contains("no JSON:"));
    }

    #[test]
    fn csv_columns_are_found_by_the_header_or_by_number() {
        let mut csv = Csv::new(names(&["upstream=target"]), b',');
        assert_eq!(csv.read("time,target,status,other"), Ok(None));
        let read = csv.read(r#"1767225600,"a, ""b""",200"#).unwrap().unwrap();
        assert_eq!(read.text(Role::Upstream), Some(r#"a, "b""#));
        assert_eq!(read.text(Role::Status), Some("200"));
        let mut csv = Csv::new(names(&["time=1", "status=3"]), b';');
        let read = csv.read("7;x;404").unwrap().unwrap();
        assert_eq!(
            (read.text(Role::Time), read.text(Role::Status)),
            (Some("7"), Some("404"))
        );
    }

    #[test]
    fn a_column_that_is_mapped_and_not_there_is_named() {
        let mut csv = Csv::new(names(&["upstream=target"]), b',');
        assert_eq!(
            csv.read("time,status"),
            Err("the header has no column \"target\"".into())
        );
    }

    #[test]
    fn a_format_is_found_out_by_the_first_line_that_has_one() {
        let names = names(&[]);
        let found =
            |lines: &[&str]| Format::detect(lines.iter().copied(), &names).map(|format| format.to_string());
        assert_eq!(found(&["garbage", r#"{"a": 1}"#]).as_deref(), Some("JSON lines"));
        assert_eq!(
            found(&[r#"h - - [02/Jan/2026:15:04:05 +0000] "GET / HTTP/1.0" 200 1"#]).as_deref(),
            Some("combined")
        );
        assert_eq!(found(&["a,b,c", "1,2,3"]), None);
    }
}
