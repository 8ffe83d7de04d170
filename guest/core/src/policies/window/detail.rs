//! A window as bytes, for another instance of the same policy.
//!
//! One byte for how it is cut (0 by calls, 1 by time), the failures since the last success, and then a byte for each call from
//! the oldest, or the buckets' width and for each bucket how long ago it began and its four counts. Numbers are little-endian.

use alloc::vec::Vec;

use super::{
    Calls,
    record::{Bucket, Call, Record, Tally},
    settings::{Reach, WindowSettings},
};
use crate::{Instant, Nanoseconds, Rule, SnapshotError};

pub(super) const FORMAT: &str = "tripwit-window-1";

pub(super) fn write(calls: &Calls, settings: &WindowSettings, now: Instant) -> Vec<u8> {
    let mut detail = alloc::vec![kind(settings.reach)];
    detail.extend(calls.streak.to_le_bytes());
    match (&calls.record, settings.reach) {
        (Record::Ring { calls, oldest }, _) => {
            let (newer, older) = calls.split_at((*oldest).min(calls.len()));
            detail.extend(older.iter().chain(newer).map(|call| call.0));
        }
        (Record::Buckets(kept), Reach::Time { width, buckets }) => {
            detail.extend(width.to_le_bytes());
            let live = kept.iter().filter(|bucket| bucket.is_live(now, width, buckets));
            for bucket in live {
                let Tally {
                    total,
                    failures,
                    timeouts,
                    slow,
                } = bucket.tally;
                detail.extend(now.wrapping_sub(bucket.start).to_le_bytes());
                for count in [total, failures, timeouts, slow] {
                    detail.extend(count.to_le_bytes());
                }
            }
        }
        (Record::Buckets(_), Reach::Calls(_)) => {}
    }
    detail
}

/// None where there is nothing, or a window that was cut otherwise: then only the counts go over.
pub(super) fn read(
    settings: &WindowSettings,
    detail: &[u8],
    age: Nanoseconds,
    now: Instant,
) -> Result<Option<Calls>, SnapshotError> {
    let mut rest = match detail.split_first() {
        Some((found, rest)) if *found == kind(settings.reach) => rest,
        Some((0 | 1, _)) | None => return Ok(None),
        Some(_) => return Err(SnapshotError::Detail),
    };
    let mut calls = Calls {
        streak: u32::from_le_bytes(take(&mut rest)?),
        ..Calls::fresh(settings)
    };
    match settings.reach {
        Reach::Calls(size) => {
            for byte in rest {
                calls.add_call(size, Call::read(*byte).ok_or(SnapshotError::Detail)?);
            }
        }
        Reach::Time { width, buckets } => {
            if u64::from_le_bytes(take(&mut rest)?) != width {
                return Ok(None);
            }
            let mut newer = u64::MAX;
            while !rest.is_empty() {
                let ago = u64::from_le_bytes(take(&mut rest)?);
                if ago >= newer {
                    return Err(SnapshotError::Detail);
                }
                newer = ago;
                let (tally, ago) = (read_tally(&mut rest)?, ago.saturating_add(age));
                if let Some(bucket) = Bucket::before(now, ago, (width, buckets), tally) {
                    calls.add_bucket(bucket);
                }
            }
        }
    }
    Ok(Some(calls))
}

fn kind(reach: Reach) -> u8 {
    match reach {
        Reach::Calls(_) => 0,
        Reach::Time { .. } => 1,
    }
}

fn read_tally(rest: &mut &[u8]) -> Result<Tally, SnapshotError> {
    let mut count = || Ok(u32::from_le_bytes(take(rest)?));
    let tally = Tally {
        total: count()?,
        failures: count()?,
        timeouts: count()?,
        slow: count()?,
    };
    if tally.failures > tally.total || tally.slow > tally.total || tally.timeouts > tally.failures {
        return Err(SnapshotError::Detail);
    }
    Ok(tally)
}

/// The next bytes.
fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], SnapshotError> {
    let (taken, left) = rest.split_first_chunk::<N>().ok_or(SnapshotError::Detail)?;
    *rest = left;
    Ok(*taken)
}
