//! The circuits of a shard by key, and which of them goes when there are too many.

use std::borrow::Borrow;
use std::collections::{HashSet, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::circuit::{Circuit, Fate};

/// Each circuit is in the map and in one queue.
///
/// A circuit moves between the queues only when room is wanted, so that making room costs the same however many
/// circuits there are, as long as there are some that can go.
#[derive(Default)]
pub(crate) struct Registry {
    by_key: HashSet<ByKey>,
    /// Not known to be in use, nor to have anything recorded.
    clean: VecDeque<Arc<Circuit>>,
    /// Found with something recorded.
    recorded: VecDeque<Arc<Circuit>>,
    /// Found in use, not closed or not automatic.
    busy: VecDeque<Arc<Circuit>>,
}

/// A circuit that is found by its key, which it has itself.
struct ByKey(Arc<Circuit>);

impl Borrow<str> for ByKey {
    fn borrow(&self) -> &str {
        &self.0.key
    }
}

impl Hash for ByKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.key.hash(state);
    }
}

impl PartialEq for ByKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.key == other.0.key
    }
}

impl Eq for ByKey {}

impl Registry {
    pub(crate) fn get(&self, key: &str) -> Option<&Arc<Circuit>> {
        self.by_key.get(key).map(|ByKey(circuit)| circuit)
    }

    pub(crate) fn len(&self) -> usize {
        self.by_key.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Circuit>> {
        self.by_key.iter().map(|ByKey(circuit)| circuit)
    }

    pub(crate) fn insert(&mut self, circuit: &Arc<Circuit>) {
        self.by_key.insert(ByKey(circuit.clone()));
        self.clean.push_back(circuit.clone());
    }

    /// Takes out the circuit that can best be done without: closed, automatic and held by nobody, one with nothing
    /// recorded before the others.
    pub(crate) fn evict(&mut self) -> Option<Arc<Circuit>> {
        let unseen = self.busy.len().saturating_sub(LOOK_AT);
        self.look_at_busy(LOOK_AT);
        let gone = self.evict_idle().or_else(|| {
            // Before the answer is that none can go, each is looked at once.
            self.look_at_busy(unseen);
            self.evict_idle()
        })?;
        self.by_key.remove(&*gone.key);
        Some(gone)
    }

    fn evict_idle(&mut self) -> Option<Arc<Circuit>> {
        self.evict_clean().or_else(|| self.evict_recorded())
    }

    /// Moves those of the busy ones that are no longer busy. It looks at so many of them, the longest unseen first.
    fn look_at_busy(&mut self, at_most: usize) {
        for _ in 0..self.busy.len().min(at_most) {
            let Some(circuit) = self.busy.pop_front() else {
                return;
            };
            self.queue_of(&circuit).push_back(circuit);
        }
    }

    fn queue_of(&mut self, circuit: &Arc<Circuit>) -> &mut VecDeque<Arc<Circuit>> {
        match circuit.fate() {
            _ if Circuit::is_in_use(circuit) => &mut self.busy,
            Fate::Stays => &mut self.busy,
            Fate::Recorded => &mut self.recorded,
            Fate::Clean => &mut self.clean,
        }
    }

    fn evict_clean(&mut self) -> Option<Arc<Circuit>> {
        while let Some(circuit) = self.clean.pop_front() {
            match circuit.fate() {
                Fate::Clean if !Circuit::is_in_use(&circuit) => return Some(circuit),
                Fate::Clean | Fate::Recorded | Fate::Stays => self.queue_of(&circuit).push_back(circuit),
            }
        }
        None
    }

    fn evict_recorded(&mut self) -> Option<Arc<Circuit>> {
        while let Some(circuit) = self.recorded.pop_front() {
            match circuit.fate() {
                Fate::Clean | Fate::Recorded if !Circuit::is_in_use(&circuit) => return Some(circuit),
                Fate::Clean | Fate::Recorded | Fate::Stays => self.busy.push_back(circuit),
            }
        }
        None
    }
}

/// How many of the busy circuits are looked at when room is wanted; all of them where none else can go.
const LOOK_AT: usize = 256;
