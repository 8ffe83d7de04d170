//! What was called, and what became of the circuits.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use tripwit::{Event, Operation};

use crate::attempt::Attempt;

/// What one circuit, or the one channel without, did.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entry {
    /// The notifications that came this way.
    pub(crate) notifications: BTreeSet<usize>,
    /// Those of them that were rejected at least once.
    pub(crate) rejected: BTreeSet<usize>,
    /// Calls that were made.
    pub(crate) calls: u64,
    /// Calls that were made in vain.
    pub(crate) failures: u64,
    /// Calls that were made and ran into the time-out.
    pub(crate) timeouts: u64,
    /// Calls that were not made.
    pub(crate) spared: u64,
    /// How often the circuit opened, failed probes included.
    pub(crate) opened: u64,
    /// Whether it was open, or half-open, already when this run began.
    pub(crate) restored_open: bool,
    opened_at: Option<Instant>,
    /// From the first opening (of a restored circuit: from the start) until it closed; the longest, where there were several.
    pub(crate) recovery: Option<Duration>,
}

/// The entries of this run by circuit.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    entries: Mutex<BTreeMap<String, Entry>>,
}

impl Ledger {
    /// Enters a circuit that an earlier run left open.
    pub(crate) fn restore(&self, name: &str) {
        let mut entries = self.entries.lock();
        let entry = entries.entry(name.to_owned()).or_default();
        entry.restored_open = true;
        entry.opened_at = Some(Instant::now());
    }

    /// Enters how a call ended. Only whoever makes the call may say so.
    pub(crate) fn enter(&self, name: &str, notification: usize, attempt: &Attempt) {
        let mut entries = self.entries.lock();
        let entry = entries.entry(name.to_owned()).or_default();
        entry.notifications.insert(notification);
        if matches!(attempt, Attempt::Rejected(_)) {
            entry.rejected.insert(notification);
            entry.spared += 1;
            return;
        }
        entry.calls += 1;
        entry.failures += u64::from(!attempt.is_sent());
        entry.timeouts += u64::from(matches!(attempt, Attempt::TimedOut(_)));
    }

    /// Enters a transition.
    pub(crate) fn observe(&self, event: &Event) {
        let mut entries = self.entries.lock();
        let entry = entries.entry(event.key.to_string()).or_default();
        match event.transition.operation {
            Operation::Trip | Operation::ReTrip => {
                entry.opened += 1;
                entry.opened_at.get_or_insert_with(Instant::now);
            }
            Operation::HalfOpen => {}
            Operation::Reset => {
                let recovery = entry.opened_at.take().map(|opened| opened.elapsed());
                entry.recovery = entry.recovery.max(recovery);
            }
        }
    }

    /// A copy of all entries.
    pub(crate) fn entries(&self) -> BTreeMap<String, Entry> {
        self.entries.lock().clone()
    }
}
