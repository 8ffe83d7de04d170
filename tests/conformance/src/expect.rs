//! Holds what came against what must come.

use serde_json::{Map, Value};
use tripwit_core::parse_duration;

use crate::scenario::{ExpectedLine, ExpectedSpan};
use crate::told::{Line, Span, Told};

/// Where `got` lacks something of `expected`, if it does.
///
/// An object must have the fields that are expected, and may have more; a list must be of the same length; anything else
/// must be equal. `null` stands for a field without a value. `{"from": .., "to": ..}` takes every time between the two,
/// both included.
pub(crate) fn mismatch(expected: &Value, got: &Value) -> Option<String> {
    mismatch_at("", expected, got)
}

fn mismatch_at(path: &str, expected: &Value, got: &Value) -> Option<String> {
    match (expected, got) {
        (Value::Object(range), Value::String(time)) if is_range(range) => {
            (!within(range, time)).then(|| differs(path, expected, got))
        }
        (Value::Object(fields), Value::Object(all)) => fields.iter().find_map(|(name, value)| {
            let path = format!("{path}/{name}");
            match all.get(name) {
                Some(got) => mismatch_at(&path, value, got),
                None => Some(format!("{path} must be {value}, and there is no such field")),
            }
        }),
        (Value::Array(some), Value::Array(all)) if some.len() == all.len() => some
            .iter()
            .zip(all)
            .enumerate()
            .find_map(|(index, (expected, got))| mismatch_at(&format!("{path}/{index}"), expected, got)),
        _ => (expected != got).then(|| differs(path, expected, got)),
    }
}

fn differs(path: &str, expected: &Value, got: &Value) -> String {
    let path = if path.is_empty() { "the answer" } else { path };
    format!("{path} must be {expected}, and is {got}")
}

fn is_range(object: &Map<String, Value>) -> bool {
    object.len() == 2 && object.contains_key("from") && object.contains_key("to")
}

fn within(range: &Map<String, Value>, time: &str) -> bool {
    let bound = |name: &str| {
        range
            .get(name)
            .and_then(Value::as_str)
            .and_then(|text| parse_duration(text).ok())
    };
    match (bound("from"), bound("to"), parse_duration(time)) {
        (Some(from), Some(to), Ok(time)) => (from..=to).contains(&time),
        _ => false,
    }
}

/// Where what was told is not exactly what must be told.
pub(crate) fn mismatch_told(log: &[ExpectedLine], spans: &[ExpectedSpan], told: &Told) -> Option<String> {
    let lines = || told.log.iter().map(|line| line.line.as_str()).collect::<Vec<_>>();
    if log.len() != told.log.len()
        || !log
            .iter()
            .zip(&told.log)
            .all(|(one, other)| line_fits(one, other))
    {
        let wanted: Vec<_> = log.iter().map(|line| line.line.as_str()).collect();
        let fields: Vec<_> = told.log.iter().map(|line| &line.fields).collect();
        return Some(format!(
            "the log must have {wanted:?}, and has {:?} with fields {fields:?}",
            lines()
        ));
    }
    if spans.len() != told.spans.len()
        || !spans
            .iter()
            .zip(&told.spans)
            .all(|(one, other)| span_fits(one, other))
    {
        return Some(format!("the spans must be {spans:?}, and are {:?}", told.spans));
    }
    None
}

/// A line that ends in `*` stands for every line that begins as it does.
fn line_fits(expected: &ExpectedLine, got: &Line) -> bool {
    let text = match expected.line.strip_suffix('*') {
        Some(start) => got.line.starts_with(start),
        None => expected.line == got.line,
    };
    text && expected
        .fields
        .as_ref()
        .is_none_or(|fields| *fields == got.fields)
}

fn span_fits(expected: &ExpectedSpan, got: &Span) -> bool {
    expected.name == got.name
        && expected.at.as_ref().is_none_or(|at| *at == got.at)
        && expected
            .attributes
            .as_ref()
            .is_none_or(|attributes| *attributes == got.attributes)
}

/// Whether everything in `part` is in `whole` too, and the same there.
pub(crate) fn is_part(part: &Value, whole: &Value) -> bool {
    match (part, whole) {
        (Value::Object(part), Value::Object(whole)) => part
            .iter()
            .all(|(name, value)| whole.get(name).is_some_and(|whole| is_part(value, whole))),
        (Value::Array(part), Value::Array(whole)) => {
            part.len() == whole.len() && part.iter().zip(whole).all(|(part, whole)| is_part(part, whole))
        }
        _ => part == whole,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_may_have_more_fields_than_expected_and_not_fewer() {
        let got = json!({"state": "open", "counts": {"failures": 2, "slow": 0}});
        assert_eq!(mismatch(&json!({"counts": {"failures": 2}}), &got), None);
        let wrong = mismatch(&json!({"counts": {"failures": 3}}), &got).unwrap();
        assert_eq!(wrong, "/counts/failures must be 3, and is 2");
        assert!(
            mismatch(&json!({"since": null}), &got)
                .unwrap()
                .contains("no such field")
        );
    }

    #[test]
    fn lists_must_be_as_long_as_expected() {
        assert!(mismatch(&json!(["a"]), &json!(["a", "b"])).is_some());
        assert_eq!(mismatch(&json!(["a", "b"]), &json!(["a", "b"])), None);
    }

    #[test]
    fn a_range_includes_both_of_its_ends() {
        let range = json!({"from": "27s", "to": "33s"});
        for (time, fits) in [
            ("27s", true),
            ("33s", true),
            ("26s999ms", false),
            ("33s1ns", false),
        ] {
            assert_eq!(mismatch(&range, &json!(time)).is_none(), fits, "{time}");
        }
        assert!(mismatch(&range, &Value::Null).is_some());
    }

    #[test]
    fn a_line_or_span_that_is_not_expected_is_a_mismatch_and_so_is_one_that_does_not_come() {
        let told = Told {
            log: vec![Line::new("INFO", "hello", Map::new())],
            spans: Vec::new(),
        };
        assert!(mismatch_told(&[], &[], &told).is_some());
        let line = |text: &str| ExpectedLine {
            line: text.into(),
            fields: None,
        };
        assert_eq!(mismatch_told(&[line("INFO hello")], &[], &told), None);
        assert_eq!(mismatch_told(&[line("INFO hel*")], &[], &told), None);
        assert!(mismatch_told(&[line("WARN hello")], &[], &told).is_some());
        assert!(mismatch_told(&[line("INFO hello"), line("INFO hello")], &[], &told).is_some());
        let span = ExpectedSpan {
            name: "orders trip".into(),
            attributes: None,
            at: None,
        };
        assert!(mismatch_told(&[line("INFO hello")], &[span], &told).is_some());
    }

    #[test]
    fn fields_of_a_line_that_are_written_must_be_all_there_are() {
        let told = Told {
            log: vec![Line::new(
                "INFO",
                "hello",
                crate::told::fields([("topic".into(), json!("a")), ("wait".into(), json!("1s"))]),
            )],
            spans: Vec::new(),
        };
        let line = |fields: Value| ExpectedLine {
            line: "INFO hello".into(),
            fields: fields.as_object().cloned(),
        };
        assert!(mismatch_told(&[line(json!({"topic": "a"}))], &[], &told).is_some());
        assert!(mismatch_told(&[line(json!({"topic": "a", "wait": "1s"}))], &[], &told).is_none());
    }
}
