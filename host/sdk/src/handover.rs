//! How the circuits of a shard come from one seat to another, and under other settings, while calls go on.

use std::sync::Arc;

use crate::bindings::exports::tripwit::breaker::policy as wit;
use crate::circuit::{Circuit, Key, Slot, Strikes};
use crate::clock::Stopwatch;
use crate::error::SwapError;
use crate::faults::{forget, takes_over};
use crate::instance::{Fault, Instance};
use crate::machine::{Answer, Cx, Machine, Parts, checked, refusal};
use crate::regime::Regime;
use crate::seat::{Seat, SeatId};
use crate::settings::Settings;
use crate::snapshots::{Saved, snapshot};
use crate::status::Mode;

/// How far a shard has come.
pub(crate) enum Progress {
    More,
    /// Every circuit is over. What they have left, to be dropped without the lock.
    Done(Option<Box<Seat>>),
}

/// What a circuit would go over with.
pub(crate) struct Copy {
    pub(crate) key: Key,
    /// Those that it has.
    pub(crate) now: Settings,
    /// Those that it would get.
    pub(crate) wanted: Settings,
    /// None: nothing was ever recorded of it in an instance.
    pub(crate) saved: Option<Saved>,
}

impl Machine {
    /// Lets a seat take over: new circuits come to it from now on, the others with [`move_batch`](Self::move_batch).
    pub(crate) fn seat_incoming(&mut self, mut seat: Seat) {
        seat.id = self.seat.id.next();
        seat.incarnation = self.next_incarnation();
        self.incoming = Some(seat);
    }

    /// Moves circuits over, from the place `from` on, until the time for one batch is up.
    pub(crate) fn move_batch(&mut self, cx: &Cx<'_>, from: &mut usize, watch: &Stopwatch) -> Progress {
        if self.batch(from, watch, |machine, index| machine.move_over(cx, index)) {
            return Progress::More;
        }
        let incoming = self.incoming.take();
        Progress::Done(incoming.map(|incoming| Box::new(std::mem::replace(&mut self.seat, incoming))))
    }

    fn move_over(&mut self, cx: &Cx<'_>, index: usize) {
        let (old, Some(incoming)) = (self.seat.id, &self.incoming) else {
            return;
        };
        let (new, regime) = (incoming.id, incoming.regime.clone());
        let Some(slot) = self.slots.get(index).filter(|slot| slot.seat == old) else {
            return;
        };
        let (circuit, known) = (slot.circuit.clone(), slot.number.is_some());
        if known && !slot.fallen {
            // A copy of it as it is, and the instance forgets it.
            match self.leave(cx, &circuit, |instance, number| {
                snapshot(cx, instance, &circuit, number)
            }) {
                Ok(saved) => {
                    if let Some(slot) = self.slots.get_mut(index) {
                        slot.saved = Some(Box::new(saved));
                    }
                }
                Err(fault) => return self.fail_at(cx, &circuit, fault),
            }
        }
        let keeps_own = self.seat.regime.policy.is_version_of(&regime.policy);
        if let Some(slot) = self.slots.get_mut(index) {
            reseat(slot, new, &regime, keeps_own);
        }
        self.enter(cx, &circuit);
    }

    /// Brings a circuit into the instance of its new seat.
    pub(crate) fn enter(&mut self, cx: &Cx<'_>, circuit: &Circuit) {
        let mode = circuit.gate.read_locked().lease.mode;
        if !self.is_up(cx, circuit) {
            return;
        }
        match self.restore(cx, circuit) {
            // What an instance says while it takes a circuit over is not news.
            Ok(true) => drop(self.parts(circuit.slot()).map(|parts| parts.instance.take_told())),
            Ok(false) => {
                if let Ok(Parts {
                    slot, incarnation, ..
                }) = self.parts(circuit.slot())
                {
                    forget(cx, slot, incarnation);
                }
                // Of a circuit that had struck out, only the gate knew the mode that it was in.
                if mode != Mode::Automatic {
                    self.set_mode(cx, circuit, mode);
                }
            }
            Err(fault) => self.fail_at(cx, circuit, fault),
        }
    }

    /// What is left of a swap when the instance that goes has failed: everything goes over at once, as it was saved.
    pub(crate) fn hand_over(&mut self, cx: &Cx<'_>, incoming: Seat) {
        let old = std::mem::replace(&mut self.seat, incoming);
        let (id, regime) = (self.seat.id, self.seat.regime.clone());
        let keeps_own = old.regime.policy.is_version_of(&regime.policy);
        for (_, slot) in self.slots.iter_mut().filter(|(_, slot)| slot.seat == old.id) {
            reseat(slot, id, &regime, keeps_own);
        }
        if self.seat.instance.is_none() {
            return self.stand_in_for_all(cx, id);
        }
        if let Err((slot, fault)) = self.restore_all(cx, id) {
            self.fail(cx, id, Some(slot), fault);
        }
    }

    /// Copies circuits for a trial, from the place `from` on, until the time for one batch is up. Says whether there are
    /// more.
    pub(crate) fn copy_batch(
        &mut self,
        cx: &Cx<'_>,
        from: &mut usize,
        watch: &Stopwatch,
        regime: &Regime,
        copies: &mut Vec<Copy>,
    ) -> bool {
        let keeps_own = self.seat.regime.policy.is_version_of(&regime.policy);
        self.batch(from, watch, |machine, index| {
            let circuit = machine.slots.get(index).map(|slot| slot.circuit.clone());
            let copy = circuit.and_then(|circuit| machine.copy(cx, &circuit, regime, keeps_own));
            copies.extend(copy);
        })
    }

    fn copy(&mut self, cx: &Cx<'_>, circuit: &Circuit, regime: &Regime, keeps_own: bool) -> Option<Copy> {
        let saved = self.save_now(cx, circuit);
        let slot = self.slots.get(circuit.slot())?;
        let now = slot.settings.clone();
        Some(Copy {
            key: circuit.key.clone(),
            wanted: wanted(slot, regime, keeps_own)
                .cloned()
                .unwrap_or_else(|| now.clone()),
            now,
            saved,
        })
    }

    /// A copy of the circuit as it is, or as it was saved last where the component cannot be asked; none of one that its
    /// instance does not know, which is closed and has nothing recorded.
    pub(crate) fn save_now(&mut self, cx: &Cx<'_>, circuit: &Circuit) -> Option<Saved> {
        let known = |slot: &Slot| slot.number.is_some() && !slot.fallen;
        if self.slots.get(circuit.slot()).is_some_and(known) {
            let saved = self.cross(cx, circuit, |instance, number| {
                Ok(Answer {
                    lease: None,
                    transition: None,
                    value: snapshot(cx, instance, circuit, number)?,
                })
            });
            if saved.is_some() {
                return saved;
            }
        }
        let mut saved = self.slots.get(circuit.slot())?.saved.as_deref().cloned()?;
        // Of a circuit that has struck out, only the gate knows the mode.
        saved.snapshot.mode = circuit.gate.read_locked().lease.mode.into();
        Some(saved)
    }

    /// Gives circuits their settings anew, from the place `from` on, until the time for one batch is up. Says whether there
    /// are more.
    pub(crate) fn configure_batch(
        &mut self,
        cx: &Cx<'_>,
        from: &mut usize,
        watch: &Stopwatch,
        regime: &Arc<Regime>,
    ) -> bool {
        self.seat.regime = regime.clone();
        self.batch(from, watch, |machine, index| machine.configure(cx, index, regime))
    }

    fn configure(&mut self, cx: &Cx<'_>, index: usize, regime: &Regime) {
        let Some(slot) = self.slots.get_mut(index) else {
            return;
        };
        let Some(settings) = wanted(slot, regime, true).filter(|wanted| **wanted != slot.settings) else {
            return;
        };
        let settings = settings.clone();
        // Whatever fails below, the circuit is brought back under these.
        slot.settings = settings.clone();
        // One that the instance does not know, or is not asked about, has them when it comes back.
        if slot.number.is_none() || slot.fallen {
            return;
        }
        let circuit = slot.circuit.clone();
        self.cross(cx, &circuit, |instance, number| {
            match instance.configure(number, settings.as_str())? {
                Ok(moved) => Ok(Answer::of(moved)),
                Err(error) => Err(Fault::new(
                    "configure",
                    format!("refused settings that it had taken on trial: {error:?}"),
                )),
            }
        });
    }
}

/// The settings that a circuit gets under a regime; none where it keeps its own.
fn wanted<'a>(slot: &Slot, regime: &'a Regime, keeps_own: bool) -> Option<&'a Settings> {
    (!slot.own || !keeps_own).then(|| regime.settings.of(&slot.circuit.key))
}

/// Puts a circuit in another seat, with a clean slate as far as faults go.
fn reseat(slot: &mut Slot, seat: SeatId, regime: &Regime, keeps_own: bool) {
    if let Some(settings) = wanted(slot, regime, keeps_own) {
        slot.settings = settings.clone();
        slot.own = false;
    }
    slot.seat = seat;
    slot.number = None;
    if std::mem::take(&mut slot.fallen)
        && let Some(saved) = &mut slot.saved
    {
        // Only the gate knows what an operator has said since.
        saved.snapshot.mode = slot.circuit.gate.read_locked().lease.mode.into();
    }
    slot.strikes = Strikes::default();
}

/// What is tried with a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Taken over by another policy, or another version of the same.
    Swap,
    /// Given other settings.
    Reconfigure,
}

impl Copy {
    /// Tries on an instance of nothing else whether the circuit can go this way.
    pub(crate) fn try_on(&self, trial: &mut Instance, now: u64, way: Way) -> Result<(), Refusal> {
        trial.set_now(now);
        let settings = match way {
            Way::Swap => &self.wanted,
            Way::Reconfigure => &self.now,
        };
        let attached = match &self.saved {
            Some(saved) => {
                let age = now.saturating_sub(saved.at);
                trial.restore(&saved.snapshot, settings.as_str(), age)?
            }
            None => trial.attach(&self.key, settings.as_str())?,
        };
        let attachment = attached.map_err(Refusal::Said)?;
        let mut lease = attachment.lease;
        if way == Way::Reconfigure {
            let configured = trial.configure(attachment.circuit, self.wanted.as_str())?;
            lease = configured.map_err(Refusal::Said)?.lease;
        }
        // Nothing has moved, whatever it says.
        drop(trial.take_told());
        let call = match way {
            Way::Swap => "restore",
            Way::Reconfigure => "configure",
        };
        checked(call, &lease, now, None)?;
        let problem = self
            .saved
            .as_ref()
            .map(|saved| takes_over(&saved.snapshot, &lease));
        problem
            .unwrap_or(Ok(()))
            .map_err(|problem| Fault::new(call, problem).into())
    }
}

/// Why a candidate does not take a circuit over.
pub(crate) enum Refusal {
    Said(wit::AttachError),
    Fault(Fault),
}

impl Refusal {
    /// As the error of a swap that this key stands against.
    pub(crate) fn of(self, key: &str) -> SwapError {
        match self {
            Self::Said(error) => SwapError::Circuit(refusal(&key.into(), error)),
            Self::Fault(fault) => SwapError::Faulty {
                key: key.to_owned(),
                problem: fault.text(),
            },
        }
    }
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}
