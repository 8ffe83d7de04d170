//! What a closed circuit has recorded of its last calls: a ring of calls or buckets of time, and their sums.

use alloc::vec::Vec;

use super::{
    Calls,
    settings::{Reach, WindowSettings},
};
use crate::{Instant, Nanoseconds, Outcome};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Record {
    /// One entry a call, up to the window's size; then `oldest` is the next to be replaced.
    Ring { calls: Vec<Call>, oldest: usize },
    /// From the oldest to the newest. Those that hold nothing are left out.
    Buckets(Vec<Bucket>),
}

/// The calls that ended within one part of the window's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Bucket {
    /// So many widths before the bucket of any later time. Wraps, since what is taken over may lie before the clock's zero.
    pub(super) start: Instant,
    pub(super) tally: Tally,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Call(pub(super) u8);

impl Call {
    pub(super) const FAILED: u8 = 1;
    pub(super) const TIMED_OUT: u8 = 2;
    pub(super) const SLOW: u8 = 4;

    pub(super) fn of(outcome: Outcome, slow: bool) -> Option<Self> {
        let ended = match outcome {
            Outcome::Ignored => return None,
            Outcome::Success => 0,
            Outcome::Failure => Self::FAILED,
            Outcome::Timeout => Self::FAILED | Self::TIMED_OUT,
        };
        Some(Self(ended | if slow { Self::SLOW } else { 0 }))
    }

    /// The call that is written as this byte, where one is.
    pub(super) fn read(byte: u8) -> Option<Self> {
        let ended = [0, Self::FAILED, Self::FAILED | Self::TIMED_OUT];
        ended.contains(&(byte & !Self::SLOW)).then_some(Self(byte))
    }

    pub(super) fn has(self, flag: u8) -> bool {
        self.0 & flag != 0
    }

    pub(super) fn tally(self) -> Tally {
        let count = |flag| u32::from(self.has(flag));
        Tally {
            total: 1,
            failures: count(Self::FAILED),
            timeouts: count(Self::TIMED_OUT),
            slow: count(Self::SLOW),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Tally {
    pub(super) total: u32,
    pub(super) failures: u32,
    pub(super) timeouts: u32,
    pub(super) slow: u32,
}

impl Tally {
    fn with(self, other: Self) -> Self {
        self.by(other, u32::saturating_add)
    }

    fn without(self, other: Self) -> Self {
        self.by(other, u32::saturating_sub)
    }

    fn by(self, other: Self, op: fn(u32, u32) -> u32) -> Self {
        Self {
            total: op(self.total, other.total),
            failures: op(self.failures, other.failures),
            timeouts: op(self.timeouts, other.timeouts),
            slow: op(self.slow, other.slow),
        }
    }

    /// Whether so many failures and slow calls are too many among `total` calls.
    pub(super) fn is_bad_among(self, total: u32, settings: &WindowSettings) -> bool {
        reaches(self.failures, settings.failure_rate, total) || reaches(self.slow, settings.slow_rate, total)
    }

    /// Whether no success changes a window of so many calls.
    pub(super) fn is_full_of_good(self, size: u32) -> bool {
        self.total >= size && self.failures == 0 && self.slow == 0
    }

    pub(super) fn opens(self, settings: &WindowSettings) -> bool {
        self.total >= settings.minimum_calls && self.is_bad_among(self.total, settings)
    }
}

/// Whether `part` is at least so many thousandths of a percent of `whole`.
fn reaches(part: u32, rate: u32, whole: u32) -> bool {
    u64::from(part) * 100_000 >= u64::from(rate) * u64::from(whole)
}

impl Calls {
    /// Lets go of the buckets that lie too far back at `now`.
    pub(super) fn expire(&mut self, reach: Reach, now: Instant) {
        let (Reach::Time { width, buckets }, Record::Buckets(kept)) = (reach, &mut self.record) else {
            return;
        };
        let live = |bucket: &Bucket| bucket.is_live(now, width, buckets);
        if kept.first().is_none_or(live) {
            return;
        }
        kept.retain(live);
        self.sums = sum(kept.iter());
    }

    /// What the window holds at `now`.
    pub(super) fn sums_at(&self, reach: Reach, now: Instant) -> Tally {
        let (Reach::Time { width, buckets }, Record::Buckets(kept)) = (reach, &self.record) else {
            return self.sums;
        };
        let live = |bucket: &Bucket| bucket.is_live(now, width, buckets);
        if kept.first().is_none_or(live) {
            return self.sums;
        }
        sum(kept.iter().filter(|bucket| live(bucket)))
    }

    pub(super) fn add_call(&mut self, size: u32, call: Call) {
        let Record::Ring { calls, oldest } = &mut self.record else {
            return;
        };
        if self.sums.is_full_of_good(size) && call == Call::default() {
            // A good call in the place of a good call: the same window, wherever its oldest call stands.
            return;
        }
        self.sums = self.sums.with(call.tally());
        if calls.len() < size as usize {
            calls.push(call);
        } else if let Some(place) = calls.get_mut(*oldest) {
            self.sums = self.sums.without(core::mem::replace(place, call).tally());
            *oldest = oldest.saturating_add(1) % calls.len();
        }
    }

    /// Adds calls that ended at `now`.
    pub(super) fn add_tally(&mut self, width: Nanoseconds, tally: Tally, now: Instant) {
        self.add_bucket(Bucket {
            start: bucket_start(now, width),
            tally,
        });
    }

    /// Adds a bucket that is not older than the newest.
    pub(super) fn add_bucket(&mut self, bucket: Bucket) {
        let Record::Buckets(kept) = &mut self.record else {
            return;
        };
        self.sums = self.sums.with(bucket.tally);
        match kept.last_mut() {
            Some(newest) if newest.start == bucket.start => newest.tally = newest.tally.with(bucket.tally),
            Some(_) | None => kept.push(bucket),
        }
    }
}

impl Bucket {
    /// The bucket that held what was `ago` before `now`, unless it lies too far back.
    pub(super) fn before(
        now: Instant,
        ago: Nanoseconds,
        (width, buckets): (Nanoseconds, u32),
        tally: Tally,
    ) -> Option<Self> {
        let older = ago.saturating_sub(now % width).div_ceil(width);
        (older < u64::from(buckets)).then(|| Self {
            start: bucket_start(now, width).wrapping_sub(older.wrapping_mul(width)),
            tally,
        })
    }

    pub(super) fn is_live(&self, now: Instant, width: Nanoseconds, buckets: u32) -> bool {
        let oldest = u64::from(buckets).saturating_sub(1).saturating_mul(width);
        bucket_start(now, width).wrapping_sub(self.start) <= oldest
    }
}

/// Added up anew rather than taken from a sum, since a sum that has reached the end of its range no longer says what is in it.
fn sum<'a>(buckets: impl Iterator<Item = &'a Bucket>) -> Tally {
    buckets.fold(Tally::default(), |sum, bucket| sum.with(bucket.tally))
}

/// Where the bucket that `at` lies in begins.
pub(super) fn bucket_start(at: Instant, width: Nanoseconds) -> Instant {
    at.saturating_sub(at % width)
}
