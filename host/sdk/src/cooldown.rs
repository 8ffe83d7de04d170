//! One cool-down cycle over all circuits of a shard.

use crate::instance::Fault;
use crate::machine::{Cx, Machine, checked, event, flush, save};
use crate::status::Moved;

impl Machine {
    /// One cool-down cycle over the shard.
    pub(crate) fn cool_down(&mut self, cx: &Cx<'_>) -> Vec<Moved> {
        self.end_cycle_waits(cx);
        if !self.is_running(cx) {
            return Vec::new();
        }
        match self.try_cool_down(cx) {
            Ok(moved) => moved,
            Err((slot, fault)) => {
                self.fail(cx, slot, fault);
                Vec::new()
            }
        }
    }

    fn try_cool_down(&mut self, cx: &Cx<'_>) -> Result<Vec<Moved>, (Option<usize>, Fault)> {
        let incarnation = self.incarnation;
        let Some(instance) = self.instance.as_mut() else {
            return Ok(Vec::new());
        };
        instance.set_now(cx.now);
        let mut moves = Vec::new();
        for (index, slot) in self.slots.iter_mut() {
            let Some(number) = slot.number else { continue };
            let view = slot.circuit.gate.read_locked();
            let flushed = flush(cx, instance, &slot.circuit, number, &view, &mut moves)
                .map_err(|fault| (Some(index), fault))?;
            if let Some(lease) = flushed {
                save(cx, instance, slot, &lease, number).map_err(|fault| (Some(index), fault))?;
                slot.circuit.publish_locked(cx, &lease, incarnation, false);
            }
        }
        let changed = instance.cool_down().map_err(|fault| (None, fault))?;
        let mut all = Vec::with_capacity(changed.len());
        for (number, moved) in changed {
            let index = self.numbers.get(&number).copied();
            let Some(slot) = index.and_then(|index| self.slots.get_mut(index)) else {
                return Err((
                    None,
                    Fault::new("cool-down", format!("moved circuit {number}, which is unknown")),
                ));
            };
            let at = |fault| (index, fault);
            let circuit = slot.circuit.clone();
            let generation = circuit.gate.read_locked().lease.generation;
            let lease = checked("cool-down", &moved.lease, cx.now, Some(generation)).map_err(at)?;
            save(cx, instance, slot, &lease, number).map_err(at)?;
            circuit.publish_locked(cx, &lease, incarnation, false);
            let transition = moved.transition.map(|transition| event(&circuit, transition));
            all.push(Moved {
                key: circuit.key.clone(),
                transition: transition.as_ref().map(|event| event.transition.clone()),
            });
            moves.extend(transition);
        }
        for slot in self.slots.iter().filter(|slot| slot.number.is_some()) {
            slot.circuit.gate.open_locked();
        }
        cx.outlet.push(instance.take_told(), moves);
        Ok(all)
    }
}
