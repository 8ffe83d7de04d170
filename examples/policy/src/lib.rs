//! Adaptive throttling, after the chapter "Handling Overload" of the SRE book: a client that sees its calls refused sheds a
//! share of them itself, and the larger the share of refusals, the more.
//!
//! Of `requests` calls that were asked for of late, `accepts` ended well. The next one is shed with a probability of
//! `max(0, (requests - multiplier * accepts) / (requests + 1))`. The book counts the last two minutes; here all counts are
//! halved at the end of each `half_life`, which needs no list of calls. The circuit opens by an operator's hand only.
#![cfg_attr(target_arch = "wasm32", no_std)]

extern crate alloc;

use alloc::vec::Vec;

use tripwit_core::{
    Context, Counts, Decimal, Field, Instant, Nanoseconds, Outcome, Recovery, Report, Rule, Settings,
    SettingsError, SnapshotError, Time, Timed,
};

/// The policy. `Timed` adds what an operator's trip needs: open for a while, then half-open with a probe.
pub type Throttle = Timed<Recent>;

tripwit_policy::export!(Throttle);

/// What became of a circuit's calls of late.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recent {
    accepts: u32,
    failures: u32,
    shed: u32,
    /// The half-life, counted from the start of the clock, that the counts were last brought to.
    half_life: u64,
    /// How many lots were drawn: saved with the rest, so that whoever takes over draws on.
    lots: u64,
}

/// The settings of [`Throttle`].
#[derive(Clone, Debug, PartialEq)]
pub struct ThrottleSettings {
    /// In thousandths.
    multiplier: u32,
    half_life: Nanoseconds,
    recovery: Recovery,
}

const SECOND: Nanoseconds = 1_000_000_000;
const MULTIPLIER: Decimal = Decimal {
    name: "multiplier",
    min: 1_000,
    max: 100_000,
    default: 2_000,
    about: "How many calls may be asked for per call that ends well before any is shed; three decimals.",
};
const HALF_LIFE: Time = Time {
    name: "half_life",
    min: SECOND,
    max: 3_600 * SECOND,
    default: 60 * SECOND,
    about: "How often what was counted is halved.",
};

impl Recent {
    fn halved(mut self, times: u64) -> Self {
        // After 32 times nothing is left.
        for _ in 0..times.min(32) {
            (self.failures, self.shed) = (self.failures / 2, self.shed / 2);
            // Rounded up while there is something to weigh it against: else shedding could begin by time alone.
            let odd = self.accepts % 2 == 1 && self.failures + self.shed > 0;
            self.accepts = self.accepts / 2 + u32::from(odd);
        }
        self
    }

    fn at(self, now: Instant, settings: &ThrottleSettings) -> Self {
        let half_life = now / settings.half_life;
        let halved = self.halved(half_life.saturating_sub(self.half_life));
        Self { half_life, ..halved }
    }

    /// The share of calls to be shed, in millionths.
    fn share(&self, settings: &ThrottleSettings) -> u64 {
        let [accepts, failures, shed] = [self.accepts, self.failures, self.shed].map(u64::from);
        let requests = accepts + failures + shed;
        let beyond = (requests * 1_000).saturating_sub(accepts * u64::from(settings.multiplier));
        beyond * 1_000 / (requests + 1)
    }
}

impl Rule for Recent {
    type Settings = ThrottleSettings;

    const NAME: &'static str = "throttle";
    const SUMMARY: &'static str = "Sheds a share of the calls while too few of them end well.";
    const FIELDS: &'static [&'static dyn Field] = &[
        &MULTIPLIER,
        &HALF_LIFE,
        &Recovery::OPEN_FOR,
        &Recovery::CALL_TIMEOUT,
    ];

    fn settings(settings: &Settings) -> Result<ThrottleSettings, SettingsError> {
        Ok(ThrottleSettings {
            multiplier: MULTIPLIER.read(settings)?,
            half_life: HALF_LIFE.read(settings)?,
            recovery: Recovery::read(settings)?,
        })
    }

    fn recovery(settings: &ThrottleSettings) -> &Recovery {
        &settings.recovery
    }

    fn fresh(_settings: &ThrottleSettings) -> Self {
        Self::default()
    }

    fn admit(&mut self, cx: &Context<'_, ThrottleSettings>) -> bool {
        *self = self.at(cx.now, cx.settings);
        let share = self.share(cx.settings);
        if share == 0 {
            return true;
        }
        self.lots = self.lots.saturating_add(1);
        let admitted = cx.lot(self.lots, 1, 1_000_000) > share;
        self.shed = self.shed.saturating_add(u32::from(!admitted));
        admitted
    }

    fn admits_all(&self, settings: &ThrottleSettings, now: Instant) -> bool {
        self.at(now, settings).share(settings) == 0
    }

    fn record(&mut self, settings: &ThrottleSettings, report: &Report, _slow: bool, now: Instant) -> bool {
        *self = self.at(now, settings);
        match report.outcome {
            Outcome::Success => self.accepts = self.accepts.saturating_add(1),
            Outcome::Failure | Outcome::Timeout => self.failures = self.failures.saturating_add(1),
            Outcome::Ignored => {}
        }
        false
    }

    fn counts(&self, settings: &ThrottleSettings, now: Instant) -> Counts {
        let Self {
            accepts, failures, ..
        } = self.at(now, settings);
        Counts {
            successes: accepts,
            failures,
            ..Counts::default()
        }
    }

    const DETAIL_FORMAT: &'static str = "throttle-1";

    fn detail(&self, settings: &ThrottleSettings, now: Instant) -> Vec<u8> {
        let Self {
            accepts,
            failures,
            shed,
            lots,
            ..
        } = self.at(now, settings);
        let counts = [accepts, failures, shed].map(u64::from);
        counts
            .into_iter()
            .chain([lots])
            .flat_map(u64::to_le_bytes)
            .collect()
    }

    fn from_detail(
        settings: &ThrottleSettings,
        detail: &[u8],
        age: Nanoseconds,
        now: Instant,
    ) -> Result<Option<Self>, SnapshotError> {
        if detail.is_empty() {
            return Ok(None);
        }
        let (numbers, rest) = detail.as_chunks::<8>();
        let ([accepts, failures, shed, lots], []) = (numbers, rest) else {
            return Err(SnapshotError::Detail);
        };
        let count = |bytes| u32::try_from(u64::from_le_bytes(bytes)).map_err(|_| SnapshotError::Detail);
        let saved = Self {
            accepts: count(*accepts)?,
            failures: count(*failures)?,
            shed: count(*shed)?,
            half_life: now / settings.half_life,
            lots: u64::from_le_bytes(*lots),
        };
        Ok(Some(saved.halved(age / settings.half_life)))
    }
}
