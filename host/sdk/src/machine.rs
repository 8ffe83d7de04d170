//! A shard's instance of the component, and the one way to reach it.
//!
//! Whoever holds the shard's lock crosses in this order: close the counter of kept-back successes, settle what it held,
//! call, check the answer, save what must outlive the instance, publish the lease, open the counter.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::bindings::exports::tripwit::breaker::policy as wit;
use crate::bindings::tripwit::breaker::types;
use crate::circuit::{Circuit, Saved, Slot, Slots, Strikes};
use crate::env::Env;
use crate::error::AttachError;
use crate::gate::View;
use crate::instance::{Fault, Instance};
use crate::lease::{Lease, Standing};
use crate::settings::Settings;
use crate::status::Event;
use crate::telemetry::Outlet;

/// What a shard's lock guards.
pub(crate) struct Machine {
    /// None while the component cannot be started.
    pub(crate) instance: Option<Instance>,
    /// Grows with every instance; permits of older ones are void.
    pub(crate) incarnation: u64,
    pub(crate) slots: Slots,
    /// Which slot a circuit of the instance has.
    pub(crate) numbers: HashMap<u32, usize>,
    pub(crate) strikes: Strikes,
    /// Struck out: no circuit's component is asked any more.
    pub(crate) fallen: bool,
    /// When to try again to start the component.
    pub(crate) revive_at: u64,
    pub(crate) memory: Arc<AtomicUsize>,
}

/// What everything done under one hold of the lock shares: one reading of the clock, above all.
pub(crate) struct Cx<'a> {
    pub(crate) env: &'a Env,
    pub(crate) outlet: &'a Outlet,
    pub(crate) now: u64,
}

/// What a call to the component for one circuit comes to.
pub(crate) struct Answer<R> {
    pub(crate) lease: Option<types::Lease>,
    pub(crate) transition: Option<types::Transition>,
    pub(crate) value: R,
}

impl Answer<()> {
    pub(crate) fn of(moved: types::Moved) -> Self {
        Self {
            lease: Some(moved.lease),
            transition: moved.transition,
            value: (),
        }
    }
}

impl Machine {
    pub(crate) fn start(env: &Env) -> Result<Self, Fault> {
        let memory = Arc::new(AtomicUsize::new(0));
        Ok(Self {
            instance: Some(env.start(&memory)?),
            incarnation: 1,
            slots: Slots::default(),
            numbers: HashMap::new(),
            strikes: Strikes::default(),
            fallen: false,
            revive_at: 0,
            memory,
        })
    }

    /// Whether so much of the instance's memory is used up that a circuit must go before one can come.
    pub(crate) fn is_tight(&self, env: &Env) -> bool {
        self.instance.as_ref().is_some_and(|instance| {
            let at_start = instance.memory_at_start();
            let grown = self.memory.load(Ordering::Relaxed).saturating_sub(at_start);
            grown > env.max_memory.saturating_sub(at_start) / TIGHT
        })
    }

    /// Calls the component for one circuit. `None`: it failed, or has failed too often to be asked.
    pub(crate) fn cross<R>(
        &mut self,
        cx: &Cx<'_>,
        circuit: &Circuit,
        call: impl FnOnce(&mut Instance, u32) -> Result<Answer<R>, Fault>,
    ) -> Option<R> {
        if !self.is_up(cx, circuit) {
            return None;
        }
        match self.try_cross(cx, circuit, call) {
            Ok(value) => Some(value),
            Err(fault) => {
                self.fail(cx, Some(circuit.slot), fault);
                None
            }
        }
    }

    fn try_cross<R>(
        &mut self,
        cx: &Cx<'_>,
        circuit: &Circuit,
        call: impl FnOnce(&mut Instance, u32) -> Result<Answer<R>, Fault>,
    ) -> Result<R, Fault> {
        let number = self.number_of(cx, circuit)?;
        let incarnation = self.incarnation;
        let (instance, slot) = self.parts(circuit.slot)?;
        let view = circuit.gate.read_locked();
        let mut moves = Vec::new();
        let flushed = flush(cx, instance, circuit, number, &view, &mut moves)?;
        let answer = call(instance, number)?;
        let before = flushed.map_or(view.lease.generation, |lease| lease.generation);
        let lease = match &answer.lease {
            Some(lease) => Some(checked("answer", lease, cx.now, Some(before))?),
            None => flushed,
        };
        if let Some(lease) = &lease {
            save(cx, instance, slot, lease, number)?;
            circuit.publish_locked(cx, lease, incarnation, false);
        }
        circuit.gate.open_locked();
        moves.extend(answer.transition.map(|transition| event(circuit, transition)));
        cx.outlet.push(instance.take_told(), moves);
        Ok(answer.value)
    }

    /// The instance and one slot, which are there whenever the component is up.
    fn parts(&mut self, slot: usize) -> Result<(&mut Instance, &mut Slot), Fault> {
        match (self.instance.as_mut(), self.slots.get_mut(slot)) {
            (Some(instance), Some(slot)) => Ok((instance, slot)),
            _ => Err(Fault::new("instance", "it is not running")),
        }
    }

    /// The circuit's number in the instance, where it is attached first if it must be.
    fn number_of(&mut self, cx: &Cx<'_>, circuit: &Circuit) -> Result<u32, Fault> {
        let (instance, slot) = self.parts(circuit.slot)?;
        instance.set_now(cx.now);
        if let Some(number) = slot.number {
            return Ok(number);
        }
        match instance.attach(&circuit.key, circuit.settings.as_str())? {
            Ok(attachment) => self.take(cx, circuit, &attachment, "attach"),
            Err(error) => Err(Fault::new(
                "attach",
                format!("refused what it had taken before: {error:?}"),
            )),
        }
    }

    /// Takes an attachment of a circuit that the instance did not know.
    pub(crate) fn take(
        &mut self,
        cx: &Cx<'_>,
        circuit: &Circuit,
        attachment: &wit::Attachment,
        call: &'static str,
    ) -> Result<u32, Fault> {
        let number = attachment.circuit;
        if self.numbers.contains_key(&number) {
            return Err(Fault::new(
                call,
                format!("handed out circuit number {number}, which is taken"),
            ));
        }
        let lease = checked(call, &attachment.lease, cx.now, None)?;
        let incarnation = self.incarnation;
        let (_, slot) = self.parts(circuit.slot)?;
        slot.number = Some(number);
        circuit.gate.close_locked();
        circuit.publish_locked(cx, &lease, incarnation, false);
        circuit.gate.open_locked();
        self.numbers.insert(number, circuit.slot);
        Ok(number)
    }

    /// Adds a circuit. After an error nothing of it is left.
    pub(crate) fn attach(
        &mut self,
        cx: &Cx<'_>,
        key: &Arc<str>,
        settings: &Settings,
    ) -> Result<Arc<Circuit>, AttachError> {
        let incarnation = self.incarnation;
        let index = self
            .slots
            .insert(|index| Slot::new(Arc::new(Circuit::new(key, settings, index, incarnation))));
        let Some(circuit) = self.slots.get(index).map(|slot| slot.circuit.clone()) else {
            return Err(AttachError::Other {
                key: key.to_string(),
                problem: "no slot".into(),
            });
        };
        // A component that fails here is no outage of the caller: the circuit is there, as `on_fault` says.
        if !self.is_up(cx, &circuit) {
            return Ok(circuit);
        }
        match self.try_attach(cx, &circuit) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                self.slots.remove(index);
                return Err(refusal(key, error));
            }
            Err(fault) => self.fail(cx, Some(index), fault),
        }
        Ok(circuit)
    }

    fn try_attach(&mut self, cx: &Cx<'_>, circuit: &Circuit) -> Result<Result<(), wit::AttachError>, Fault> {
        let (instance, _) = self.parts(circuit.slot)?;
        instance.set_now(cx.now);
        let attached = instance.attach(&circuit.key, circuit.settings.as_str())?;
        let heard = instance.take_told();
        match attached {
            Ok(attachment) => self.take(cx, circuit, &attachment, "attach").map(|_| {
                cx.outlet.push(heard, Vec::new());
                Ok(())
            }),
            Err(error) => Ok(Err(error)),
        }
    }

    /// Asks the component whether settings are those that the circuit has.
    pub(crate) fn confirm(
        &mut self,
        cx: &Cx<'_>,
        circuit: &Circuit,
        settings: &Settings,
    ) -> Result<(), AttachError> {
        let said = self.cross(cx, circuit, |instance, number| {
            match instance.attach(&circuit.key, settings.as_str())? {
                Ok(attachment) if attachment.circuit == number => Ok(Answer {
                    lease: Some(attachment.lease),
                    transition: None,
                    value: Ok(()),
                }),
                Ok(attachment) => Err(Fault::new(
                    "attach",
                    format!(
                        "found circuit {} under the key of circuit {number}",
                        attachment.circuit
                    ),
                )),
                Err(error) => Ok(Answer {
                    lease: None,
                    transition: None,
                    value: Err(error),
                }),
            }
        });
        match said {
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => Err(refusal(&circuit.key, error)),
            None => Err(AttachError::Other {
                key: circuit.key.to_string(),
                problem: "the policy component failed when it was asked whether the settings are the same"
                    .into(),
            }),
        }
    }

    /// Forgets a circuit that nobody holds.
    pub(crate) fn detach(&mut self, cx: &Cx<'_>, circuit: &Circuit) {
        if self
            .slots
            .get(circuit.slot)
            .is_some_and(|slot| slot.number.is_some())
        {
            // Whatever fails here, the circuit goes all the same.
            if self.is_up(cx, circuit)
                && let Err(fault) = self.try_detach(cx, circuit)
            {
                self.fail(cx, Some(circuit.slot), fault);
            }
        }
        if let Some(number) = self.slots.remove(circuit.slot).and_then(|slot| slot.number) {
            self.numbers.remove(&number);
        }
    }

    /// Neither saves nor publishes what the circuit comes to: its number is gone after this.
    fn try_detach(&mut self, cx: &Cx<'_>, circuit: &Circuit) -> Result<(), Fault> {
        let number = self.number_of(cx, circuit)?;
        let (instance, _) = self.parts(circuit.slot)?;
        let view = circuit.gate.read_locked();
        let mut moves = Vec::new();
        flush(cx, instance, circuit, number, &view, &mut moves)?;
        instance.detach(number)?;
        cx.outlet.push(instance.take_told(), moves);
        Ok(())
    }
}

/// One part in so many of the memory may be used up by circuits: a list that doubles takes as much as itself twice over
/// for a moment, and what circuits have already been taken for grows as their calls fail.
const TIGHT: usize = 3;

/// Closes the counter and hands in what it held. Says which lease stands then, if anything was handed in.
pub(crate) fn flush(
    cx: &Cx<'_>,
    instance: &mut Instance,
    circuit: &Circuit,
    number: u32,
    view: &View,
    moves: &mut Vec<Event>,
) -> Result<Option<Lease>, Fault> {
    let kept = circuit.gate.close_locked();
    let Standing::Admit(ticket) = view.lease.standing else {
        return Ok(None);
    };
    if kept == 0 {
        return Ok(None);
    }
    circuit.recorded.store(true, Ordering::Relaxed);
    let moved = instance.settle_successes(number, ticket, kept)?;
    let lease = checked(
        "settle-successes",
        &moved.lease,
        cx.now,
        Some(view.lease.generation),
    )?;
    moves.extend(moved.transition.map(|transition| event(circuit, transition)));
    Ok(Some(lease))
}

/// Saves a circuit that must outlive its instance as it is, and forgets an older copy of one that need not.
pub(crate) fn save(
    cx: &Cx<'_>,
    instance: &mut Instance,
    slot: &mut Slot,
    lease: &Lease,
    number: u32,
) -> Result<(), Fault> {
    slot.saved = if lease.is_worth_saving() {
        let snapshot = instance.save(number)?;
        if *snapshot.key != *slot.circuit.key {
            return Err(Fault::new("save", "handed out a snapshot of another key"));
        }
        Some(Saved { snapshot, at: cx.now })
    } else {
        None
    };
    Ok(())
}

pub(crate) fn checked(
    call: &'static str,
    lease: &types::Lease,
    now: u64,
    generation: Option<u64>,
) -> Result<Lease, Fault> {
    Lease::check(lease, now, generation).map_err(|problem| Fault::new(call, problem))
}

pub(crate) fn event(circuit: &Circuit, transition: types::Transition) -> Event {
    Event {
        key: circuit.key.clone(),
        transition: transition.into(),
    }
}

fn refusal(key: &Arc<str>, error: wit::AttachError) -> AttachError {
    let key = key.to_string();
    match error {
        wit::AttachError::Key(problem) => AttachError::Key { key, problem },
        wit::AttachError::Settings(error) => AttachError::Settings {
            key,
            field: error.field,
            problem: error.problem,
        },
        wit::AttachError::Conflict => AttachError::Conflict { key },
        wit::AttachError::Full(limit) => AttachError::Full {
            key,
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
        },
        wit::AttachError::Snapshot(problem) | wit::AttachError::Other(problem) => {
            AttachError::Other { key, problem }
        }
    }
}
