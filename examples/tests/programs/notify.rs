//! `notify --state`: circuits that outlive the process.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::running::{Running, example};

fn notify(state: &Path) -> Command {
    let mut notify = example("notify");
    notify.arg("--state").arg(state);
    notify
}

#[test]
fn an_open_circuit_is_open_with_the_rest_of_its_wait_after_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("notify.json");
    let mut first = Running::start(&mut notify(&state));
    first.line(&["notify.json is not there yet"]);
    first.line(&["email", "closed -> open", "for 2s"]);
    first.kill();

    let mut second = Running::start(&mut notify(&state));
    second.line(&["restored", "circuit(s) from", "notify.json"]);
    let restored = second.line(&["  email: open, ", " of its wait left"]);
    let left = restored.split_once("open, ").unwrap().1;
    let left = left.strip_suffix("s of its wait left").unwrap();
    // Two seconds, less what passed until it was saved. Time spent stopped does not count.
    let seconds: f64 = match left.strip_suffix('m') {
        Some(milliseconds) => milliseconds.parse::<f64>().unwrap() / 1_000.0,
        None => left.parse().unwrap(),
    };
    assert!(seconds > 0.0 && seconds <= 2.0, "{restored}");
    // It was open: the next thing that it does is to probe, and not to trip.
    let next = second.line(&["email", " -> "]);
    assert!(next.contains("open -> half-open"), "{next}");
    let (code, said) = second.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("+ 1: an earlier run left it open"), "{said}");
    assert!(said.contains(", 0 lost."), "{said}");
}

#[test]
fn a_damaged_state_file_is_one_clear_line_and_exit_code_2() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("notify.json");
    fs::write(&state, r#"{"format":"tripwit-circuits","version":1,"#).unwrap();
    let (code, said) = Running::start(&mut notify(&state)).end();
    assert_eq!(code, Some(2), "{said}");
    let complaints: Vec<_> = said.lines().filter(|line| line.contains("cannot use")).collect();
    assert_eq!(complaints.len(), 1, "{said}");
    assert!(
        complaints[0].contains("notify.json: the saved state is damaged: "),
        "{said}"
    );
}
