//! Settings are checked once, each problem names its field, and the schema says what is checked.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use tripwit_core::{Consecutive, Outbox, Policy, Window, parse_duration};

fn properties<P: Policy>() -> Map<String, Value> {
    let schema: Value = serde_json::from_str(&P::schema()).expect("the schema is JSON");
    assert_eq!(schema["title"], P::NAME);
    assert_eq!(schema["additionalProperties"], false);
    schema["properties"]
        .as_object()
        .expect("an object of properties")
        .clone()
}

fn defaults_of_the_schema_are_the_defaults<P: Policy>() {
    let written: Map<String, Value> = properties::<P>()
        .into_iter()
        .filter_map(|(name, field)| Some((name, field.get("default")?.clone())))
        .collect();
    assert!(!written.is_empty());
    assert_eq!(
        P::parse(&Value::Object(written).to_string()).unwrap(),
        P::parse("{}").unwrap()
    );
}

#[test]
fn the_defaults_that_a_schema_names_are_those_of_empty_settings() {
    defaults_of_the_schema_are_the_defaults::<Consecutive>();
    defaults_of_the_schema_are_the_defaults::<Outbox>();
    defaults_of_the_schema_are_the_defaults::<Window>();
}

/// Each bound of each field, from its schema: the bound itself fits, what lies beyond does not, and the error points at the field.
fn bounds_hold<P: Policy>(beside: impl Fn(&str) -> Value) {
    let parse = |name: &str, value: Value| {
        let mut settings = beside(name);
        settings[name] = value;
        P::parse(&settings.to_string())
    };
    for (name, field) in properties::<P>() {
        let (inside, outside): (Vec<Value>, Vec<Value>) = match field.get("x-minimum") {
            Some(minimum) => {
                let nanoseconds = |value: &Value| parse_duration(value.as_str().unwrap()).unwrap();
                let (low, high) = (nanoseconds(minimum), nanoseconds(&field["x-maximum"]));
                let text = |nanoseconds: u64| json!(format!("{nanoseconds}ns"));
                (
                    vec![text(low), text(high)],
                    vec![text(low - 1), text(high + 1), json!(30), json!("soon"), json!([])],
                )
            }
            None => {
                let (low, high) = (
                    field["minimum"].as_f64().unwrap(),
                    field["maximum"].as_f64().unwrap(),
                );
                let number = |x: f64| {
                    if field["type"] == "integer" {
                        json!(x as i64)
                    } else {
                        json!(x)
                    }
                };
                (
                    vec![number(low), number(high)],
                    vec![number(low - 1.0), number(high + 1.0), json!("5"), json!({})],
                )
            }
        };
        for value in inside {
            assert!(
                parse(&name, value.clone()).is_ok(),
                "{name} {value}: {:?}",
                parse(&name, value.clone())
            );
        }
        for value in outside {
            let error = parse(&name, value.clone()).expect_err(&format!("{name} {value}"));
            assert_eq!(error.field, format!("/{name}"), "{value}");
        }
    }
}

#[test]
fn every_bound_is_the_one_that_the_schema_names() {
    bounds_hold::<Outbox>(|_| json!({}));
    bounds_hold::<Consecutive>(|name| match name {
        "open_for_max" => json!({ "open_for": "1ms" }),
        "probe_timeout" => json!({ "call_timeout": "1ms" }),
        _ => json!({}),
    });
    bounds_hold::<Window>(|name| match name {
        "open_for_max" => json!({ "open_for": "1ms" }),
        "probe_timeout" => json!({ "call_timeout": "1ms" }),
        "minimum_calls" => json!({ "window_time": "1s" }),
        "slow_after" => json!({ "call_timeout": null }),
        _ => json!({}),
    });
}

#[test]
fn times_have_the_bounds_and_defaults_that_the_documents_promise() {
    let window = properties::<Window>();
    for (name, minimum, maximum, default) in [
        ("window_time", "1ms", "24h", Value::Null),
        ("slow_after", "1ms", "24h", Value::Null),
        ("open_for", "1ms", "24h", json!("30s")),
        ("open_for_max", "1ms", "24h", json!("1h")),
        ("retry_after_max", "1ms", "24h", Value::Null),
        ("probe_timeout", "1ms", "48h", Value::Null),
        ("call_timeout", "1ms", "24h", json!("10s")),
    ] {
        let field = &window[name];
        assert_eq!(
            (&field["x-minimum"], &field["x-maximum"], &field["default"]),
            (&json!(minimum), &json!(maximum), &default),
            "{name}"
        );
    }
}

#[test]
fn a_time_that_cannot_be_read_is_refused_with_the_reason() {
    for (text, reason) in [
        (
            "soon",
            r#"not a duration; write numbers with units, such as "30s", "500ms" or "1m30s""#,
        ),
        ("9999999h", "longer than 584 years"),
    ] {
        let error = Consecutive::parse(&json!({ "open_for": text }).to_string()).unwrap_err();
        assert_eq!(error.to_string(), format!(r#"/open_for: "{text}": {reason}"#));
    }
}

#[test]
fn null_is_a_call_without_limit_and_nothing_else() {
    assert!(Consecutive::parse(r#"{"call_timeout": null, "retry_after_max": null}"#).is_ok());
    for name in ["open_for", "probe_timeout"] {
        let error = Consecutive::parse(&json!({ name: null }).to_string()).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(r#"/{name}: null is not a duration; write a text such as "30s""#)
        );
    }
}

#[test]
fn settings_that_contradict_each_other_are_refused_at_the_field_that_yields() {
    let error = Consecutive::parse(r#"{"call_timeout": "10s", "probe_timeout": "9s"}"#).unwrap_err();
    assert_eq!(
        error.to_string(),
        "/probe_timeout: below call_timeout, which is 10s"
    );
    assert!(Consecutive::parse(r#"{"call_timeout": "10s", "probe_timeout": "10s"}"#).is_ok());
    let error = Consecutive::parse(r#"{"open_for": "2h", "open_for_max": "1h"}"#).unwrap_err();
    assert_eq!(error.to_string(), "/open_for_max: below open_for, which is 2h");
    assert!(
        Consecutive::parse(r#"{"open_for": "2h"}"#).is_ok(),
        "left out, the cap follows open_for"
    );
}

#[test]
fn settings_of_a_window_that_contradict_each_other_are_refused_at_the_field_that_yields() {
    for (settings, problem) in [
        (
            json!({ "window_calls": 4, "window_time": "1s" }),
            "/window_time: window_calls is given too; a window has one size",
        ),
        (
            json!({ "window_calls": 4, "minimum_calls": 5 }),
            "/minimum_calls: above window_calls, which is 4: it would never be reached",
        ),
        (
            json!({ "slow_after": "2s", "call_timeout": "2s" }),
            "/slow_after: not below call_timeout, which is 2s",
        ),
    ] {
        let error = Window::parse(&settings.to_string()).unwrap_err();
        assert_eq!(error.to_string(), problem);
    }
    for settings in [
        json!({ "window_calls": 4, "minimum_calls": 4 }),
        json!({ "window_time": "1s", "minimum_calls": 1000 }),
        json!({ "slow_after": "2s", "call_timeout": "2001ms" }),
        json!({ "slow_after": "2s", "call_timeout": null }),
    ] {
        assert!(Window::parse(&settings.to_string()).is_ok(), "{settings}");
    }
    assert_eq!(
        Window::parse(r#"{"window_calls":4}"#).unwrap(),
        Window::parse(r#"{"window_calls":4,"minimum_calls":4}"#).unwrap(),
        "left out, the minimum follows window_calls"
    );
}

#[test]
fn what_is_no_settings_object_is_refused_as_a_whole() {
    for text in ["", "null", "[]", "5", "{", "{\"open_for\": \"30s\",}"] {
        assert_eq!(Consecutive::parse(text).unwrap_err().field, "", "{text}");
    }
    let padded = |length: usize| format!("{{{}}}", " ".repeat(length - 2));
    assert!(Consecutive::parse(&padded(65_536)).is_ok());
    assert_eq!(
        Consecutive::parse(&padded(65_537)).unwrap_err().to_string(),
        "longer than 65536 bytes"
    );
}

#[test]
fn an_unknown_setting_is_named_by_its_pointer() {
    let error = Outbox::parse(r#"{"cool~down/count": 3}"#).unwrap_err();
    assert_eq!(
        error.to_string(),
        "/cool~0down~1count: no such setting; there are cooldown_count"
    );
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in ".{0,200}") {
        let _ = Consecutive::parse(&text);
        let _ = parse_duration(&text);
    }
}
