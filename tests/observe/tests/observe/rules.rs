//! The alerts, in virtual time.

use crate::program::{example_file, installed, run};

#[test]
fn the_rule_file_is_sound() {
    let printed = run(installed("promtool")
        .args(["check", "rules"])
        .arg(example_file("alerts.yml")));
    assert!(printed.contains("4 rules found"), "{printed}");
}

#[test]
fn every_alert_fires_and_resolves() {
    run(installed("promtool")
        .args(["test", "rules"])
        .arg(example_file("alerts_test.yml")));
}
