//! What a policy that waits by the clock decides by: when a closed circuit opens, and what its probes prove.

use alloc::vec::Vec;

use crate::{
    Context, Counts, Field, Instant, Nanoseconds, Outcome, Recovery, Report, Settings, SettingsError,
    SnapshotError, Successes,
};

/// What the probes of a half-open circuit have proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing yet.
    Pending,
    /// The dependency is well.
    Close,
    /// It is not.
    Open,
}

/// When a closed circuit opens, and what its probes prove. One value is what a closed circuit has recorded.
pub trait Rule: Clone + core::fmt::Debug {
    /// Checked settings.
    type Settings: Clone + PartialEq + core::fmt::Debug;

    /// See [`Policy::NAME`](crate::Policy::NAME).
    const NAME: &'static str;
    /// See [`Policy::SUMMARY`](crate::Policy::SUMMARY).
    const SUMMARY: &'static str;
    /// See [`Policy::FIELDS`](crate::Policy::FIELDS).
    const FIELDS: &'static [&'static dyn Field];

    /// Checks settings.
    ///
    /// # Errors
    ///
    /// Names the first field that does not fit.
    fn settings(settings: &Settings) -> Result<Self::Settings, SettingsError>;

    /// The settings of the machine around this rule.
    fn recovery(settings: &Self::Settings) -> &Recovery;

    /// Nothing recorded.
    fn fresh(settings: &Self::Settings) -> Self;

    /// A call that took strictly longer than this is slow. Nanoseconds.
    fn slow_after(_settings: &Self::Settings) -> Option<Nanoseconds> {
        None
    }

    /// Whether a closed circuit lets this call through; one that it does not is rejected as throttled.
    fn admit(&mut self, _cx: &Context<'_, Self::Settings>) -> bool {
        true
    }

    /// Whether [`admit`](Self::admit) lets every call through, and changes nothing, until a call is recorded: a lease then
    /// says so. Time alone may make it so, and never the other way.
    fn admits_all(&self, _settings: &Self::Settings, _now: Instant) -> bool {
        true
    }

    /// Records a call that ended. Answers whether the circuit opens.
    fn record(&mut self, settings: &Self::Settings, report: &Report, slow: bool, now: Instant) -> bool;

    /// Records successes that were kept back under the lease of `as_of`. Answers whether the circuit opens. One by one, unless
    /// a rule knows better.
    fn record_successes(&mut self, settings: &Self::Settings, count: u32, as_of: Instant) -> bool {
        let success = Report::of(Outcome::Success);
        (0..count).any(|_| self.record(settings, &success, false, as_of))
    }

    /// Which successes this rule must hear of. Each, unless a rule knows better.
    fn successes(&self, _settings: &Self::Settings, _now: Instant) -> Successes {
        Successes::Each
    }

    /// What is recorded.
    fn counts(&self, settings: &Self::Settings, now: Instant) -> Counts;

    /// See [`Policy::DETAIL_FORMAT`](crate::Policy::DETAIL_FORMAT).
    const DETAIL_FORMAT: &'static str = "";

    /// See [`Policy::detail`](crate::Policy::detail).
    fn detail(&self, _settings: &Self::Settings, _now: Instant) -> Vec<u8> {
        Vec::new()
    }

    /// What was recorded `age` ago by this rule, and saved as a detail; none where it does not fit these settings.
    ///
    /// # Errors
    ///
    /// When the detail is damaged.
    fn from_detail(
        _settings: &Self::Settings,
        _detail: &[u8],
        _age: Nanoseconds,
        _now: Instant,
    ) -> Result<Option<Self>, SnapshotError> {
        Ok(None)
    }

    /// Whether one more probe may go out beside those under way.
    fn admits_probe(settings: &Self::Settings, _probes: &Counts, in_flight: u32) -> bool {
        in_flight < Self::recovery(settings).probes()
    }

    /// What was counted under other settings or by another policy, as far as it means something here: nothing, unless a rule
    /// knows better. It opens nothing.
    fn adopt(settings: &Self::Settings, _counts: &Counts, _now: Instant) -> Self {
        Self::fresh(settings)
    }

    /// What the probes have proved. The first that ends decides, unless a rule knows better.
    fn judge(_settings: &Self::Settings, probes: &Counts) -> Verdict {
        match (probes.failures, probes.successes) {
            (0, 0) => Verdict::Pending,
            (0, _) => Verdict::Close,
            (_, _) => Verdict::Open,
        }
    }

    /// What probes proved under other settings or another policy, as far as it decides nothing yet: nothing, unless a rule
    /// knows better.
    fn adopt_probes(_settings: &Self::Settings, _probes: &Counts) -> Counts {
        Counts::default()
    }
}
