//! A clock that is read seldom, and a counter that is read instead.
//!
//! The operating system's clock costs 20 to 40 ns a reading on many machines, the processor's counter a third of it, and a
//! call under a time-out takes two readings. So the clock is read once a millisecond, and what has passed since is counted.
//!
//! What is told is never ahead of the clock, and two microseconds late at most, or ten while another thread is at a
//! reading: the counter's rate is measured from one reading to the next, and held back by a thousandth. Where the counter is
//! set back, or it and the clock do not go on together (a machine that was suspended, or moved to another host), two
//! measurements in a row disagree, and the clock alone is read until two agree again. What is told until that shows is ahead
//! of the clock by ten milliseconds at most, commonly by one, or behind it by as much as the clock jumped, for as long. Only
//! a counter that speeds up while one thread is at a reading can make another take back what it told.

use parking_lot::Mutex;

use crate::anchor::{Anchor, Newest, Rate};

/// What both are read from.
pub(crate) trait Source {
    /// Goes up at a steady rate. A reading may be taken before what the program did last has come about.
    fn ticks(&self) -> u64;

    /// The same in the order of the program, which takes longer.
    fn ticks_in_order(&self) -> u64;

    /// Nanoseconds; never steps back.
    fn time(&self) -> u64;
}

pub(crate) struct Counted<S> {
    source: S,
    newest: Newest,
    measured: Mutex<Measured>,
}

/// What the rate is measured from.
struct Measured {
    since: Reading,
    /// Not yet trusted: the next one has to agree.
    rate: Rate,
}

#[derive(Clone, Copy)]
struct Reading {
    ticks: u64,
    time: u64,
}

/// How long the counter is trusted, in nanoseconds: a millisecond.
const FRESH: u64 = 1_000_000;
/// And while another thread is reading the clock.
const STALE: u64 = 10 * FRESH;

impl<S: Source> Counted<S> {
    pub(crate) fn new(source: S) -> Self {
        let since = Reading {
            ticks: source.ticks_in_order(),
            time: source.time(),
        };
        Self {
            source,
            newest: Newest::new(Anchor {
                ticks: since.ticks,
                time: since.time,
                rate: Rate::UNKNOWN,
            }),
            measured: Mutex::new(Measured {
                since,
                rate: Rate::UNKNOWN,
            }),
        }
    }

    /// Nanoseconds. Never steps back.
    #[inline]
    pub(crate) fn now(&self) -> u64 {
        self.time_at(self.source.ticks_in_order())
    }

    /// The same, and faster. Readings of two threads may be out of order by less than a microsecond.
    #[inline]
    pub(crate) fn stamp(&self) -> u64 {
        self.time_at(self.source.ticks())
    }

    /// The counter is read first, and need not wait for the rest. An anchor that was made since looks like no good one.
    #[inline]
    fn time_at(&self, ticks: u64) -> u64 {
        match self.newest.read().time_at(ticks, FRESH) {
            Some(now) => now,
            None => self.renew(),
        }
    }

    #[cold]
    #[inline(never)]
    fn renew(&self) -> u64 {
        let mut measured = match self.measured.try_lock() {
            Some(measured) => measured,
            None => {
                let ticks = self.source.ticks_in_order();
                match self.newest.read().time_at(ticks, STALE) {
                    Some(now) => return now,
                    // It is held up for ten milliseconds: the one case in which a reading waits, since counting on would
                    // be worse.
                    None => self.measured.lock(),
                }
            }
        };
        let before = self.newest.read();
        if let Some(now) = before.time_at(self.source.ticks_in_order(), FRESH) {
            return now;
        }
        let reading = self.reading();
        // No earlier than what any thread was told.
        let time = before
            .time_at(reading.ticks, STALE)
            .unwrap_or_else(|| before.last_told(reading.ticks, STALE))
            .max(reading.time);
        let rate = measured.rate_until(reading).unwrap_or(before.rate);
        self.newest.replace_locked(Anchor {
            ticks: reading.ticks,
            time,
            // The clock has to catch up with what was told before anything is counted on.
            rate: if time > reading.time { Rate::UNKNOWN } else { rate },
        });
        time
    }

    /// Reads both at once, as nearly as that can be done: of three times the one that took least.
    fn reading(&self) -> Reading {
        let [first, second, third] = [(); 3].map(|()| {
            let before = self.source.ticks_in_order();
            let time = self.source.time();
            let ticks = self.source.ticks_in_order();
            (ticks.wrapping_sub(before), Reading { ticks, time })
        });
        let mut best = first;
        for other in [second, third] {
            if other.0 < best.0 {
                best = other;
            }
        }
        best.1
    }
}

impl Measured {
    /// The rate from now on. None where too little time has passed for a measurement.
    fn rate_until(&mut self, reading: Reading) -> Option<Rate> {
        let time = reading.time.saturating_sub(self.since.time);
        if time < FRESH && reading.ticks >= self.since.ticks {
            return None;
        }
        let rate = reading
            .ticks
            .checked_sub(self.since.ticks)
            .and_then(|ticks| Rate::of(time, ticks))
            .unwrap_or(Rate::UNKNOWN);
        let trusted = rate.agrees_with(self.rate) && rate != Rate::UNKNOWN;
        *self = Self { since: reading, rate };
        Some(if trusted { rate.held_back() } else { Rate::UNKNOWN })
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use proptest::prelude::*;

    use super::*;

    /// Both in a test's hand.
    struct Hands {
        ticks: Cell<u64>,
        time: Cell<u64>,
        readings: Cell<u32>,
    }

    impl Source for &Hands {
        fn ticks(&self) -> u64 {
            self.ticks.get()
        }

        fn ticks_in_order(&self) -> u64 {
            self.ticks.get()
        }

        fn time(&self) -> u64 {
            self.readings.set(self.readings.get() + 1);
            self.time.get()
        }
    }

    /// How often the counter counts while the clock goes on by a nanosecond.
    const TICKS: u64 = 3;

    impl Hands {
        fn new() -> Self {
            Self {
                ticks: Cell::new(u64::MAX / 2),
                time: Cell::new(0),
                readings: Cell::new(0),
            }
        }

        fn pass(&self, nanoseconds: u64) {
            self.count(nanoseconds * TICKS);
            self.jump(nanoseconds);
        }

        /// The counter alone goes on.
        fn count(&self, ticks: u64) {
            self.ticks.set(self.ticks.get().wrapping_add(ticks));
        }

        /// The clock alone goes on.
        fn jump(&self, nanoseconds: u64) {
            self.time.set(self.time.get() + nanoseconds);
        }

        /// Whether the clock is read when `what` is done.
        fn reads(&self, what: impl FnOnce()) -> bool {
            let before = self.readings.get();
            what();
            self.readings.get() > before
        }

        /// A clock whose counter has come to be trusted.
        fn trusting(&self) -> Counted<&Self> {
            let counted = Counted::new(self);
            for _ in 0..2 {
                self.pass(FRESH);
                counted.now();
            }
            counted
        }
    }

    /// What is told is late, by no more than this.
    fn assert_tells(counted: &Counted<&Hands>, hands: &Hands, late: u64) {
        let (told, time) = (counted.now(), hands.time.get());
        assert!(told <= time && time - told <= late, "{told} at {time}");
    }

    #[test]
    fn the_clock_is_read_each_time_until_the_rate_was_measured_twice() {
        let hands = Hands::new();
        let counted = Counted::new(&hands);
        for _ in 0..20 {
            hands.pass(FRESH / 10);
            assert!(hands.reads(|| assert_eq!(counted.now(), hands.time.get())));
        }
        hands.pass(FRESH / 10);
        assert!(!hands.reads(|| assert_tells(&counted, &hands, 200)));
    }

    #[test]
    fn it_is_read_again_after_a_millisecond() {
        let hands = Hands::new();
        let counted = hands.trusting();
        hands.pass(FRESH);
        assert!(!hands.reads(|| assert_tells(&counted, &hands, 2_000)));
        hands.pass(FRESH / 500);
        assert!(hands.reads(|| assert_eq!(counted.now(), hands.time.get())));
        hands.pass(1);
        assert!(!hands.reads(|| assert_tells(&counted, &hands, 1)));
    }

    #[test]
    fn a_clock_that_was_not_asked_for_long_is_read() {
        let hands = Hands::new();
        let counted = hands.trusting();
        hands.pass(3_600 * 1_000 * FRESH);
        assert!(hands.reads(|| assert_eq!(counted.now(), hands.time.get())));
        hands.pass(5);
        assert!(!hands.reads(|| assert_tells(&counted, &hands, 1)));
    }

    #[test]
    fn a_counter_that_went_on_while_the_clock_stood_is_not_believed() {
        let hands = Hands::new();
        let counted = hands.trusting();
        hands.count(3_600 * 1_000 * FRESH * TICKS);
        hands.pass(7);
        assert_eq!(counted.now(), hands.time.get());
        trusts_again(&hands, &counted);
    }

    #[test]
    fn a_counter_that_was_set_back_is_not_believed() {
        let hands = Hands::new();
        let counted = hands.trusting();
        hands.ticks.set(5);
        hands.pass(7);
        assert_eq!(counted.now(), hands.time.get());
        hands.pass(7);
        assert!(hands.reads(|| assert_eq!(counted.now(), hands.time.get())));
        trusts_again(&hands, &counted);
    }

    #[test]
    fn a_clock_that_went_on_while_the_counter_stood_is_seen_after_a_millisecond() {
        let hands = Hands::new();
        let counted = hands.trusting();
        let hour = 3_600 * 1_000 * FRESH;
        hands.jump(hour);
        hands.pass(1);
        assert!(!hands.reads(|| assert!(hands.time.get() - counted.now() >= hour)));
        hands.pass(FRESH + FRESH / 500);
        assert_eq!(counted.now(), hands.time.get());
        trusts_again(&hands, &counted);
    }

    #[test]
    fn a_counter_that_is_set_back_between_two_readings_takes_no_time_back() {
        let hands = Hands::new();
        let counted = hands.trusting();
        hands.pass(53_012);
        let told = counted.now();
        hands.count((10 * FRESH * TICKS + 1).wrapping_neg());
        assert!(counted.now() >= told);
    }

    #[test]
    fn while_another_thread_reads_the_clock_it_is_counted_on_for_ten_milliseconds() {
        let hands = Hands::new();
        let counted = hands.trusting();
        let another = counted.measured.lock();
        hands.pass(STALE);
        assert!(!hands.reads(|| assert_tells(&counted, &hands, 10_000)));
        drop(another);
        assert!(hands.reads(|| assert_eq!(counted.now(), hands.time.get())));
    }

    #[test]
    fn a_counter_that_ran_ahead_is_not_believed_before_the_clock_has_caught_up() {
        let hands = Hands::new();
        let counted = hands.trusting();
        hands.count(9 * FRESH * TICKS);
        hands.pass(7);
        counted.now();
        for _ in 0..32 {
            hands.pass(FRESH / 10);
            let told = counted.now();
            assert!(told <= hands.time.get() + 9 * FRESH);
        }
        for _ in 0..70 {
            hands.pass(FRESH / 10);
            counted.now();
        }
        assert_tells(&counted, &hands, 2_000);
    }

    #[test]
    fn a_counter_that_is_fifty_times_as_fast_is_found_out_within_a_millisecond() {
        let hands = Hands::new();
        let counted = hands.trusting();
        for _ in 0..10_000 {
            hands.count(50_000 * TICKS);
            hands.jump(1_000);
            assert!(counted.now() <= hands.time.get() + FRESH + FRESH / 10);
        }
    }

    /// Two measurements that agree are enough, and then nothing is left of what was.
    fn trusts_again(hands: &Hands, counted: &Counted<&Hands>) {
        for _ in 0..3 {
            hands.pass(FRESH + FRESH / 500);
            assert_eq!(counted.now(), hands.time.get());
        }
        hands.pass(FRESH);
        assert!(!hands.reads(|| assert_tells(counted, hands, 2_000)));
    }

    proptest! {
        #[test]
        fn it_never_steps_back_where_clock_and_counter_part(
            steps in prop::collection::vec((0..4_u8, 0..3 * FRESH), 1..200)
        ) {
            let hands = Hands::new();
            let counted = Counted::new(&hands);
            let mut latest = 0;
            for (step, by) in steps {
                match step {
                    0 | 1 => hands.pass(by),
                    2 => hands.jump(by),
                    // By more than it is trusted for: one that goes back by less is not told from one that is slow.
                    _ => hands.count((10 * FRESH * TICKS + by).wrapping_neg()),
                }
                let told = counted.now();
                prop_assert!(told >= latest, "{told} after {latest}");
                latest = told;
            }
        }

        #[test]
        fn it_is_late_by_two_microseconds_at_most_and_never_early(
            steps in prop::collection::vec(0..3 * FRESH, 1..200)
        ) {
            let hands = Hands::new();
            let counted = Counted::new(&hands);
            for by in steps {
                hands.pass(by);
                let (told, time) = (counted.now(), hands.time.get());
                prop_assert!(told <= time && time - told <= 2_000, "{told} at {time}");
            }
        }
    }
}
