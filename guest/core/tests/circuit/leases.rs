//! A lease says what asking would answer, for as long as it holds.

use tripwit_core::{
    Allowance, Circuit, Consecutive, Decision, Lease, Numbers, Outcome, Policy, Rejection, RejectionReason,
    Report, Standing, State, Successes, Window,
};

use crate::guest::{Guest, SECOND, env};

/// What a caller is told who asks then.
fn asked<P: Policy>(circuit: &Circuit<P>, at: u64) -> Decision {
    circuit
        .clone()
        .acquire(&mut env(at, &mut Numbers::default()))
        .decision
}

/// A standing rejection is what each caller is told until it ends, and no caller from then on.
fn rejects_until<P: Policy>(circuit: &Circuit<P>, lease: &Lease, reason: RejectionReason, until: u64) {
    assert_eq!(
        (lease.standing, lease.until),
        (Standing::Reject(reason), Some(until))
    );
    let rejection = Rejection {
        reason,
        retry_after: Some(1),
    };
    assert_eq!(asked(circuit, until - 1), Decision::Reject(rejection));
    assert!(matches!(asked(circuit, until), Decision::Admit(_)));
    let then = circuit.lease(until);
    assert_eq!((then.standing, then.until), (Standing::Ask, None));
}

#[test]
fn an_open_circuit_rejects_until_its_wait_is_over() {
    let guest = Guest::<Consecutive>::tripped(r#"{"open_for":"30s"}"#);
    let lease = guest.circuit.lease(0);
    assert_eq!((lease.state, lease.successes), (State::Open, Successes::Never));
    rejects_until(&guest.circuit, &lease, RejectionReason::Open, 30 * SECOND);
}

#[test]
fn a_half_open_circuit_with_all_probes_out_rejects_until_the_oldest_is_lost() {
    let (mut guest, _) = Guest::<Consecutive>::probing(r#"{"probes":2,"probe_timeout":"60s"}"#);
    let began = guest.now;
    let room = guest.circuit.lease(guest.now);
    assert_eq!((room.standing, room.until), (Standing::Ask, None));
    assert_eq!(room.successes, Successes::Each);
    guest.now += SECOND;
    guest.admitted();
    let full = guest.circuit.lease(guest.now);
    assert_eq!(full.successes, Successes::Each);
    rejects_until(
        &guest.circuit,
        &full,
        RejectionReason::ProbeLimit,
        began + 60 * SECOND,
    );
}

#[test]
fn after_a_failure_each_success_is_heard_at_once_where_failures_in_a_row_decide() {
    let mut guest = Guest::<Consecutive>::new("{}");
    let ticket = guest.admitted();
    assert_eq!(guest.circuit.lease(0).standing, Standing::Admit(ticket));
    assert_eq!(guest.circuit.lease(0).successes, Successes::Never);
    guest.settle(ticket, Outcome::Failure);
    assert_eq!(guest.circuit.lease(0).successes, Successes::Each);
    guest.settle(ticket, Outcome::Success);
    assert_eq!(guest.circuit.lease(0).successes, Successes::Never);
}

#[test]
fn a_window_that_is_bad_lets_successes_be_kept_back_up_to_the_last_before_it_decides() {
    let mut guest = Guest::<Window>::new(r#"{"window_time":"10s","minimum_calls":4,"failure_rate":50}"#);
    let ticket = guest.admitted();
    let allowed = |successes| {
        Successes::UpTo(Allowance {
            successes,
            before: Some(SECOND),
        })
    };
    assert_eq!(guest.circuit.lease(0).successes, allowed(u32::MAX));
    guest.settle(ticket, Outcome::Failure);
    guest.settle(ticket, Outcome::Failure);
    assert_eq!(guest.circuit.lease(0).successes, allowed(1));
    guest.settle_successes(ticket, 1);
    assert_eq!(guest.circuit.lease(0).successes, Successes::Each);
}

#[test]
fn a_window_of_calls_that_is_full_of_good_ones_needs_to_hear_of_no_more() {
    let mut guest = Guest::<Window>::new(r#"{"window_calls":3,"minimum_calls":1,"slow_after":"1s"}"#);
    let ticket = guest.admitted();
    let any = Successes::UpTo(Allowance {
        successes: u32::MAX,
        before: None,
    });
    for heard in [any, any, Successes::Never] {
        guest.settle(ticket, Outcome::Success);
        assert_eq!(guest.circuit.lease(0).successes, heard);
    }
    let slow = Report {
        took: Some(2 * SECOND),
        ..Report::of(Outcome::Success)
    };
    guest
        .circuit
        .settle(ticket, &slow, &mut env(0, &mut guest.numbers));
    assert_eq!(guest.circuit.lease(0).successes, any);
}

#[test]
fn a_lease_names_the_limits_of_a_call() {
    let limits = |settings| {
        let lease = Guest::<Window>::new(settings).circuit.lease(0);
        (lease.slow_after, lease.call_timeout)
    };
    assert_eq!(limits("{}"), (None, Some(10 * SECOND)));
    assert_eq!(
        limits(r#"{"slow_after":"2s","call_timeout":"7s"}"#),
        (Some(2 * SECOND), Some(7 * SECOND))
    );
    assert_eq!(limits(r#"{"call_timeout":null}"#), (None, None));
}
