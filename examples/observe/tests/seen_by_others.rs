//! Says what a plain `cargo test` leaves out.

use std::process::Command;

#[test]
#[ignore = "needs Prometheus and an OpenTelemetry collector; `.ci/run observe` installs both and runs it"]
fn prometheus_and_a_collector_see_the_example_as_it_is() {
    let tests = Command::new(env!("CARGO"))
        .args(["test", "--workspace", "--test", "observe"])
        .status();
    assert!(tests.expect("cargo runs").success());
}
