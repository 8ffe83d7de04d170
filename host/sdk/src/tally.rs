//! Calls counted by how they ended, without a locked instruction: each thread counts in a cell of its own, and reading
//! adds the cells up.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::gate::Outcome;
use crate::rejection::RejectionReason;

/// How a call ended, or why it was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Ended(Outcome),
    Rejected(RejectionReason),
}

/// Every ending, in the order of the counts.
pub(crate) const ENDINGS: [Ending; 9] = [
    Ending::Ended(Outcome::Success),
    Ending::Ended(Outcome::Failure),
    Ending::Ended(Outcome::Timeout),
    Ending::Ended(Outcome::Ignored),
    Ending::Rejected(RejectionReason::Open),
    Ending::Rejected(RejectionReason::ProbeLimit),
    Ending::Rejected(RejectionReason::ForcedOpen),
    Ending::Rejected(RejectionReason::Throttled),
    Ending::Rejected(RejectionReason::Other),
];

impl Ending {
    #[inline(always)]
    fn index(self) -> usize {
        match self {
            Self::Ended(Outcome::Success) => 0,
            Self::Ended(Outcome::Failure) => 1,
            Self::Ended(Outcome::Timeout) => 2,
            Self::Ended(Outcome::Ignored) => 3,
            Self::Rejected(RejectionReason::Open) => 4,
            Self::Rejected(RejectionReason::ProbeLimit) => 5,
            Self::Rejected(RejectionReason::ForcedOpen) => 6,
            Self::Rejected(RejectionReason::Throttled) => 7,
            Self::Rejected(RejectionReason::Other) => 8,
        }
    }
}

/// Totals in the order of [`ENDINGS`].
pub(crate) type Totals = [u64; ENDINGS.len()];

/// The calls of one set of circuits.
#[derive(Default)]
pub(crate) struct Tally(Mutex<Sheet>);

#[derive(Default)]
struct Sheet {
    /// What threads that have ended had counted.
    ended: Totals,
    /// The cells of the others.
    cells: Vec<Arc<Counts>>,
}

/// One thread's counts: written by that thread only. A cache line of its own, so that threads do not disturb each other.
#[derive(Default)]
#[repr(align(128))]
struct Counts([AtomicU64; ENDINGS.len()]);

impl Counts {
    /// A load and a store: nobody else writes here.
    #[inline(always)]
    fn add(&self, ending: Ending) {
        if let Some(count) = self.0.get(ending.index()) {
            count.store(count.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        }
    }

    fn add_to(&self, totals: &mut Totals) {
        for (total, count) in totals.iter_mut().zip(&self.0) {
            *total = total.wrapping_add(count.load(Ordering::Relaxed));
        }
    }
}

/// What one thread counts in.
struct Own {
    /// The place in `cells` that was used last.
    last: Cell<usize>,
    cells: RefCell<Vec<OwnCell>>,
}

struct OwnCell {
    /// Where the tally is. While `tally` is there, no other one has this address.
    address: usize,
    counts: Arc<Counts>,
    /// Weak, so that a thread keeps no circuits alive.
    tally: Weak<Tally>,
}

thread_local! {
    static OWN: Own = const {
        Own {
            last: Cell::new(0),
            cells: RefCell::new(Vec::new()),
        }
    };
}

impl Own {
    /// Counts where there is a cell of this tally.
    #[inline(always)]
    fn add(&self, tally: &Arc<Tally>, ending: Ending) -> bool {
        let Ok(cells) = self.cells.try_borrow() else {
            return false;
        };
        match cells.get(self.last.get()) {
            Some(cell) if cell.is_of(tally) => cell.counts.add(ending),
            Some(_) | None => match cells.iter().position(|cell| cell.is_of(tally)) {
                Some(place) => {
                    self.last.set(place);
                    if let Some(cell) = cells.get(place) {
                        cell.counts.add(ending);
                    }
                }
                None => return false,
            },
        }
        true
    }

    /// Makes a cell for a tally that has none yet, and forgets those of tallies that are gone.
    fn begin(&self, tally: &Arc<Tally>) {
        let Ok(mut cells) = self.cells.try_borrow_mut() else {
            return;
        };
        cells.retain(|cell| cell.tally.strong_count() > 0);
        let counts = Arc::new(Counts::default());
        tally.0.lock().cells.push(counts.clone());
        self.last.set(cells.len());
        cells.push(OwnCell {
            address: Arc::as_ptr(tally).addr(),
            counts,
            tally: Arc::downgrade(tally),
        });
    }
}

impl OwnCell {
    #[inline(always)]
    fn is_of(&self, tally: &Arc<Tally>) -> bool {
        self.address == Arc::as_ptr(tally).addr()
    }
}

impl Drop for OwnCell {
    /// The thread ends: what it counted is added to what is left of the others.
    fn drop(&mut self) {
        if let Some(tally) = self.tally.upgrade() {
            tally.end(&self.counts);
        }
    }
}

impl Tally {
    /// Counts one call. Allocates only when a thread counts here for the first time.
    #[inline(always)]
    pub(crate) fn add(self: &Arc<Self>, ending: Ending) {
        if OWN.try_with(|own| own.add(self, ending)) != Ok(true) {
            self.add_slowly(ending);
        }
    }

    #[cold]
    fn add_slowly(self: &Arc<Self>, ending: Ending) {
        let counted = OWN.try_with(|own| {
            own.begin(self);
            own.add(self, ending)
        });
        if counted != Ok(true) {
            // The thread is ending and has no cells any more.
            if let Some(total) = self.0.lock().ended.get_mut(ending.index()) {
                *total = total.wrapping_add(1);
            }
        }
    }

    /// What all threads counted.
    pub(crate) fn totals(&self) -> Totals {
        let sheet = self.0.lock();
        let mut totals = sheet.ended;
        for counts in &sheet.cells {
            counts.add_to(&mut totals);
        }
        totals
    }

    fn end(&self, counts: &Arc<Counts>) {
        let mut sheet = self.0.lock();
        if let Some(place) = sheet.cells.iter().position(|cell| Arc::ptr_eq(cell, counts)) {
            sheet.cells.swap_remove(place);
            counts.add_to(&mut sheet.ended);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUCCESS: Ending = Ending::Ended(Outcome::Success);
    const OPEN: Ending = Ending::Rejected(RejectionReason::Open);

    #[test]
    fn every_ending_has_a_count_of_its_own() {
        let tally = Arc::new(Tally::default());
        for (index, ending) in ENDINGS.into_iter().enumerate() {
            assert_eq!(ending.index(), index);
            (0..=index).for_each(|_| tally.add(ending));
        }
        assert_eq!(tally.totals(), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
    }

    #[test]
    fn threads_are_added_up_while_they_live_and_after_they_have_ended() {
        let tally = Arc::new(Tally::default());
        let (counted, all_counted) = std::sync::mpsc::channel();
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let (tally, counted) = (tally.clone(), counted.clone());
                let (end, ended) = std::sync::mpsc::channel::<()>();
                let thread = std::thread::spawn(move || {
                    (0..100).for_each(|_| tally.add(SUCCESS));
                    counted.send(()).unwrap();
                    ended.recv().unwrap();
                });
                (thread, end)
            })
            .collect();
        (0..4).for_each(|_| all_counted.recv().unwrap());
        assert_eq!(tally.totals()[0], 400);
        for (thread, end) in threads {
            end.send(()).unwrap();
            thread.join().unwrap();
        }
        assert_eq!(tally.totals()[0], 400);
        assert!(tally.0.lock().cells.is_empty(), "their cells went with them");
    }

    #[test]
    fn several_tallies_on_one_thread_do_not_mix() {
        let tallies: Vec<_> = (0..3).map(|_| Arc::new(Tally::default())).collect();
        for round in 0..10 {
            for (index, tally) in tallies.iter().enumerate() {
                (0..=index).for_each(|_| tally.add(if round % 2 == 0 { SUCCESS } else { OPEN }));
            }
        }
        for (index, tally) in tallies.iter().enumerate() {
            let expected = 5 * (index as u64 + 1);
            assert_eq!((tally.totals()[0], tally.totals()[4]), (expected, expected));
        }
    }

    #[test]
    fn a_thread_forgets_tallies_that_are_gone() {
        for _ in 0..100 {
            Arc::new(Tally::default()).add(SUCCESS);
        }
        assert!(OWN.with(|own| own.cells.borrow().len()) <= 1);
    }

    #[test]
    fn a_thread_that_is_ending_still_counts() {
        struct AtTheEnd(Arc<Tally>);
        impl Drop for AtTheEnd {
            fn drop(&mut self) {
                self.0.add(OPEN);
            }
        }
        thread_local! {
            static LAST: RefCell<Option<AtTheEnd>> = const { RefCell::new(None) };
        }
        let tally = Arc::new(Tally::default());
        let counting = tally.clone();
        std::thread::spawn(move || {
            // Destructors run in the reverse order of first use on some systems and in order on others: count on both
            // sides.
            LAST.with(|last| *last.borrow_mut() = Some(AtTheEnd(counting.clone())));
            counting.add(SUCCESS);
        })
        .join()
        .unwrap();
        assert_eq!((tally.totals()[0], tally.totals()[4]), (1, 1));
    }
}
