//! The rules of a crossing: what comes of calls from several threads is what asking each time gives, in some order.

use tripwit_gate_tests::{
    Component, Explored, Flaw,
    Op::{self, Acquire, Inspect, Rebuild, Reset, Settle, Tick, Trip},
    Outcome::{Failure, Success},
    Rule, Scenario, Weakness,
};

const SUCCESS: Op = Settle(Success);
const FAILURE: Op = Settle(Failure);

/// Two of at least four calls have failed: one success may be kept back, and the next opens the circuit.
const ONE_MAY_BE_KEPT: Rule = Rule::Share {
    minimum: 4,
    total: 2,
    failures: 2,
    width: None,
    bucket: 0,
};

/// The same with three of six: two may be kept back.
const TWO_MAY_BE_KEPT: Rule = Rule::Share {
    minimum: 6,
    total: 3,
    failures: 3,
    width: None,
    bucket: 0,
};

/// The counts begin anew with each instant.
const BY_TIME: Rule = Rule::Share {
    minimum: 4,
    total: 2,
    failures: 2,
    width: Some(1),
    bucket: 0,
};

/// Two failures in a row open it, and there were none.
const STREAK: Rule = Rule::Streak {
    threshold: 2,
    failures: 0,
};

/// There was one.
const STREAK_OF_ONE: Rule = Rule::Streak {
    threshold: 2,
    failures: 1,
};

fn closed(rule: Rule) -> Scenario {
    Scenario::new(Component::closed(rule)).with_permits()
}

fn holds(scenario: Scenario) -> Explored {
    let explored = scenario.explore();
    println!("{explored}");
    explored
}

fn three_successes() -> Scenario {
    closed(ONE_MAY_BE_KEPT)
        .thread(&[SUCCESS, Acquire])
        .thread(&[SUCCESS])
        .thread(&[SUCCESS])
}

#[test]
fn an_allowance_is_never_exceeded() {
    let explored = holds(three_successes());
    assert!(explored.endings > 1);
}

fn successes_beside_a_look() -> Scenario {
    closed(TWO_MAY_BE_KEPT)
        .thread(&[SUCCESS, Inspect])
        .thread(&[SUCCESS])
}

#[test]
fn no_success_is_lost() {
    let _ = holds(successes_beside_a_look());
}

fn success_beside_a_reset() -> Scenario {
    closed(TWO_MAY_BE_KEPT)
        .thread(&[Reset, Inspect])
        .thread(&[SUCCESS])
}

#[test]
fn no_success_is_counted_into_another_generation() {
    let _ = holds(success_beside_a_reset());
}

fn success_beside_a_failure() -> Scenario {
    closed(ONE_MAY_BE_KEPT)
        .thread(&[FAILURE, Acquire])
        .thread(&[SUCCESS, Acquire])
}

#[test]
fn a_success_is_kept_back_under_the_lease_that_stands() {
    let _ = holds(success_beside_a_failure());
}

fn streak_that_a_success_ends() -> Scenario {
    closed(STREAK).thread(&[Inspect, SUCCESS]).thread(&[FAILURE])
}

#[test]
fn a_call_is_settled_by_the_lease_as_it_is_when_it_ends() {
    let _ = holds(streak_that_a_success_ends());
}

fn successes_and_failures_in_a_row() -> Scenario {
    closed(STREAK_OF_ONE)
        .thread(&[SUCCESS, Acquire, FAILURE])
        .thread(&[Acquire, FAILURE])
}

#[test]
fn a_streak_counts_in_some_order() {
    let _ = holds(successes_and_failures_in_a_row());
}

fn trip_and_reset() -> Scenario {
    closed(ONE_MAY_BE_KEPT)
        .thread(&[Trip, Acquire])
        .thread(&[SUCCESS, Acquire])
        .thread(&[Reset])
}

#[test]
fn the_lease_that_stands_is_the_last_one() {
    let _ = holds(trip_and_reset());
}

fn acquire_after_trip() -> Scenario {
    closed(TWO_MAY_BE_KEPT)
        .thread(&[Trip, Acquire])
        // Where its look shows that the circuit has opened, the call after it is rejected.
        .thread(&[Acquire, Inspect, Acquire])
}

#[test]
fn no_call_is_admitted_by_a_lease_that_was_void_before_it_began() {
    let _ = holds(acquire_after_trip());
}

fn results_beside_a_rebuild() -> Scenario {
    closed(TWO_MAY_BE_KEPT)
        .thread(&[Rebuild, Inspect])
        .thread(&[SUCCESS, Acquire, FAILURE])
}

#[test]
fn no_result_is_counted_by_another_instance() {
    let _ = holds(results_beside_a_rebuild());
}

fn plain_calls() -> Scenario {
    closed(STREAK)
        .thread(&[Acquire, SUCCESS, Inspect])
        .thread(&[Rebuild, Acquire, FAILURE])
}

#[test]
fn a_plain_lease_admits_and_drops_only_while_it_stands() {
    let _ = holds(plain_calls());
}

fn wait_that_ends() -> Scenario {
    Scenario::new(Component::open(STREAK))
        .thread(&[Tick, Acquire, SUCCESS])
        .thread(&[Acquire, FAILURE])
}

#[test]
fn one_caller_asks_when_a_wait_is_over() {
    let explored = holds(wait_that_ends());
    assert_eq!(explored.most_asked, 1);
}

fn successes_by_time() -> Scenario {
    closed(BY_TIME)
        .thread(&[SUCCESS, Inspect])
        .thread(&[Tick, SUCCESS])
}

#[test]
fn a_success_is_kept_back_only_before_its_instant() {
    let _ = holds(successes_by_time());
}

macro_rules! found_out {
    ($($name:ident: $scenario:ident, $flaw:expr, $expected:literal;)+) => {$(
        #[test]
        #[should_panic(expected = $expected)]
        fn $name() {
            let _ = $scenario().flawed($flaw).explore();
        }
    )+};
}

found_out! {
    a_counter_that_is_opened_before_publishing_is_found_out:
        success_beside_a_reset, Flaw::OpensBeforePublishing, "no order of the calls ends so";
    a_counter_that_stays_open_is_found_out:
        successes_beside_a_look, Flaw::LeavesCounterOpen, "the allowance was exceeded";
    a_success_kept_back_by_count_alone_is_found_out:
        success_beside_a_reset, Flaw::ComparesCountOnly, "no order of the calls ends so";
    settling_by_the_lease_of_the_admission_is_found_out:
        streak_that_a_success_ends, Flaw::SettlesByAdmission, "no order of the calls ends so";
    trusting_a_plain_lease_that_was_replaced_is_found_out:
        streak_that_a_success_ends, Flaw::TrustsPlainLease, "no order of the calls ends so";
    admitting_by_the_lease_that_was_seen_last_is_found_out:
        acquire_after_trip, Flaw::AdmitsByMemory, "no order of the calls ends so";
    unlocking_before_publishing_is_found_out:
        trip_and_reset, Flaw::UnlocksBeforePublishing, "no order of the calls ends so";
    publishing_midway_is_found_out:
        successes_beside_a_look, Flaw::PublishesMidway, "no order of the calls ends so";
    a_permit_that_knows_no_instance_is_found_out:
        results_beside_a_rebuild, Flaw::ForgetsIncarnation, "no order of the calls ends so";
    a_look_that_does_not_hand_in_is_found_out:
        successes_beside_a_look, Flaw::InspectsUnsettled, "no order of the calls ends so";
}

#[test]
fn without_a_second_look_every_caller_asks_when_a_wait_is_over() {
    let explored = wait_that_ends().flawed(Flaw::LooksOnce).explore();
    assert_eq!(explored.most_asked, 2);
}

#[test]
#[should_panic(expected = "no order of the calls ends so")]
fn without_a_compare_and_swap_a_success_is_lost() {
    let _ = successes_beside_a_look()
        .weakened(Weakness::CompareAndSwap)
        .explore();
}
