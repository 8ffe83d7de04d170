//! The probes of a half-open circuit.

use alloc::vec::Vec;

use crate::{Counts, Instant, Ticket};

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct HalfOpen {
    pub(crate) out: Vec<Probe>,
    pub(crate) counts: Counts,
    pub(crate) reopenings: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Probe {
    pub(crate) ticket: Ticket,
    pub(crate) deadline: Instant,
}

impl HalfOpen {
    pub(crate) fn give_up_lost(&mut self, now: Instant) {
        self.out.retain(|probe| probe.deadline > now);
    }

    pub(crate) fn in_flight(&self, now: Instant) -> u32 {
        u32::try_from(self.out.iter().filter(|probe| probe.deadline > now).count()).unwrap_or(u32::MAX)
    }

    pub(crate) fn first_deadline(&self, now: Instant) -> Option<Instant> {
        self.out
            .iter()
            .map(|probe| probe.deadline)
            .filter(|deadline| *deadline > now)
            .min()
    }
}
