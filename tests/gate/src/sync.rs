//! Loom's atomics under the names that the gate and the anchor take, and what can be taken away from them.

use std::cell::Cell;
use std::fmt;
use std::sync::atomic::AtomicU64 as Plain;

use loom::sync::atomic as loom;

pub(crate) use std::sync::atomic::Ordering;

/// What memory does not do although the gate asks for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weakness {
    /// Nothing: it does what it is asked.
    #[default]
    None,
    /// The fence between a reader's words and its second look at the sequence does nothing.
    AcquireFence,
    /// The fence between a writer's first mark on the sequence and its words does nothing.
    ReleaseFence,
    /// No load acquires: a reader's first look at the sequence says nothing about the words.
    AcquireLoad,
    /// No store releases: a writer's last mark on the sequence says nothing about the words.
    ReleaseStore,
    /// A compare-and-swap is a load, a comparison and a store.
    CompareAndSwap,
}

thread_local! {
    /// Loom runs all threads of a model on the thread that checks it.
    static WEAKNESS: Cell<Weakness> = const { Cell::new(Weakness::None) };
}

/// From now on memory has this weakness, for this thread's models.
pub(crate) fn weaken(weakness: Weakness) {
    WEAKNESS.set(weakness);
}

fn weakened(ordering: Ordering) -> Ordering {
    match (WEAKNESS.get(), ordering) {
        (Weakness::AcquireLoad, Ordering::Acquire) | (Weakness::ReleaseStore, Ordering::Release) => {
            Ordering::Relaxed
        }
        (_, ordering) => ordering,
    }
}

pub(crate) fn fence(ordering: Ordering) {
    match (WEAKNESS.get(), ordering) {
        (Weakness::AcquireFence, Ordering::Acquire) | (Weakness::ReleaseFence, Ordering::Release) => {}
        (_, ordering) => loom::fence(ordering),
    }
}

/// An atomic of loom's that leaves out stores which change nothing.
///
/// Each store multiplies what a reader may see. A relaxed store of the value that is there shows no reader anything new, and
/// leaving it out takes an ordering away rather than adding one, so what holds without it holds with it.
pub(crate) struct AtomicU64 {
    loom: loom::AtomicU64,
    /// The value stored last.
    stored: Plain,
}

impl AtomicU64 {
    pub(crate) fn new(value: u64) -> Self {
        Self {
            loom: loom::AtomicU64::new(value),
            stored: Plain::new(value),
        }
    }

    pub(crate) fn load(&self, ordering: Ordering) -> u64 {
        self.loom.load(weakened(ordering))
    }

    pub(crate) fn store(&self, value: u64, ordering: Ordering) {
        if self.stored.swap(value, Ordering::Relaxed) != value || ordering != Ordering::Relaxed {
            self.loom.store(value, weakened(ordering));
        }
    }

    pub(crate) fn swap(&self, value: u64, ordering: Ordering) -> u64 {
        let before = self.loom.swap(value, ordering);
        self.stored.store(value, Ordering::Relaxed);
        before
    }

    pub(crate) fn compare_exchange_weak(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        if WEAKNESS.get() == Weakness::CompareAndSwap {
            let seen = self.loom.load(failure);
            if seen != current {
                return Err(seen);
            }
            self.loom.store(new, Ordering::Release);
        } else {
            self.loom.compare_exchange_weak(current, new, success, failure)?;
        }
        self.stored.store(new, Ordering::Relaxed);
        Ok(current)
    }
}

impl fmt::Debug for AtomicU64 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.stored.fmt(f)
    }
}
