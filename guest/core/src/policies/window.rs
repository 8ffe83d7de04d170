//! Opens when too large a share of the last calls failed or were slow.

use alloc::vec::Vec;

use crate::{
    Allowance, Counts, Decimal, Field, Given, Instant, Integer, Nanoseconds, OptionalTime, Outcome, Recovery,
    Report, Rule, Settings, SettingsError, SnapshotError, Successes, Timed, Verdict, format_duration,
};

/// The policy `window`.
///
/// It looks at the last so many calls, or at those of the last so many seconds. As soon as there are enough of them, the
/// circuit opens when at least the given share of them failed, or at least the given share were slow. After `open_for`
/// so many probes are let through, and the same shares of them decide.
pub type Window = Timed<Calls>;

/// The settings of [`Window`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WindowSettings {
    reach: Reach,
    minimum_calls: u32,
    failure_rate: u32,
    slow_after: Option<Nanoseconds>,
    slow_rate: u32,
    probe_calls: u32,
    recovery: Recovery,
}

/// How far back a window reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Reach {
    Calls(u32),
    Time { width: Nanoseconds, buckets: u32 },
}

const WINDOW_CALLS: Integer = Integer {
    name: "window_calls",
    min: 1,
    max: 10_000,
    default: 100,
    about: "The window holds the last so many calls, unless window_time is given. A byte for each.",
};
const WINDOW_TIME: OptionalTime = OptionalTime {
    name: "window_time",
    min: 10_000_000,
    max: 24 * 3_600_000_000_000,
    default: None,
    nullable: false,
    about: "The window holds the calls that ended within the last so much time, to a bucket. Not together with window_calls.",
};
const BUCKETS: Integer = Integer {
    name: "buckets",
    min: 1,
    max: 1_000,
    default: 10,
    about: "How many buckets window_time is cut into; the oldest one is dropped as a whole.",
};
const MINIMUM_CALLS: Integer = Integer {
    name: "minimum_calls",
    min: 1,
    max: 1_000_000,
    default: 20,
    about: "Below so many calls in the window nothing is decided. Not above window_calls; lowered to it where it is left out.",
};
const FAILURE_RATE: Decimal = Decimal {
    name: "failure_rate",
    min: 1,
    max: 100_000,
    default: 50_000,
    about: "The circuit opens when at least this percentage of the calls in the window failed; three decimals.",
};
const SLOW_AFTER: OptionalTime = OptionalTime {
    name: "slow_after",
    min: 1_000_000,
    max: 24 * 3_600_000_000_000,
    default: None,
    nullable: true,
    about: "A call that took strictly longer than this is slow, however it ended. Left out, none is.",
};
const SLOW_RATE: Decimal = Decimal {
    name: "slow_rate",
    min: 1,
    max: 100_000,
    default: 100_000,
    about: "The circuit opens when at least this percentage of the calls in the window were slow; three decimals.",
};
const PROBE_CALLS: Integer = Integer {
    name: "probe_calls",
    min: 1,
    max: 1_000,
    default: 10,
    about: "So many probes are judged in half-open, by the same two rates; the circuit opens as soon as the rest cannot save it.",
};

/// What a closed circuit has recorded of its last calls.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Calls {
    record: Record,
    sums: Tally,
    /// Failures since the last success.
    streak: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Record {
    /// One entry a call, up to the window's size; then `oldest` is the next to be replaced.
    Ring { calls: Vec<Call>, oldest: usize },
    /// From the oldest to the newest, by number: the time divided by the width.
    Buckets(Vec<(u64, Tally)>),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Call(u8);

impl Call {
    const FAILED: u8 = 1;
    const TIMED_OUT: u8 = 2;
    const SLOW: u8 = 4;

    fn of(outcome: Outcome, slow: bool) -> Option<Self> {
        let ended = match outcome {
            Outcome::Ignored => return None,
            Outcome::Success => 0,
            Outcome::Failure => Self::FAILED,
            Outcome::Timeout => Self::FAILED | Self::TIMED_OUT,
        };
        Some(Self(ended | if slow { Self::SLOW } else { 0 }))
    }

    fn has(self, flag: u8) -> bool {
        self.0 & flag != 0
    }

    fn tally(self) -> Tally {
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
struct Tally {
    total: u32,
    failures: u32,
    timeouts: u32,
    slow: u32,
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
    fn is_bad_among(self, total: u32, settings: &WindowSettings) -> bool {
        reaches(self.failures, settings.failure_rate, total) || reaches(self.slow, settings.slow_rate, total)
    }

    fn opens(self, settings: &WindowSettings) -> bool {
        self.total >= settings.minimum_calls && self.is_bad_among(self.total, settings)
    }
}

/// Whether `part` is at least so many thousandths of a percent of `whole`.
fn reaches(part: u32, rate: u32, whole: u32) -> bool {
    u64::from(part) * 100_000 >= u64::from(rate) * u64::from(whole)
}

impl Calls {
    /// Lets go of the buckets that lie too far back at `now`.
    fn expire(&mut self, reach: Reach, now: Instant) {
        let (Reach::Time { width, buckets }, Record::Buckets(kept)) = (reach, &mut self.record) else {
            return;
        };
        let oldest = first_live(now / width, buckets);
        let gone = kept.partition_point(|(number, _)| *number < oldest);
        for (_, tally) in kept.drain(..gone) {
            self.sums = self.sums.without(tally);
        }
    }

    /// What the window holds at `now`.
    fn sums_at(&self, reach: Reach, now: Instant) -> Tally {
        let (Reach::Time { width, buckets }, Record::Buckets(kept)) = (reach, &self.record) else {
            return self.sums;
        };
        let oldest = first_live(now / width, buckets);
        let gone = kept.iter().filter(|(number, _)| *number < oldest);
        gone.fold(self.sums, |sums, (_, tally)| sums.without(*tally))
    }

    fn add_call(&mut self, size: u32, call: Call) {
        let Record::Ring { calls, oldest } = &mut self.record else {
            return;
        };
        self.sums = self.sums.with(call.tally());
        if calls.len() < size as usize {
            calls.push(call);
        } else if let Some(place) = calls.get_mut(*oldest) {
            self.sums = self.sums.without(core::mem::replace(place, call).tally());
            *oldest = oldest.saturating_add(1) % calls.len();
        }
    }

    fn add_tally(&mut self, width: Nanoseconds, tally: Tally, now: Instant) {
        let Record::Buckets(kept) = &mut self.record else {
            return;
        };
        let number = now / width;
        self.sums = self.sums.with(tally);
        match kept.last_mut() {
            Some((newest, sum)) if *newest >= number => *sum = sum.with(tally),
            Some(_) | None => kept.push((number, tally)),
        }
    }
}

/// The number of the oldest bucket that still counts.
fn first_live(newest: u64, buckets: u32) -> u64 {
    newest.saturating_add(1).saturating_sub(u64::from(buckets))
}

impl Rule for Calls {
    type Settings = WindowSettings;

    const NAME: &'static str = "window";
    const SUMMARY: &'static str = "Opens when too large a share of the last calls, or of those of the last seconds, failed or were slow.";
    const FIELDS: &'static [&'static dyn Field] = &[
        &WINDOW_CALLS,
        &WINDOW_TIME,
        &BUCKETS,
        &MINIMUM_CALLS,
        &FAILURE_RATE,
        &SLOW_AFTER,
        &SLOW_RATE,
        &PROBE_CALLS,
        &Recovery::OPEN_FOR,
        &Recovery::BACKOFF_FACTOR,
        &Recovery::OPEN_FOR_MAX,
        &Recovery::JITTER,
        &Recovery::RETRY_AFTER_MAX,
        &Recovery::PROBES,
        &Recovery::PROBE_TIMEOUT,
        &Recovery::CALL_TIMEOUT,
    ];

    fn settings(settings: &Settings) -> Result<Self::Settings, SettingsError> {
        let calls = WINDOW_CALLS.read(settings)?;
        let buckets = BUCKETS.read(settings)?;
        let reach = match WINDOW_TIME.read(settings)? {
            Given::Absent | Given::Null => Reach::Calls(calls),
            Given::Value(_) if settings.has(WINDOW_CALLS.name) => {
                return Err(SettingsError::new(
                    WINDOW_TIME.name,
                    "window_calls is given too; a window has one size",
                ));
            }
            Given::Value(time) => Reach::Time {
                width: time.div_ceil(u64::from(buckets)),
                buckets,
            },
        };
        let mut minimum_calls = MINIMUM_CALLS.read(settings)?;
        if let Reach::Calls(calls) = reach
            && minimum_calls > calls
        {
            if settings.has(MINIMUM_CALLS.name) {
                let problem =
                    alloc::format!("above window_calls, which is {calls}: it would never be reached");
                return Err(SettingsError::new(MINIMUM_CALLS.name, problem));
            }
            minimum_calls = calls;
        }
        let slow_after = match SLOW_AFTER.read(settings)? {
            Given::Absent | Given::Null => None,
            Given::Value(limit) => Some(limit),
        };
        let recovery = Recovery::read(settings)?;
        if let (Some(slow), Some(limit)) = (slow_after, recovery.call_timeout())
            && slow >= limit
        {
            let problem = alloc::format!("not below call_timeout, which is {}", format_duration(limit));
            return Err(SettingsError::new(SLOW_AFTER.name, problem));
        }
        Ok(WindowSettings {
            reach,
            minimum_calls,
            failure_rate: FAILURE_RATE.read(settings)?,
            slow_after,
            slow_rate: SLOW_RATE.read(settings)?,
            probe_calls: PROBE_CALLS.read(settings)?,
            recovery,
        })
    }

    fn recovery(settings: &Self::Settings) -> &Recovery {
        &settings.recovery
    }

    fn slow_after(settings: &Self::Settings) -> Option<Nanoseconds> {
        settings.slow_after
    }

    fn fresh(settings: &Self::Settings) -> Self {
        let record = match settings.reach {
            Reach::Calls(_) => Record::Ring {
                calls: Vec::new(),
                oldest: 0,
            },
            Reach::Time { .. } => Record::Buckets(Vec::new()),
        };
        Self {
            record,
            sums: Tally::default(),
            streak: 0,
        }
    }

    fn record(&mut self, settings: &Self::Settings, report: &Report, slow: bool, now: Instant) -> bool {
        let Some(call) = Call::of(report.outcome, slow) else {
            return false;
        };
        self.streak = if call.has(Call::FAILED) {
            self.streak.saturating_add(1)
        } else {
            0
        };
        match settings.reach {
            Reach::Calls(size) => self.add_call(size, call),
            Reach::Time { width, .. } => {
                self.expire(settings.reach, now);
                self.add_tally(width, call.tally(), now);
            }
        }
        self.sums.opens(settings)
    }

    fn record_successes(&mut self, settings: &Self::Settings, count: u32, as_of: Instant) -> bool {
        self.streak = 0;
        match settings.reach {
            // After as many as the window holds nothing else is in it.
            Reach::Calls(size) => (0..count.min(size)).any(|_| {
                self.add_call(size, Call::default());
                self.sums.opens(settings)
            }),
            Reach::Time { width, .. } => {
                self.expire(settings.reach, as_of);
                let judged_at = self.sums.total.saturating_add(1).max(settings.minimum_calls);
                let opens =
                    judged_at - self.sums.total <= count && self.sums.is_bad_among(judged_at, settings);
                self.add_tally(
                    width,
                    Tally {
                        total: count,
                        ..Tally::default()
                    },
                    as_of,
                );
                opens
            }
        }
    }

    fn successes(&self, settings: &Self::Settings, now: Instant) -> Successes {
        let sums = self.sums_at(settings.reach, now);
        let (most, before) = match settings.reach {
            Reach::Calls(size) => (size, None),
            Reach::Time { width, .. } => (
                u32::MAX,
                Some((now / width).saturating_add(1).saturating_mul(width)),
            ),
        };
        if sums.total == most && sums.failures == 0 && sums.slow == 0 {
            return Successes::Never;
        }
        let judged_at = sums.total.saturating_add(1).min(most).max(settings.minimum_calls);
        let successes = if sums.is_bad_among(judged_at, settings) {
            judged_at.saturating_sub(sums.total).saturating_sub(1)
        } else {
            u32::MAX
        };
        if successes == 0 {
            Successes::Each
        } else {
            Successes::UpTo(Allowance { successes, before })
        }
    }

    fn counts(&self, settings: &Self::Settings, now: Instant) -> Counts {
        let sums = self.sums_at(settings.reach, now);
        Counts {
            successes: sums.total.saturating_sub(sums.failures),
            failures: sums.failures,
            timeouts: sums.timeouts,
            slow: sums.slow,
            consecutive_failures: self.streak.min(sums.failures),
            ..Counts::default()
        }
    }

    fn judge(settings: &Self::Settings, probes: &Counts) -> Verdict {
        let judged = probes.successes.saturating_add(probes.failures);
        let tally = Tally {
            total: judged,
            failures: probes.failures,
            timeouts: probes.timeouts,
            slow: probes.slow,
        };
        if tally.is_bad_among(settings.probe_calls.max(judged), settings) {
            Verdict::Open
        } else if judged >= settings.probe_calls {
            Verdict::Close
        } else {
            Verdict::Pending
        }
    }

    const DETAIL_FORMAT: &'static str = "tripwit-window-1";

    fn detail(&self, settings: &Self::Settings, now: Instant) -> Vec<u8> {
        let by_time = matches!(settings.reach, Reach::Time { .. });
        let mut detail = alloc::vec![u8::from(by_time)];
        detail.extend(self.streak.to_le_bytes());
        match (&self.record, settings.reach) {
            (Record::Ring { calls, oldest }, _) => {
                let (newer, older) = calls.split_at((*oldest).min(calls.len()));
                detail.extend(older.iter().chain(newer).map(|call| call.0));
            }
            (Record::Buckets(kept), Reach::Time { width, buckets }) => {
                let newest = now / width;
                detail.extend(width.to_le_bytes());
                detail.extend((now % width).to_le_bytes());
                for (number, tally) in kept
                    .iter()
                    .filter(|(number, _)| *number >= first_live(newest, buckets))
                {
                    detail.extend(newest.saturating_sub(*number).to_le_bytes());
                    for count in [tally.total, tally.failures, tally.timeouts, tally.slow] {
                        detail.extend(count.to_le_bytes());
                    }
                }
            }
            (Record::Buckets(_), Reach::Calls(_)) => {}
        }
        detail
    }

    fn from_detail(
        settings: &Self::Settings,
        detail: &[u8],
        age: Nanoseconds,
        now: Instant,
    ) -> Result<Option<Self>, SnapshotError> {
        let by_time = matches!(settings.reach, Reach::Time { .. });
        let mut rest = match detail.split_first() {
            Some((kind, rest)) if *kind == u8::from(by_time) => rest,
            // Nothing, or a window that was cut otherwise: the counts go over.
            Some(_) | None => return Ok(None),
        };
        let streak = u32::from_le_bytes(take(&mut rest)?);
        let mut calls = Self {
            streak,
            ..Self::fresh(settings)
        };
        match settings.reach {
            Reach::Calls(size) => {
                for call in rest {
                    let known = Call::FAILED | Call::TIMED_OUT | Call::SLOW;
                    if call & !known != 0 {
                        return Err(SnapshotError::Detail);
                    }
                    calls.add_call(size, Call(*call));
                }
            }
            Reach::Time { width, .. } => {
                if u64::from_le_bytes(take(&mut rest)?) != width {
                    return Ok(None);
                }
                let into = u64::from_le_bytes(take(&mut rest)?);
                if into >= width {
                    return Err(SnapshotError::Detail);
                }
                while !rest.is_empty() {
                    let back = u64::from_le_bytes(take(&mut rest)?);
                    let mut count = || Ok(u32::from_le_bytes(take(&mut rest)?));
                    let tally = Tally {
                        total: count()?,
                        failures: count()?,
                        timeouts: count()?,
                        slow: count()?,
                    };
                    if tally.failures > tally.total
                        || tally.slow > tally.total
                        || tally.timeouts > tally.failures
                    {
                        return Err(SnapshotError::Detail);
                    }
                    // As long ago as it was then, and the age more.
                    let ago = back
                        .saturating_mul(width)
                        .saturating_add(into)
                        .saturating_add(age);
                    calls.add_tally(width, tally, now.saturating_sub(ago.min(now)));
                }
                calls.expire(settings.reach, now);
            }
        }
        Ok(Some(calls))
    }

    fn admits_probe(settings: &Self::Settings, probes: &Counts, in_flight: u32) -> bool {
        let given = probes
            .successes
            .saturating_add(probes.failures)
            .saturating_add(in_flight);
        in_flight < settings.recovery.probes() && given < settings.probe_calls
    }

    fn adopt(settings: &Self::Settings, counts: &Counts, now: Instant) -> Self {
        let mut calls = Self {
            streak: counts.consecutive_failures,
            ..Self::fresh(settings)
        };
        let tally = Tally {
            total: counts.successes.saturating_add(counts.failures),
            failures: counts.failures,
            timeouts: counts.timeouts,
            slow: counts.slow,
        };
        match settings.reach {
            Reach::Time { width, .. } => calls.add_tally(width, tally, now),
            Reach::Calls(size) => {
                for place in 0..counts.successes.min(size) {
                    calls.add_call(size, Call(if place < counts.slow { Call::SLOW } else { 0 }));
                }
                for place in 0..counts.failures.min(size) {
                    let timed_out = if place < counts.timeouts {
                        Call::TIMED_OUT
                    } else {
                        0
                    };
                    calls.add_call(size, Call(Call::FAILED | timed_out));
                }
            }
        }
        calls
    }

    fn adopt_probes(settings: &Self::Settings, probes: &Counts) -> Counts {
        match Self::judge(settings, probes) {
            Verdict::Pending => Counts {
                probes_in_flight: 0,
                ..*probes
            },
            Verdict::Close | Verdict::Open => Counts::default(),
        }
    }
}

/// The next bytes of a detail.
fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], SnapshotError> {
    let (taken, left) = rest.split_first_chunk::<N>().ok_or(SnapshotError::Detail)?;
    *rest = left;
    Ok(*taken)
}
