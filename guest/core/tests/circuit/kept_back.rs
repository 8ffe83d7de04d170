//! Successes that were kept back and are handed in together, by a host that keeps to its leases and by one that does not.

use tripwit_core::{Consecutive, Mode, Operation, Outbox, Outcome, State, Window};

use crate::guest::{Guest, SECOND, env};

#[test]
fn they_end_a_row_of_failures_unless_there_are_none_or_their_ticket_is_void() {
    let mut guest = Guest::<Consecutive>::new("{}");
    let void = guest.admitted();
    guest.configure("{}");
    let ticket = guest.admitted();
    guest.settle(ticket, Outcome::Failure);
    assert_eq!(guest.settle_successes(ticket, 0), None);
    assert_eq!(guest.counts().failures, 1);
    assert_eq!(guest.settle_successes(void, 3), None);
    assert_eq!(guest.counts().failures, 1);
    assert_eq!(guest.settle_successes(ticket, 1), None);
    assert_eq!(guest.counts().failures, 0);
}

#[test]
fn those_that_fill_a_bad_window_up_to_where_it_decides_open_it() {
    for size in [r#""window_calls":9"#, r#""window_time":"10s""#] {
        let settings = format!("{{{size},\"minimum_calls\":4,\"failure_rate\":50,\"open_for\":\"7s\"}}");
        let failed_twice = || {
            let mut guest = Guest::<Window>::new(&settings);
            let ticket = guest.admitted();
            guest.settle(ticket, Outcome::Failure);
            guest.settle(ticket, Outcome::Failure);
            (guest, ticket)
        };
        let (mut too_few, ticket) = failed_twice();
        assert_eq!(too_few.settle_successes(ticket, 1), None, "{size}");
        assert_eq!(too_few.counts().successes, 1);
        let (mut void, ticket) = failed_twice();
        assert_eq!(void.settle_successes(ticket + 1, 2), None, "{size}");
        assert_eq!(void.counts().successes, 0);
        for count in [2, 3, u32::MAX] {
            let (mut guest, ticket) = failed_twice();
            let transition = guest.settle_successes(ticket, count).unwrap();
            assert_eq!(transition.operation, Operation::Trip, "{size}");
            assert_eq!(transition.wait, Some(7 * SECOND));
        }
    }
}

#[test]
fn those_that_come_to_a_window_that_is_not_bad_open_nothing() {
    for size in [r#""window_calls":9"#, r#""window_time":"10s""#] {
        let mut guest = Guest::<Window>::new(&format!("{{{size},\"minimum_calls\":4,\"failure_rate\":50}}"));
        let ticket = guest.admitted();
        guest.settle(ticket, Outcome::Failure);
        assert_eq!(guest.settle_successes(ticket, 5), None, "{size}");
        assert_eq!((guest.counts().successes, guest.counts().failures), (5, 1));
        assert_eq!(guest.counts().consecutive_failures, 0);
    }
}

#[test]
fn under_the_ticket_of_a_probe_they_are_its_success_once() {
    let (mut guest, probe) = Guest::<Consecutive>::probing(r#"{"success_threshold":2}"#);
    assert_eq!(guest.settle_successes(probe, 0), None);
    assert_eq!(guest.counts().probes_in_flight, 1);
    assert_eq!(guest.settle_successes(probe, 5), None);
    assert_eq!(
        (guest.counts().successes, guest.counts().probes_in_flight),
        (1, 0)
    );
    let last = guest.admitted();
    let transition = guest.settle_successes(last, 1).unwrap();
    assert_eq!(transition.operation, Operation::Reset);
}

#[test]
fn an_open_circuit_and_one_that_stands_still_do_not_hear_them() {
    let mut open = Guest::<Consecutive>::tripped("{}");
    let ticket = open.circuit.lease(0).generation;
    assert_eq!(open.settle_successes(ticket, 1), None);
    assert_eq!(open.circuit.state(), State::Open);
    for mode in [Mode::ForcedOpen, Mode::Disabled] {
        let mut still = Guest::<Window>::new("{}");
        still.circuit.set_mode(mode, &mut env(0, &mut still.numbers));
        let ticket = still.circuit.lease(0).generation;
        assert_eq!(still.settle_successes(ticket, 1), None);
        assert_eq!(still.counts().successes, 0, "{mode:?}");
    }
}

#[test]
fn an_outbox_needs_none() {
    let mut guest = Guest::<Outbox>::tripped("{}");
    let ticket = guest.circuit.lease(0).generation;
    assert_eq!(guest.settle_successes(ticket, 1), None);
    assert_eq!(guest.circuit.cooldown_count(), Some(10));
}
