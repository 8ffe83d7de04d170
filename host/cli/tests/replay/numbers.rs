//! The numbers of a replay against those of a second computation.

use serde_json::{Value, json};

use crate::night::{self, Call};
use crate::reference::{DEFAULTS, Outcome, Settings, consecutive};
use crate::support::{Folder, circuit, gzip, json, replay, replay_standard_input};

const IMPATIENT: Settings = Settings {
    failure_threshold: 2,
    success_threshold: 3,
    open_for: 7_500,
    call_timeout: 2_000,
};

const IMPATIENT_JSON: &str =
    r#"{"failure_threshold": 2, "success_threshold": 3, "open_for": "7s500ms", "call_timeout": "2s"}"#;

fn expected(calls: &[Call], upstream: &str, settings: Settings) -> Outcome {
    let to = calls.iter().map(|call| call.end).max().unwrap();
    let own: Vec<_> = calls
        .iter()
        .cloned()
        .enumerate()
        .filter(|(_, call)| call.upstream == upstream)
        .collect();
    consecutive(&own, settings, to)
}

fn results(results: &Value) -> [u64; 3] {
    ["good", "failed", "ignored"].map(|name| results[name].as_u64().unwrap())
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "times of one night"
)]
fn milliseconds(seconds: &Value) -> u64 {
    (seconds.as_f64().unwrap() * 1_000.0).round() as u64
}

fn instant(text: &Value) -> u64 {
    let at: jiff::Timestamp = text.as_str().unwrap().parse().unwrap();
    u64::try_from(at.as_millisecond()).unwrap()
}

fn told(policy: &Value) -> Outcome {
    let names = ["trip", "re-trip", "half-open", "reset"];
    let transitions = policy["transitions"].as_array().unwrap();
    Outcome {
        made: results(&policy["made"]),
        rejected: results(&policy["rejected"]),
        timed_out: results(&policy["timed_out"]).iter().sum(),
        open: milliseconds(&policy["open_seconds"]),
        half_open: milliseconds(&policy["half_open_seconds"]),
        transitions: transitions
            .iter()
            .map(|step| {
                let name = names.into_iter().find(|name| step["operation"] == *name);
                (instant(&step["at"]), name.unwrap())
            })
            .collect(),
        state: ["closed", "open", "half-open"]
            .into_iter()
            .find(|state| policy["state"] == *state)
            .unwrap(),
    }
}

/// Holds a report of the two policies against the second computation.
fn compare(report: &Value, calls: &[Call], key: impl Fn(&str) -> String) {
    assert_eq!(report["calls"], calls.len(), "{report:#}");
    assert_eq!(report["left_out"]["bad_lines"], 0, "{report:#}");
    for upstream in ["payments", "search", "mail"] {
        let found = circuit(report, &key(upstream));
        for (place, settings) in [DEFAULTS, IMPATIENT].into_iter().enumerate() {
            let policy = &found["policies"][place];
            let wanted = expected(calls, upstream, settings);
            assert_eq!(told(policy), wanted, "{upstream}, policy {place}");
            let count = |name| {
                wanted
                    .transitions
                    .iter()
                    .filter(|(_, step)| *step == name)
                    .count()
            };
            assert_eq!(policy["trips"], count("trip"));
            assert_eq!(policy["re_trips"], count("re-trip"));
            assert_eq!(policy["half_opens"], count("half-open"));
            assert_eq!(policy["resets"], count("reset"));
            assert_eq!(policy["failures_spared"], wanted.rejected[1]);
            assert_eq!(policy["good_rejected"], wanted.rejected[0]);
            assert_eq!(policy["transitions_left_out"], 0);
        }
    }
}

/// Replays a log under the two policies.
fn under_both(log: &str, arguments: &[&str]) -> Value {
    let impatient = format!("consecutive@{IMPATIENT_JSON}");
    let mut all = vec!["consecutive", &impatient, "--log", log, "--json"];
    all.extend(arguments);
    json(&replay(&all))
}

#[test]
fn the_night_has_outages_that_are_worth_a_replay() {
    let calls = night::calls(1);
    for (upstream, trips) in [("payments", 1), ("mail", 1)] {
        let outcome = expected(&calls, upstream, DEFAULTS);
        assert!(
            outcome
                .transitions
                .iter()
                .filter(|(_, step)| *step == "trip")
                .count()
                >= trips,
            "{outcome:?}"
        );
        assert!(outcome.rejected[1] > 50, "{outcome:?}");
    }
    let mail = expected(&calls, "mail", DEFAULTS);
    assert!(mail.timed_out > 0 && mail.rejected[0] > 0, "{mail:?}");
    assert_eq!(expected(&calls, "search", DEFAULTS).transitions, []);
}

#[test]
fn a_log_of_nginx_is_replayed_as_computed() {
    let folder = Folder::new();
    let calls = night::calls(1);
    let log = folder.file("access.log", night::nginx(&calls));
    let report = under_both(&log, &[]);
    assert_eq!(
        json!([report["format"], report["by"]]),
        json!(["combined", "upstream"])
    );
    compare(&report, &night::by_seconds_of_the_end(&calls), str::to_owned);
}

#[test]
fn a_log_of_apache_is_replayed_as_computed_from_the_beginnings_of_calls() {
    let folder = Folder::new();
    let calls = night::calls(2);
    let log = folder.file("access.log", night::apache(&calls));
    let report = under_both(&log, &["--layout", night::APACHE_LAYOUT, "--by", "host"]);
    compare(&report, &night::by_seconds_of_the_beginning(&calls), |upstream| {
        format!("{upstream}.example")
    });
}

#[test]
fn json_lines_are_replayed_as_computed_to_the_millisecond() {
    let folder = Folder::new();
    let calls = night::calls(3);
    let log = folder.file("calls.jsonl", night::json(&calls));
    let report = under_both(&log, &[]);
    assert_eq!(report["format"], "JSON lines");
    compare(&report, &calls, str::to_owned);
}

#[test]
fn csv_with_a_column_map_is_replayed_as_computed() {
    let folder = Folder::new();
    let calls = night::calls(4);
    let log = folder.file("calls.csv", night::csv(&calls));
    let maps = [
        "time=ended:ms",
        "took=millis:ms",
        "upstream=target",
        "status=code",
    ];
    let arguments: Vec<&str> = maps.iter().flat_map(|map| ["--map", map]).collect();
    let report = under_both(&log, &[&["--format", "csv"], arguments.as_slice()].concat());
    compare(&report, &calls, str::to_owned);
}

#[test]
fn a_layout_of_ones_own_is_replayed_as_computed() {
    let folder = Folder::new();
    let calls = night::calls(5);
    let log = folder.file("access.log", night::own(&calls));
    let report = under_both(&log, &["--layout", night::OWN_LAYOUT]);
    compare(&report, &calls, str::to_owned);
}

#[test]
fn compressed_logs_in_several_members_and_files_are_read_as_one() {
    let folder = Folder::new();
    let calls = night::calls(6);
    let text = night::json(&calls);
    let line_end = |near: usize| text[near..].find('\n').unwrap() + near + 1;
    let (one, two) = (line_end(text.len() / 3), line_end(text.len() / 2));
    let first = folder.file("calls.2.gz", gzip(&[&text[..one], &text[one..two]]));
    let second = folder.file("calls.1", &text[two..]);
    compare(&under_both(&first, &["--log", &second]), &calls, str::to_owned);
}

#[test]
fn standard_input_is_read_compressed_or_not() {
    let calls = night::calls(7);
    let impatient = format!("consecutive@{IMPATIENT_JSON}");
    for bytes in [night::json(&calls).into_bytes(), gzip(&[&night::json(&calls)])] {
        let report = json(&replay_standard_input(
            bytes,
            &["consecutive", &impatient, "--log", "-", "--json"],
        ));
        assert_eq!(report["log"], "standard input");
        compare(&report, &calls, str::to_owned);
    }
}

#[test]
fn settings_from_a_file_are_those_of_the_file() {
    let folder = Folder::new();
    let calls = night::calls(8);
    let log = folder.file("calls.jsonl", night::json(&calls));
    let settings = folder.file("impatient.json", IMPATIENT_JSON);
    let report = json(&replay(&[
        "consecutive",
        &format!("consecutive@{settings}"),
        "--log",
        &log,
        "--json",
    ]));
    compare(&report, &calls, str::to_owned);
    assert_eq!(report["policies"][1]["settings"]["failure_threshold"], 2);
}

#[test]
fn a_policy_in_a_file_does_what_the_shipped_one_does() {
    let folder = Folder::new();
    let calls = night::calls(9);
    let log = folder.file("calls.jsonl", night::json(&calls));
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/../sdk/components/consecutive.wasm");
    let impatient = format!("{shipped}@{IMPATIENT_JSON}");
    let report = json(&replay(&[shipped, &impatient, "--log", &log, "--json"]));
    compare(&report, &calls, str::to_owned);
    assert_eq!(report["policies"][0]["name"], "consecutive");
}

#[test]
fn lines_that_are_a_little_out_of_order_change_nothing() {
    let folder = Folder::new();
    let calls = night::calls(10);
    let mut lines: Vec<String> = night::json(&calls).lines().map(str::to_owned).collect();
    for pair in lines.chunks_exact_mut(40) {
        pair.reverse();
    }
    let log = folder.file("calls.jsonl", lines.join("\n"));
    let report = under_both(&log, &[]);
    assert_eq!(report["calls_out_of_order"], 0);
    // Equal times keep the order of lines, so calls are compared in that one.
    let mut calls = calls;
    for pair in calls.chunks_exact_mut(40) {
        pair.reverse();
    }
    compare(&report, &calls, str::to_owned);
}
