//! One circuit: what every thread sees of it, and what only the holder of its shard's lock does.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::gate::{Authority, Gate};
use crate::lease::{Lease, Successes};
use crate::machine::Cx;
use crate::seat::SeatId;
use crate::settings::Settings;
use crate::snapshots::Saved;
use crate::status::{Mode, State};

/// A circuit's key. One of up to 23 bytes is copied rather than counted, so that rejections on several threads do not fight
/// over the count, and takes no memory of its own.
pub(crate) type Key = smol_str::SmolStr;

/// What every thread sees.
pub(crate) struct Circuit {
    pub(crate) key: Key,
    /// Its place among the shard's slots.
    slot: u32,
    pub(crate) gate: Gate,
    /// Whether the component was told of a call since the circuit was attached or reset.
    pub(crate) recorded: AtomicBool,
    pub(crate) stale: AtomicU64,
    pub(crate) would_have_rejected: AtomicU64,
}

impl Circuit {
    pub(crate) fn new(key: &Key, slot: usize, incarnation: u64) -> Self {
        Self {
            key: key.clone(),
            // There are never so many places that this would not fit: see `MAX_IN_SHARD`.
            slot: u32::try_from(slot).unwrap_or(u32::MAX),
            gate: Gate::new(&Lease::UNKNOWN, incarnation),
            recorded: AtomicBool::new(false),
            stale: AtomicU64::new(0),
            would_have_rejected: AtomicU64::new(0),
        }
    }

    /// Its place among the shard's slots.
    pub(crate) fn slot(&self) -> usize {
        self.slot as usize
    }

    /// Replaces the lease, and takes note of a change of state. The counter must be closed.
    pub(crate) fn publish_locked(&self, cx: &Cx<'_>, lease: &Lease, incarnation: u64, at_fault: bool) {
        let before = self.gate.read_locked().lease.state;
        let authority = if at_fault {
            Authority::Host
        } else if cx.env.ignore_leases {
            Authority::Component
        } else {
            Authority::Lease
        };
        self.gate.publish_locked(lease, incarnation, authority);
        cx.env.ledger.moved(&self.key, before, lease.state, cx.now);
    }

    /// Whether somebody holds it: a handle, or a permit that owns one. Exact only under the registry's write lock.
    pub(crate) fn is_in_use(this: &Arc<Self>) -> bool {
        if Arc::strong_count(this) > OWN_REFERENCES {
            return true;
        }
        // What the last holder did to the gate is seen from here on.
        std::sync::atomic::fence(Ordering::Acquire);
        false
    }

    /// Whether anything would be lost with it. Exact only under the shard's lock.
    pub(crate) fn is_worth_keeping(&self) -> bool {
        let lease = self.gate.read_locked().lease;
        lease.is_worth_saving() || self.recorded.load(Ordering::Relaxed) || self.gate.kept() > 0
    }

    /// Whether it may be forgotten as far as its state goes, and whether that would lose what was recorded.
    pub(crate) fn fate(&self) -> Fate {
        let Some(view) = self.gate.read() else {
            return Fate::Stays;
        };
        if view.lease.state != State::Closed || view.lease.mode != Mode::Automatic {
            return Fate::Stays;
        }
        let untouched = !self.recorded.load(Ordering::Relaxed) && self.gate.kept() == 0;
        if untouched || view.lease.successes == Successes::Never {
            Fate::Clean
        } else {
            Fate::Recorded
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Clean,
    Recorded,
    Stays,
}

/// The registry's map, its queue and the shard's slot hold one reference each.
const OWN_REFERENCES: usize = 3;

/// What only the holder of the shard's lock sees.
pub(crate) struct Slot {
    pub(crate) circuit: Arc<Circuit>,
    pub(crate) settings: Settings,
    /// Whether they were given for this circuit when it was asked for, rather than by the table.
    pub(crate) own: bool,
    /// Which seat decides on it.
    pub(crate) seat: SeatId,
    /// Its number in the instance of now; none where that instance does not know it yet.
    pub(crate) number: Option<u32>,
    /// How it stood when it was last saved, while it is not closed or not automatic.
    pub(crate) saved: Option<Box<Saved>>,
    pub(crate) strikes: Strikes,
    /// Struck out: the component is not asked about it any more.
    pub(crate) fallen: bool,
}

impl Slot {
    pub(crate) fn new(circuit: Arc<Circuit>, settings: Settings, own: bool, seat: SeatId) -> Self {
        Self {
            circuit,
            settings,
            own,
            seat,
            number: None,
            saved: None,
            strikes: Strikes::default(),
            fallen: false,
        }
    }
}

/// The times of the faults of the last minute. Boxed, since most circuits never have one.
#[derive(Default)]
#[expect(
    clippy::box_collection,
    reason = "one word instead of four, in each of very many circuits"
)]
pub(crate) struct Strikes(Option<Box<VecDeque<u64>>>);

impl Strikes {
    /// Adds one, and says whether there are now as many as `limit` within a minute.
    pub(crate) fn add(&mut self, now: u64, limit: usize) -> bool {
        let times = self.0.get_or_insert_default();
        times.push_back(now);
        while times
            .front()
            .is_some_and(|first| now.saturating_sub(*first) >= MINUTE)
        {
            times.pop_front();
        }
        times.len() >= limit
    }
}

const MINUTE: u64 = 60_000_000_000;

/// The shard's slots: a place once given keeps its number until it is given back. In chunks, so that nothing is copied and no
/// more than a chunk is there for nothing.
#[derive(Default)]
pub(crate) struct Slots {
    chunks: Vec<Vec<Option<Slot>>>,
    free: Vec<u32>,
}

/// Slots in a chunk.
const CHUNK: usize = 256;

impl Slots {
    /// Fills a place with what `make` makes for it.
    pub(crate) fn insert(&mut self, make: impl FnOnce(usize) -> Slot) -> usize {
        if let Some(index) = self.free.pop() {
            let index = index as usize;
            if let Some(place) = self.place(index) {
                *place = Some(make(index));
            }
            return index;
        }
        let index = self.end();
        match self.chunks.last_mut() {
            Some(chunk) if chunk.len() < CHUNK => chunk.push(Some(make(index))),
            Some(_) | None => {
                let mut chunk = Vec::with_capacity(CHUNK);
                chunk.push(Some(make(index)));
                self.chunks.push(chunk);
            }
        }
        index
    }

    pub(crate) fn remove(&mut self, index: usize) -> Option<Slot> {
        let slot = self.place(index)?.take()?;
        self.free.extend(u32::try_from(index));
        Some(slot)
    }

    fn place(&mut self, index: usize) -> Option<&mut Option<Slot>> {
        self.chunks.get_mut(index / CHUNK)?.get_mut(index % CHUNK)
    }

    pub(crate) fn get(&self, index: usize) -> Option<&Slot> {
        self.chunks.get(index / CHUNK)?.get(index % CHUNK)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, index: usize) -> Option<&mut Slot> {
        self.place(index)?.as_mut()
    }

    /// One more than the highest place that was ever given out.
    pub(crate) fn end(&self) -> usize {
        self.chunks
            .last()
            .map_or(0, |last| (self.chunks.len() - 1) * CHUNK + last.len())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Slot> {
        self.chunks.iter().flatten().flatten()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (usize, &mut Slot)> {
        self.chunks
            .iter_mut()
            .flatten()
            .enumerate()
            .filter_map(|(index, slot)| Some((index, slot.as_mut()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_up_to_23_bytes_is_copied() {
        assert!(!Key::new("k".repeat(23)).is_heap_allocated());
        assert!(Key::new("k".repeat(24)).is_heap_allocated());
    }

    #[test]
    fn strikes_count_within_one_minute() {
        let mut strikes = Strikes::default();
        assert!(!strikes.add(0, 3));
        assert!(!strikes.add(MINUTE - 1, 3));
        assert!(!strikes.add(MINUTE, 3), "the first is a minute old");
        assert!(strikes.add(MINUTE, 3));
    }

    #[test]
    fn a_place_given_back_is_given_out_again() {
        let mut slots = Slots::default();
        let slot = |index| {
            let circuit = Arc::new(Circuit::new(&"k".into(), index, 1));
            Slot::new(circuit, Settings::default(), false, SeatId::default())
        };
        let (first, second) = (slots.insert(slot), slots.insert(slot));
        assert!(slots.remove(first).is_some());
        assert!(slots.remove(first).is_none());
        assert_eq!(slots.insert(slot), first);
        assert_eq!(slots.iter().count(), 2);
        assert_eq!(slots.get(second).map(|slot| slot.circuit.slot()), Some(second));
    }
}
