//! Who decides: a policy, and the settings that circuits get under it.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use crate::env::{Env, scope};
use crate::instance::{Fault, Instance, Start};
use crate::policy::Policy;
use crate::providers::{Telemetry, Tracers};
use crate::table::SettingsTable;

/// A policy with its settings. A swap puts another one in its place.
pub(crate) struct Regime {
    pub(crate) policy: Policy,
    pub(crate) settings: SettingsTable,
    /// Where the spans of this policy go: their scope is its own.
    pub(crate) tracers: Tracers,
}

impl Regime {
    pub(crate) fn new(policy: Policy, settings: SettingsTable, telemetry: &Telemetry) -> Arc<Self> {
        Arc::new(Self {
            tracers: telemetry.tracers(scope(&policy)),
            policy,
            settings,
        })
    }

    /// A fresh instance of the policy, set up.
    pub(crate) fn start(&self, env: &Env, memory: &Arc<AtomicUsize>) -> Result<Instance, Fault> {
        Instance::start(
            self.policy.pre(),
            Start {
                clock: env.clock.clone(),
                setup: env.setup.clone(),
                max_memory: env.max_memory,
                memory,
            },
        )
    }
}
