//! How an open circuit comes back: waits, back-off, jitter, probes and time-outs, as settings.

use crate::{
    Context, Decimal, Given, Integer, Nanoseconds, OptionalTime, Settings, SettingsError, Time,
    format_duration,
};

const MILLISECOND: Nanoseconds = 1_000_000;
const SECOND: Nanoseconds = 1000 * MILLISECOND;
const DAY: Nanoseconds = 24 * 3600 * SECOND;

/// How a circuit comes back: the settings that every [`Timed`](crate::Timed) policy has.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Recovery {
    open_for: Nanoseconds,
    backoff_factor: u32,
    open_for_max: Nanoseconds,
    jitter: u32,
    retry_after_max: Nanoseconds,
    probes: u32,
    pub(crate) probe_timeout: Nanoseconds,
    call_timeout: Option<Nanoseconds>,
}

impl Recovery {
    /// How long a circuit stays open before the first call goes through as a probe.
    pub const OPEN_FOR: Time = Time {
        name: "open_for",
        min: MILLISECOND,
        max: DAY,
        default: 30 * SECOND,
        about: "How long the circuit stays open before a call goes through as a probe.",
    };
    /// What `open_for` is multiplied by each time the circuit opens again.
    pub const BACKOFF_FACTOR: Decimal = Decimal {
        name: "backoff_factor",
        min: 1_000,
        max: 100_000,
        default: 1_000,
        about: "What open_for is multiplied by each time the circuit opens again without having closed; three decimals.",
    };
    /// The cap of the backed-off wait.
    pub const OPEN_FOR_MAX: Time = Time {
        name: "open_for_max",
        min: MILLISECOND,
        max: DAY,
        default: 3600 * SECOND,
        about: "The most that back-off and jitter make of open_for. Not below open_for; raised to it where it is left out.",
    };
    /// How far the wait strays.
    pub const JITTER: Decimal = Decimal {
        name: "jitter",
        min: 0,
        max: 1_000,
        default: 0,
        about: "The share of the wait by which it may stray either way, so that replicas do not probe in step; three decimals.",
    };
    /// How long a failure's own wish to be left alone is heeded at most.
    pub const RETRY_AFTER_MAX: OptionalTime = OptionalTime {
        name: "retry_after_max",
        min: MILLISECOND,
        max: DAY,
        default: None,
        nullable: true,
        about: "Where it is set, the retry-after of the failure that opens the circuit is a lower bound of the wait, up to this.",
    };
    /// How many probes may be under way at once.
    pub const PROBES: Integer = Integer {
        name: "probes",
        min: 1,
        max: 1_000,
        default: 1,
        about: "How many probes may be under way at once in half-open.",
    };
    /// When a probe counts as lost.
    pub const PROBE_TIMEOUT: OptionalTime = OptionalTime {
        name: "probe_timeout",
        min: MILLISECOND,
        max: 2 * DAY,
        default: None,
        nullable: false,
        about: "A probe that has not reported for this long is lost: its slot is free and its result void. Left out, it is twice call_timeout, or 60s without one; not below call_timeout, and better well above it, since a probe that times out reports a little later than that.",
    };
    /// When a call is a time-out.
    pub const CALL_TIMEOUT: OptionalTime = OptionalTime {
        name: "call_timeout",
        min: MILLISECOND,
        max: DAY,
        default: Some(10 * SECOND),
        nullable: true,
        about: "A call that runs strictly longer than this is a time-out, and that is a failure; null for no limit.",
    };

    /// Reads them.
    ///
    /// # Errors
    ///
    /// When one is out of range, or they do not fit together.
    pub fn read(settings: &Settings) -> Result<Self, SettingsError> {
        let open_for = Self::OPEN_FOR.read(settings)?;
        let open_for_max = if settings.has(Self::OPEN_FOR_MAX.name) {
            Self::OPEN_FOR_MAX.read(settings)?
        } else {
            Self::OPEN_FOR_MAX.default.max(open_for)
        };
        if open_for_max < open_for {
            let problem = format_args!("below open_for, which is {}", format_duration(open_for));
            return Err(SettingsError::new(
                Self::OPEN_FOR_MAX.name,
                alloc::format!("{problem}"),
            ));
        }
        let call_timeout = match Self::CALL_TIMEOUT.read(settings)? {
            Given::Absent | Given::Null => None,
            Given::Value(limit) => Some(limit),
        };
        let probe_timeout = match Self::PROBE_TIMEOUT.read(settings)? {
            Given::Absent | Given::Null => call_timeout.map_or(60 * SECOND, |limit| limit.saturating_mul(2)),
            Given::Value(limit) => limit,
        };
        if let Some(limit) = call_timeout.filter(|limit| probe_timeout < *limit) {
            let problem = format_args!("below call_timeout, which is {}", format_duration(limit));
            return Err(SettingsError::new(
                Self::PROBE_TIMEOUT.name,
                alloc::format!("{problem}"),
            ));
        }
        let retry_after_max = match Self::RETRY_AFTER_MAX.read(settings)? {
            Given::Absent | Given::Null => 0,
            Given::Value(limit) => limit,
        };
        Ok(Self {
            open_for,
            backoff_factor: Self::BACKOFF_FACTOR.read(settings)?,
            open_for_max,
            jitter: Self::JITTER.read(settings)?,
            retry_after_max,
            probes: Self::PROBES.read(settings)?,
            probe_timeout,
            call_timeout,
        })
    }

    /// A call that runs strictly longer is a time-out. Nanoseconds.
    #[must_use]
    pub const fn call_timeout(&self) -> Option<Nanoseconds> {
        self.call_timeout
    }

    /// How many probes may be under way at once.
    #[must_use]
    pub const fn probes(&self) -> u32 {
        self.probes
    }

    /// The wait of the opening that comes after `reopenings` others in a row.
    pub(crate) fn wait<S>(
        &self,
        reopenings: u32,
        retry_after: Option<Nanoseconds>,
        cx: &Context<'_, S>,
    ) -> Nanoseconds {
        let mut wait = self.open_for;
        if self.backoff_factor > 1_000 {
            for _ in 0..reopenings {
                if wait >= self.open_for_max {
                    break;
                }
                wait = share(wait, self.backoff_factor);
            }
        }
        wait = wait.min(self.open_for_max);
        if self.jitter > 0 {
            let stray = share(wait, self.jitter);
            wait = cx
                .draw(wait - stray.min(wait), wait.saturating_add(stray))
                .min(self.open_for_max);
        }
        wait.max(retry_after.unwrap_or(0).min(self.retry_after_max))
    }
}

/// So many thousandths of `whole`.
fn share(whole: Nanoseconds, thousandths: u32) -> Nanoseconds {
    let product = u128::from(whole).saturating_mul(u128::from(thousandths)) / 1_000;
    u64::try_from(product).unwrap_or(u64::MAX)
}
