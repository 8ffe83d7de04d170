//! `tripwit check`, run as a person would run it.
#![expect(
    clippy::unwrap_used,
    reason = "a test fails where something is not as it should be"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::cargo::cargo_bin_cmd;
use serde_json::Value;

/// Runs `tripwit check`.
fn check(file: &Path, arguments: &[&str]) -> Output {
    let mut command = cargo_bin_cmd!("tripwit");
    command.arg("check").arg(file).args(arguments).output().unwrap()
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

fn wrong() -> PathBuf {
    folder("tests/guests/built/wrong.wasm")
}

/// A file with these bytes, in a folder that goes with the first of the pair.
fn file(bytes: impl AsRef<[u8]>) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("policy.wasm");
    fs::write(&file, bytes).unwrap();
    (folder, file)
}

fn component(wat: &str) -> (tempfile::TempDir, PathBuf) {
    file(wat::parse_str(wat).unwrap())
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

fn case<'a>(report: &'a Value, name: &str) -> &'a Value {
    let cases = report["cases"].as_array().unwrap();
    cases.iter().find(|case| case["case"] == name).unwrap()
}

/// The cases that came to this verdict.
fn cases<'a>(report: &'a Value, verdict: &str) -> Vec<&'a str> {
    let cases = report["cases"].as_array().unwrap().iter();
    let those = cases.filter(|case| case["verdict"] == verdict);
    those.map(|case| case["case"].as_str().unwrap()).collect()
}

/// Whether the case finds the fault, shows how, and nothing is left untried.
fn finds(fault: &str, by: &str) {
    let settings = format!(r#"{{"fault": "{fault}"}}"#);
    let output = check(&wrong(), &["--json", "--settings", &settings]);
    let report = json(&output);
    assert_eq!(
        output.status.code(),
        Some(1),
        "{fault}: {:?}",
        cases(&report, "fail")
    );
    let found = case(&report, by);
    assert_eq!(found["verdict"], "fail", "{fault}: {:?}", cases(&report, "fail"));
    assert_ne!(found["expected"], found["got"], "{fault}");
    assert!(!found["steps"].as_array().unwrap().is_empty(), "{fault}: {found}");
    assert!(found["settings"].as_str().unwrap().contains(fault), "{found}");
    assert_eq!(cases(&report, "cut-short"), Vec::<&str>::new(), "{fault}");
}

/// Where only one promise is broken, only that is reported.
fn finds_only(fault: &str, by: &str) {
    let settings = format!(r#"{{"fault": "{fault}"}}"#);
    let output = check(&wrong(), &["--json", "--settings", &settings]);
    assert_eq!(cases(&json(&output), "fail"), [by], "{fault}");
    finds(fault, by);
}

macro_rules! faults {
    ($($test:ident: $finds:ident($fault:literal, $case:literal);)+) => {
        /// Every fault that has a test.
        const FAULTS: &[&str] = &[$($fault),+];

        $(#[test]
        fn $test() {
            $finds($fault, $case);
        })+
    };
}

faults! {
    a_lease_that_drops_successes_that_count_is_found: finds("lying-lease", "leases");
    a_lease_that_holds_too_long_is_found: finds("long-lease", "leases");
    a_probe_that_is_ignored_and_keeps_its_place_is_found: finds("leaked-probe", "permits");
    a_ticket_that_counts_twice_is_found: finds("double-settle", "permits");
    a_late_result_that_prolongs_the_wait_is_found: finds("late-result", "generations");
    a_generation_that_goes_back_is_found: finds("older-generation", "generations");
    a_clock_that_underflows_is_found: finds("clock-underflow", "clock");
    a_wait_that_ends_early_is_found: finds("early-wait", "clock");
    a_wait_that_restarts_is_found: finds("restarted-wait", "clock");
    a_move_that_no_answer_has_is_found: finds("hidden-move", "moves");
    a_move_without_a_span_is_found: finds("untold-move", "moves");
    a_move_with_two_spans_is_found: finds("told-twice", "moves");
    a_move_with_two_log_lines_is_found: finds("logged-twice", "moves");
    a_span_without_a_move_is_found: finds("span-without-move", "moves");
    a_move_by_another_name_is_found: finds("wrong-edge", "edges");
    a_move_by_somebody_else_is_found: finds("wrong-cause", "edges");
    a_snapshot_that_loses_the_wait_is_found: finds("lost-wait", "snapshots");
    a_snapshot_that_loses_the_mode_is_found: finds("lost-mode", "snapshots");
    a_trap_over_a_foreign_detail_is_found: finds("foreign-detail", "snapshots");
    settings_that_are_not_checked_are_found: finds("unchecked-settings", "settings");
    an_error_that_names_no_field_is_found: finds("wrong-pointer", "settings");
    a_mode_that_is_ignored_is_found: finds("ignored-mode", "modes");
    a_shadow_that_decides_nothing_is_found: finds("disabled-shadow", "modes");
    an_inspect_that_takes_a_probe_is_found: finds("moving-inspect", "queries");
    a_half_open_that_never_ends_is_found: finds("endless-half-open", "half-open");
    a_trip_that_shortens_the_wait_is_found: finds("shorter-wait", "operator");
    a_circuit_that_cycles_touch_for_nothing_is_found: finds("touched-by-cycles", "cool-down");
    keys_that_are_taken_for_one_another_are_found: finds("mixed-keys", "keys");
    a_detached_circuit_that_comes_back_is_found: finds("remembered", "keys");
}

#[test]
fn every_fault_of_the_wrong_policy_has_a_test() {
    let policy = tripwit::Policy::from_file(wrong()).unwrap();
    let schema: Value = serde_json::from_str(&policy.description().settings_schema).unwrap();
    let faults = schema["properties"]["fault"]["enum"].as_array().unwrap();
    let faults: BTreeSet<&str> = faults.iter().map(|fault| fault.as_str().unwrap()).collect();
    let tested = FAULTS.iter().copied().chain(["none", "silent"]);
    assert_eq!(faults, tested.collect());
}

#[test]
fn a_move_that_is_told_twice_breaks_no_other_promise() {
    finds_only("told-twice", "moves");
}

#[test]
fn every_shipped_policy_passes() {
    let mut shipped = 0;
    for entry in fs::read_dir(folder("host/sdk/components")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "wasm") {
            let output = check(&path, &[]);
            assert!(output.status.success(), "{}", stdout(&output));
            shipped += 1;
        }
    }
    assert!(shipped >= 2, "{shipped}");
}

#[test]
fn policies_with_faults_that_are_not_asked_for_pass() {
    for (file, settings) in [("faulty", "{}"), ("wrong", r#"{"fault": "none"}"#)] {
        let file = folder("tests/guests/built").join(file).with_extension("wasm");
        let output = check(&file, &["--settings", settings]);
        assert!(output.status.success(), "{}", stdout(&output));
    }
}

#[test]
fn a_silent_policy_passes_with_a_note() {
    let output = check(&wrong(), &["--json", "--settings", r#"{"fault": "silent"}"#]);
    let report = json(&output);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(
        (cases(&report, "fail"), cases(&report, "note")),
        (vec![], vec!["moves"])
    );
    let notes = case(&report, "moves")["notes"].to_string();
    assert!(notes.contains("no spans and writes no log lines"), "{notes}");
}

#[test]
fn the_report_shows_what_was_expected_and_the_steps_that_lead_there() {
    let output = check(&wrong(), &["--settings", r#"{"fault": "lying-lease"}"#]);
    let text = stdout(&output);
    for part in [
        "FAIL leases",
        "expected:    as when asked: ",
        "got:         by leases: ",
        "settings:    {\"fault\"",
        "step 1:      acquire -> admitted",
        "1 failed",
        "seed 1",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    assert!(
        !text.contains('\u{1b}'),
        "colours, and this is no terminal:\n{text}"
    );
    assert!(output.stderr.is_empty(), "progress, and this is no terminal");
}

#[test]
fn the_same_seed_makes_the_same_report_and_another_one_another() {
    let report = |seed| {
        stdout(&check(
            &wrong(),
            &[
                "--json",
                "--seed",
                seed,
                "--settings",
                r#"{"fault": "disabled-shadow"}"#,
            ],
        ))
    };
    let first = report("5");
    assert_eq!(first, report("5"));
    assert_ne!(first, report("6"));
}

#[test]
fn a_component_that_is_no_policy_fails_by_its_contract() {
    for (wat, problem) in [
        (
            r#"(component (import "wasi:cli/environment@0.2.0" (instance)))"#,
            "imports \"wasi:cli/environment@0.2.0\"",
        ),
        ("(component)", "no export `tripwit:breaker/policy`"),
        (
            r#"(component (instance $i) (export "tripwit:breaker/policy@0.2.0" (instance $i)))"#,
            "tripwit:breaker/policy@0.2.0",
        ),
        (
            r#"(component (instance $i) (export "tripwit:breaker/policy@0.1.0" (instance $i)))"#,
            "does not keep to the contract",
        ),
    ] {
        let (_folder, file) = component(wat);
        let output = check(&file, &["--json"]);
        let report = json(&output);
        assert_eq!(output.status.code(), Some(1), "{wat}");
        assert_eq!(cases(&report, "fail"), ["contract"], "{wat}");
        let got = case(&report, "contract")["got"].as_str().unwrap();
        assert!(got.contains(problem), "{wat}: {got}");
    }
}

#[test]
fn bad_input_is_answered_with_one_line_and_exit_code_2() {
    let whole = fs::read(wrong()).unwrap();
    let (_one, cut) = file(&whole[..whole.len() / 2]);
    let (_two, module) = component("(module)");
    let (_three, empty) = file("");
    let (folder, _) = file("");
    let unreadable = folder.path().join("policy.wasm").join("below a file");
    let wrong = wrong();
    let missing = Path::new("no such file.wasm");
    for (file, arguments, problem) in [
        (missing, &[][..], "cannot read the policy no such file.wasm: "),
        (Path::new("."), &[], "cannot read the policy .: "),
        (
            &cut,
            &[],
            "policy.wasm: the policy is a damaged WebAssembly component",
        ),
        (
            &module,
            &[],
            "policy.wasm: the policy is a core WebAssembly module",
        ),
        (&empty, &[], "policy.wasm: the policy is empty"),
        (&wrong, &["--settings", "{"], "--settings: not JSON: "),
        (
            &wrong,
            &["--settings", r#"{"probes": 0}"#],
            "--settings: /probes: 0 is not a whole number from 1 to 1000",
        ),
        (
            &wrong,
            &["--settings", r#"{"fault": "no such"}"#],
            "--settings: /fault: ",
        ),
        (
            &wrong,
            &["--max-code-size", "64KiB"],
            "unless `max_code_size` of the loader is raised: see --max-code-size",
        ),
        (
            &wrong,
            &["--max-memory", "1MiB"],
            "--max-memory is 1048576; it must be 2 MiB to 4 GiB",
        ),
        (&wrong, &["--max-file-size", "12MB"], "\"12MB\" is no size"),
        (&wrong, &["--cache", "/dev/null"], "--cache: "),
        (&unreadable, &[], "cannot read the policy "),
        (&wrong, &["--seed", "x"], "invalid value 'x' for '--seed <N>'"),
        (&wrong, &["--nonsense"], "unexpected argument '--nonsense' found"),
    ] {
        let output = check(file, arguments);
        let error = String::from_utf8(output.stderr.clone()).unwrap();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.starts_with("error: ") && error.contains(problem), "{error}");
        assert_eq!(error.trim_end().lines().count(), 1, "{error}");
        assert!(output.stdout.is_empty(), "{}", stdout(&output));
    }
}

#[test]
fn help_has_examples_and_exit_codes() {
    let mut command = cargo_bin_cmd!("tripwit");
    let output = command.args(["check", "--help"]).output().unwrap();
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0));
    for part in [
        "tripwit check policy.wasm --seed 7",
        "Exit codes: 0",
        "--settings <JSON>",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}
