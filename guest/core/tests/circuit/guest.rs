//! A circuit, told what happens in as few words as may be.

use std::sync::Arc;

use tripwit_core::{
    Circuit, Counts, Decision, Env, Numbers, Outcome, Policy, Rejection, Report, Settlement, State, Ticket,
    Transition,
};

pub(crate) const SECOND: u64 = 1_000_000_000;

/// A circuit with its clock.
pub(crate) struct Guest<P: Policy> {
    pub(crate) circuit: Circuit<P>,
    pub(crate) numbers: Numbers,
    pub(crate) now: u64,
}

impl<P: Policy> Guest<P> {
    pub(crate) fn new(settings: &str) -> Self {
        let mut numbers = Numbers::default();
        let circuit = Circuit::new(Arc::new(P::parse(settings).unwrap()), &mut env(0, &mut numbers));
        Self {
            circuit,
            numbers,
            now: 0,
        }
    }

    /// Open for as long as the settings say.
    pub(crate) fn tripped(settings: &str) -> Self {
        let mut guest = Self::new(settings);
        guest.circuit.trip(None, &mut env(0, &mut guest.numbers));
        guest
    }

    /// Half-open, with this probe under way.
    pub(crate) fn probing(settings: &str) -> (Self, Ticket) {
        let mut guest = Self::tripped(settings);
        guest.now = guest.circuit.retry_after(0).unwrap();
        let ticket = guest.admitted();
        assert_eq!(guest.circuit.state(), State::HalfOpen);
        (guest, ticket)
    }

    pub(crate) fn acquire(&mut self) -> Decision {
        self.circuit
            .acquire(&mut env(self.now, &mut self.numbers))
            .decision
    }

    pub(crate) fn admitted(&mut self) -> Ticket {
        let Decision::Admit(ticket) = self.acquire() else {
            panic!("not admitted")
        };
        ticket
    }

    pub(crate) fn rejected(&mut self) -> Rejection {
        let Decision::Reject(rejection) = self.acquire() else {
            panic!("not rejected")
        };
        rejection
    }

    pub(crate) fn settle(&mut self, ticket: Ticket, outcome: Outcome) -> Settlement {
        self.circuit.settle(
            ticket,
            &Report::of(outcome),
            &mut env(self.now, &mut self.numbers),
        )
    }

    pub(crate) fn settle_successes(&mut self, ticket: Ticket, count: u32) -> Option<Transition> {
        self.circuit
            .settle_successes(ticket, count, &mut env(self.now, &mut self.numbers))
    }

    pub(crate) fn counts(&self) -> Counts {
        self.circuit.counts(self.now)
    }

    pub(crate) fn configure(&mut self, settings: &str) {
        let settings = Arc::new(P::parse(settings).unwrap());
        self.circuit
            .configure(settings, &mut env(self.now, &mut self.numbers));
    }
}

pub(crate) fn env(now: u64, numbers: &mut Numbers) -> Env<'_> {
    Env {
        now,
        key: "payments",
        seed: 0,
        numbers,
    }
}
