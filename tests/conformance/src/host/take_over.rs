//! Circuits that go over: to another policy, other settings, the next process.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use tripwit::{AttachError, Breakers, BuildError, ManualClock, Policy, SwapError};

use super::{Host, listen, words};
use crate::scenario::SetupText;
use crate::told::{Line, fields};
use crate::verb::{Kept, Next, PolicyName, Restart, Swap, settings_text};

/// What circuits are made with.
pub(super) struct Making {
    pub(super) policy: Policy,
    pub(super) settings: String,
    pub(super) setup: SetupText,
    pub(super) clock: ManualClock,
    pub(super) ignore_leases: bool,
}

impl Making {
    pub(super) fn breakers(&self) -> Result<Breakers> {
        let builder = Breakers::builder(self.policy.clone())
            .settings(self.settings.as_str())
            .clock(self.clock.clone())
            .shards(1)
            .seed(self.setup.seed)
            .instrumentation(words::instrumentation(&self.setup))
            .ignore_leases(self.ignore_leases);
        Ok(match &self.setup.namespace {
            Some(namespace) => builder.namespace(namespace).build()?,
            None => builder.build()?,
        })
    }
}

pub(super) fn shipped(policy: PolicyName) -> Result<Policy> {
    Ok(match policy {
        PolicyName::Consecutive => Policy::consecutive()?,
        PolicyName::Window => Policy::window()?,
        PolicyName::Outbox => Policy::outbox()?,
    })
}

impl Host {
    pub(super) fn swap(&mut self, swap: &Swap) -> Result<Value> {
        let (old, new) = (self.breakers.policy(), shipped(swap.value)?);
        let settings = settings_text(&swap.settings);
        if let Err(error) = self.breakers.swap(new.clone(), settings.as_str()) {
            return refused(error);
        }
        let (from, to) = (old.description(), new.description());
        let message = format!(
            "Policy {} {} swapped for {} {}",
            from.name, from.version, to.name, to.version
        );
        self.announced(
            &message,
            [
                ("policy", to.name.as_str()),
                ("digest", &new.digest().to_string()),
            ],
        )?;
        self.capture.expect_scope(words::scope(&new));
        (self.making.policy, self.making.settings) = (new, settings);
        Ok(json!({"error": null}))
    }

    pub(super) fn reconfigure(&mut self, settings: &Value) -> Result<Value> {
        let settings = settings_text(settings);
        if let Err(error) = self.breakers.reconfigure(settings.as_str()) {
            return refused(error);
        }
        let policy = self.breakers.policy();
        let name = policy.description().name.as_str();
        self.announced("Settings of the policy changed", [("policy", name)])?;
        self.making.settings = settings;
        Ok(json!({"error": null}))
    }

    /// What the host says in its own name is held against what it must say here: it is no part of what the circuits tell.
    fn announced<const N: usize>(&self, message: &str, named: [(&str, &str); N]) -> Result<()> {
        let named = fields(named.map(|(name, text)| (name.to_owned(), text.into())));
        let (must, is) = (
            Line::new("INFO", message, named),
            self.capture.take_announcement()?,
        );
        ensure!(is == must, "the host must say {must:?}, and says {is:?}");
        Ok(())
    }

    pub(super) fn restart(&mut self, restart: Restart) -> Result<Value> {
        let kept = match restart.value {
            Next::Empty(_) => None,
            Next::Of(Kept::State) => Some(self.breakers.save()?),
        };
        self.permits.clear();
        self.handles.clear();
        if let Some(at) = restart.at {
            self.making.clock.set_monotonic(at.0);
        }
        self.breakers = self.making.breakers()?;
        self.subscription = listen(&self.breakers, &self.moves);
        if let Some(json) = kept {
            self.breakers.restore(&json)?;
        }
        Ok(json!({}))
    }
}

/// Why nothing was swapped. `key`: of the circuit that the settings were refused for, if it was one.
fn refused(error: SwapError) -> Result<Value> {
    if let SwapError::Trial(BuildError::Settings { field, problem, .. }) = &error {
        return Ok(json!({"error": "settings", "field": field, "problem": problem, "key": null}));
    }
    if let SwapError::Circuit(AttachError::Settings { key, field, problem }) = &error {
        return Ok(json!({"error": "settings", "field": field, "problem": problem, "key": key}));
    }
    Err(error.into())
}
