//! Small numbers for threads, so that each can have a place of its own in an array.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// So many threads have one at a time; those that come when all are taken have none.
pub(crate) const NUMBERS: usize = 64;

/// The number of this thread: below [`NUMBERS`] if it has asked for one and one was free, and no other thread's while this
/// one lives. One that got none does not ask again.
#[inline(always)]
pub(crate) fn thread_number() -> usize {
    NUMBER.get()
}

/// Asks for a number for this thread.
#[cold]
pub(crate) fn ask_for_thread_number() {
    if NUMBER.get() == NOT_ASKED {
        // A thread that is ending gets none, since it could not give it back.
        let number = GIVES_BACK.try_with(|_| take()).ok().flatten();
        NUMBER.set(number.unwrap_or(NONE));
    }
}

const NOT_ASKED: usize = usize::MAX;
const NONE: usize = usize::MAX - 1;

/// A bit for each number that a thread has.
static TAKEN: AtomicU64 = AtomicU64::new(0);

thread_local! {
    // Nothing is to be done with it when the thread ends, so that it is read like any other memory, also then.
    static NUMBER: Cell<usize> = const { Cell::new(NOT_ASKED) };
    static GIVES_BACK: GivesBack = const { GivesBack };
}

struct GivesBack;

impl Drop for GivesBack {
    fn drop(&mut self) {
        if let Some(bit) = bit(NUMBER.replace(NONE)) {
            // What the thread did under its number is seen by the next one that has it.
            TAKEN.fetch_and(!bit, Ordering::Release);
        }
    }
}

fn bit(number: usize) -> Option<u64> {
    (number < NUMBERS).then(|| 1 << number)
}

/// The lowest number that is free.
fn take() -> Option<usize> {
    let lowest_free = |taken: u64| bit(taken.trailing_ones() as usize).map(|bit| taken | bit);
    let before = TAKEN
        .fetch_update(Ordering::Acquire, Ordering::Relaxed, lowest_free)
        .ok()?;
    Some(before.trailing_ones() as usize)
}

/// Held by tests that use up the numbers.
#[cfg(test)]
pub(crate) static ALONE: parking_lot::Mutex<()> = parking_lot::Mutex::new(());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_threads_have_the_same_number_and_it_is_given_out_again() {
        let _alone = ALONE.lock();
        let (more, meet) = (NUMBERS + 6, std::sync::Barrier::new(NUMBERS + 6));
        for _ in 0..3 {
            let mut numbers: Vec<_> = std::thread::scope(|threads| {
                let ask = || {
                    ask_for_thread_number();
                    meet.wait();
                    thread_number()
                };
                let threads: Vec<_> = (0..more).map(|_| threads.spawn(ask)).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            numbers.retain(|number| *number < NUMBERS);
            let given = numbers.len();
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(numbers.len(), given, "one number was given out twice");
            // Other tests of this process may have some.
            assert!(given > NUMBERS / 2, "{given} of {NUMBERS} were given out");
        }
    }
}
