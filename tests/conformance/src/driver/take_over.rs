//! Circuits that go over: to another instance, another policy, other settings, the next process.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tripwit_core::{Mode, State};
use tripwit_policy::Snapshot;

use super::{Attached, Driver, Given, prepared};
use crate::answer::{changed, refusal, snapshot};
use crate::told::Told;
use crate::verb::{Kept, Next, PolicyName, Restart, Restore, Swap, settings_text};

/// A circuit on its way.
struct Leaving {
    snapshot: Snapshot,
    settings: Given,
}

impl Leaving {
    /// Whether it is what it would be without it: a host need not keep such a circuit over a restart.
    fn is_as_new(&self) -> bool {
        let saved = &self.snapshot.saved;
        let counts_nothing = saved.counts == tripwit_core::Counts::default();
        saved.state == State::Closed
            && saved.mode == Mode::Automatic
            && counts_nothing
            && self.snapshot.last_failure.is_none()
    }
}

impl Driver {
    pub(super) fn save(&mut self, key: &str, label: &str) -> Result<Value> {
        let number = self.number(key)?;
        let saved = self.guest.save(number)?;
        let answer = snapshot(&saved);
        self.snapshots.insert(label.to_owned(), saved);
        answer
    }

    pub(super) fn restore(&mut self, restore: &Restore) -> Result<Value> {
        if let Some(policy) = restore.policy {
            self.start_anew(policy)?;
        }
        let saved = self
            .snapshots
            .get(&restore.value)
            .with_context(|| format!("nothing was saved as {:?}", restore.value))?;
        let snapshot = changed(saved, &restore.with)?;
        let settings = match &restore.settings {
            Some(settings) => Given {
                text: settings_text(settings),
                own: true,
            },
            None => self.table(),
        };
        let restored = self.guest.restore(&snapshot, &settings.text, restore.age.0)?;
        self.attached(&snapshot.key, restored, settings)
    }

    /// Lets another policy have every circuit. Where it refuses one, or the settings, nothing has changed.
    pub(super) fn swap(&mut self, swap: &Swap) -> Result<Value> {
        let table = Given {
            text: settings_text(&swap.settings),
            own: false,
        };
        if let Some(refused) = self.refused(swap.value, &table)? {
            return Ok(refused);
        }
        let mut leaving = self.leaving()?;
        for circuit in &mut leaving {
            if !circuit.settings.own || swap.value != self.policy {
                circuit.settings = table.clone();
            }
        }
        self.take_over(swap.value, table, &leaving)
    }

    /// Gives other settings to the circuits that have none of their own. Where they are refused, nothing has changed.
    pub(super) fn reconfigure(&mut self, settings: &Value) -> Result<Value> {
        let table = Given {
            text: settings_text(settings),
            own: false,
        };
        if let Some(refused) = self.refused(self.policy, &table)? {
            return Ok(refused);
        }
        let others = |(key, it): (&String, &Attached)| {
            (!it.settings.own && it.settings.text != table.text).then(|| (key.clone(), it.number))
        };
        let changing: Vec<_> = self.circuits.iter().filter_map(others).collect();
        for (key, number) in changing {
            let configured = self.guest.configure(number, &table.text)?;
            let moved = configured.with_context(|| format!("configuring {key:?}"))?;
            ensure!(moved.transition.is_none(), "other settings moved {key:?}");
            self.heed(&key, &moved.lease)?;
            if let Some(attached) = self.circuits.get_mut(&key) {
                attached.settings = table.clone();
            }
        }
        self.settings = table.text;
        Ok(json!({"error": null}))
    }

    /// Ends the process, and begins another.
    pub(super) fn restart(&mut self, restart: Restart) -> Result<Value> {
        let leaving = match restart.value {
            Next::Empty(_) => Vec::new(),
            Next::Of(Kept::State) => self.leaving()?,
        };
        if let Some(at) = restart.at {
            self.clock.set_monotonic(at.0);
        }
        self.permits.clear();
        let kept: Vec<_> = leaving.into_iter().filter(|it| !it.is_as_new()).collect();
        let answer = self.take_over(self.policy, self.table(), &kept)?;
        ensure!(answer.get("error") == Some(&Value::Null), "{answer}");
        Ok(json!({}))
    }

    /// Goes on with a new instance, in which nothing is attached and no permit of before means anything.
    fn start_anew(&mut self, policy: PolicyName) -> Result<()> {
        self.policy = policy;
        self.guest = prepared(self.start, policy, &self.clock, &self.setup)?;
        self.circuits.clear();
        self.permits.clear();
        Ok(())
    }

    /// Why settings are refused, if they are: an instance of its own is asked.
    fn refused(&self, policy: PolicyName, table: &Given) -> Result<Option<Value>> {
        let mut trial = prepared(self.start, policy, &self.clock, &self.setup)?;
        let attached = trial.attach("trial", &table.text)?;
        Ok(attached.err().map(|error| refusal(&error, None)))
    }

    fn leaving(&mut self) -> Result<Vec<Leaving>> {
        let guest = self.guest.as_mut();
        let leaving = self.circuits.values().map(|attached| {
            Ok(Leaving {
                snapshot: guest.save(attached.number)?,
                settings: attached.settings.clone(),
            })
        });
        let leaving = leaving.collect::<Result<_>>()?;
        ensure!(guest.take_told() == Told::default(), "saving was told");
        Ok(leaving)
    }

    /// Goes on with a new instance of a policy that has these circuits, if it takes each of them.
    fn take_over(&mut self, policy: PolicyName, table: Given, circuits: &[Leaving]) -> Result<Value> {
        let mut guest = prepared(self.start, policy, &self.clock, &self.setup)?;
        let mut taken = BTreeMap::new();
        for Leaving { snapshot, settings } in circuits {
            match guest.restore(snapshot, &settings.text, 0)? {
                Ok(attachment) => taken.insert(&snapshot.key, (attachment, settings)),
                Err(error) => return Ok(refusal(&error, Some(&snapshot.key))),
            };
        }
        (self.policy, self.guest, self.settings) = (policy, guest, table.text);
        self.circuits.clear();
        self.incarnation += 1;
        for (key, (attachment, settings)) in taken {
            self.remember(key, &attachment, settings.clone())?;
        }
        Ok(json!({"error": null}))
    }
}
