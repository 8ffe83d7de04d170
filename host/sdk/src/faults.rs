//! What happens when a component traps, never ends or hands out nonsense: its instance is dropped, a new one takes over
//! what was saved, and whoever strikes out is not asked any more.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::builder::OnFault;
use crate::circuit::{Circuit, Slot};
use crate::env::Env;
use crate::gate::View;
use crate::instance::Fault;
use crate::lease::{Lease, Standing, Successes};
use crate::machine::{Cx, Machine};
use crate::rejection::RejectionReason;
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
        let running = self.is_running(cx);
        let incarnation = self.incarnation;
        let shard_fallen = self.fallen;
        let Some(slot) = self.slots.get_mut(circuit.slot) else {
            return false;
        };
        if running && !slot.fallen {
            return true;
        }
        stand_in(cx, slot, incarnation, shard_fallen);
        false
    }

    /// Whether there is an instance; one that could not be started is tried again here, once a second at most.
    pub(crate) fn is_running(&mut self, cx: &Cx<'_>) -> bool {
        if self.instance.is_none() && !self.fallen && cx.now >= self.revive_at {
            self.rebuild(cx);
        }
        self.instance.is_some()
    }

    /// Takes note of a fault and puts a new instance in place of the old one.
    pub(crate) fn fail(&mut self, cx: &Cx<'_>, slot: Option<usize>, fault: Fault) {
        self.strike(cx, slot, fault);
        self.rebuild(cx);
    }

    fn strike(&mut self, cx: &Cx<'_>, slot: Option<usize>, fault: Fault) {
        self.fallen |= self.strikes.add(cx.now, SHARD_STRIKES);
        let slot = slot.and_then(|slot| self.slots.get_mut(slot));
        let key = slot.as_ref().map(|slot| slot.circuit.key.clone());
        if let Some(slot) = slot {
            slot.fallen |= slot.strikes.add(cx.now, CIRCUIT_STRIKES);
        }
        report(cx, key, fault);
    }

    /// Ends because each round that fails is a strike.
    fn rebuild(&mut self, cx: &Cx<'_>) {
        loop {
            self.instance = None;
            self.numbers.clear();
            self.incarnation += 1;
            for (_, slot) in self.slots.iter_mut() {
                slot.number = None;
            }
            if self.fallen {
                return self.stand_in_for_all(cx);
            }
            match cx.env.start(&self.memory) {
                Ok(instance) => self.instance = Some(instance),
                Err(fault) => {
                    report(cx, None, fault);
                    self.revive_at = cx.now.saturating_add(REVIVE_AFTER);
                    return self.stand_in_for_all(cx);
                }
            }
            match self.restore_all(cx) {
                Ok(()) => return,
                Err((slot, fault)) => self.strike(cx, Some(slot), fault),
            }
        }
    }

    fn stand_in_for_all(&mut self, cx: &Cx<'_>) {
        let (incarnation, fallen) = (self.incarnation, self.fallen);
        for (_, slot) in self.slots.iter_mut() {
            stand_in(cx, slot, incarnation, fallen);
        }
    }

    /// Brings back what was saved. What was closed is attached when it is next touched.
    fn restore_all(&mut self, cx: &Cx<'_>) -> Result<(), (usize, Fault)> {
        let incarnation = self.incarnation;
        let mut saved = Vec::new();
        for (index, slot) in self.slots.iter_mut() {
            match (&slot.saved, slot.fallen) {
                (Some(copy), false) => saved.push((index, slot.circuit.clone(), copy.clone())),
                (None, false) => forget(cx, slot, incarnation),
                (_, true) => stand_in(cx, slot, incarnation, false),
            }
        }
        for (index, circuit, copy) in saved {
            let Some(instance) = self.instance.as_mut() else {
                return Ok(());
            };
            instance.set_now(cx.now);
            let age = cx.now.saturating_sub(copy.at);
            instance
                .restore(&copy.snapshot, circuit.settings.as_str(), age)
                .and_then(|restored| match restored {
                    Ok(attachment) => self.take(cx, &circuit, &attachment, "restore"),
                    Err(error) => Err(Fault::new(
                        "restore",
                        format!("refused its own snapshot: {error:?}"),
                    )),
                })
                .map_err(|fault| (index, fault))?;
        }
        // A new instance has moved nothing, whatever it says while it takes over.
        if let Some(instance) = self.instance.as_mut() {
            drop(instance.take_told());
        }
        Ok(())
    }

    /// A cycle ends what would otherwise never end: a rejection that counts in cycles, of a circuit that is not asked
    /// for any more.
    pub(crate) fn end_cycle_waits(&mut self, cx: &Cx<'_>) {
        let (incarnation, shard_fallen) = (self.incarnation, self.fallen);
        for (_, slot) in self
            .slots
            .iter_mut()
            .filter(|(_, slot)| shard_fallen || slot.fallen)
        {
            let lease = slot.circuit.gate.read_locked().lease;
            if lease.standing == Standing::Reject(RejectionReason::Open) && lease.until.is_none() {
                publish(cx, slot, &on_fault(cx.env, &lease), incarnation, true);
            }
        }
    }

    /// What an operator may still do to a circuit that is not asked for any more. Says whether it is one.
    pub(crate) fn set_mode_of_fallen(&mut self, cx: &Cx<'_>, circuit: &Circuit, mode: Mode) -> bool {
        let (incarnation, shard_fallen) = (self.incarnation, self.fallen);
        let Some(slot) = self
            .slots
            .get_mut(circuit.slot)
            .filter(|slot| shard_fallen || slot.fallen)
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

/// Lets a gate say what holds while the component cannot be asked: a rejection that has not run out stays, and so does
/// the mode `disabled`; else what `on_fault` says where the circuit has struck out, and 'ask' where the component may
/// come back.
fn stand_in(cx: &Cx<'_>, slot: &mut Slot, incarnation: u64, shard_fallen: bool) {
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
fn forget(cx: &Cx<'_>, slot: &Slot, incarnation: u64) {
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

fn report(cx: &Cx<'_>, key: Option<Arc<str>>, fault: Fault) {
    cx.env.ledger.faults.fetch_add(1, Ordering::Relaxed);
    cx.outlet.fault(key, fault);
}
