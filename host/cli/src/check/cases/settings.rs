//! Settings that do not fit.

use serde_json::{Map, Value, json};
use tripwit::raw::AttachError;

use crate::check::answer::differences;
use crate::check::circuit::{Circuit, KEY};
use crate::check::problem::{Checked, Problem, ensure, refusal};
use crate::check::ran::Ran;
use crate::check::schema::Schema;
use crate::check::subject::Subject;

/// Longer than any settings need to be, in bytes.
const GIANT: usize = 1 << 20;

/// Texts that are no settings of any policy.
fn no_settings() -> Vec<(&'static str, String)> {
    let fixed = [
        "",
        "nonsense",
        "{",
        "[]",
        "null",
        "true",
        "42",
        "\"{}\"",
        "{\"a\":1,}",
        "{'a':1}",
        "{} {}",
    ];
    let mut all: Vec<_> = fixed.into_iter().map(|text| (text, text.to_owned())).collect();
    all.push(("a million brackets", "[".repeat(GIANT)));
    all.push(("a million nested objects", "{\"a\":".repeat(GIANT / 5)));
    all
}

pub(in crate::check) fn settings(subject: &Subject) -> Checked<Ran> {
    let mut refused = 0;
    for (name, text) in no_settings() {
        refused += is_refused(subject, name, &text, None)?;
    }
    let Ok(schema) = Schema::read(&subject.policy.description().settings_schema) else {
        return Ok(Ran::done("texts that are no JSON; the schema cannot be used"));
    };
    if schema.closed {
        refused += is_refused(
            subject,
            "an unknown field",
            r#"{"no_such_setting": 1}"#,
            Some("/no_such_setting"),
        )?;
        refused += is_refused(subject, "a name to escape", r#"{"a/b~c": 1}"#, Some("/a~1b~0c"))?;
        let giant = json!({ "x".repeat(GIANT): 1 }).to_string();
        refused += is_refused(subject, "a name of a megabyte", &giant, None)?;
    } else {
        subject.note("its schema lets unknown fields in, so that a misspelt setting goes unnoticed");
    }
    for (name, property) in &schema.properties {
        for value in misfits(property) {
            let settings = Value::Object(Map::from_iter([(name.clone(), value)]));
            let duration = property.get("x-unit").is_some_and(|unit| unit == "duration");
            let no_duration = duration && settings.get(name).is_some_and(Value::is_string);
            if no_duration || !schema.fits(&settings) {
                refused += is_refused(
                    subject,
                    "a misfit",
                    &settings.to_string(),
                    Some(&format!("/{name}")),
                )?;
            }
        }
    }
    Ok(Ran::done(format!(
        "{refused} texts refused, by attach and by configure"
    )))
}

/// Values, some of which do not fit.
fn misfits(property: &Value) -> Vec<Value> {
    let mut all = vec![
        json!(null),
        json!(true),
        json!("no such value"),
        json!(""),
        json!([]),
        json!({}),
        json!(-1),
        json!(0.5),
        json!(1e300),
    ];
    for (bound, beyond) in [("minimum", -1.0), ("maximum", 1.0)] {
        if let Some(bound) = property.get(bound).and_then(Value::as_i64) {
            #[expect(clippy::cast_possible_truncation, reason = "it is 1 or -1")]
            all.push(json!(bound.saturating_add(beyond as i64)));
        } else if let Some(bound) = property.get(bound).and_then(Value::as_f64) {
            all.push(json!(bound + beyond));
        }
    }
    all
}

/// Whether settings are refused, at this field where it is known, and nothing of them stays. 1 for the count.
fn is_refused(subject: &Subject, name: &str, text: &str, field: Option<&str>) -> Checked<usize> {
    let mut circuit = Circuit::new(subject, subject.main_settings())?;
    let short: String = text.chars().take(80).collect();
    subject.did(format!("attach and configure with {name}: {short:?}"));
    let (before, lease) = (circuit.look()?, circuit.lease);
    let attached = circuit.instance.attach("another", text)?.map(drop);
    judge(attached, field)?;
    let configured = circuit.instance.configure(circuit.number, text)?.map(drop);
    judge(configured, field)?;
    let after = circuit.look()?;
    let now = circuit.instance.lease_of(circuit.number)?;
    ensure!(
        before == after && lease == now,
        "nothing changed by refused settings",
        || differences(&before, &after).unwrap_or_else(|| "another lease".into()),
    )?;
    let fresh = circuit.instance.attach("another", subject.main_settings())?;
    ensure!(
        fresh.is_ok_and(|fresh| fresh.circuit != circuit.number),
        "nothing left behind under the key",
        || format!("{KEY:?} and \"another\" are one, or it is refused"),
    )?;
    Ok(1)
}

fn judge(answer: Result<(), AttachError>, field: Option<&str>) -> Checked {
    match answer {
        Ok(()) => Err(Problem::new("a settings error", "they were accepted")),
        Err(AttachError::Settings(error)) => {
            let at = field.is_none_or(|field| field == error.field);
            let pointer = error.field.is_empty() || error.field.starts_with('/');
            ensure!(
                at && pointer && !error.problem.is_empty(),
                format!(
                    "a settings error at {:?} that says what is wrong",
                    field.unwrap_or_default()
                ),
                || {
                    let problem: String = error.problem.chars().take(200).collect();
                    format!(
                        "one at {:?}: {problem}",
                        error.field.chars().take(80).collect::<String>()
                    )
                },
            )
        }
        Err(other) => Err(Problem::new("a settings error", refusal(&other))),
    }
}
