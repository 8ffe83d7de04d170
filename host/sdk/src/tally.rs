//! Calls counted by how they ended, without a locked instruction: each of up to [`NUMBERS`] threads counts in a row of its
//! own, the others in one that they share, and reading adds the rows up.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::gate::Outcome;
use crate::rejection::RejectionReason;
use crate::thread_number::{NUMBERS, ask_for_thread_number, thread_number};

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
pub(crate) struct Tally {
    /// By the threads' numbers.
    rows: [Counts; NUMBERS],
    /// Of all threads that have none.
    shared: Counts,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            rows: std::array::from_fn(|_| Counts::default()),
            shared: Counts::default(),
        }
    }
}

/// A cache line of its own, so that threads do not disturb each other.
#[derive(Default)]
#[repr(align(128))]
struct Counts([AtomicU64; ENDINGS.len()]);

impl Counts {
    /// A load and a store: nobody else writes here.
    #[inline(always)]
    fn add_alone(&self, ending: Ending) {
        if let Some(count) = self.0.get(ending.index()) {
            count.store(count.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        }
    }

    fn add_among_others(&self, ending: Ending) {
        if let Some(count) = self.0.get(ending.index()) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn add_to(&self, totals: &mut Totals) {
        for (total, count) in totals.iter_mut().zip(&self.0) {
            *total = total.wrapping_add(count.load(Ordering::Relaxed));
        }
    }
}

impl Tally {
    /// Counts one call.
    #[inline(always)]
    pub(crate) fn add(&self, ending: Ending) {
        match self.rows.get(thread_number()) {
            Some(row) => row.add_alone(ending),
            None => self.add_without_number(ending),
        }
    }

    #[cold]
    fn add_without_number(&self, ending: Ending) {
        ask_for_thread_number();
        match self.rows.get(thread_number()) {
            Some(row) => row.add_alone(ending),
            None => self.shared.add_among_others(ending),
        }
    }

    /// What all threads counted.
    pub(crate) fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for row in self.rows.iter().chain([&self.shared]) {
            row.add_to(&mut totals);
        }
        totals
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::sync::Arc;

    use super::*;
    use crate::thread_number::ALONE;

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
    }

    #[test]
    fn threads_that_have_no_number_are_counted_with_the_others() {
        let _alone = ALONE.lock();
        let tally = Tally::default();
        let all = NUMBERS + 6;
        let meet = std::sync::Barrier::new(all);
        std::thread::scope(|threads| {
            let count = || {
                tally.add(OPEN);
                meet.wait();
                (0..100).for_each(|_| tally.add(SUCCESS));
            };
            let threads: Vec<_> = (0..all).map(|_| threads.spawn(count)).collect();
            // The scope alone does not wait until they have given their numbers back.
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
        let expected = all as u64;
        assert_eq!((tally.totals()[0], tally.totals()[4]), (100 * expected, expected));
        assert!(
            tally
                .shared
                .0
                .iter()
                .any(|count| count.load(Ordering::Relaxed) > 0)
        );
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
