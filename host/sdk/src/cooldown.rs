//! One cool-down cycle over all circuits of a shard.

use crate::circuit::Slot;
use crate::instance::Fault;
use crate::machine::{Cx, Machine, checked, event, flush, save};
use crate::seat::SeatId;
use crate::status::Moved;

impl Machine {
    /// One cool-down cycle over the shard.
    pub(crate) fn cool_down(&mut self, cx: &Cx<'_>) -> Vec<Moved> {
        self.end_cycle_waits(cx);
        let mut moved = self.cool_down_seat(cx, self.seat.id);
        if let Some(incoming) = self.incoming.as_ref().map(|seat| seat.id) {
            moved.extend(self.cool_down_seat(cx, incoming));
        }
        moved
    }

    /// Each circuit is in one seat, and has one cycle.
    fn cool_down_seat(&mut self, cx: &Cx<'_>, id: SeatId) -> Vec<Moved> {
        if !self.is_running(cx, id) {
            return Vec::new();
        }
        match self.try_cool_down(cx, id) {
            Ok(moved) => moved,
            Err((slot, fault)) => {
                self.fail(cx, id, slot, fault);
                Vec::new()
            }
        }
    }

    fn try_cool_down(&mut self, cx: &Cx<'_>, id: SeatId) -> Result<Vec<Moved>, (Option<usize>, Fault)> {
        let seat = match &mut self.incoming {
            Some(seat) if seat.id == id => seat,
            _ => &mut self.seat,
        };
        let incarnation = seat.incarnation;
        let Some(instance) = seat.instance.as_mut() else {
            return Ok(Vec::new());
        };
        instance.set_now(cx.now);
        let mut moves = Vec::new();
        for (index, slot) in self.slots.iter_mut().filter(|(_, slot)| slot.seat == id) {
            let Some(number) = slot.number else { continue };
            let view = slot.circuit.gate.read_locked();
            let flushed = flush(cx, instance, &slot.circuit, number, &view, &mut moves)
                .map_err(|fault| (Some(index), fault))?;
            if let Some(lease) = flushed {
                save(cx, instance, slot, &lease, number).map_err(|fault| (Some(index), fault))?;
                slot.circuit.publish_locked(cx, &lease, incarnation, false);
            }
        }
        let changed = instance
            .cool_down(seat.numbers.len())
            .map_err(|fault| (None, fault))?;
        let mut all = Vec::with_capacity(changed.len());
        for (number, moved) in changed {
            let index = seat.numbers.get(number);
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
                key: circuit.key.as_str().into(),
                transition: transition.as_ref().map(|event| event.transition.clone()),
            });
            moves.extend(transition);
        }
        let known = |slot: &&Slot| slot.seat == id && slot.number.is_some();
        for slot in self.slots.iter().filter(known) {
            slot.circuit.gate.open_locked();
        }
        cx.outlet.push(&seat.regime, instance.take_told(), moves);
        Ok(all)
    }
}
