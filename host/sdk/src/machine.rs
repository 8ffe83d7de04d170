//! A shard's circuits and the instance of the component that decides on them, and the one way to reach it.
//!
//! Whoever holds the shard's lock crosses in this order: close the counter of kept-back successes, settle what it held,
//! call, check the answer, save what must outlive the instance, publish the lease, open the counter.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::bindings::exports::tripwit::breaker::policy as wit;
use crate::bindings::tripwit::breaker::types;
use crate::circuit::{Circuit, Key, Slot, Slots};
use crate::clock::Stopwatch;
use crate::env::Env;
use crate::error::AttachError;
use crate::gate::View;
use crate::instance::{Fault, Instance};
use crate::lease::{Lease, Standing};
use crate::regime::Regime;
use crate::seat::{Seat, SeatId};
use crate::settings::Settings;
use crate::snapshots::{Room, snapshot};
use crate::status::{Event, Mode};
use crate::telemetry::Outlet;

/// What a shard's lock guards.
pub(crate) struct Machine {
    pub(crate) seat: Seat,
    /// The one that takes over, while a swap is under way: circuits move to it in batches.
    pub(crate) incoming: Option<Seat>,
    pub(crate) slots: Slots,
    /// The newest incarnation of all seats.
    incarnation: u64,
}

/// What everything done under one hold of the lock shares: one reading of the clock, above all.
pub(crate) struct Cx<'a> {
    pub(crate) env: &'a Env,
    pub(crate) outlet: &'a Outlet,
    pub(crate) room: &'a Room,
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
    pub(crate) fn start(env: &Env, regime: &Arc<Regime>) -> Result<Self, Fault> {
        let seat = Seat::start(env, regime)?;
        Ok(Self {
            incarnation: seat.incarnation,
            seat,
            incoming: None,
            slots: Slots::default(),
        })
    }

    /// The seat that new circuits come to.
    pub(crate) fn newest(&self) -> &Seat {
        self.incoming.as_ref().unwrap_or(&self.seat)
    }

    pub(crate) fn seat_mut(&mut self, id: SeatId) -> &mut Seat {
        match &mut self.incoming {
            Some(seat) if seat.id == id => seat,
            _ => &mut self.seat,
        }
    }

    /// The seat that decides on a circuit.
    pub(crate) fn seat_of(&self, circuit: &Circuit) -> &Seat {
        let id = self.slots.get(circuit.slot()).map(|slot| slot.seat);
        match &self.incoming {
            Some(seat) if Some(seat.id) == id => seat,
            _ => &self.seat,
        }
    }

    pub(crate) fn next_incarnation(&mut self) -> u64 {
        self.incarnation += 1;
        self.incarnation
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
                self.fail_at(cx, circuit, fault);
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
        let Parts {
            instance,
            slot,
            incarnation,
            regime,
        } = self.parts(circuit.slot())?;
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
        cx.outlet.push(regime, instance.take_told(), moves);
        Ok(answer.value)
    }

    /// The instance and one slot, which are there whenever the component is up.
    pub(crate) fn parts(&mut self, slot: usize) -> Result<Parts<'_>, Fault> {
        let gone = || Fault::new("instance", "it is not running");
        let slot = self.slots.get_mut(slot).ok_or_else(gone)?;
        let seat = match &mut self.incoming {
            Some(seat) if seat.id == slot.seat => seat,
            _ => &mut self.seat,
        };
        Ok(Parts {
            instance: seat.instance.as_mut().ok_or_else(gone)?,
            slot,
            incarnation: seat.incarnation,
            regime: &seat.regime,
        })
    }

    /// The circuit's number in the instance, where it is attached first if it must be.
    pub(crate) fn number_of(&mut self, cx: &Cx<'_>, circuit: &Circuit) -> Result<u32, Fault> {
        let Parts { instance, slot, .. } = self.parts(circuit.slot())?;
        instance.set_now(cx.now);
        if let Some(number) = slot.number {
            return Ok(number);
        }
        match instance.attach(&circuit.key, slot.settings.as_str())? {
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
        let id = self.seat_of(circuit).id;
        if self.seat_mut(id).numbers.get(number).is_some() {
            return Err(Fault::new(
                call,
                format!("handed out circuit number {number}, which is taken"),
            ));
        }
        let lease = checked(call, &attachment.lease, cx.now, None)?;
        let Parts {
            slot, incarnation, ..
        } = self.parts(circuit.slot())?;
        slot.number = Some(number);
        circuit.gate.close_locked();
        circuit.publish_locked(cx, &lease, incarnation, false);
        circuit.gate.open_locked();
        self.seat_mut(id).numbers.insert(number, circuit.slot());
        Ok(number)
    }

    /// Adds a circuit, with settings of its own or those that the table has for its key. After an error nothing of it is
    /// left.
    pub(crate) fn attach(
        &mut self,
        cx: &Cx<'_>,
        key: &Key,
        own: Option<&Settings>,
    ) -> Result<Arc<Circuit>, AttachError> {
        let seat = self.newest();
        let (id, incarnation) = (seat.id, seat.incarnation);
        let settings = own.unwrap_or_else(|| seat.regime.settings.of(key)).clone();
        let index = self.slots.insert(|index| {
            let circuit = Arc::new(Circuit::new(key, index, incarnation));
            Slot::new(circuit, settings, own.is_some(), id)
        });
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
            Err(fault) => self.fail_at(cx, &circuit, fault),
        }
        Ok(circuit)
    }

    fn try_attach(&mut self, cx: &Cx<'_>, circuit: &Circuit) -> Result<Result<(), wit::AttachError>, Fault> {
        let Parts {
            instance,
            slot,
            regime,
            ..
        } = self.parts(circuit.slot())?;
        instance.set_now(cx.now);
        let attached = instance.attach(&circuit.key, slot.settings.as_str())?;
        let (regime, heard) = (regime.clone(), instance.take_told());
        match attached {
            Ok(attachment) => self.take(cx, circuit, &attachment, "attach").map(|_| {
                cx.outlet.push(&regime, heard, Vec::new());
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
        let same = |slot: &Slot| slot.settings == *settings;
        if self.slots.get(circuit.slot()).is_some_and(same) {
            return Ok(());
        }
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

    /// Says who decides on a circuit.
    pub(crate) fn set_mode(&mut self, cx: &Cx<'_>, circuit: &Circuit, mode: Mode) {
        if self.set_mode_of_fallen(cx, circuit, mode) {
            return;
        }
        self.cross(cx, circuit, |instance, number| {
            let moved = instance.set_mode(number, mode.into())?;
            if Mode::from(moved.lease.mode) != mode {
                return Err(Fault::new("set-mode", format!("did not take the mode {mode}")));
            }
            Ok(Answer::of(moved))
        });
    }

    /// Forgets a circuit that nobody holds.
    pub(crate) fn detach(&mut self, cx: &Cx<'_>, circuit: &Circuit) {
        self.let_go(cx, circuit);
        self.slots.remove(circuit.slot());
    }

    /// Has the instance forget a circuit that it knows. Whatever fails here, the circuit has no number afterwards.
    pub(crate) fn let_go(&mut self, cx: &Cx<'_>, circuit: &Circuit) {
        let known = |slot: &Slot| slot.number.is_some();
        if self.slots.get(circuit.slot()).is_some_and(known)
            && self.is_up(cx, circuit)
            && let Err(fault) = self.leave(cx, circuit, |_, _| Ok(()))
        {
            self.fail_at(cx, circuit, fault);
        }
        if let Some(slot) = self.slots.get_mut(circuit.slot())
            && let Some(number) = slot.number.take()
        {
            let seat = slot.seat;
            self.seat_mut(seat).numbers.remove(number);
        }
    }

    /// Has the instance forget a circuit, after `last` has had a look at it. Neither saves nor publishes what the circuit comes
    /// to: its number means nothing after this.
    pub(crate) fn leave<R>(
        &mut self,
        cx: &Cx<'_>,
        circuit: &Circuit,
        last: impl FnOnce(&mut Instance, u32) -> Result<R, Fault>,
    ) -> Result<R, Fault> {
        let number = self.number_of(cx, circuit)?;
        let Parts { instance, regime, .. } = self.parts(circuit.slot())?;
        let view = circuit.gate.read_locked();
        let mut moves = Vec::new();
        flush(cx, instance, circuit, number, &view, &mut moves)?;
        let seen = last(instance, number)?;
        instance.detach(number)?;
        cx.outlet.push(regime, instance.take_told(), moves);
        Ok(seen)
    }

    /// Does something for each place from `from` on, until the time for one batch is up. Says whether there are more.
    pub(crate) fn batch(
        &mut self,
        from: &mut usize,
        watch: &Stopwatch,
        mut work: impl FnMut(&mut Self, usize),
    ) -> bool {
        while *from < self.slots.end() {
            if watch.is_over() {
                return true;
            }
            work(self, *from);
            *from += 1;
        }
        false
    }
}

/// What a crossing for one circuit works with.
pub(crate) struct Parts<'a> {
    pub(crate) instance: &'a mut Instance,
    pub(crate) slot: &'a mut Slot,
    pub(crate) incarnation: u64,
    pub(crate) regime: &'a Arc<Regime>,
}

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
        Some(Box::new(snapshot(cx, instance, &slot.circuit, number)?))
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
        key: circuit.key.as_str().into(),
        transition: transition.into(),
    }
}

pub(crate) fn refusal(key: &Key, error: wit::AttachError) -> AttachError {
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
