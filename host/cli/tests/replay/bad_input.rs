//! What cannot be replayed: one line that says what and where, and exit code 2.

use crate::night;
use crate::support::{Folder, replay, replay_standard_input, stderr};

/// Runs it, wants it to fail as bad input does, and gives the line.
fn refused(arguments: &[&str]) -> String {
    let output = replay(arguments);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert_eq!(output.stdout, b"", "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(
        said.starts_with("error: ") && !said.contains("panicked"),
        "{said}"
    );
    said
}

fn contains(said: &str, parts: &[&str]) {
    for part in parts {
        assert!(said.contains(part), "{part:?} is missing in {said}");
    }
}

#[test]
fn a_log_that_cannot_be_read_is_named() {
    let folder = Folder::new();
    let missing = folder.path("missing.log");
    let missing = missing.to_str().unwrap();
    contains(&refused(&["--log", missing]), &["cannot read the log", missing]);
    let root = folder.root().to_str().unwrap();
    contains(
        &refused(&["--log", root]),
        &["cannot read the log", root, "folder"],
    );
    contains(
        &refused(&["--log", "-", "--log", "-"]),
        &["standard input can be read once"],
    );
    contains(&refused(&[]), &["--log"]);
    let broken = folder.file("broken.gz", [0x1f, 0x8b, 0, 0, 0, 0]);
    contains(&refused(&["--log", &broken]), &["cannot read the log", &broken]);
}

#[test]
fn an_unknown_format_is_an_error_that_says_what_to_do() {
    let folder = Folder::new();
    let log = folder.file("notes.txt", "dear diary\nnothing failed today\n");
    contains(
        &refused(&["--log", &log]),
        &[&log, "line 1", "--format", "--layout"],
    );
    contains(
        &refused(&["--log", &log, "--format", "json"]),
        &["no line of 2", &log, "line 1", "no JSON"],
    );
    contains(&refused(&["--log", &log, "--format", "xml"]), &["xml"]);
    contains(
        &refused(&["--log", &log, "--layout", "$msec"]),
        &["--layout", "a time and a status"],
    );
    let empty = folder.file("empty.log", "\n\n");
    contains(&refused(&["--log", &empty]), &["no lines"]);
    let output = replay_standard_input("", &["--log", "-"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_log_that_lacks_something_says_what() {
    let folder = Folder::new();
    let csv = folder.file("calls.csv", "when,what\n1,2\n");
    contains(
        &refused(&["--log", &csv, "--format", "csv"]),
        &["no line of 1", "line 2", "no time"],
    );
    contains(
        &refused(&["--log", &csv, "--format", "csv", "--map", "time=at"]),
        &["the header has no column \"at\""],
    );
    let json = folder.file(
        "calls.jsonl",
        r#"{"time": "2026-01-01T00:00:00Z", "status": 200, "duration": 5}"#,
    );
    contains(
        &refused(&["--log", &json]),
        &["line 1", "5 has no unit", "--map took="],
    );
    let json = folder.file(
        "calls.jsonl",
        r#"{"time": "2026-01-01T00:00:00Z", "status": 200}"#,
    );
    contains(
        &refused(&["--log", &json, "--by", "upstream"]),
        &["no line of 1 tells of a call", "upstream"],
    );
}

#[test]
fn a_policy_that_cannot_be_had_is_named() {
    let folder = Folder::new();
    let log = folder.file("access.log", night::nginx(&night::calls(1)));
    let refused = |policy: &str| refused(&[policy, "--log", &log]);
    contains(
        &refused("consecutiv"),
        &["no policy \"consecutiv\"", "consecutive, outbox, window"],
    );
    let text = folder.file("text.wasm", "no component");
    contains(&refused(&text), &[&text, "not a WebAssembly component"]);
    let foreign = wat::parse_str(r#"(component (import "wasi:filesystem/types@0.2.0" (instance)))"#).unwrap();
    let foreign = folder.file("foreign.wasm", foreign);
    contains(&refused(&foreign), &[&foreign, "wasi:filesystem/types@0.2.0"]);
}

#[test]
fn settings_that_do_not_fit_are_named_with_their_field() {
    let folder = Folder::new();
    let log = folder.file("access.log", night::nginx(&night::calls(1)));
    let refused = |policy: &str| refused(&[policy, "--log", &log]);
    contains(
        &refused(r#"consecutive@{"failure_threshold": 0}"#),
        &["settings of consecutive@", "/failure_threshold"],
    );
    contains(&refused(r#"consecutive@{"colour": 1}"#), &["/colour"]);
    contains(&refused("consecutive@{"), &["settings of consecutive@{"]);
    contains(
        &refused("consecutive@nowhere.json"),
        &["cannot read the settings nowhere.json"],
    );
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let folder = Folder::new();
    let log = folder.file("access.log", night::nginx(&night::calls(1)));
    let refused = |arguments: &[&str]| refused(&[&["--log", &log], arguments].concat());
    contains(
        &refused(&["--failures", "5x"]),
        &["--failures", "\"5x\" is no status"],
    );
    contains(
        &refused(&["--map", "colour=x"]),
        &["--map", "\"colour\" is no role"],
    );
    contains(&refused(&["--by", "colour"]), &["--by"]);
    contains(
        &refused(&["--longest", "long"]),
        &["--longest", "no length of time"],
    );
    contains(&refused(&["--max-circuits", "0"]), &["--max-circuits"]);
    let plot = folder.path("no/such/folder.svg");
    let plot = plot.to_str().unwrap();
    contains(&refused(&["--plot", plot]), &["cannot write the plot", plot]);
}
