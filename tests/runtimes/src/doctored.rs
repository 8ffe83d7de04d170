//! Scenarios that are wrong in one thing each.

use serde_json::{Value, json};

/// The file that they are written to.
pub(crate) const NAME: &str = "outbox-doctored.json";

/// A wrong scenario.
pub(crate) struct Case {
    /// Its name.
    pub(crate) name: &'static str,
    /// The second is wrong.
    steps: [Value; 2],
    /// What the report must have of it, beside its file and its name.
    pub(crate) report: &'static [&'static str],
}

/// A file of a scenario that is right and of these.
pub(crate) fn file(wrong: &[Case]) -> Value {
    let mut scenarios = vec![json!({"name": "Right.", "source": "none", "steps": [wait(), trip(json!({}))]})];
    scenarios.extend(
        wrong
            .iter()
            .map(|case| json!({"name": case.name, "source": "none", "steps": case.steps})),
    );
    json!({"policy": "outbox", "about": "Doctored.", "scenarios": scenarios})
}

fn wait() -> Value {
    json!({"wait": "1s"})
}

/// A step that is right in all that it expects, but for these fields.
fn trip(with: Value) -> Value {
    let mut step = json!({
        "trip": true,
        "expect": {"transition": {"operation": "trip", "at": "1000h1s", "wait": null, "cooldown_count": 10}},
        "log": [{"line": LINE, "fields": {"topic": "orders", "cooldown_count": 10}}],
        "spans": [{"name": "orders trip", "at": "1000h1s", "attributes": {
            "instrumentation.domain": "circuit_breaker",
            "paramore.brighter.operation": "trip",
            "circuit_breaker.topic": "orders",
            "circuit_breaker.cooldown_count": 10,
        }}],
    });
    if let (Some(all), Value::Object(with)) = (step.as_object_mut(), with) {
        all.extend(with);
    }
    step
}

const LINE: &str =
    "WARN Circuit breaker tripped for topic orders; suppressing publish for 10 cooldown cycle(s)";

/// All of them.
pub(crate) fn scenarios() -> Vec<Case> {
    let mut all = answers();
    all.extend(lines());
    all.extend(spans());
    all.extend(beyond_the_format());
    all.push(Case {
        name: "A rejection that is not expected.",
        steps: [
            json!({"trip": true, "log": ["WARN*"], "spans": ["orders trip"]}),
            json!({"acquire": "a"}),
        ],
        report: &["step 2", "/decision", "expected \"admit\"", "got      \"reject\""],
    });
    all
}

/// A scenario whose second step is this one.
fn case(name: &'static str, step: Value, report: &'static [&'static str]) -> Case {
    Case {
        name,
        steps: [wait(), step],
        report,
    }
}

fn answers() -> Vec<Case> {
    let case = |name, expect: Value, report| case(name, trip(json!({ "expect": expect })), report);
    vec![
        case(
            "Another number.",
            json!({"transition": {"cooldown_count": 11}}),
            &[
                "step 2",
                "/transition/cooldown_count",
                "expected 11",
                "got      10",
            ],
        ),
        case(
            "A truth for a number.",
            json!({"transition": {"cooldown_count": true}}),
            &["expected true", "got      10"],
        ),
        case(
            "Another text.",
            json!({"transition": {"operation": "reset"}}),
            &["expected \"reset\"", "got      \"trip\""],
        ),
        case(
            "A value for none.",
            json!({"transition": {"wait": "1s"}}),
            &["expected \"1s\"", "got      null"],
        ),
        case(
            "None for a value.",
            json!({"transition": null}),
            &["expected null", "\"operation\":\"trip\""],
        ),
        case(
            "A field that is not there.",
            json!({"transition": {"reason": null}}),
            &["/transition/reason", "no such field"],
        ),
        case(
            "A time before the range.",
            json!({"transition": {"at": {"from": "1000h2s", "to": "1001h"}}}),
            &["got      \"1000h1s\""],
        ),
        case(
            "A time after the range.",
            json!({"transition": {"at": {"from": "1h", "to": "1000h"}}}),
            &["got      \"1000h1s\""],
        ),
    ]
}

fn lines() -> Vec<Case> {
    let case = |name, with: Value, report| case(name, trip(with), report);
    vec![
        case(
            "A line that does not come.",
            json!({"log": [LINE, LINE]}),
            &["step 2", "log", LINE],
        ),
        case(
            "A line too many.",
            json!({"log": []}),
            &["log", "expected []", LINE],
        ),
        case(
            "Another line.",
            json!({"log": [LINE.replace("WARN", "INFO")]}),
            &["log", "INFO", LINE],
        ),
        case(
            "A line by a letter.",
            json!({"log": [LINE.replace("orders", "order")]}),
            &["log", LINE],
        ),
        case(
            "Another start of a line.",
            json!({"log": ["WARN Circuit breaker reset*"]}),
            &["log", LINE],
        ),
        case(
            "A field of a line too many.",
            json!({"log": [{"line": LINE, "fields": {"topic": "orders"}}]}),
            &["log", "cooldown_count"],
        ),
        case(
            "A number of a line as a text.",
            json!({"log": [{"line": LINE, "fields": {"topic": "orders", "cooldown_count": "10"}}]}),
            &["log"],
        ),
    ]
}

fn spans() -> Vec<Case> {
    let case = |name, with: Value, report| case(name, trip(with), report);
    vec![
        case(
            "A span that does not come.",
            json!({"spans": ["orders trip", "orders trip"]}),
            &["step 2", "spans"],
        ),
        case(
            "A span too many.",
            json!({"spans": []}),
            &["spans", "expected []", "\"orders trip\""],
        ),
        case(
            "Another span.",
            json!({"spans": ["orders reset"]}),
            &["spans", "\"orders trip\""],
        ),
        case(
            "Another time of a span.",
            json!({"spans": [{"name": "orders trip", "at": "1000h"}]}),
            &["spans", "\"1000h1s\""],
        ),
        case(
            "An attribute of a span too many.",
            json!({"spans": [{"name": "orders trip", "attributes": {}}]}),
            &["spans", "instrumentation.domain"],
        ),
    ]
}

fn beyond_the_format() -> Vec<Case> {
    vec![
        case(
            "An unknown verb.",
            json!({"jump": true}),
            &["step 2", "exactly one verb", "jump"],
        ),
        case(
            "Two verbs.",
            json!({"wait": "1s", "clock": "1s"}),
            &["exactly one verb", "wait", "clock"],
        ),
        case(
            "An unknown argument.",
            json!({"trip": true, "force": true}),
            &["no arguments", "force"],
        ),
        case("No time.", json!({"wait": "soon"}), &["soon", "is no time"]),
        case(
            "A permit of nobody's.",
            json!({"settle": "a", "outcome": "success"}),
            &["no call was admitted as"],
        ),
        case(
            "A policy of nobody's.",
            json!({"restore": "a", "policy": "nothing"}),
            &["nothing.wasm"],
        ),
        case(
            "A swap to a policy of nobody's.",
            json!({"swap": "nothing"}),
            &["nothing.wasm"],
        ),
        case(
            "A restart that keeps half of it.",
            json!({"restart": "half"}),
            &["a restart is", "half"],
        ),
        case(
            "A swap to settings that are refused.",
            json!({"swap": "consecutive", "settings": {"failure_threshold": 0}}),
            &["/error", "expected null", "/failure_threshold"],
        ),
        case(
            "Other settings that are refused.",
            json!({"reconfigure": {"size": 1}}),
            &["/error", "expected null", "/size"],
        ),
        case(
            "Settings that are refused.",
            json!({"attach": {"size": 1}}),
            &["/error", "expected null", "\"settings\""],
        ),
    ]
}
