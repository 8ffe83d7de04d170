//! The two clocks that a breaker reads, and one that tests turn by hand.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use crate::counted::Counted;
use crate::processor::Processor;

/// Where a breaker reads the time.
///
/// Both clocks may be read while a lock of the breaker is held, so an implementation must not wait for anything that may take
/// long, nor call back into the breaker.
pub trait Clock: Send + Sync {
    /// The time that decisions are taken on: nanoseconds since any fixed moment in this process.
    ///
    /// A reading below an earlier one counts as that earlier one, so waits last until the clock has caught up.
    fn monotonic(&self) -> u64;

    /// When something begins or ends, of which only the length matters. Where that takes less long, readings of two threads
    /// may be out of order by less than a microsecond. Default: [`monotonic`](Self::monotonic).
    fn stamp(&self) -> u64 {
        self.monotonic()
    }

    /// The time of day, for people and telemetry only.
    fn wall(&self) -> SystemTime;

    /// Whether [`monotonic`](Self::monotonic) is known never to step back. Where it is not (the default), every reading is
    /// held against the largest one so far, which costs a locked instruction.
    fn never_steps_back(&self) -> bool {
        false
    }
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn monotonic(&self) -> u64 {
        (**self).monotonic()
    }

    fn stamp(&self) -> u64 {
        (**self).stamp()
    }

    fn wall(&self) -> SystemTime {
        (**self).wall()
    }

    fn never_steps_back(&self) -> bool {
        (**self).never_steps_back()
    }
}

/// The same clock, its readings held against the largest one so far unless it is known never to step back.
pub(crate) fn steady(clock: Arc<dyn Clock>) -> Arc<dyn Clock> {
    if clock.never_steps_back() {
        clock
    } else {
        Arc::new(Steady {
            clock,
            latest: AtomicU64::new(0),
        })
    }
}

struct Steady {
    clock: Arc<dyn Clock>,
    latest: AtomicU64,
}

impl Clock for Steady {
    fn monotonic(&self) -> u64 {
        let now = self.clock.monotonic();
        self.latest.fetch_max(now, Ordering::Relaxed).max(now)
    }

    fn wall(&self) -> SystemTime {
        self.clock.wall()
    }
}

/// Tells when time is up by the operating system's clock, whatever clock the circuits have: it is work that is bounded.
pub(crate) struct Stopwatch {
    start: Instant,
    limit: Duration,
}

impl Stopwatch {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the module that reads the clock"
    )]
    pub(crate) fn start(limit: Duration) -> Self {
        Self {
            start: Instant::now(),
            limit,
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.start.elapsed() >= self.limit
    }
}

/// The pace of work that is done bit by bit: half the time is left to others.
///
/// A thread that never waits is left running for a slice of some milliseconds where threads are more than processors, and
/// calls wait for that; one that goes to sleep by itself is out of the way at once.
pub(crate) struct Pace(Instant);

impl Pace {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the module that reads the clock"
    )]
    pub(crate) fn begin() -> Self {
        Self(Instant::now())
    }

    /// Sleeps for as long as the last bit took, and two milliseconds at most, should it have waited for something else.
    #[expect(
        clippy::disallowed_methods,
        reason = "nothing waits for it but the rest of the work"
    )]
    pub(crate) fn make_way(&mut self) {
        std::thread::sleep(self.0.elapsed().min(LONGEST_PAUSE));
        *self = Self::begin();
    }
}

const LONGEST_PAUSE: Duration = Duration::from_millis(2);

/// The clocks of the operating system. The default.
///
/// On Linux on x86-64, where the system's own clock goes by the processor's counter (its clock source is `tsc`), the clock
/// that decisions are taken on is read once a millisecond at most, and between two readings the counter is, which takes less
/// time ([`stamp`](Clock::stamp) about half). It is then never early, and two microseconds late at most; ten while another
/// thread is held up in a reading. Elsewhere, and where the clock source cannot be looked up below /sys, each reading is one
/// of the system's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[inline]
    fn monotonic(&self) -> u64 {
        COUNTED.as_ref().map_or_else(since_start, Counted::now)
    }

    #[inline]
    fn stamp(&self) -> u64 {
        COUNTED.as_ref().map_or_else(since_start, Counted::stamp)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "this is the module that reads the clock"
    )]
    fn wall(&self) -> SystemTime {
        SystemTime::now()
    }

    /// The standard library sees to that, and Linux for the counter that it trusts.
    fn never_steps_back(&self) -> bool {
        true
    }
}

static COUNTED: LazyLock<Option<Counted<Processor>>> =
    LazyLock::new(|| Processor::trusted().map(Counted::new));

/// Nanoseconds by the system's clock since it was first asked.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the module that reads the clock"
)]
pub(crate) fn since_start() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    let start = *START.get_or_init(Instant::now);
    nanoseconds(start.elapsed())
}

/// A clock that stands still until it is told otherwise. For tests.
///
/// Clones show the same time. A new one stands at 0 ns, and at midnight of 1 January 2030 (UTC).
///
/// ```
/// use std::time::Duration;
/// use tripwit::{Clock, ManualClock};
///
/// let clock = ManualClock::new();
/// let seen_by_the_breaker = clock.clone();
/// clock.advance(Duration::from_millis(5));
/// assert_eq!(seen_by_the_breaker.monotonic(), 5_000_000);
/// ```
#[derive(Clone)]
pub struct ManualClock(Arc<Hands>);

struct Hands {
    monotonic: AtomicU64,
    /// Nanoseconds since the Unix epoch.
    wall: AtomicU64,
}

impl ManualClock {
    /// A clock at its start.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(Hands {
            monotonic: AtomicU64::new(0),
            wall: AtomicU64::new(nanoseconds(NEW_YEAR_2030)),
        }))
    }

    /// Moves both clocks on.
    pub fn advance(&self, by: Duration) {
        let by = nanoseconds(by);
        for hand in [&self.0.monotonic, &self.0.wall] {
            // The closure never gives up, so neither does the update.
            let _ = hand.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| {
                Some(now.saturating_add(by))
            });
        }
    }

    /// Sets the clock that decides, in nanoseconds; the time of day stays.
    pub fn set_monotonic(&self, nanoseconds: u64) {
        self.0.monotonic.store(nanoseconds, Ordering::Relaxed);
    }

    /// Sets the time of day; the clock that decides stays.
    pub fn set_wall(&self, at: SystemTime) {
        self.0.wall.store(timestamp(at), Ordering::Relaxed);
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ManualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManualClock")
            .field("monotonic", &self.monotonic())
            .field("wall", &self.wall())
            .finish()
    }
}

impl Clock for ManualClock {
    fn monotonic(&self) -> u64 {
        self.0.monotonic.load(Ordering::Relaxed)
    }

    fn wall(&self) -> SystemTime {
        system_time(self.0.wall.load(Ordering::Relaxed))
    }
}

/// As many whole nanoseconds as fit, which is 584 years.
pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    duration
        .as_secs()
        .saturating_mul(1_000_000_000)
        .saturating_add(u64::from(duration.subsec_nanos()))
}

/// Nanoseconds since the Unix epoch; 0 for what was before.
pub(crate) fn timestamp(at: SystemTime) -> u64 {
    at.duration_since(SystemTime::UNIX_EPOCH).map_or(0, nanoseconds)
}

/// The time that is so many nanoseconds after the Unix epoch.
pub(crate) fn system_time(timestamp: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_nanos(timestamp)
}

const NEW_YEAR_2030: Duration = Duration::from_secs(1_893_456_000);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manual_clock_moves_only_when_told() {
        let clock = ManualClock::new();
        assert_eq!(clock.monotonic(), 0);
        clock.clone().advance(Duration::from_secs(2));
        assert_eq!(clock.monotonic(), 2_000_000_000);
        assert_eq!(
            clock.wall(),
            system_time(nanoseconds(NEW_YEAR_2030) + 2_000_000_000)
        );
    }

    #[test]
    fn the_two_hands_are_set_apart() {
        let clock = ManualClock::new();
        clock.set_monotonic(7);
        clock.set_wall(SystemTime::UNIX_EPOCH + Duration::from_secs(1));
        assert_eq!((clock.monotonic(), timestamp(clock.wall())), (7, 1_000_000_000));
    }

    #[test]
    fn a_clock_that_steps_back_shows_its_largest_reading() {
        let clock = ManualClock::new();
        let steady = steady(Arc::new(clock.clone()));
        clock.set_monotonic(9);
        assert_eq!(steady.monotonic(), 9);
        clock.set_monotonic(4);
        assert_eq!(steady.monotonic(), 9);
        clock.set_monotonic(10);
        assert_eq!(steady.monotonic(), 10);
    }

    /// For some milliseconds, so that it comes to count and to read again.
    #[test]
    fn the_system_clock_goes_with_the_one_that_it_reads() {
        const MAY_BE_LATE: u64 = 10_000_000;
        let (start, mut latest) = (since_start(), 0);
        while latest < start + 20_000_000 {
            let before = since_start();
            let told = SystemClock.monotonic();
            let after = since_start();
            assert!(told <= after, "{told} is told at {after}");
            assert!(told + MAY_BE_LATE >= before, "{told} is told at {before}");
            assert!(told >= latest, "{told} is told after {latest}");
            latest = told;
        }
    }

    /// Of two threads that tell each other what they were told.
    #[test]
    fn the_system_clock_does_not_step_back_from_one_thread_to_another() {
        let latest = AtomicU64::new(0);
        let tell = || {
            for _ in 0..200_000 {
                let seen = latest.load(Ordering::Acquire);
                let told = SystemClock.monotonic();
                assert!(told >= seen, "{told} is told after {seen}");
                latest.store(told, Ordering::Release);
            }
        };
        std::thread::scope(|threads| {
            threads.spawn(tell);
            tell();
        });
    }

    #[test]
    fn a_time_of_day_before_the_epoch_counts_as_the_epoch() {
        assert_eq!(timestamp(SystemTime::UNIX_EPOCH - Duration::from_secs(1)), 0);
    }
}
