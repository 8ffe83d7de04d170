//! Copies of circuits for whatever comes after their instance, and the room that they take.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::bindings::exports::tripwit::breaker::policy::Snapshot;
use crate::circuit::Circuit;
use crate::instance::{Fault, Instance};
use crate::machine::Cx;

/// A copy of a circuit.
#[derive(Clone)]
pub(crate) struct Saved {
    pub(crate) snapshot: Snapshot,
    /// When it was made.
    pub(crate) at: u64,
    pub(crate) taken: Taken,
}

impl Saved {
    pub(crate) fn new(snapshot: Snapshot, at: u64, room: &Room) -> Self {
        let taken = room.take(size(&snapshot).saturating_sub(ORDINARY));
        Self { snapshot, at, taken }
    }
}

/// What an ordinary copy has at most, in bytes: the longest key and cause, and settings of a usual length. The number of
/// circuits bounds it; only what a copy has beyond it is counted.
const ORDINARY: usize = 2 << 10;

/// Copies a circuit from its instance. What all copies of a shard have beyond the ordinary is at most twice what the instance
/// may have: one copy of each circuit, and another while they are saved for a restart.
pub(crate) fn snapshot(
    cx: &Cx<'_>,
    instance: &mut Instance,
    circuit: &Circuit,
    number: u32,
) -> Result<Saved, Fault> {
    let snapshot = instance.save(number)?;
    if *snapshot.key != *circuit.key {
        return Err(Fault::new("save", "handed out a snapshot of another key"));
    }
    let saved = Saved::new(snapshot, cx.now, cx.room);
    let most = cx.env.max_memory.saturating_mul(2);
    if cx.room.taken() > most {
        return Err(Fault::new(
            "save",
            format!(
                "the snapshots of the shard are larger by {most} bytes than {ORDINARY} each, which is twice `max_memory`"
            ),
        ));
    }
    Ok(saved)
}

/// How many bytes the copies of one shard have beyond the ordinary, all together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Room(Arc<AtomicUsize>);

impl Room {
    fn taken(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    fn take(&self, bytes: usize) -> Taken {
        self.0.fetch_add(bytes, Ordering::Relaxed);
        Taken {
            room: self.clone(),
            bytes,
        }
    }
}

/// The room of one copy, until it is dropped.
#[derive(Debug)]
pub(crate) struct Taken {
    room: Room,
    bytes: usize,
}

impl Clone for Taken {
    fn clone(&self) -> Self {
        self.room.take(self.bytes)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.room.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// How many bytes a copy has.
fn size(snapshot: &Snapshot) -> usize {
    let Snapshot {
        key,
        settings,
        last_cause,
        detail,
        detail_format,
        ..
    } = snapshot;
    let cause = last_cause.as_ref().map_or(0, String::len);
    size_of::<Saved>() + key.len() + settings.len() + cause + detail.len() + detail_format.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_of_a_copy_takes_room_of_its_own_and_each_gives_it_back() {
        let room = Room::default();
        let one = room.take(5);
        let other = one.clone();
        assert_eq!(room.taken(), 10);
        drop(one);
        assert_eq!(room.taken(), 5);
        drop(other);
        assert_eq!(room.taken(), 0);
    }
}
