//! Opens after so many failures in a row, as OpsKnight's breakers around its outbound channels do.

use crate::{
    Counts, Field, Instant, Integer, Outcome, Recovery, Report, Rule, Settings, SettingsError, Successes,
    Timed, Verdict,
};

/// The policy `consecutive`.
///
/// A success in closed sets the count to zero. After `open_for` the next call goes through as a probe; so many successful
/// probes in a row close the circuit, and a failed one opens it again.
pub type Consecutive = Timed<ConsecutiveFailures>;

/// The failures in a row of a closed circuit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ConsecutiveFailures {
    failures: u32,
    timeouts: u32,
}

/// The settings of [`Consecutive`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ConsecutiveSettings {
    failure_threshold: u32,
    success_threshold: u32,
    recovery: Recovery,
}

/// How many failures in a row open the circuit. The default is OpsKnight's.
const FAILURE_THRESHOLD: Integer = Integer {
    name: "failure_threshold",
    min: 1,
    max: 1_000_000,
    default: 5,
    about: "The circuit opens when at least this many calls in a row have failed.",
};

/// How many successful probes close the circuit. The default is OpsKnight's.
const SUCCESS_THRESHOLD: Integer = Integer {
    name: "success_threshold",
    min: 1,
    max: 1_000_000,
    default: 2,
    about: "The circuit closes when at least this many probes have succeeded, none having failed.",
};

impl Rule for ConsecutiveFailures {
    type Settings = ConsecutiveSettings;

    const NAME: &'static str = "consecutive";
    const SUMMARY: &'static str =
        "Opens after so many failures in a row, and closes after so many successful probes.";
    const FIELDS: &'static [&'static dyn Field] = &[
        &FAILURE_THRESHOLD,
        &SUCCESS_THRESHOLD,
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
        Ok(ConsecutiveSettings {
            failure_threshold: FAILURE_THRESHOLD.read(settings)?,
            success_threshold: SUCCESS_THRESHOLD.read(settings)?,
            recovery: Recovery::read(settings)?,
        })
    }

    fn recovery(settings: &Self::Settings) -> &Recovery {
        &settings.recovery
    }

    fn fresh(_settings: &Self::Settings) -> Self {
        Self::default()
    }

    fn record(&mut self, settings: &Self::Settings, report: &Report, _slow: bool, _now: Instant) -> bool {
        match report.outcome {
            Outcome::Ignored => {}
            Outcome::Success => *self = Self::default(),
            Outcome::Failure => self.failures = self.failures.saturating_add(1),
            Outcome::Timeout => {
                self.failures = self.failures.saturating_add(1);
                self.timeouts = self.timeouts.saturating_add(1);
            }
        }
        self.failures >= settings.failure_threshold
    }

    fn record_successes(&mut self, _settings: &Self::Settings, _count: u32, _as_of: Instant) -> bool {
        *self = Self::default();
        false
    }

    fn successes(&self, _settings: &Self::Settings, _now: Instant) -> Successes {
        if self.failures == 0 {
            Successes::Never
        } else {
            Successes::Each
        }
    }

    fn counts(&self, _settings: &Self::Settings, _now: Instant) -> Counts {
        Counts {
            failures: self.failures,
            timeouts: self.timeouts,
            consecutive_failures: self.failures,
            ..Counts::default()
        }
    }

    fn adopt(settings: &Self::Settings, counts: &Counts, _now: Instant) -> Self {
        let failures = counts
            .consecutive_failures
            .min(settings.failure_threshold.saturating_sub(1));
        Self {
            failures,
            timeouts: counts.timeouts.min(failures),
        }
    }

    fn judge(settings: &Self::Settings, probes: &Counts) -> Verdict {
        if probes.failures > 0 {
            Verdict::Open
        } else if probes.successes >= settings.success_threshold {
            Verdict::Close
        } else {
            Verdict::Pending
        }
    }

    fn adopt_probes(settings: &Self::Settings, probes: &Counts) -> Counts {
        let successes = probes
            .consecutive_successes
            .min(settings.success_threshold.saturating_sub(1));
        Counts {
            successes,
            consecutive_successes: successes,
            ..Counts::default()
        }
    }
}
