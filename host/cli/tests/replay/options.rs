//! Options, what is shown, and lines that are not as they should be.

use crate::night;
use crate::support::{Folder, circuit, json, replay, stderr, stdout};

/// JSON lines, one call a second from midnight on, with these statuses and fields.
fn lines(calls: &[&str]) -> String {
    calls
        .iter()
        .enumerate()
        .map(|(second, fields)| format!("{{\"time\": \"2026-01-01T00:00:{second:02}Z\", {fields}}}\n"))
        .collect()
}

#[test]
fn bad_lines_are_counted_and_shown_and_the_rest_is_replayed() {
    let folder = Folder::new();
    let calls = night::calls(1);
    let mut log = night::nginx(&calls).into_bytes();
    log.splice(0..0, *b"\x16\x03\x01 garbage\n\n");
    log.extend(b"192.0.2.7 - - [yesterday] \"GET / HTTP/1.1\" 200 1 ua=\"payments\"\ncut off");
    let log = folder.file("access.log", log);
    let report = json(&replay(&["--log", &log, "--json"]));
    assert_eq!(report["calls"], calls.len());
    assert_eq!(report["lines"], calls.len() + 3);
    let left_out = &report["left_out"];
    assert_eq!(left_out["bad_lines"], 3);
    assert_eq!(left_out["first_bad_lines"][0]["line"], 1);
    assert_eq!(left_out["first_bad_lines"][1]["line"], calls.len() + 3);
    let problem = left_out["first_bad_lines"][1]["problem"].as_str().unwrap();
    assert!(problem.contains("\"yesterday\" cannot be read"), "{problem}");

    let shown = stdout(&replay(&["--log", &log]));
    assert!(
        shown.contains("3 lines could not be used and were left out:"),
        "{shown}"
    );
    assert!(shown.contains(&format!("{log}, line 1: ")), "{shown}");
    assert!(!shown.contains('\u{1b}') && !shown.contains('\u{16}'), "{shown}");
}

#[test]
fn people_are_shown_a_table_and_the_first_moves() {
    let folder = Folder::new();
    let log = folder.file("access.log", night::nginx(&night::calls(1)));
    let output = replay(&["consecutive", "outbox", "--log", &log]);
    let shown = stdout(&output);
    for text in [
        "calls by upstream in 3 circuits, ",
        " to 2026-01-01 01:00:00 UTC",
        "failures spared",
        "good rejected",
        "payments",
        "1 consecutive",
        "2 outbox",
        "trip, open for 30s",
        "trip, open for 10 cool-down cycles",
        "more; --json has them",
    ] {
        assert!(shown.contains(text), "{text:?} is missing in {shown}");
    }
    assert_eq!(stderr(&output), "", "no progress where it is no terminal");
}

#[test]
fn the_statuses_that_are_failures_can_be_chosen() {
    let folder = Folder::new();
    let calls = [
        r#""status": 429"#,
        r#""status": 503"#,
        r#""status": "000""#,
        r#""status": 499"#,
        r#""status": 200, "error": "reset by peer""#,
        r#""status": 200, "error": null"#,
    ];
    let log = folder.file("calls.jsonl", lines(&calls));
    let counted = |arguments: &[&str]| {
        let report = json(&replay(&[&["--log", &log, "--json"], arguments].concat()));
        let calls = &circuit(&report, "all")["calls"];
        ["good", "failed", "ignored"].map(|name| calls[name].as_u64().unwrap())
    };
    assert_eq!(counted(&[]), [2, 3, 1]);
    assert_eq!(counted(&["--failures", "429,none"]), [2, 3, 1]);
    assert_eq!(counted(&["--failures", "4xx,5xx", "--ignored", ""]), [2, 4, 0]);
}

#[test]
fn calls_are_grouped_as_asked() {
    let folder = Folder::new();
    let calls = [
        r#""status": 200, "host": "A.example:80", "path": "/api/v1/x?y=1", "upstream": "one""#,
        r#""status": 200, "host": "b.example", "path": "/api/v2/x", "upstream": "two""#,
        r#""status": 200, "host": "b.example", "path": "/other", "upstream": "-""#,
    ];
    let log = folder.file("calls.jsonl", lines(&calls));
    let keys = |by: &[&str]| {
        let report = json(&replay(&[&["--log", &log, "--json"], by].concat()));
        let circuits = report["circuits"].as_array().unwrap();
        let mut keys: Vec<_> = circuits
            .iter()
            .map(|circuit| circuit["circuit"].as_str().unwrap().to_owned())
            .collect();
        keys.sort();
        (keys, report["left_out"]["lines_without_group"].as_u64().unwrap())
    };
    let of = |keys: &[&str], left_out| {
        (
            keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>(),
            left_out,
        )
    };
    assert_eq!(keys(&[]), of(&["one", "two"], 1));
    assert_eq!(keys(&["--by", "host"]), of(&["a.example", "b.example"], 0));
    assert_eq!(keys(&["--by", "path"]), of(&["/api", "/other"], 0));
    assert_eq!(
        keys(&["--by", "path:2"]),
        of(&["/api/v1", "/api/v2", "/other"], 0)
    );
    assert_eq!(keys(&["--by", "all"]), of(&["all"], 0));
    assert_eq!(keys(&["--circuit", "two"]), of(&["two"], 1));
}

#[test]
fn a_retried_request_is_a_call_to_each_upstream_it_was_sent_to() {
    let folder = Folder::new();
    let line = r#"192.0.2.7 - - [01/Jan/2026:00:00:10 +0000] "GET / HTTP/1.1" 200 1 "-" "-" ua="10.0.0.1:80, 10.0.0.2:80" us="502, 200" urt="3.000, 1.000""#;
    let log = folder.file("access.log", line);
    let report = json(&replay(&["--log", &log, "--json"]));
    assert_eq!(report["calls"], 2);
    assert_eq!(report["from"], "2026-01-01T00:00:06Z");
    assert_eq!(circuit(&report, "10.0.0.1:80")["calls"]["failed"], 1);
    assert_eq!(circuit(&report, "10.0.0.2:80")["calls"]["good"], 1);
}

#[test]
fn cool_down_cycles_run_as_often_as_asked() {
    let folder = Folder::new();
    let calls = [[r#""status": 500"#].as_slice(), &[r#""status": 200"#; 50]].concat();
    let log = folder.file("calls.jsonl", lines(&calls));
    let replayed = |every: &str| {
        let settings = r#"outbox@{"cooldown_count": 2}"#;
        let report = json(&replay(&[
            settings,
            "--log",
            &log,
            "--json",
            "--cool-down-every",
            every,
        ]));
        let policy = &circuit(&report, "all")["policies"][0];
        (
            policy["open_seconds"].as_f64().unwrap(),
            policy["good_rejected"].as_u64().unwrap(),
            policy["resets"].as_u64().unwrap(),
        )
    };
    // With a count of 2 the third cycle resets: at 00:00:15, and there is a call at that second too, which comes after it.
    assert_eq!(replayed("5s"), (15.0, 14, 1));
    assert_eq!(replayed("10s"), (30.0, 29, 1));
    assert_eq!(replayed("1h"), (50.0, 50, 0));
}

#[test]
fn circuits_beyond_the_most_are_left_out_and_counted() {
    let folder = Folder::new();
    let calls: Vec<String> = (0..50)
        .map(|number| format!(r#""status": 200, "host": "h{}.example""#, number % 5))
        .collect();
    let calls: Vec<&str> = calls.iter().map(String::as_str).collect();
    let log = folder.file("calls.jsonl", lines(&calls));
    let report = json(&replay(&["--log", &log, "--json", "--max-circuits", "3"]));
    assert_eq!(report["circuits"].as_array().unwrap().len(), 3);
    assert_eq!(report["left_out"]["calls_beyond_max_circuits"], 20);
}

#[test]
fn what_is_far_out_of_order_is_counted_and_not_lost() {
    let folder = Folder::new();
    let mut calls: Vec<String> = lines(&[r#""status": 200"#; 50])
        .lines()
        .map(str::to_owned)
        .collect();
    calls.swap(0, 49);
    let log = folder.file("calls.jsonl", calls.join("\n"));
    let report = json(&replay(&["--log", &log, "--json", "--longest", "10s"]));
    assert_eq!(report["calls"], 50);
    // The last line is that of the first second, and the 39 before it are late since the first one was the last.
    assert!(report["calls_out_of_order"].as_u64().unwrap() > 0, "{report:#}");
    let report = json(&replay(&["--log", &log, "--json"]));
    assert_eq!(report["calls_out_of_order"], 0);
}

#[test]
fn a_plot_shows_each_circuit_and_each_policy() {
    let folder = Folder::new();
    let log = folder.file("access.log", night::nginx(&night::calls(1)));
    let plot = folder.path("night.svg");
    let output = replay(&[
        "consecutive",
        r#"consecutive@{"failure_threshold": 50}"#,
        "--log",
        &log,
        "--plot",
        plot.to_str().unwrap(),
        "--top",
        "2",
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let drawn = std::fs::read_to_string(plot).unwrap();
    assert!(
        drawn.starts_with("<svg") && drawn.trim_end().ends_with("</svg>"),
        "{drawn}"
    );
    for text in [
        "payments",
        "mail",
        "1 consecutive",
        "2 consecutive@",
        "error rate of each",
        "open for 30.",
    ] {
        assert!(drawn.contains(text), "{text:?} is missing");
    }
    assert!(!drawn.contains("search"), "only two circuits are asked for");
}
