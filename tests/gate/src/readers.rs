//! Readers beside a writer: each sees a lease as it was published, or none.

use std::sync::Arc as Plain;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use loom::sync::Arc;

use crate::gate::{Admission, Authority, Gate, View};
use crate::lease::{Lease, Standing, Successes};
use crate::scenario::builder;
use crate::sync::{Weakness, weaken};
use crate::words::{Mode, State};

/// How many leases are published while how many readers look, and how many of a lease's words tell one from another.
#[derive(Clone, Copy, Debug)]
pub struct Publishing {
    /// So many leases, one after another.
    pub leases: u64,
    /// So many readers look once each, beside the thread that publishes.
    pub readers: usize,
    /// Whether all words of a lease change with it, or three: more leases and readers can then be looked at.
    pub all_words: bool,
    /// Whether they are plain leases, and the readers are calls that they admit.
    pub plain: bool,
}

/// Checks that no reader sees parts of two leases, or an epoch that is not the lease's. Answers the number of executions.
///
/// # Panics
///
/// In the first execution where one does.
#[must_use]
pub fn readers_see_whole_leases(publishing: Publishing, weakness: Weakness, preemptions: usize) -> u64 {
    let executions = Plain::new(AtomicU64::new(0));
    let counted = executions.clone();
    weaken(weakness);
    builder(preemptions).check(move || {
        counted.fetch_add(1, Relaxed);
        let gate = Arc::new(Gate::new(&lease(1, publishing), incarnation(1, publishing)));
        let readers: Vec<_> = (0..publishing.readers)
            .map(|_| {
                let gate = gate.clone();
                loom::thread::spawn(move || look(&gate, publishing))
            })
            .collect();
        for number in 2..2 + publishing.leases {
            gate.close_locked();
            gate.publish_locked(
                &lease(number, publishing),
                incarnation(number, publishing),
                Authority::Lease,
            );
            gate.open_locked();
        }
        for reader in readers {
            if let Err(panic) = reader.join() {
                std::panic::resume_unwind(panic);
            }
        }
        assert!(gate.read().is_some(), "the gate is at rest and cannot be read");
    });
    weaken(Weakness::None);
    executions.load(Relaxed)
}

fn look(gate: &Gate, publishing: Publishing) {
    if publishing.plain {
        if let Some(admission) = gate.admit_plainly(|| 0).and_then(|held| held.admission()) {
            let number = admission.ticket;
            let expected = Admission {
                ticket: number,
                generation: lease(number, publishing).generation,
                incarnation: incarnation(number, publishing),
            };
            assert_eq!(admission, expected, "{TORN}");
        }
    } else if let Some(view) = gate.read() {
        whole(&view, publishing);
    }
}

const TORN: &str = "a reader saw parts of two leases";

fn whole(view: &View, publishing: Publishing) {
    let expected = View {
        epoch: view.epoch,
        lease: lease(view.epoch, publishing),
        incarnation: incarnation(view.epoch, publishing),
        at_fault: false,
    };
    assert_eq!(*view, expected, "{TORN}");
}

/// The lease of an epoch.
fn lease(number: u64, publishing: Publishing) -> Lease {
    let of_clock = !publishing.plain;
    let rest = |number| (of_clock && publishing.all_words).then_some(number);
    Lease {
        mode: Mode::Automatic,
        state: if number.is_multiple_of(2) {
            State::Open
        } else {
            State::Closed
        },
        generation: if publishing.all_words { number } else { 0 },
        standing: Standing::Admit(number),
        until: of_clock.then_some(number),
        successes: if publishing.plain {
            Successes::Never
        } else {
            Successes::UpTo {
                count: 1,
                before: rest(number),
            }
        },
        slow_after: rest(number),
        call_timeout: rest(number),
    }
}

fn incarnation(number: u64, publishing: Publishing) -> u64 {
    if publishing.all_words { number } else { 0 }
}
