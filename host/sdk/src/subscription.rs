//! Who wants to hear of moves.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};

use parking_lot::RwLock;

use crate::status::Event;

type Callback = Arc<dyn Fn(&Event) + Send + Sync>;

/// The subscribers of one set of circuits.
#[derive(Default)]
pub(crate) struct Subscribers(RwLock<List>);

#[derive(Default)]
struct List {
    next: u64,
    all: Vec<(u64, Callback)>,
}

impl Subscribers {
    pub(crate) fn add(self: &Arc<Self>, callback: Callback) -> Subscription {
        let mut list = self.0.write();
        let number = list.next;
        list.next += 1;
        list.all.push((number, callback));
        Subscription {
            subscribers: Arc::downgrade(self),
            number,
        }
    }

    /// Tells each of a move. A subscriber that panics keeps nobody else from hearing of it.
    pub(crate) fn tell(&self, event: &Event) {
        // Called without the lock, so that a subscriber may subscribe or leave.
        let all: Vec<Callback> = self
            .0
            .read()
            .all
            .iter()
            .map(|(_, callback)| callback.clone())
            .collect();
        for callback in all {
            let _ = catch_unwind(AssertUnwindSafe(|| callback(event)));
        }
    }
}

/// Ends a subscription when it is dropped.
///
/// A move that is being told at that moment may still arrive.
#[must_use = "a subscription ends as soon as this is dropped"]
pub struct Subscription {
    subscribers: Weak<Subscribers>,
    number: u64,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(subscribers) = self.subscribers.upgrade() {
            let mut list = subscribers.0.write();
            let left = list.all.iter().position(|(number, _)| *number == self.number);
            let callback = left.map(|index| list.all.remove(index));
            // What the callback holds is dropped without the lock.
            drop(list);
            drop(callback);
        }
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}
