//! Every scenario of this folder, on every subject that can play it; and whether the folder says what it holds.
#![expect(clippy::unwrap_used, reason = "these are tests")]

use std::collections::BTreeSet;
use std::io::Write;

use tripwit_conformance::{Subject, Suite};

/// Plays everything, and says how much of it, whether or not the test's output is shown.
fn every_scenario_holds_on(subject: Subject) {
    let report = Suite::load().unwrap().run(subject).unwrap();
    // `eprintln` would be caught: nothing may be left out in silence.
    writeln!(std::io::stderr(), "{report}").unwrap();
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
