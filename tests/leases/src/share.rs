//! A rule whose leases let successes be kept back by number, which those of the shipped policies do not.

use tripwit_core::{
    Allowance, Counts, Field, Instant, Outcome, Recovery, Report, Rule, Settings, SettingsError, Successes,
    Verdict,
};

/// Opens when at least three calls have ended since it closed and at least half of them failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Share {
    total: u32,
    failures: u32,
}

/// The settings of [`Share`]: those of every policy that waits by the clock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ShareSettings(Recovery);

/// So many calls at least.
const MINIMUM: u32 = 3;

impl Share {
    fn opens(&self) -> bool {
        self.total >= MINIMUM && self.failures * 2 >= self.total
    }
}

impl Rule for Share {
    type Settings = ShareSettings;

    const NAME: &'static str = "share";
    const SUMMARY: &'static str = "Opens when half of at least three calls have failed.";
    const FIELDS: &'static [&'static dyn Field] = &Recovery::FIELDS;

    fn settings(settings: &Settings) -> Result<ShareSettings, SettingsError> {
        Recovery::read(settings).map(ShareSettings)
    }

    fn recovery(settings: &ShareSettings) -> &Recovery {
        &settings.0
    }

    fn fresh(_settings: &ShareSettings) -> Self {
        Self::default()
    }

    fn record(&mut self, _settings: &ShareSettings, report: &Report, _slow: bool, _now: Instant) -> bool {
        match report.outcome {
            Outcome::Ignored => return false,
            Outcome::Success => {}
            Outcome::Failure | Outcome::Timeout => self.failures += 1,
        }
        self.total += 1;
        self.opens()
    }

    fn record_successes(&mut self, _settings: &ShareSettings, count: u32, _as_of: Instant) -> bool {
        (0..count).any(|_| {
            self.total += 1;
            self.opens()
        })
    }

    fn successes(&self, _settings: &ShareSettings, _now: Instant) -> Successes {
        let judged_at = (self.total + 1).max(MINIMUM);
        let successes = if self.failures * 2 < judged_at {
            u32::MAX
        } else {
            judged_at - self.total - 1
        };
        if successes == 0 {
            return Successes::Each;
        }
        Successes::UpTo(Allowance {
            successes,
            before: None,
        })
    }

    fn counts(&self, _settings: &ShareSettings, _now: Instant) -> Counts {
        Counts {
            successes: self.total - self.failures,
            failures: self.failures,
            ..Counts::default()
        }
    }

    fn adopt(_settings: &ShareSettings, _counts: &Counts, _now: Instant) -> Self {
        Self::default()
    }

    fn judge(_settings: &ShareSettings, probes: &Counts) -> Verdict {
        match (probes.failures, probes.successes) {
            (0, 0) => Verdict::Pending,
            (0, _) => Verdict::Close,
            _ => Verdict::Open,
        }
    }

    fn adopt_probes(_settings: &ShareSettings, _probes: &Counts) -> Counts {
        Counts::default()
    }
}
