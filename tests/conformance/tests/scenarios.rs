//! Every scenario of this folder, on every subject that can play it; and whether the folder holds what it says.
#![expect(clippy::unwrap_used, reason = "these are tests")]

use std::collections::BTreeSet;
use std::io::Write;

use tripwit_conformance::{Subject, Suite};

/// Plays everything, and says how much of it, whether or not the test's output is shown.
fn every_scenario_holds_on(subject: Subject) {
    let report = Suite::load().unwrap().run(subject).unwrap();
    // `eprintln` would be caught: nothing may be left out in silence.
    std::io::stderr()
        .write_all(format!("{report}\n").as_bytes())
        .unwrap();
    assert!(report.holds(), "{report}");
}

#[test]
fn every_scenario_holds_on_the_native_core() {
    every_scenario_holds_on(Subject::Native);
}

#[test]
fn every_scenario_holds_through_the_component_and_is_told_to_the_same_byte() {
    every_scenario_holds_on(Subject::Component);
}

#[test]
fn every_scenario_holds_in_the_host_by_its_leases() {
    every_scenario_holds_on(Subject::Host);
}

#[test]
fn every_scenario_holds_in_the_host_that_asks_each_time() {
    every_scenario_holds_on(Subject::HostAskingEachTime);
}

/// The parts of the sources of all scenarios of files of this policy.
fn sources(suite: &Suite, policy: &str) -> BTreeSet<String> {
    suite
        .sources()
        .filter(|(file, ..)| file.starts_with(policy))
        .flat_map(|(_, source, _)| source.split("; ").map(str::to_owned))
        .collect()
}

/// Every result that comes in while a circuit of `consecutive` or `window` is open is late.
const EVENTS_OF_ALL_STATES: [&str; 20] = [
    "acquire",
    "late success",
    "late failure",
    "late timeout",
    "late ignored",
    "trip",
    "trip with wait",
    "reset",
    "automatic",
    "forced-open",
    "disabled",
    "shadow",
    "cool-down",
    "clock forward",
    "clock back",
    "configure",
    "restore",
    "swap",
    "reconfigure",
    "restart with state",
];
const RESULTS: [&str; 4] = ["success", "failure", "timeout", "ignored"];

#[test]
fn every_cell_of_each_policys_state_and_event_table_has_a_scenario() {
    let suite = Suite::load().unwrap();
    for (policy, states, states_of_results) in [
        (
            "consecutive",
            ["closed", "open", "half-open"].as_slice(),
            ["closed", "half-open"],
        ),
        (
            "window",
            ["closed", "open", "half-open"].as_slice(),
            ["closed", "half-open"],
        ),
        ("outbox", ["closed", "open"].as_slice(), ["closed", "open"]),
    ] {
        let own = sources(&suite, policy);
        let held: BTreeSet<(&str, &str)> = own
            .iter()
            .filter_map(|part| part.strip_prefix("table: ")?.split_once(" x "))
            .flat_map(|(state, events)| events.split(", ").map(move |event| (state, event)))
            .collect();
        let cells: BTreeSet<(&str, &str)> = states
            .iter()
            .flat_map(|state| EVENTS_OF_ALL_STATES.map(|event| (*state, event)))
            .chain(
                states_of_results
                    .iter()
                    .flat_map(|state| RESULTS.map(|event| (*state, event))),
            )
            .collect();
        let missing: Vec<_> = cells.difference(&held).collect();
        let unknown: Vec<_> = held.difference(&cells).collect();
        assert!(
            missing.is_empty() && unknown.is_empty(),
            "{policy}: {missing:?} are missing, {unknown:?} are unknown"
        );
    }
}

/// The rows of the table "What goes over" of docs/swapping.md, and what sources call them.
const GOING_OVER: [(&str, &str); 9] = [
    ("closed", "closed"),
    ("open", "open"),
    ("half-open", "half-open"),
    ("mode", "mode"),
    ("re-openings (for back-off)", "re-openings"),
    ("time of the last failure, its cause, since when", "last failure"),
    ("settings of the table", "settings of the table"),
    ("settings of its own (`breaker_with`)", "settings of its own"),
    ("permits that are out", "permits"),
];
/// The one that is left to `host/sdk/tests`: the shipped policies have no faults.
const OF_FAULTY_POLICIES: &str = "struck out by faults";

#[test]
fn what_goes_over_by_a_swap_has_a_scenario_for_each_row_from_each_policy_to_each() {
    let docs = include_str!("../../../docs/swapping.md");
    let (_, table) = docs.split_once("## What goes over").unwrap();
    let rows: Vec<_> = rows_of(table.lines().take_while(|line| !line.starts_with("## ")));
    let first_cells: Vec<_> = rows
        .iter()
        .skip(1)
        .map(|row| row.first().unwrap().as_str())
        .collect();
    let known = GOING_OVER.iter().map(|(row, _)| *row);
    assert_eq!(first_cells, known.chain([OF_FAULTY_POLICIES]).collect::<Vec<_>>());
    let policies = ["consecutive", "outbox", "window"];
    let suite = Suite::load().unwrap();
    for from in policies {
        let held: BTreeSet<String> = sources(&suite, from)
            .iter()
            .filter_map(|part| part.strip_prefix("swapping.md: "))
            .filter(|part| part.contains(" to "))
            .map(str::to_owned)
            .collect();
        let rows = GOING_OVER.iter().map(|(_, row)| *row);
        let reached = rows.filter(|row| (from, *row) != ("outbox", "half-open"));
        let cells: BTreeSet<String> = reached
            .flat_map(|row| policies.map(|to| format!("{row} to {to}")))
            .collect();
        assert_eq!(held, cells, "from {from}");
    }
}

/// The lines of README.md's tables, each as its cells.
fn rows() -> Vec<Vec<String>> {
    rows_of(include_str!("../README.md").lines())
}

fn rows_of<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<Vec<String>> {
    let rows = lines.filter(|line| line.starts_with("| "));
    rows.map(|row| {
        row.trim_matches('|')
            .split(" | ")
            .map(|cell| cell.trim().to_owned())
            .collect()
    })
    .collect()
}

#[test]
fn the_readme_names_every_file_and_no_other() {
    let suite = Suite::load().unwrap();
    let named: Vec<_> = rows()
        .into_iter()
        .filter_map(|row| Some(row.first()?.strip_prefix('`')?.strip_suffix(".json`")?.to_owned() + ".json"))
        .collect();
    assert_eq!(named, suite.files().collect::<Vec<_>>());
}

#[test]
fn the_readme_says_of_every_case_which_files_cover_it() {
    let suite = Suite::load().unwrap();
    for (number, files) in cases() {
        let source = format!("cases.md {number}");
        let holding: BTreeSet<String> = suite
            .sources()
            .filter(|(_, sources, _)| sources.split("; ").any(|part| part == source))
            .map(|(file, ..)| file.trim_end_matches(".json").to_owned())
            .collect();
        assert_eq!(files, holding, "the files of case {number}");
    }
    let numbers: BTreeSet<u32> = cases().into_iter().map(|(number, _)| number).collect();
    let known = suite.sources().flat_map(|(_, sources, name)| {
        sources
            .split("; ")
            .filter_map(move |part| Some((part.strip_prefix("cases.md ")?, name)))
    });
    for (case, name) in known {
        assert!(
            numbers.contains(&case.parse().unwrap()),
            "case {case} of {name:?}"
        );
    }
}

/// The table of cases: the number, and the files that are said to cover it.
fn cases() -> Vec<(u32, BTreeSet<String>)> {
    let cases: Vec<_> = rows()
        .into_iter()
        .filter_map(|row| {
            let number = row.first()?.parse().ok()?;
            let files = row
                .get(2)?
                .split(", ")
                .map(|file| file.trim_matches('`').to_owned());
            let elsewhere = row.get(3)?;
            assert!(row.get(2)? != "–" || elsewhere != "–", "case {number} is nowhere");
            Some((number, files.filter(|file| file != "–").collect()))
        })
        .collect();
    let numbers: Vec<u32> = cases.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, CASES);
    cases
}

/// Those that concern the three policies.
const CASES: [u32; 37] = [
    1, 2, 3, 4, 6, 8, 9, 10, 12, 15, 16, 17, 18, 19, 20, 22, 23, 24, 25, 26, 28, 29, 30, 32, 33, 34, 36, 38,
    39, 40, 41, 44, 45, 46, 48, 50, 51,
];

#[test]
fn the_seven_scenarios_of_the_second_seed_are_there_by_name() {
    let suite = Suite::load().unwrap();
    let names: Vec<_> = suite.sources().map(|(_, _, name)| name).collect();
    for wanted in [
        "Time-out",
        "Threshold transition",
        "Open fail-fast",
        "One half-open probe",
        "Failed probe",
        "Two recovery probes",
        "Process-local state",
    ] {
        let start = format!("{wanted}: ");
        assert!(names.iter().any(|name| name.starts_with(&start)), "{wanted}");
    }
}
