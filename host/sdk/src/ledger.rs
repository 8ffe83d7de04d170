//! What one set of circuits counts for metrics, whether anybody asks or not.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::circuit::Key;
use crate::clock::Clock;
use crate::status::State;
use crate::tally::{Tally, Totals};

/// The numbers of one set of circuits. They outlive it until they are added to those of others.
pub(crate) struct Ledger {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) calls: Tally,
    pub(crate) stale_results: AtomicU64,
    pub(crate) shadow_rejections: AtomicU64,
    pub(crate) faults: AtomicU64,
    pub(crate) swaps: AtomicU64,
    pub(crate) dropped: AtomicU64,
    /// How many circuits there are, over all shards.
    pub(crate) circuits: AtomicUsize,
    states: Mutex<States>,
    ended: AtomicBool,
}

/// Changed when a circuit's state changes, and only then.
#[derive(Default)]
struct States {
    not_closed: BTreeMap<Key, State>,
    /// How many are open, and the sum of the moments when circuits left that state less those when they came into it:
    /// so many times now, added to it, is the time that they spent open.
    open: u64,
    open_time: i128,
    /// What was told last, so that the total never steps back even where the clock does.
    told: u64,
}

/// Totals that only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Figures {
    pub(crate) calls: Totals,
    /// Nanoseconds.
    pub(crate) open_time: u64,
    pub(crate) stale_results: u64,
    pub(crate) shadow_rejections: u64,
    pub(crate) faults: u64,
    pub(crate) swaps: u64,
    pub(crate) dropped: u64,
}

impl Figures {
    pub(crate) fn add(&mut self, other: &Self) {
        for (total, more) in self.calls.iter_mut().zip(&other.calls) {
            *total = total.wrapping_add(*more);
        }
        self.open_time = self.open_time.saturating_add(other.open_time);
        self.stale_results += other.stale_results;
        self.shadow_rejections += other.shadow_rejections;
        self.faults += other.faults;
        self.swaps += other.swaps;
        self.dropped += other.dropped;
    }
}

impl Ledger {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            calls: Tally::default(),
            stale_results: AtomicU64::new(0),
            shadow_rejections: AtomicU64::new(0),
            faults: AtomicU64::new(0),
            swaps: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            circuits: AtomicUsize::new(0),
            states: Mutex::default(),
            ended: AtomicBool::new(false),
        }
    }

    /// A circuit's lease says another state than the one before did. Called under its shard's lock.
    pub(crate) fn moved(&self, key: &Key, before: State, after: State, now: u64) {
        if before == after {
            return;
        }
        let mut states = self.states.lock();
        if before == State::Open {
            states.open = states.open.saturating_sub(1);
            states.open_time += i128::from(now);
        }
        match after {
            State::Closed => {
                states.not_closed.remove(key);
            }
            State::Open => {
                states.open += 1;
                states.open_time -= i128::from(now);
                states.not_closed.insert(key.clone(), after);
            }
            State::HalfOpen => {
                states.not_closed.insert(key.clone(), after);
            }
        }
    }

    /// How many circuits there are in each state: closed, open, half-open.
    pub(crate) fn circuits(&self) -> [u64; 3] {
        let states = self.states.lock();
        let not_closed = states.not_closed.len() as u64;
        let all = self.circuits.load(Ordering::Relaxed) as u64;
        [
            all.saturating_sub(not_closed),
            states.open,
            not_closed.saturating_sub(states.open),
        ]
    }

    /// Adds the circuits that are not closed to `all`.
    pub(crate) fn not_closed(&self, all: &mut impl Extend<(Key, State)>) {
        let states = self.states.lock();
        all.extend(states.not_closed.iter().map(|(key, state)| (key.clone(), *state)));
    }

    pub(crate) fn figures(&self) -> Figures {
        Figures {
            calls: self.calls.totals(),
            open_time: self.open_time(),
            stale_results: self.stale_results.load(Ordering::Relaxed),
            shadow_rejections: self.shadow_rejections.load(Ordering::Relaxed),
            faults: self.faults.load(Ordering::Relaxed),
            swaps: self.swaps.load(Ordering::Relaxed),
            dropped: self.dropped.load(Ordering::Relaxed),
        }
    }

    fn open_time(&self) -> u64 {
        let mut states = self.states.lock();
        // Read under the lock, so that no circuit leaves the state at a moment later than this one.
        let now = i128::from(self.clock.monotonic());
        let time = states.open_time + i128::from(states.open) * now;
        states.told = states.told.max(u64::try_from(time).unwrap_or(0));
        states.told
    }

    /// The circuits are gone: nothing is added any more.
    pub(crate) fn end(&self) {
        let _last = self.open_time();
        let mut states = self.states.lock();
        states.open_time = i128::from(states.told);
        states.open = 0;
        states.not_closed.clear();
        self.circuits.store(0, Ordering::Relaxed);
        self.ended.store(true, Ordering::Release);
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::clock::ManualClock;

    #[test]
    fn time_is_counted_while_a_circuit_is_open_and_in_no_other_state() {
        let clock = ManualClock::new();
        let ledger = Ledger::new(Arc::new(clock.clone()));
        let (one, other) = ("one".into(), "other".into());
        let step = |seconds| {
            clock.advance(Duration::from_secs(seconds));
            clock.monotonic()
        };
        ledger.circuits.store(3, Ordering::Relaxed);
        ledger.moved(&one, State::Closed, State::Open, step(1));
        ledger.moved(&other, State::Closed, State::Open, step(2));
        assert_eq!(ledger.circuits(), [1, 2, 0]);
        assert_eq!(ledger.figures().open_time, 2_000_000_000);
        ledger.moved(&one, State::Open, State::HalfOpen, step(3));
        assert_eq!(ledger.circuits(), [1, 1, 1]);
        ledger.moved(&one, State::HalfOpen, State::Closed, step(4));
        assert_eq!(ledger.figures().open_time, (5 + 7) * 1_000_000_000);
        clock.set_monotonic(0);
        assert_eq!(
            ledger.figures().open_time,
            12_000_000_000,
            "a total never steps back"
        );
        ledger.end();
        assert_eq!(
            (ledger.circuits(), ledger.figures().open_time),
            ([0; 3], 12_000_000_000)
        );
    }
}
