//! How far back a window reaches, and what is too much of it.

use crate::{
    Decimal, Field, Given, Integer, Nanoseconds, OptionalTime, Recovery, Settings, SettingsError,
    format_duration,
};

/// The settings of [`Window`](crate::Window).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WindowSettings {
    pub(super) reach: Reach,
    pub(super) minimum_calls: u32,
    /// In thousandths of a percent.
    pub(super) failure_rate: u32,
    pub(super) slow_after: Option<Nanoseconds>,
    /// In thousandths of a percent.
    pub(super) slow_rate: u32,
    pub(super) probe_calls: u32,
    pub(super) recovery: Recovery,
}

/// How far back a window reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Reach {
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
    min: 1_000_000,
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
    about: "So many probes are judged in half-open, by the same two rates; the circuit opens as soon as the rest cannot save it. They go out one after the other unless probes is more than 1.",
};

/// All of them, in the order in which people read them.
pub(super) const FIELDS: &[&dyn Field] = &[
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

impl WindowSettings {
    pub(super) fn read(settings: &Settings) -> Result<Self, SettingsError> {
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
        Ok(Self {
            reach,
            minimum_calls,
            failure_rate: FAILURE_RATE.read(settings)?,
            slow_after,
            slow_rate: SLOW_RATE.read(settings)?,
            probe_calls: PROBE_CALLS.read(settings)?,
            recovery,
        })
    }
}
