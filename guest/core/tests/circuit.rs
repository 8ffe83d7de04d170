//! What holds of a circuit under any policy: new settings, snapshots, leases, and the time that a probe has.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::Arc;

use tripwit_core::{
    Circuit, Consecutive, Decision, Env, Numbers, Outcome, Policy, Rejection, Report, Settlement, State,
    Ticket, Window,
};

const SECOND: u64 = 1_000_000_000;

struct Guest<P: Policy> {
    circuit: Circuit<P>,
    numbers: Numbers,
    now: u64,
}

impl<P: Policy> Guest<P> {
    fn new(settings: &str) -> Self {
        let mut numbers = Numbers::default();
        let circuit = Circuit::new(Arc::new(P::parse(settings).unwrap()), &mut env(0, &mut numbers));
        Self {
            circuit,
            numbers,
            now: 0,
        }
    }

    /// Open for as long as the settings say.
    fn tripped(settings: &str) -> Self {
        let mut guest = Self::new(settings);
        guest.circuit.trip(None, &mut env(0, &mut guest.numbers));
        guest
    }

    /// Half-open, with this probe under way.
    fn probing(settings: &str) -> (Self, Ticket) {
        let mut guest = Self::tripped(settings);
        guest.now = guest.circuit.retry_after(0).unwrap();
        let ticket = guest.admitted();
        assert_eq!(guest.circuit.state(), State::HalfOpen);
        (guest, ticket)
    }

    fn acquire(&mut self) -> Decision {
        self.circuit
            .acquire(&mut env(self.now, &mut self.numbers))
            .decision
    }

    fn admitted(&mut self) -> Ticket {
        let Decision::Admit(ticket) = self.acquire() else {
            panic!("not admitted")
        };
        ticket
    }

    fn rejected(&mut self) -> Rejection {
        let Decision::Reject(rejection) = self.acquire() else {
            panic!("not rejected")
        };
        rejection
    }

    fn settle(&mut self, ticket: Ticket, outcome: Outcome) -> Settlement {
        self.circuit.settle(
            ticket,
            &Report::of(outcome),
            &mut env(self.now, &mut self.numbers),
        )
    }

    fn configure(&mut self, settings: &str) {
        let settings = Arc::new(P::parse(settings).unwrap());
        self.circuit
            .configure(settings, &mut env(self.now, &mut self.numbers));
    }
}

fn env(now: u64, numbers: &mut Numbers) -> Env<'_> {
    Env {
        now,
        key: "payments",
        seed: 0,
        numbers,
    }
}

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
fn no_probe_goes_over_to_another_instance() {
    let (guest, _) = Guest::<Consecutive>::probing("{}");
    assert_eq!(guest.circuit.counts(guest.now).probes_in_flight, 1);
    assert_eq!(guest.circuit.save(guest.now).counts.probes_in_flight, 0);
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
