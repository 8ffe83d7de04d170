//! A moment at which both a clock and a counter were read, from which later moments are told by the counter alone.

use crate::sync::{AtomicU64, Ordering, fence};

/// One such moment, and how fast the counter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Anchor {
    /// What the counter showed.
    pub(crate) ticks: u64,
    /// Nanoseconds, by the clock.
    pub(crate) time: u64,
    pub(crate) rate: Rate,
}

/// How long a tick takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate(
    /// In nanoseconds, times 2^32.
    u64,
);

impl Rate {
    /// So long that not one tick can be told.
    pub(crate) const UNKNOWN: Self = Self(u64::MAX);

    /// That of a counter which went on by so many ticks in so many nanoseconds; none where it is 0 or does not fit.
    pub(crate) fn of(nanoseconds: u64, ticks: u64) -> Option<Self> {
        (u128::from(nanoseconds) << 32)
            .checked_div(u128::from(ticks))
            .and_then(|rate| u64::try_from(rate).ok())
            .filter(|rate| *rate > 0)
            .map(Self)
    }

    /// A little less, so that what is told by it comes late and never early.
    pub(crate) fn held_back(self) -> Self {
        Self(self.0 - self.0 / MARGIN)
    }

    /// Whether two measurements of it are of the same counter that nothing happened to.
    pub(crate) fn agrees_with(self, other: Self) -> bool {
        self.0.abs_diff(other.0) <= other.0 / MARGIN
    }
}

/// The part of a rate that is held back, and that two measurements may differ by: more than a measurement of a millisecond is
/// off by (two readings of a clock, a hundred nanoseconds) and than a clock may be slewed (500 parts in a million on Linux).
const MARGIN: u64 = 1024;

impl Anchor {
    /// The time when the counter shows this, unless that is further on than `within` nanoseconds, or back.
    #[inline(always)]
    pub(crate) fn time_at(&self, ticks: u64, within: u64) -> Option<u64> {
        // A counter that went back seems to have gone very far ahead.
        let ticks = ticks.wrapping_sub(self.ticks);
        let passed = (u128::from(ticks) * u128::from(self.rate.0)) >> 32;
        (passed <= u128::from(within)).then(|| self.time.saturating_add(passed as u64))
    }

    /// No earlier than any time that was told by it, where the counter now shows what tells none.
    pub(crate) fn last_told(&self, ticks: u64, within: u64) -> u64 {
        let went_back = ticks.wrapping_sub(self.ticks) > u64::MAX / 2;
        if went_back && self.rate != Rate::UNKNOWN {
            self.time.saturating_add(within)
        } else {
            self.time
        }
    }
}

/// The newest anchor, for many readers and one writer at a time. Nobody waits: there are two places, and the one that is
/// written is not the one that is read.
pub(crate) struct Newest {
    /// How many there were; the lowest bit says which place holds the newest.
    version: AtomicU64,
    places: [Place; 2],
}

struct Place {
    ticks: AtomicU64,
    time: AtomicU64,
    rate: AtomicU64,
}

impl Newest {
    pub(crate) fn new(anchor: Anchor) -> Self {
        let place = || Place {
            ticks: AtomicU64::new(anchor.ticks),
            time: AtomicU64::new(anchor.time),
            rate: AtomicU64::new(anchor.rate.0),
        };
        Self {
            version: AtomicU64::new(0),
            places: [place(), place()],
        }
    }

    #[inline(always)]
    fn place(&self, version: u64) -> &Place {
        let [first, _] = &self.places;
        // It is 0 or 1: the compiler sees that the other case never comes, and leaves it out.
        self.places.get((version & 1) as usize).unwrap_or(first)
    }

    #[inline(always)]
    pub(crate) fn read(&self) -> Anchor {
        loop {
            let version = self.version.load(Ordering::Acquire);
            let place = self.place(version);
            let anchor = Anchor {
                ticks: place.ticks.load(Ordering::Relaxed),
                time: place.time.load(Ordering::Relaxed),
                rate: Rate(place.rate.load(Ordering::Relaxed)),
            };
            fence(Ordering::Acquire);
            // The place is written again only for the anchor after the next: if the version is the same, what was read is whole.
            if self.version.load(Ordering::Relaxed) == version {
                return anchor;
            }
        }
    }

    /// Only for the holder of the lock of [`Counted`](crate::counted::Counted).
    pub(crate) fn replace_locked(&self, anchor: Anchor) {
        let version = self.version.load(Ordering::Relaxed).wrapping_add(1);
        let place = self.place(version);
        // Whoever sees a word of what follows sees the version before it too.
        fence(Ordering::Release);
        place.ticks.store(anchor.ticks, Ordering::Relaxed);
        place.time.store(anchor.time, Ordering::Relaxed);
        place.rate.store(anchor.rate.0, Ordering::Relaxed);
        self.version.store(version, Ordering::Release);
    }
}
