//! What came of a check, for people and for programs.

use serde_json::{Value, json};
use tripwit::Policy;

use super::checker::{Failure, Verdict, Verdicts};
use crate::terminal::{BAD, FAINT, GOOD, NOTICE, STRONG, paint};

/// As many steps are shown to people; programs get all.
const STEPS: usize = 40;

/// How a check was made.
#[derive(Debug)]
pub(super) struct Made<'a> {
    pub(super) file: &'a str,
    pub(super) policy: Option<&'a Policy>,
    pub(super) seed: u64,
    pub(super) settings: Option<&'a str>,
}

/// For people.
pub(super) fn text(made: &Made<'_>, verdicts: &Verdicts) -> String {
    let mut text = match made.policy {
        Some(policy) => {
            let said = policy.description();
            format!(
                "{} {}: {}\n",
                paint(STRONG, &said.name),
                said.version,
                said.summary
            )
        }
        None => format!("{}\n", paint(STRONG, made.file)),
    };
    for (case, verdict) in &verdicts.0 {
        let (style, word) = mark(verdict);
        text += &format!(
            "  {} {:<12} {}\n",
            paint(style, word),
            case.name(),
            case.promise()
        );
        match verdict {
            Verdict::Passed(_) => {}
            Verdict::Noted(_, notes) => notes.iter().for_each(|note| text += &line("note", note)),
            Verdict::NotApplicable(why) => text += &line("why", why),
            Verdict::CutShort(by) => {
                text += &line(
                    "why",
                    &format!("could not be tried to its end, because of {}", by.name()),
                )
            }
            Verdict::Failed(failure) => text += &failed(failure),
        }
    }
    let count = |word: &str| {
        verdicts
            .0
            .iter()
            .filter(|(_, verdict)| mark(verdict).1 == word)
            .count()
    };
    text += &format!(
        "{} passed, {} with a note, {} not applicable, {} failed, {} cut short; seed {}\n",
        count("pass"),
        count("note"),
        count("n/a "),
        count("FAIL"),
        count("cut "),
        made.seed
    );
    text.trim_end().to_owned()
}

fn mark(verdict: &Verdict) -> (anstyle::Style, &'static str) {
    match verdict {
        Verdict::Passed(_) => (GOOD, "pass"),
        Verdict::Noted(..) => (NOTICE, "note"),
        Verdict::NotApplicable(_) => (FAINT, "n/a "),
        Verdict::CutShort(_) => (NOTICE, "cut "),
        Verdict::Failed(_) => (BAD, "FAIL"),
    }
}

fn line(what: &str, text: &str) -> String {
    format!(
        "       {} {text}\n",
        paint(FAINT, &format!("{:<12}", format!("{what}:")))
    )
}

fn failed(failure: &Failure) -> String {
    let mut text = line("expected", &failure.expected) + &line("got", &failure.got);
    text += &line("settings", &failure.history.settings);
    let steps = &failure.history.steps;
    let left_out = steps.len().saturating_sub(STEPS);
    if left_out > 0 {
        text += &line(
            "steps",
            &format!("the first {left_out} are left out; --json has them"),
        );
    }
    for (place, step) in steps.iter().enumerate().skip(left_out) {
        text += &line(&format!("step {}", place + 1), step);
    }
    text
}

/// For programs.
pub(super) fn json(made: &Made<'_>, verdicts: &Verdicts) -> Value {
    let cases: Vec<Value> = verdicts
        .0
        .iter()
        .map(|(case, verdict)| {
            let mut object = json!({ "case": case, "promise": case.promise() });
            let more = match verdict {
                Verdict::Passed(done) => json!({ "verdict": "pass", "done": done }),
                Verdict::Noted(done, notes) => json!({ "verdict": "note", "done": done, "notes": notes }),
                Verdict::NotApplicable(why) => json!({ "verdict": "not-applicable", "why": why }),
                Verdict::CutShort(by) => json!({ "verdict": "cut-short", "by": by }),
                Verdict::Failed(failure) => json!({
                    "verdict": "fail",
                    "expected": failure.expected,
                    "got": failure.got,
                    "settings": failure.history.settings,
                    "steps": failure.history.steps,
                }),
            };
            if let (Some(object), Value::Object(more)) = (object.as_object_mut(), more) {
                object.extend(more);
            }
            object
        })
        .collect();
    let policy = made.policy.map(|policy| {
        let said = policy.description();
        json!({ "name": said.name, "version": said.version, "digest": policy.digest().to_string() })
    });
    json!({
        "file": made.file,
        "policy": policy,
        "seed": made.seed,
        "settings": made.settings,
        "passed": verdicts.failed() == 0,
        "cases": cases,
    })
}
