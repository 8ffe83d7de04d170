//! Opens when too large a share of the last calls failed or were slow.

use alloc::vec::Vec;

mod detail;
mod record;
mod settings;

use record::{Call, Record, Tally, bucket_start};
use settings::Reach;
pub use settings::WindowSettings;

use crate::{
    Allowance, Counts, Field, Instant, Nanoseconds, Recovery, Report, Rule, Settings, SettingsError,
    SnapshotError, Successes, Timed, Verdict,
};

/// The policy `window`.
///
/// It looks at the last so many calls, or at those of the last so many seconds. As soon as there are enough of them, the
/// circuit opens when at least the given share of them failed, or at least the given share were slow. After `open_for`
/// so many probes are let through, and the same shares of them decide.
pub type Window = Timed<Calls>;

/// What a closed circuit has recorded of its last calls.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Calls {
    record: Record,
    sums: Tally,
    /// Failures since the last success.
    streak: u32,
}

impl Rule for Calls {
    type Settings = WindowSettings;

    const NAME: &'static str = "window";
    const SUMMARY: &'static str = "Opens when too large a share of the last calls, or of those of the last seconds, failed or were slow.";
    const FIELDS: &'static [&'static dyn Field] = settings::FIELDS;

    fn settings(settings: &Settings) -> Result<Self::Settings, SettingsError> {
        WindowSettings::read(settings)
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
            Reach::Time { width, .. } => (u32::MAX, Some(bucket_start(now, width).saturating_add(width))),
        };
        if sums.is_full_of_good(most) {
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

    const DETAIL_FORMAT: &'static str = detail::FORMAT;

    fn detail(&self, settings: &Self::Settings, now: Instant) -> Vec<u8> {
        detail::write(self, settings, now)
    }

    fn from_detail(
        settings: &Self::Settings,
        detail: &[u8],
        age: Nanoseconds,
        now: Instant,
    ) -> Result<Option<Self>, SnapshotError> {
        detail::read(settings, detail, age, now)
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
        let total = counts.successes.saturating_add(counts.failures);
        let tally = Tally {
            total,
            failures: counts.failures,
            timeouts: counts.timeouts,
            // Another policy need not say how many calls there were.
            slow: counts.slow.min(total),
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
