//! Circuits that go over from one instance to another.

use alloc::{
    string::{String, ToString},
    sync::Arc,
};

use tripwit_core::{Circuit, Env, Nanoseconds, Policy};

use super::{Attachment, Circuits, Failure, Host, Key, Slot, Snapshot, check_key};
use crate::AttachError;

impl<P: Policy, H: Host> Circuits<P, H> {
    /// A circuit as another instance can take it over.
    pub fn save(&mut self, number: u32) -> Option<Snapshot> {
        let now = self.host.monotonic();
        let slot = self.attached(number)?;
        let detail = slot.circuit.detail(now);
        Some(Snapshot {
            key: slot.key.to_string(),
            settings: slot.settings.to_string(),
            saved: slot.circuit.save(now),
            since: slot.since,
            last_failure: slot.last_failure.as_ref().map(|failure| failure.at),
            last_cause: slot
                .last_failure
                .as_ref()
                .and_then(|failure| failure.cause.as_deref())
                .map(ToString::to_string),
            detail_format: if detail.is_empty() {
                String::new()
            } else {
                P::DETAIL_FORMAT.to_string()
            },
            detail,
        })
    }

    /// Takes a circuit over, `age` after it was saved, under settings of this policy. Nanoseconds.
    ///
    /// # Errors
    ///
    /// When key, settings or snapshot do not fit, or there is no room.
    pub fn restore(
        &mut self,
        snapshot: &Snapshot,
        settings: &str,
        age: Nanoseconds,
    ) -> Result<Attachment, AttachError> {
        check_key(&snapshot.key)?;
        if snapshot.detail_format.is_empty() && !snapshot.detail.is_empty() {
            return Err(AttachError::Snapshot("a detail without a format".to_string()));
        }
        let known = snapshot.detail_format == P::DETAIL_FORMAT;
        let detail = if known { snapshot.detail.as_slice() } else { &[] };
        let (text, parsed) = self.texts.read(settings)?;
        let now = self.host.monotonic();
        let mut env = Env {
            now,
            key: &snapshot.key,
            seed: self.setup.seed,
            numbers: &mut self.numbers,
        };
        let circuit = match Circuit::restore(&snapshot.saved, detail, age, parsed, &mut env) {
            Ok(circuit) => circuit,
            Err(error) => {
                self.texts.forget(&text);
                return Err(error.into());
            }
        };
        let lease = circuit.lease(now);
        let key: Arc<str> = snapshot.key.as_str().into();
        let slot = Slot {
            key: key.clone(),
            settings: text,
            circuit,
            since: snapshot.since,
            last_failure: snapshot
                .last_failure
                .map(|at| Failure::new(at, snapshot.last_cause.as_deref())),
        };
        if let Some(&number) = self.by_key.get(&Key(key)) {
            if let Some(place) = self.slots.get_mut(number) {
                let Slot {
                    settings, circuit, ..
                } = core::mem::replace(place, slot);
                drop(circuit);
                self.texts.forget(&settings);
            }
            return Ok(Attachment {
                circuit: number,
                lease,
            });
        }
        Ok(Attachment {
            circuit: self.insert(slot)?,
            lease,
        })
    }
}
