//! `tripwit simulate`, `inspect`, `completions` and `man`, run as a person would run them.
#![expect(
    clippy::unwrap_used,
    reason = "a test fails where something is not as it should be"
)]

use std::fs;
use std::process::Output;

use assert_cmd::cargo::cargo_bin_cmd;
use serde_json::{Value, json};

fn tripwit(arguments: &[&str]) -> Output {
    cargo_bin_cmd!("tripwit").args(arguments).output().unwrap()
}

fn said(arguments: &[&str]) -> String {
    let output = tripwit(arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    String::from_utf8(output.stdout).unwrap()
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&said(arguments)).unwrap()
}

/// Runs it, wants it to fail as bad input does, and gives the line.
fn refused(arguments: &[&str]) -> String {
    let output = tripwit(arguments);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert_eq!(output.stdout, b"", "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.starts_with("error: "), "{said}");
    said
}

#[test]
fn a_script_is_played_and_told_as_a_timeline() {
    let told = said(&[
        "simulate",
        "consecutive",
        "ok x20; fail x5; ok x3; wait 30s; ok 250ms x2",
    ]);
    let lines: Vec<Vec<&str>> = told
        .lines()
        .skip(1)
        .map(|line| line.split_whitespace().collect())
        .collect();
    let expected = [
        "0s ok x20 20 × ok",
        "0s fail x5 5 × failed",
        "0s trip, open for 30s",
        "0s ok x3 3 × rejected (open), try again in 30s",
        "0s wait 30s",
        "30s ok 250ms x2 half-open",
        "30s 2 × ok",
        "30.5s reset",
        "30.5s in all: 27 made, 3 rejected; open for 30s, half-open for 500ms; closed in the end",
    ];
    let expected: Vec<Vec<&str>> = expected
        .iter()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(lines, expected, "{told}");
    assert!(!told.contains('\u{1b}'), "no colours where it is no terminal");
}

#[test]
fn calls_that_overlap_share_the_one_probe() {
    let report = json(&[
        "simulate",
        "consecutive",
        "fail x5; wait 30s; ok 1s every 400ms x3; wait 5s",
        "--json",
    ]);
    let answers: Vec<_> = report["timeline"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|happened| happened["step"] == "ok 1s every 400ms x3")
        .map(|happened| happened["answer"]["reason"].clone())
        .collect();
    assert_eq!(answers, [Value::Null, json!("probe-limit"), json!("probe-limit")]);
    assert_eq!(report["state"], "half-open");
}

#[test]
fn durations_time_outs_and_retry_after_count() {
    let report = json(&[
        "simulate",
        r#"consecutive@{"failure_threshold": 2, "call_timeout": "3s", "retry_after_max": "5m"}"#,
        "ok 3s; ok 4s; fail 1s retry-after 2m; wait 119s; ok; wait 1s; ok",
        "--json",
    ]);
    let timeline = report["timeline"].as_array().unwrap();
    let at: Vec<_> = timeline
        .iter()
        .map(|happened| happened["at_seconds"].as_f64().unwrap())
        .collect();
    assert_eq!(at, [0.0, 3.0, 6.0, 7.0, 126.0, 126.0, 127.0]);
    let timed_out: Vec<_> = timeline
        .iter()
        .map(|happened| &happened["answer"]["timed_out"])
        .collect();
    assert_eq!(timed_out[..3], [&json!(false), &json!(true), &json!(false)]);
    assert_eq!(
        timeline[2]["transitions"][0],
        json!({ "at_seconds": 7.0, "operation": "trip", "state": "open", "wait_seconds": 120.0, "cooldown_count": null })
    );
    assert_eq!(timeline[4]["answer"]["retry_after_seconds"], 1.0);
    assert_eq!(report["rejected"], 1);
}

#[test]
fn operators_and_cool_down_cycles_are_played_too() {
    let states = |policy: &str, script: &str| {
        let report = json(&["simulate", policy, script, "--json"]);
        let timeline = report["timeline"].as_array().unwrap().clone();
        let moves = timeline
            .iter()
            .flat_map(|happened| happened["transitions"].as_array().unwrap().clone());
        moves
            .map(|step| step["operation"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        states("consecutive", "trip 10s; ok; wait 10s; ok x2; trip; reset"),
        ["trip", "half-open", "reset", "trip", "reset"]
    );
    assert_eq!(states("outbox", "fail; cool-down x10"), ["trip"]);
    assert_eq!(states("outbox", "fail; cool-down x11"), ["trip", "reset"]);
    let report = json(&[
        "simulate",
        "consecutive",
        "mode forced-open; ok; mode disabled; fail x9",
        "--json",
    ]);
    assert_eq!(report["timeline"][1]["answer"]["reason"], "forced-open");
    assert_eq!(report["made"], 9);
    assert_eq!(report["state"], "closed");
}

#[test]
fn a_script_may_be_in_a_file_or_on_standard_input_and_its_plot_is_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let (file, plot) = (folder.path().join("script.txt"), folder.path().join("plot.svg"));
    let script = "fail x5 # down\nwait 30s\nok x2\n";
    fs::write(&file, script).unwrap();
    let (file, plot) = (file.to_str().unwrap(), plot.to_str().unwrap());
    let from_file = said(&["simulate", "consecutive", "--file", file, "--plot", plot]);
    let drawn = fs::read_to_string(plot).unwrap();
    for text in ["<svg", "open for 30s, from 0s", "failed, at 0s", "ok, at 30s"] {
        assert!(drawn.contains(text), "{text:?} is missing in {drawn}");
    }
    let output = cargo_bin_cmd!("tripwit")
        .args(["simulate", "consecutive", "--file", "-"])
        .write_stdin(script)
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), from_file);
}

#[test]
fn what_cannot_be_simulated_is_refused_in_one_line() {
    for (arguments, part) in [
        (
            ["simulate", "consecutive", "ok; explode"].as_slice(),
            "script: line 1, \"explode\"",
        ),
        (&["simulate", "consecutive", ""], "it has no steps"),
        (&["simulate", "nothing", "ok"], "no policy \"nothing\""),
        (
            &["simulate", "consecutive", "--file", "nowhere.txt"],
            "cannot read the script nowhere.txt",
        ),
        (
            &["simulate", r#"consecutive@{"open_for": "soon"}"#, "ok"],
            "/open_for",
        ),
        (&["simulate", "consecutive"], "SCRIPT"),
        (
            &[
                "simulate",
                "consecutive",
                "ok",
                "--plot",
                "/no/such/folder/plot.svg",
            ],
            "cannot write the plot",
        ),
    ] {
        let said = refused(arguments);
        assert!(said.contains(part), "{part:?} is missing in {said}");
    }
}

#[test]
fn a_policy_is_inspected_by_name_and_by_file() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../sdk/components/consecutive.wasm");
    let by_file = json(&["inspect", file, "--json"]);
    assert_eq!(json(&["inspect", "consecutive", "--json"]), by_file);
    assert_eq!(by_file["name"], "consecutive");
    assert_eq!(by_file["bytes"], fs::metadata(file).unwrap().len());
    assert_eq!(by_file["contract"], "tripwit:breaker/policy@0.1.0");
    let digests = fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../sdk/components/SHA256SUMS"
    ))
    .unwrap();
    let digest = by_file["digest"]
        .as_str()
        .unwrap()
        .strip_prefix("sha256:")
        .unwrap();
    assert!(digests.contains(digest), "{digest} is not in {digests}");
    let imports: Vec<&str> = by_file["imports"]
        .as_array()
        .unwrap()
        .iter()
        .map(|import| import.as_str().unwrap())
        .collect();
    assert!(imports.contains(&"tripwit:breaker/log@0.1.0"), "{imports:?}");
    let settings = by_file["settings"].as_array().unwrap();
    let threshold = settings
        .iter()
        .find(|setting| setting["name"] == "failure_threshold")
        .unwrap();
    assert_eq!(
        (&threshold["default"], &threshold["range"]),
        (&json!(5), &json!("1 to 1000000"))
    );
}

#[test]
fn people_are_shown_settings_with_defaults_and_ranges() {
    let shown = said(&["inspect", "outbox"]);
    for text in [
        "outbox 0.1.0",
        "sha256:",
        "bytes",
        "tripwit:breaker/policy@0.1.0",
        "paramore.brighter",
    ] {
        assert!(shown.contains(text), "{text:?} is missing in {shown}");
    }
    let row = shown
        .lines()
        .find(|line| line.contains("cooldown_count"))
        .unwrap();
    assert!(row.contains("10") && row.contains("0 to 1000000"), "{row}");
}

#[test]
fn what_cannot_be_inspected_is_refused_in_one_line() {
    assert!(refused(&["inspect", "nowhere.wasm"]).contains("no policy \"nowhere.wasm\""));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("policy.wasm");
    fs::write(&file, "no component").unwrap();
    assert!(refused(&["inspect", file.to_str().unwrap()]).contains("not a WebAssembly component"));
}

#[test]
fn completions_and_man_pages_know_every_subcommand() {
    let names = ["check", "componentize", "inspect", "simulate", "replay"];
    for shell in ["bash", "zsh", "fish"] {
        let script = said(&["completions", shell]);
        assert!(names.iter().all(|name| script.contains(name)), "{shell}");
    }
    assert!(said(&["man"]).starts_with(".ie"), "{}", said(&["man"]));
    assert!(said(&["man", "replay"]).contains("cool\\-down\\-every"));
    assert!(refused(&["man", "explode"]).contains("no subcommand \"explode\""));
    let folder = tempfile::tempdir().unwrap();
    said(&["man", "--dir", folder.path().to_str().unwrap()]);
    for name in names {
        assert!(
            folder.path().join(format!("tripwit-{name}.1")).is_file(),
            "{name}"
        );
    }
}

#[test]
fn help_has_examples() {
    for name in [
        "check",
        "componentize",
        "inspect",
        "simulate",
        "replay",
        "completions",
        "man",
    ] {
        let help = said(&[name, "--help"]);
        assert!(
            help.contains("Examples:") && help.contains(&format!("tripwit {name}")),
            "{help}"
        );
    }
}

#[test]
fn what_is_no_policys_module_is_not_made_a_component() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (module, text, output) = (path("module.wasm"), path("text.wasm"), path("policy.wasm"));
    fs::write(&module, wat::parse_str("(module)").unwrap()).unwrap();
    fs::write(&text, "no module").unwrap();
    let refused = |module: &str| refused(&["componentize", module, "--output", &output]);
    assert!(refused("nowhere.wasm").contains("cannot read the module nowhere.wasm"));
    assert!(refused(&text).contains("text.wasm cannot be made a component: it is no WebAssembly module"));
    let said = refused(&module);
    assert!(
        said.contains("module.wasm is no policy: ") && said.contains("tripwit:breaker/policy"),
        "{said}"
    );
    assert!(!fs::exists(&output).unwrap(), "nothing is written");
}

#[test]
fn a_compiled_component_is_taken_from_the_cache_the_next_time() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("compiled");
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../sdk/components/outbox.wasm");
    let arguments = ["inspect", file, "--cache", cache.to_str().unwrap()];
    let first = said(&arguments);
    let kept: Vec<_> = fs::read_dir(&cache)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    let [kept] = kept.as_slice() else {
        panic!("{kept:?}")
    };
    let written = fs::metadata(kept).unwrap().modified().unwrap();
    assert_eq!(said(&arguments), first);
    assert_eq!(fs::metadata(kept).unwrap().modified().unwrap(), written);
}
