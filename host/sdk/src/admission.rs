//! How one call begins and ends: by the lease alone where that decides, else by asking the component under the lock.

use std::sync::atomic::Ordering;

use crate::bindings::exports::tripwit::breaker::policy as wit;
use crate::bindings::tripwit::breaker::types;
use crate::builder::OnFault;
use crate::circuit::Circuit;
use crate::classify::Verdict;
use crate::clock::nanoseconds;
use crate::env::Env;
use crate::gate::{Admission, Answer as Decision, Ended, Held, Outcome, View};
use crate::machine::{Answer, Cx, Machine};
use crate::rejection::{Rejection, RejectionReason};
use crate::status::Mode;
use crate::telemetry::clip;

/// How a call ended.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) outcome: Outcome,
    pub(crate) retry_after: Option<u64>,
    pub(crate) cause: Option<String>,
}

impl Report {
    /// An end of which nothing else is known.
    pub(crate) fn of(outcome: Outcome) -> Self {
        Self {
            outcome,
            retry_after: None,
            cause: None,
        }
    }
}

impl From<Verdict> for Report {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Success => Self::of(Outcome::Success),
            Verdict::Ignored => Self::of(Outcome::Ignored),
            Verdict::Failure(failure) => Self {
                outcome: Outcome::Failure,
                retry_after: failure.retry_after.map(nanoseconds),
                cause: failure.cause,
            },
        }
    }
}

impl Held {
    /// How long the call ran.
    fn took(&self, now: u64) -> Option<u64> {
        self.started().map(|started| now.saturating_sub(started))
    }

    /// A call that ran too long is a time-out, whatever came of it; one that says nothing still says nothing.
    fn outcome(&self, outcome: Outcome, took: Option<u64>) -> Outcome {
        let late = matches!((took, self.call_timeout()), (Some(took), Some(limit)) if took > limit);
        match outcome {
            Outcome::Success | Outcome::Failure if late => Outcome::Timeout,
            Outcome::Success | Outcome::Failure | Outcome::Timeout | Outcome::Ignored => outcome,
        }
    }
}

/// What a lease's answer means for a call that wants to begin.
#[inline(always)]
pub(crate) fn decided(
    env: &Env,
    circuit: &Circuit,
    view: View,
    answer: Decision,
    now: impl FnOnce() -> u64,
) -> Result<Held, Rejection> {
    let lease = view.lease;
    match answer {
        Decision::Admit(admission) => {
            let started = lease.measures().then(now);
            Ok(Held::not_plainly(admission, started, lease.call_timeout))
        }
        Decision::Pass | Decision::Ask => Ok(Held::unrecorded(lease.call_timeout)),
        Decision::Reject { .. } if lease.mode == Mode::Shadow => {
            circuit.would_have_rejected.fetch_add(1, Ordering::Relaxed);
            env.ledger.shadow_rejections.fetch_add(1, Ordering::Relaxed);
            Ok(Held::unrecorded(lease.call_timeout))
        }
        Decision::Reject {
            reason: RejectionReason::Other,
            ..
        } if view.at_fault => Err(Rejection::at_fault(&circuit.key)),
        Decision::Reject { reason, retry_after } => Err(Rejection::new(&circuit.key, reason, retry_after)),
    }
}

pub(crate) fn acquire_locked(
    machine: &mut Machine,
    cx: &Cx<'_>,
    circuit: &Circuit,
) -> Result<Held, Rejection> {
    let view = circuit.gate.read_locked();
    let answer = view.answer(|| cx.now);
    if answer != Decision::Ask && (!cx.env.ignore_leases || view.at_fault) {
        return decided(cx.env, circuit, view, answer, || cx.now);
    }
    let asked = machine.cross(cx, circuit, |instance, number| {
        let admission = instance.acquire(number)?;
        Ok(Answer {
            lease: Some(admission.lease),
            transition: admission.transition,
            value: admission.decision,
        })
    });
    let view = circuit.gate.read_locked();
    let answer = match asked {
        Some(wit::Decision::Admit(ticket)) => Decision::Admit(Admission {
            ticket,
            generation: view.lease.generation,
            incarnation: view.incarnation,
        }),
        Some(wit::Decision::Pass) => Decision::Pass,
        Some(wit::Decision::Reject(rejection)) => Decision::Reject {
            reason: rejection.reason.into(),
            retry_after: rejection.retry_after,
        },
        // It failed: what holds without it is in the gate, and where that says 'ask', `on_fault` says.
        None => match (view.answer(|| cx.now), cx.env.on_fault) {
            (Decision::Ask, OnFault::Admit) => Decision::Pass,
            (Decision::Ask, OnFault::Reject) if view.lease.mode == Mode::Shadow => Decision::Reject {
                reason: RejectionReason::Other,
                retry_after: None,
            },
            (Decision::Ask, OnFault::Reject) => return Err(Rejection::at_fault(&circuit.key)),
            (answer, OnFault::Admit | OnFault::Reject) => answer,
        },
    };
    decided(cx.env, circuit, view, answer, || cx.now)
}

/// How the call ended, if the lease as it is now settles it, so that the component need not be told.
#[inline(always)]
pub(crate) fn settled_by_lease(
    env: &Env,
    circuit: &Circuit,
    held: &Held,
    admission: &Admission,
    outcome: Outcome,
) -> Option<Outcome> {
    let settled = circuit.gate.settle(admission, |view| {
        // Only a success can depend on the clock, and only under some leases.
        let by_clock =
            outcome == Outcome::Success && (held.started().is_some() || view.weighs_by_the_clock());
        let at = (by_clock && !view.voids(admission)).then(|| env.clock.monotonic());
        let took = at.and_then(|at| held.took(at));
        let outcome = held.outcome(outcome, took);
        Ended { outcome, took, at }
    })?;
    if !settled.counted {
        note_stale(env, circuit);
    }
    Some(settled.outcome)
}

/// Tells the component how a call ended, and says how it ended.
pub(crate) fn settle_locked(
    machine: &mut Machine,
    cx: &Cx<'_>,
    circuit: &Circuit,
    held: &Held,
    admission: &Admission,
    report: Report,
) -> Outcome {
    let view = circuit.gate.read_locked();
    // Told of everything, a component still knows nothing of the tickets of another instance.
    let void = if cx.env.ignore_leases {
        view.incarnation != admission.incarnation
    } else {
        view.voids(admission)
    };
    let took = held.took(cx.now);
    let outcome = held.outcome(report.outcome, took);
    let counted = !void && {
        circuit.recorded.store(true, Ordering::Relaxed);
        let report = types::Report {
            outcome: match outcome {
                Outcome::Success => types::Outcome::Success,
                Outcome::Failure => types::Outcome::Failure,
                Outcome::Timeout => types::Outcome::Timeout,
                Outcome::Ignored => types::Outcome::Ignored,
            },
            took,
            retry_after: report.retry_after,
            cause: report.cause.map(short),
        };
        machine
            .cross(cx, circuit, |instance, number| {
                let settled = instance.settle(number, admission.ticket, &report)?;
                Ok(Answer {
                    lease: Some(settled.lease),
                    transition: settled.transition,
                    value: settled.counted,
                })
            })
            .unwrap_or(false)
    };
    if !counted {
        note_stale(cx.env, circuit);
    }
    outcome
}

/// Takes note of a result that came too late to count.
#[cold]
fn note_stale(env: &Env, circuit: &Circuit) {
    circuit.stale.fetch_add(1, Ordering::Relaxed);
    env.ledger.stale_results.fetch_add(1, Ordering::Relaxed);
}

/// A cause is for people, and kept by the component for every circuit.
fn short(cause: String) -> String {
    let mut cause = clip(cause);
    cause.truncate(cause.floor_char_boundary(MAX_CAUSE));
    cause
}

/// The longest cause that is passed on, in bytes.
const MAX_CAUSE: usize = 256;
