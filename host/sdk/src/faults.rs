//! What happens when a component traps, never ends or hands out nonsense: its instance is dropped, a new one takes over
//! what was saved, and whoever strikes out is not asked any more.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::bindings::exports::tripwit::breaker::policy::Snapshot;
use crate::bindings::tripwit::breaker::types;
use crate::builder::OnFault;
use crate::circuit::{Circuit, Key, Slot};
use crate::env::Env;
use crate::gate::View;
use crate::instance::Fault;
use crate::lease::{Lease, Standing, Successes};
use crate::machine::{Cx, Machine, Parts};
use crate::numbers::Numbers;
use crate::regime::Regime;
use crate::rejection::RejectionReason;
use crate::seat::SeatId;
use crate::status::{Mode, State};

/// So many faults of one circuit within a minute, and it is not asked for any more.
const CIRCUIT_STRIKES: usize = 3;
/// So many faults of a shard within a minute, and none of its circuits is.
const SHARD_STRIKES: usize = 10;
/// How long to wait before a component that does not start is started again.
const REVIVE_AFTER: u64 = 1_000_000_000;

impl Machine {
    /// Whether the component can be asked about a circuit. Where it cannot, the gate says what holds instead.
    pub(crate) fn is_up(&mut self, cx: &Cx<'_>, circuit: &Circuit) -> bool {
        let id = self.seat_of(circuit).id;
        let running = self.is_running(cx, id);
        // It may have come to another seat in between.
        let seat = self.seat_of(circuit);
        let (incarnation, fallen) = (seat.incarnation, seat.fallen);
        let Some(slot) = self.slots.get_mut(circuit.slot()) else {
            return false;
        };
        if running && !slot.fallen {
            return true;
        }
        stand_in(cx, slot, incarnation, fallen);
        false
    }

    /// Whether there is an instance; one that could not be started is tried again here, once a second at most.
    pub(crate) fn is_running(&mut self, cx: &Cx<'_>, id: SeatId) -> bool {
        let seat = self.seat_mut(id);
        if seat.instance.is_none() && !seat.fallen && cx.now >= seat.revive_at {
            self.rebuild(cx, id);
        }
        self.seat_mut(id).instance.is_some()
    }

    /// Takes note of a fault that came up for one circuit, and puts a new instance in place of the old one.
    pub(crate) fn fail_at(&mut self, cx: &Cx<'_>, circuit: &Circuit, fault: Fault) {
        let id = self.seat_of(circuit).id;
        self.fail(cx, id, Some(circuit.slot()), fault);
    }

    /// Takes note of a fault and puts a new instance in place of the old one.
    pub(crate) fn fail(&mut self, cx: &Cx<'_>, id: SeatId, slot: Option<usize>, fault: Fault) {
        self.strike(cx, id, slot, fault);
        self.rebuild(cx, id);
    }

    pub(crate) fn strike(&mut self, cx: &Cx<'_>, id: SeatId, slot: Option<usize>, fault: Fault) {
        let slot = slot.and_then(|slot| self.slots.get_mut(slot));
        let key = slot.as_ref().map(|slot| slot.circuit.key.clone());
        if let Some(slot) = slot {
            slot.fallen |= slot.strikes.add(cx.now, CIRCUIT_STRIKES);
        }
        let seat = self.seat_mut(id);
        seat.fallen |= seat.strikes.add(cx.now, SHARD_STRIKES);
        report(cx, &seat.regime, key, fault);
    }

    /// Ends because each round that fails is a strike.
    pub(crate) fn rebuild(&mut self, cx: &Cx<'_>, id: SeatId) {
        if let Some(incoming) = self.incoming.take_if(|incoming| incoming.id != id) {
            // The one that goes is not started again: all that it still has goes over at once.
            return self.hand_over(cx, incoming);
        }
        loop {
            let incarnation = self.next_incarnation();
            let seat = self.seat_mut(id);
            seat.instance = None;
            seat.numbers = Numbers::default();
            seat.incarnation = incarnation;
            let (fallen, memory, regime) = (seat.fallen, seat.memory.clone(), seat.regime.clone());
            for (_, slot) in self.slots.iter_mut().filter(|(_, slot)| slot.seat == id) {
                slot.number = None;
            }
            if fallen {
                return self.stand_in_for_all(cx, id);
            }
            match regime.start(cx.env, &memory) {
                Ok(instance) => self.seat_mut(id).instance = Some(instance),
                Err(fault) => {
                    report(cx, &regime, None, fault);
                    self.seat_mut(id).revive_at = cx.now.saturating_add(REVIVE_AFTER);
                    return self.stand_in_for_all(cx, id);
                }
            }
            match self.restore_all(cx, id) {
                Ok(()) => return,
                Err((slot, fault)) => self.strike(cx, id, Some(slot), fault),
            }
        }
    }

    pub(crate) fn stand_in_for_all(&mut self, cx: &Cx<'_>, id: SeatId) {
        let seat = self.seat_mut(id);
        let (incarnation, fallen) = (seat.incarnation, seat.fallen);
        for (_, slot) in self.slots.iter_mut().filter(|(_, slot)| slot.seat == id) {
            stand_in(cx, slot, incarnation, fallen);
        }
    }

    /// Brings back what was saved, of the circuits of a seat that its instance does not know. What was closed is attached
    /// when it is next touched.
    pub(crate) fn restore_all(&mut self, cx: &Cx<'_>, id: SeatId) -> Result<(), (usize, Fault)> {
        let incarnation = self.seat_mut(id).incarnation;
        let mut saved = Vec::new();
        let unknown = |slot: &Slot| slot.seat == id && slot.number.is_none();
        for (index, slot) in self.slots.iter_mut().filter(|(_, slot)| unknown(slot)) {
            match (&slot.saved, slot.fallen) {
                (Some(_), false) => saved.push((index, slot.circuit.clone())),
                (None, false) => forget(cx, slot, incarnation),
                (_, true) => stand_in(cx, slot, incarnation, false),
            }
        }
        for (index, circuit) in saved {
            self.restore(cx, &circuit).map_err(|fault| (index, fault))?;
        }
        // A new instance has moved nothing, whatever it says while it takes over.
        if let Some(instance) = &mut self.seat_mut(id).instance {
            drop(instance.take_told());
        }
        Ok(())
    }

    /// Hands what was saved of a circuit to the instance that decides on it. Says whether there was anything.
    pub(crate) fn restore(&mut self, cx: &Cx<'_>, circuit: &Circuit) -> Result<bool, Fault> {
        let Parts { instance, slot, .. } = self.parts(circuit.slot())?;
        let Some(copy) = &slot.saved else {
            return Ok(false);
        };
        let age = cx.now.saturating_sub(copy.at);
        instance.set_now(cx.now);
        let attachment = match instance.restore(&copy.snapshot, slot.settings.as_str(), age)? {
            Ok(attachment) => attachment,
            Err(error) => return Err(Fault::new("restore", format!("refused a snapshot: {error:?}"))),
        };
        takes_over(&copy.snapshot, &attachment.lease).map_err(|problem| Fault::new("restore", problem))?;
        self.take(cx, circuit, &attachment, "restore")?;
        let stays = circuit.gate.read_locked().lease.is_worth_saving();
        let Parts { slot, .. } = self.parts(circuit.slot())?;
        slot.saved.take_if(|_| !stays);
        Ok(true)
    }

    /// A cycle ends what would otherwise never end: a rejection that counts in cycles, of a circuit that is not asked
    /// for any more.
    pub(crate) fn end_cycle_waits(&mut self, cx: &Cx<'_>) {
        let (id, incarnation, all) = (self.seat.id, self.seat.incarnation, self.seat.fallen);
        let incoming = self.incoming.as_ref();
        let incoming = incoming.map(|seat| (seat.id, seat.incarnation, seat.fallen));
        for (_, slot) in self.slots.iter_mut() {
            let of_seat = |seat: &(SeatId, u64, bool)| seat.0 == slot.seat;
            let (_, incarnation, all) = incoming.filter(of_seat).unwrap_or((id, incarnation, all));
            if !all && !slot.fallen {
                continue;
            }
            let lease = slot.circuit.gate.read_locked().lease;
            if lease.standing == Standing::Reject(RejectionReason::Open) && lease.until.is_none() {
                publish(cx, slot, &on_fault(cx.env, &lease), incarnation, true);
            }
        }
    }

    /// What an operator may still do to a circuit that is not asked for any more. Says whether it is one.
    pub(crate) fn set_mode_of_fallen(&mut self, cx: &Cx<'_>, circuit: &Circuit, mode: Mode) -> bool {
        let seat = self.seat_of(circuit);
        let (incarnation, all) = (seat.incarnation, seat.fallen);
        let Some(slot) = self
            .slots
            .get_mut(circuit.slot())
            .filter(|slot| all || slot.fallen)
        else {
            return false;
        };
        let before = circuit.gate.read_locked().lease;
        let mut lease = Lease {
            mode,
            ..on_fault(cx.env, &before)
        };
        match mode {
            Mode::ForcedOpen => lease.standing = Standing::Reject(RejectionReason::ForcedOpen),
            Mode::Disabled => lease.standing = Standing::Pass,
            Mode::Automatic | Mode::Shadow => {}
        }
        publish(cx, slot, &lease, incarnation, true);
        true
    }
}

/// Whether a lease is one of the circuit that the snapshot is of: an open circuit is not closed by taking it over, nor a
/// closed one opened, and an operator's mode stays.
pub(crate) fn takes_over(snapshot: &Snapshot, lease: &types::Lease) -> Result<(), String> {
    let is_closed = |state| state == types::State::Closed;
    if is_closed(snapshot.state) != is_closed(lease.state) {
        return Err(format!(
            "took a circuit over as {} that was {}",
            State::from(lease.state),
            State::from(snapshot.state)
        ));
    }
    if snapshot.mode != lease.mode {
        return Err(format!(
            "took a circuit over in mode {} that was in mode {}",
            Mode::from(lease.mode),
            Mode::from(snapshot.mode)
        ));
    }
    Ok(())
}

/// Lets a gate say what holds while the component cannot be asked: a rejection that has not run out stays, and so does
/// the mode `disabled`; else what `on_fault` says where the circuit has struck out, and 'ask' where the component may
/// come back.
fn stand_in(cx: &Cx<'_>, slot: &Slot, incarnation: u64, shard_fallen: bool) {
    let View { lease, .. } = slot.circuit.gate.read_locked();
    let fallen = slot.fallen || shard_fallen;
    if lease.rejects_at(cx.now) || lease.mode == Mode::Disabled {
        publish(cx, slot, &lease, incarnation, fallen);
    } else if fallen {
        publish(cx, slot, &on_fault(cx.env, &lease), incarnation, true);
    } else {
        let unknown = Lease {
            generation: 0,
            standing: Standing::Ask,
            until: None,
            successes: Successes::Each,
            ..lease
        };
        publish(cx, slot, &unknown, incarnation, false);
    }
}

/// Lets whoever comes next attach a closed circuit again.
pub(crate) fn forget(cx: &Cx<'_>, slot: &Slot, incarnation: u64) {
    let View { lease, .. } = slot.circuit.gate.read_locked();
    let unknown = Lease {
        call_timeout: lease.call_timeout,
        slow_after: lease.slow_after,
        ..Lease::UNKNOWN
    };
    publish(cx, slot, &unknown, incarnation, false);
    slot.circuit.recorded.store(false, Ordering::Relaxed);
}

fn publish(cx: &Cx<'_>, slot: &Slot, lease: &Lease, incarnation: u64, at_fault: bool) {
    let gate = &slot.circuit.gate;
    // What was kept back is lost with the instance that it was meant for.
    gate.close_locked();
    slot.circuit.publish_locked(cx, lease, incarnation, at_fault);
    gate.open_locked();
}

/// What holds for a circuit that is not asked for any more. Calls still have the time-out that they had.
fn on_fault(env: &Env, last: &Lease) -> Lease {
    Lease {
        mode: last.mode,
        state: State::Closed,
        generation: last.generation,
        standing: match env.on_fault {
            OnFault::Admit => Standing::Pass,
            OnFault::Reject => Standing::Reject(RejectionReason::Other),
        },
        until: None,
        successes: Successes::Never,
        slow_after: None,
        call_timeout: last.call_timeout,
    }
}

fn report(cx: &Cx<'_>, regime: &Arc<Regime>, key: Option<Key>, fault: Fault) {
    cx.env.ledger.faults.fetch_add(1, Ordering::Relaxed);
    cx.outlet.fault(regime, key, fault);
}
