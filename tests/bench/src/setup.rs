//! The circuits of Tripwit that are measured: always with metrics on.

use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::Result;
use opentelemetry_sdk::metrics::{ManualReader, SdkMeterProvider};
use tripwit::settings::{Consecutive, Window};
use tripwit::{Breakers, BreakersBuilder, Policy, Settings, Telemetry};

/// A policy and the settings that matter to what a call costs. All others are the policy's defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guarding {
    /// Five failures in a row; calls may run as long as they like.
    Consecutive,
    /// The same, and a call may run for ten seconds: the policy's defaults.
    ConsecutiveTimeout,
    /// All of the last 100 calls.
    WindowCount,
    /// All calls of the last [`Guarding::WINDOW_TIME`].
    WindowTime,
    /// As by count; and calls that took longer than a second are slow.
    WindowSlow,
}

impl Guarding {
    /// Each of them.
    pub const ALL: [Self; 5] = [
        Self::Consecutive,
        Self::ConsecutiveTimeout,
        Self::WindowCount,
        Self::WindowTime,
        Self::WindowSlow,
    ];
    /// The length of windows by time. Short, since a peer goes through every call of the window at each call: the shorter
    /// it is, the better it looks.
    pub const WINDOW_TIME: Duration = Duration::from_millis(10);
    /// How long a call may run, where it is limited.
    pub const CALL_TIMEOUT: Duration = Duration::from_secs(10);
    /// How long an open circuit stays open: longer than any measurement.
    pub const OPEN_FOR: Duration = Duration::from_secs(24 * 60 * 60);
    /// How many failures in a row open a circuit.
    pub const FAILURE_THRESHOLD: u32 = 5;
    /// Over how many calls windows by count go.
    pub const WINDOW_CALLS: u32 = 100;

    /// Its name in the tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Consecutive => "consecutive",
            Self::ConsecutiveTimeout => "consecutive, time-out",
            Self::WindowCount => "window by count",
            Self::WindowTime => "window by time",
            Self::WindowSlow => "window by count, slow calls",
        }
    }

    /// The component.
    ///
    /// # Errors
    ///
    /// When it cannot be loaded.
    pub fn policy(self) -> Result<Policy> {
        Ok(match self {
            Self::Consecutive | Self::ConsecutiveTimeout => Policy::consecutive()?,
            Self::WindowCount | Self::WindowTime | Self::WindowSlow => Policy::window()?,
        })
    }

    /// The settings. A window's failure rate is one that no measurement reaches.
    #[must_use]
    pub fn settings(self) -> Settings {
        let consecutive = Consecutive::default()
            .failure_threshold(Self::FAILURE_THRESHOLD)
            .open_for(Self::OPEN_FOR)
            .open_for_max(Self::OPEN_FOR);
        let window = Window::default()
            .failure_rate(100.0)
            .open_for(Self::OPEN_FOR)
            .open_for_max(Self::OPEN_FOR)
            .no_call_timeout();
        match self {
            Self::Consecutive => consecutive.no_call_timeout().into(),
            Self::ConsecutiveTimeout => consecutive.call_timeout(Self::CALL_TIMEOUT).into(),
            Self::WindowCount => window.window_calls(Self::WINDOW_CALLS).into(),
            Self::WindowTime => window.window_time(Self::WINDOW_TIME).into(),
            Self::WindowSlow => window
                .window_calls(Self::WINDOW_CALLS)
                .slow_after(Duration::from_secs(1))
                .into(),
        }
    }

    /// Circuits under it, not yet built.
    ///
    /// # Errors
    ///
    /// When the component cannot be loaded.
    pub fn builder(self) -> Result<BreakersBuilder> {
        Ok(self.builder_of(self.policy()?))
    }

    /// The same, of a policy that was loaded in another way.
    pub fn builder_of(self, policy: Policy) -> BreakersBuilder {
        Breakers::builder(policy)
            .settings(self.settings())
            .telemetry(metrics())
    }

    /// Circuits under it.
    ///
    /// # Errors
    ///
    /// When they cannot be made.
    pub fn breakers(self) -> Result<Breakers> {
        Ok(self.builder()?.build()?)
    }
}

impl fmt::Display for Guarding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Telemetry with a meter provider that can be asked, so that calls are counted.
pub fn metrics() -> Telemetry {
    static METRICS: OnceLock<Telemetry> = OnceLock::new();
    METRICS
        .get_or_init(|| {
            let meters = SdkMeterProvider::builder()
                .with_reader(ManualReader::builder().build())
                .build();
            Telemetry::default().meter_provider(meters)
        })
        .clone()
}

/// A key of 16 bytes. Below a million, each number has another one.
#[must_use]
pub fn sixteen_byte_key(number: usize) -> String {
    format!("dependency{number:06}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_sixteen_bytes() {
        assert_eq!(sixteen_byte_key(0).len(), 16);
        assert_eq!(sixteen_byte_key(999_999).len(), 16);
    }

    #[test]
    fn every_policy_takes_its_settings() -> Result<()> {
        for guarding in Guarding::ALL {
            guarding.breakers()?.breaker("orders")?;
        }
        Ok(())
    }
}
