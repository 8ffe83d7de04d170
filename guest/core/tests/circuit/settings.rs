//! What new settings leave as it is, and what the settings of a probe come to.

use tripwit_core::{Consecutive, Outcome, State};

use crate::guest::{Guest, SECOND};

#[test]
fn new_settings_decide_from_then_on_and_make_calls_from_before_void() {
    let mut guest = Guest::<Consecutive>::new(r#"{"failure_threshold":5}"#);
    let before = guest.admitted();
    guest.configure(r#"{"failure_threshold":1}"#);
    assert!(!guest.settle(before, Outcome::Failure).counted);
    assert_eq!(guest.circuit.state(), State::Closed);
    let after = guest.admitted();
    assert!(guest.settle(after, Outcome::Failure).counted);
    assert_eq!(guest.circuit.state(), State::Open);
}

#[test]
fn new_settings_leave_an_open_circuit_its_wait() {
    let mut guest = Guest::<Consecutive>::tripped(r#"{"open_for":"30s"}"#);
    guest.now = 10 * SECOND;
    guest.configure(r#"{"open_for":"5s"}"#);
    assert_eq!(guest.circuit.retry_after(guest.now), Some(20 * SECOND));
}

#[test]
fn new_settings_make_probes_from_before_void_and_free_their_slots() {
    let (mut guest, before) = Guest::<Consecutive>::probing(r#"{"success_threshold":2}"#);
    guest.configure(r#"{"success_threshold":1}"#);
    assert!(!guest.settle(before, Outcome::Failure).counted);
    let after = guest.admitted();
    guest.settle(after, Outcome::Success);
    assert_eq!(guest.circuit.state(), State::Closed);
}

#[test]
fn a_probe_has_twice_the_time_of_a_call_or_a_minute_where_calls_have_no_limit() {
    for (settings, time) in [
        ("{}", 20 * SECOND),
        (r#"{"call_timeout":"7s"}"#, 14 * SECOND),
        (r#"{"call_timeout":null}"#, 60 * SECOND),
        (r#"{"call_timeout":"7s","probe_timeout":"8s"}"#, 8 * SECOND),
    ] {
        let (mut guest, lost) = Guest::<Consecutive>::probing(settings);
        guest.now += SECOND;
        assert_eq!(guest.rejected().retry_after, Some(time - SECOND), "{settings}");
        guest.now += time - SECOND;
        guest.admitted();
        assert!(!guest.settle(lost, Outcome::Failure).counted, "{settings}");
    }
}
