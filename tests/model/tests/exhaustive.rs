//! All reachable states under small settings, and every event in each of them.

#![expect(clippy::panic, clippy::expect_used, reason = "a test fails by panicking")]

use tripwit_core::{Consecutive, Outbox, Policy, Window};
use tripwit_model::{
    Bounds, Buckets, End, MILLISECOND, OutboxReference, Reach, Reference, Rule, Run, TimedReference, Waits,
    WindowRule, explore,
};

const WAITS: Waits = Waits {
    open_for: 2 * MILLISECOND,
    backoff_factor: 1,
    open_for_max: 3_600_000 * MILLISECOND,
    retry_after_max: 0,
    probes: 1,
    probe_timeout: 2 * MILLISECOND,
};

const BOUNDS: Bounds = Bounds {
    permits: 2,
    recorded: usize::MAX,
    ends: &End::ALL,
    behind: 1,
    calls_to_close: 12,
};

fn holds<P: Policy>(settings: &str, reference: impl Reference, bounds: Bounds, window: Option<Buckets>) {
    let explored = Run::<P, _>::new(settings, reference, window).and_then(|start| explore(start, bounds));
    match explored {
        Ok(explored) => println!("{} {settings}: {explored}", P::NAME),
        Err(problem) => panic!("{} {settings}: {problem}", P::NAME),
    }
}

fn consecutive(settings: &str, thresholds: (u32, u32), waits: Waits, permits: usize) {
    let (failure_threshold, success_threshold) = thresholds;
    let rule = Rule::Consecutive {
        failure_threshold,
        success_threshold,
    };
    holds::<Consecutive>(
        settings,
        TimedReference::new(rule, waits),
        Bounds { permits, ..BOUNDS },
        None,
    );
}

#[test]
fn consecutive_with_thresholds_is_its_reference() {
    let settings = r#"{"failure_threshold": 2, "success_threshold": 2, "open_for": "2ms", "probe_timeout": "2ms", "call_timeout": null}"#;
    consecutive(settings, (2, 2), WAITS, 2);
}

#[test]
fn consecutive_with_two_probes_is_its_reference() {
    let settings = r#"{"failure_threshold": 1, "success_threshold": 2, "open_for": "1ms", "probes": 2, "probe_timeout": "2ms", "call_timeout": null}"#;
    let waits = Waits {
        open_for: MILLISECOND,
        probes: 2,
        ..WAITS
    };
    consecutive(settings, (1, 2), waits, 3);
}

#[test]
fn consecutive_with_back_off_is_its_reference() {
    let settings = r#"{"failure_threshold": 1, "success_threshold": 1, "open_for": "1ms", "backoff_factor": 2, "open_for_max": "4ms", "probe_timeout": "1ms", "call_timeout": null}"#;
    let waits = Waits {
        open_for: MILLISECOND,
        backoff_factor: 2,
        open_for_max: 4 * MILLISECOND,
        probe_timeout: MILLISECOND,
        ..WAITS
    };
    consecutive(settings, (1, 1), waits, 2);
}

#[test]
fn consecutive_that_heeds_retry_after_is_its_reference() {
    let settings = r#"{"failure_threshold": 1, "success_threshold": 1, "open_for": "1ms", "retry_after_max": "3ms", "probe_timeout": "1ms", "call_timeout": null}"#;
    let waits = Waits {
        open_for: MILLISECOND,
        retry_after_max: 3 * MILLISECOND,
        probe_timeout: MILLISECOND,
        ..WAITS
    };
    consecutive(settings, (1, 1), waits, 2);
}

#[test]
fn outbox_is_its_reference() {
    for cooldown_count in [0, 2] {
        let settings = format!(r#"{{"cooldown_count": {cooldown_count}}}"#);
        let reference = OutboxReference::new(cooldown_count);
        holds::<Outbox>(&settings, reference, Bounds { permits: 3, ..BOUNDS }, None);
    }
}

#[test]
fn window_of_calls_is_its_reference() {
    let settings = r#"{"window_calls": 3, "minimum_calls": 2, "failure_rate": 50, "slow_after": "5ms", "slow_rate": 100, "probe_calls": 2, "open_for": "1ms", "probes": 2, "probe_timeout": "1ms", "call_timeout": null}"#;
    let rule = WindowRule {
        reach: Reach::Calls(3),
        minimum_calls: 2,
        failure_rate: 50_000,
        slow_rate: 100_000,
        probe_calls: 2,
    };
    let waits = Waits {
        open_for: MILLISECOND,
        probes: 2,
        probe_timeout: MILLISECOND,
        ..WAITS
    };
    holds::<Window>(
        settings,
        TimedReference::new(Rule::Window(rule), waits),
        Bounds { permits: 2, ..BOUNDS },
        None,
    );
}

#[test]
fn window_of_time_is_its_reference() {
    // Two buckets of five milliseconds.
    let settings = r#"{"window_time": "10ms", "buckets": 2, "minimum_calls": 2, "failure_rate": 50, "slow_after": "5ms", "slow_rate": 100, "probe_calls": 1, "open_for": "1ms", "probe_timeout": "1ms", "call_timeout": null}"#;
    let window = Buckets {
        width: 5 * MILLISECOND,
        buckets: 2,
    };
    let rule = WindowRule {
        reach: Reach::Time(window),
        minimum_calls: 2,
        failure_rate: 50_000,
        slow_rate: 100_000,
        probe_calls: 1,
    };
    let waits = Waits {
        open_for: MILLISECOND,
        probe_timeout: MILLISECOND,
        ..WAITS
    };
    let bounds = Bounds {
        permits: 1,
        recorded: 3,
        ends: &[End::Success, End::SlowSuccess, End::Failure],
        ..BOUNDS
    };
    holds::<Window>(
        settings,
        TimedReference::new(Rule::Window(rule), waits),
        bounds,
        Some(window),
    );
}

/// The first difference that is found, with a shortest way to it.
fn found_out<P: Policy>(settings: &str, reference: impl Reference) -> String {
    Run::<P, _>::new(settings, reference, None)
        .and_then(|start| explore(start, BOUNDS))
        .expect_err("the reference is another, and no difference was found")
}

#[test]
fn a_reference_that_opens_later_is_found_out() {
    let settings = r#"{"failure_threshold": 2, "success_threshold": 2, "open_for": "2ms", "probe_timeout": "2ms", "call_timeout": null}"#;
    let rule = Rule::Consecutive {
        failure_threshold: 3,
        success_threshold: 2,
    };
    let problem = found_out::<Consecutive>(settings, TimedReference::new(rule, WAITS));
    assert!(
        problem.starts_with("after acquire, acquire, Failure of 0, Failure of 0: answers differ")
            || problem.starts_with("after acquire, Failure of 0, acquire, Failure of 0: answers differ"),
        "{problem}"
    );
}

#[test]
fn a_reference_that_loses_probes_later_is_found_out() {
    let settings = r#"{"failure_threshold": 2, "success_threshold": 2, "open_for": "2ms", "probe_timeout": "2ms", "call_timeout": null}"#;
    let rule = Rule::Consecutive {
        failure_threshold: 2,
        success_threshold: 2,
    };
    let waits = Waits {
        probe_timeout: 3 * MILLISECOND,
        ..WAITS
    };
    let problem = found_out::<Consecutive>(settings, TimedReference::new(rule, waits));
    assert!(
        problem.starts_with("after trip, 1 ms on, 1 ms on, acquire: answers on the way to closed differ"),
        "{problem}"
    );
}

#[test]
fn a_reference_with_a_cycle_more_is_found_out() {
    let problem = found_out::<Outbox>(r#"{"cooldown_count": 0}"#, OutboxReference::new(1));
    assert!(problem.starts_with("after trip: cycles differ"), "{problem}");
}
