//! The rules of a crossing, as the host's shard keeps them.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use loom::sync::atomic::AtomicU64;
use loom::sync::{Mutex, MutexGuard};

use crate::component::Component;
use crate::gate::{Admission, Answer, Authority, Ended, Gate, Held, Keeping, View, Weight};
use crate::words::RejectionReason;

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Well.
    Success,
    /// Not well.
    Failure,
}

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// It asks to make a call.
    Acquire,
    /// Its call ends. Where it has no permit nothing happens.
    Settle(Outcome),
    /// It opens the circuit.
    Trip,
    /// It closes it.
    Reset,
    /// Its crossing finds the component failed, and starts another instance.
    Rebuild,
    /// It looks at the counts.
    Inspect,
    /// It is the clock, and moves on by one instant.
    Tick,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Said {
    Admitted(u64),
    Rejected(RejectionReason),
    Counted(u32),
    Nothing,
}

/// A rule that the shard does not keep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flaw {
    /// It keeps them all.
    #[default]
    None,
    /// The counter is opened before the new lease is published.
    OpensBeforePublishing,
    /// The counter is not closed over the crossing.
    LeavesCounterOpen,
    /// A success is kept back by its count alone, whatever the epoch of the lease that it was decided by.
    ComparesCountOnly,
    /// A call is settled by the lease that admitted it.
    SettlesByAdmission,
    /// The success of a call that was admitted plainly is dropped, whatever lease stands now.
    TrustsPlainLease,
    /// A call is admitted by the lease that the thread saw last.
    AdmitsByMemory,
    /// The lease is published after the lock is given back.
    UnlocksBeforePublishing,
    /// The lease that comes of what was kept back is published at once, and the counter opened.
    PublishesMidway,
    /// Whoever takes the lock does not look at the lease again.
    LooksOnce,
    /// The lease of another instance is published as one of the first.
    ForgetsIncarnation,
    /// A look at the counts does not hand in what was kept back.
    InspectsUnsettled,
}

/// One circuit, its component and its clock.
pub(crate) struct Shard {
    gate: Gate,
    machine: Mutex<Component>,
    clock: AtomicU64,
    flaw: Flaw,
    /// How often the component was asked for a call. Not a part of the model.
    asked: AtomicU32,
}

/// What a thread remembers.
#[derive(Clone, Copy, Default)]
pub(crate) struct Caller {
    permit: Option<Admission>,
    plain: Option<Held>,
    admitted_by: Option<View>,
    saw: Option<View>,
}

impl Shard {
    pub(crate) fn new(component: Component, flaw: Flaw) -> Self {
        Self {
            gate: Gate::new(&component.lease(0), component.incarnation()),
            machine: Mutex::new(component),
            clock: AtomicU64::new(0),
            flaw,
            asked: AtomicU32::new(0),
        }
    }

    /// A thread that was given the permit that calls share before anything began.
    pub(crate) fn caller_with_permit(&self) -> Caller {
        let view = self.gate.read_locked();
        let Answer::Admit(permit) = view.answer(|| 0) else {
            return Caller::default();
        };
        Caller {
            permit: Some(permit),
            plain: self.gate.admit_plainly(|| 0),
            admitted_by: Some(view),
            saw: Some(view),
        }
    }

    pub(crate) fn run(&self, caller: &mut Caller, op: Op) -> Said {
        match op {
            Op::Acquire => self.acquire(caller),
            Op::Settle(outcome) => match caller.permit.take() {
                Some(permit) => self.settle(caller, &permit, outcome),
                None => Said::Nothing,
            },
            Op::Trip => self.command(Component::trip),
            Op::Reset => self.command(Component::reset),
            Op::Rebuild => self.rebuild(),
            Op::Inspect => self.inspect(),
            Op::Tick => {
                self.clock.fetch_add(1, Relaxed);
                Said::Nothing
            }
        }
    }

    /// What the component holds once all is handed in, at this moment. The lease that stands must be that which it gave.
    pub(crate) fn at_rest(&self) -> Component {
        let now = self.now();
        let machine = self.lock();
        let view = self.gate.read().unwrap_or_else(|| self.gate.read_locked());
        assert_eq!(view.lease, machine.last_lease(), "an older lease stands");
        let mut component = machine.clone();
        drop(machine);
        self.hand_in(&mut component, &view);
        component.as_of(now)
    }

    pub(crate) fn asked(&self) -> u32 {
        self.asked.load(Relaxed)
    }

    fn acquire(&self, caller: &mut Caller) -> Said {
        caller.plain = None;
        if self.is_plain_enough()
            && let Some(held) = self.gate.admit_plainly(|| self.now())
            && let Some(admission) = held.admission()
        {
            caller.permit = Some(admission);
            caller.plain = Some(held);
            return Said::Admitted(admission.ticket);
        }
        if self.is_plain_enough()
            && let Some((reason, _)) = self.gate.reject_plainly(|| self.now())
        {
            return Said::Rejected(reason);
        }
        let remembered = caller.saw.filter(|_| self.flaw == Flaw::AdmitsByMemory);
        if let Some(view) = remembered.or_else(|| self.gate.read()) {
            caller.saw = Some(view);
            if let Some(said) = decided(caller, view, view.answer(|| self.now())) {
                return said;
            }
        }
        let machine = self.lock();
        let now = self.now();
        let view = self.gate.read_locked();
        if self.flaw != Flaw::LooksOnce
            && let Some(said) = decided(caller, view, view.answer(|| now))
        {
            return said;
        }
        self.asked.fetch_add(1, Relaxed);
        let (asked, view) = self.cross(machine, now, |component| component.acquire(now));
        caller.saw = Some(view);
        match asked {
            Ok(ticket) => {
                caller.admitted_by = Some(view);
                caller.permit = Some(Admission {
                    ticket,
                    generation: view.lease.generation,
                    incarnation: view.incarnation,
                });
                Said::Admitted(ticket)
            }
            Err(reason) => Said::Rejected(reason),
        }
    }

    /// Whether the shortest way is taken, where there is one. Most flaws lie on the longer one.
    fn is_plain_enough(&self) -> bool {
        matches!(self.flaw, Flaw::None | Flaw::TrustsPlainLease)
    }

    fn settle(&self, caller: &Caller, permit: &Admission, outcome: Outcome) -> Said {
        let stands =
            |held| self.flaw == Flaw::TrustsPlainLease || self.gate.succeed_plainly(held, |_| self.now());
        if self.is_plain_enough() && outcome == Outcome::Success && caller.plain.is_some_and(stands) {
            return Said::Nothing;
        }
        if self.settled_by_lease(caller, permit, outcome) {
            return Said::Nothing;
        }
        let machine = self.lock();
        let now = self.now();
        if self.gate.read_locked().voids(permit) {
            return Said::Nothing;
        }
        self.cross(machine, now, |component| {
            component.settle(now, permit.ticket, outcome == Outcome::Failure);
        });
        Said::Nothing
    }

    fn settled_by_lease(&self, caller: &Caller, permit: &Admission, outcome: Outcome) -> bool {
        let ended = |view: &View| Ended {
            outcome: match outcome {
                Outcome::Success => crate::gate::Outcome::Success,
                Outcome::Failure => crate::gate::Outcome::Failure,
            },
            took: None,
            at: view.weighs_by_the_clock().then(|| self.now()),
        };
        if self.flaw == Flaw::None {
            return self.gate.settle(permit, ended).is_some();
        }
        // The same, but for the flaw, and without a second attempt where the first fails.
        let by_admission = caller
            .admitted_by
            .filter(|_| self.flaw == Flaw::SettlesByAdmission);
        let view = by_admission.or_else(|| self.gate.read());
        let Some(view) = view else { return false };
        match view.weigh(permit, ended(&view)) {
            Weight::Void | Weight::Nothing => true,
            Weight::Tell => false,
            Weight::Keep { allowed } => {
                let now = self.gate.read().filter(|_| self.flaw == Flaw::ComparesCountOnly);
                let epoch = now.map_or(view.epoch, |now| now.epoch);
                self.gate.keep(epoch, allowed) == Keeping::Kept
            }
        }
    }

    fn command(&self, command: impl FnOnce(&mut Component, u64)) -> Said {
        let machine = self.lock();
        let now = self.now();
        self.cross(machine, now, |component| command(component, now));
        Said::Nothing
    }

    /// What was kept back is lost with the instance.
    fn rebuild(&self) -> Said {
        let mut machine = self.lock();
        let now = self.now();
        self.gate.close_locked();
        machine.rebuild(now);
        self.publish(&machine, now);
        self.gate.open_locked();
        Said::Nothing
    }

    fn inspect(&self) -> Said {
        let mut machine = self.lock();
        let now = self.now();
        if self.flaw == Flaw::InspectsUnsettled {
            return Said::Counted(machine.inspect(now));
        }
        let (counted, _) = self.cross(machine, now, |component| component.inspect(now));
        Said::Counted(counted)
    }

    /// Close the counter, settle what it held, cross, publish the lease, open the counter, unlock, return.
    fn cross<R>(
        &self,
        mut machine: MutexGuard<'_, Component>,
        now: u64,
        call: impl FnOnce(&mut Component) -> R,
    ) -> (R, View) {
        let view = self.gate.read_locked();
        let kept = self.hand_in(&mut machine, &view);
        if kept > 0 && self.flaw == Flaw::PublishesMidway {
            self.publish(&machine, now);
            self.gate.open_locked();
        }
        let answer = call(&mut machine);
        if self.flaw == Flaw::OpensBeforePublishing {
            self.gate.open_locked();
        }
        if self.flaw == Flaw::UnlocksBeforePublishing {
            let component = machine.clone();
            drop(machine);
            self.publish(&component, now);
            self.gate.open_locked();
            return (answer, self.gate.read_locked());
        }
        self.publish(&machine, now);
        if self.flaw != Flaw::OpensBeforePublishing {
            self.gate.open_locked();
        }
        let view = self.gate.read_locked();
        drop(machine);
        (answer, view)
    }

    fn publish(&self, component: &Component, now: u64) {
        let incarnation = if self.flaw == Flaw::ForgetsIncarnation {
            1
        } else {
            component.incarnation()
        };
        self.gate
            .publish_locked(&component.lease(now), incarnation, Authority::Lease);
    }

    /// Closes the counter and hands in what it held.
    fn hand_in(&self, component: &mut Component, view: &View) -> u32 {
        let kept = if self.flaw == Flaw::LeavesCounterOpen {
            self.gate.kept()
        } else {
            self.gate.close_locked()
        };
        if let crate::lease::Standing::Admit(ticket) = view.lease.standing
            && kept > 0
        {
            component.settle_successes(ticket, kept);
        }
        kept
    }

    #[expect(clippy::unwrap_used, reason = "a model fails by panicking")]
    fn lock(&self) -> MutexGuard<'_, Component> {
        self.machine.lock().unwrap()
    }

    /// One clock for all threads: each reading is the latest, and orders nothing else.
    fn now(&self) -> u64 {
        self.clock.fetch_add(0, Relaxed)
    }
}

/// What a lease says of a call that wants to begin, if it does.
fn decided(caller: &mut Caller, view: View, answer: Answer) -> Option<Said> {
    match answer {
        Answer::Admit(permit) => {
            caller.permit = Some(permit);
            caller.admitted_by = Some(view);
            Some(Said::Admitted(permit.ticket))
        }
        Answer::Reject { reason, .. } => Some(Said::Rejected(reason)),
        Answer::Pass | Answer::Ask => None,
    }
}
