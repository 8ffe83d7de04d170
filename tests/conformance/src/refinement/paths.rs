//! Every step from every state that is found within so many steps.

use std::fmt;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tripwit::{Clock, ManualClock};
use tripwit_core::{Decision, Lease, Nanoseconds, Outcome, Policy, Report, Ticket};
use tripwit_leases::settings::Setting;
use tripwit_leases::{Step, Trace, UNIT, walk};

use super::Refined;
use super::pair::Pair;
use crate::runner::clock;

/// What was replayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// States, each by a shortest path to it.
    pub states: usize,
    /// Paths: each to a state, and one step more.
    pub paths: u64,
    /// The steps of all paths.
    pub steps: u64,
}

impl fmt::Display for Replayed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { states, paths, steps } = self;
        write!(
            f,
            "every step from {states} states: {paths} paths of {steps} steps"
        )
    }
}

/// Takes every step from every state that a policy reaches under a setting, natively and as a component.
///
/// # Errors
///
/// The first step at which the two are not the same, and the path to it.
pub fn every_step<P: Policy>(refined: Refined, setting: &Setting) -> Result<Replayed> {
    let walk = walk::<P>(setting, |lease| lease)?;
    let clock = clock();
    let mut pair = Pair::start(refined.policy, &clock)?;
    let mut replayed = Replayed {
        states: walk.states(),
        ..Replayed::default()
    };
    for (mut path, permits) in walk.paths() {
        for step in Step::all(permits) {
            path.push(step);
            take(&mut pair, &clock, setting.json, &path)
                .with_context(|| format!("after {}", Trace(path.clone())))?;
            replayed.paths += 1;
            replayed.steps += path.len() as u64;
            path.pop();
        }
    }
    Ok(replayed)
}

/// Takes a path with a circuit of its own.
fn take(pair: &mut Pair, clock: &ManualClock, settings: &str, path: &[Step]) -> Result<()> {
    // Windows of time are cut where the clock is a multiple of their width, and the walk began at 0.
    clock.set_monotonic(clock.monotonic().div_ceil(SECOND).saturating_add(1) * SECOND);
    let attachment = pair.both("attach", |guest| guest.attach("key", settings))??;
    let mut caller = Caller {
        circuit: attachment.circuit,
        lease: attachment.lease,
        permits: Vec::new(),
    };
    for step in path {
        caller.step(pair, clock, *step)?;
    }
    pair.look_at(caller.circuit)?;
    pair.both("detach", |guest| guest.detach(caller.circuit))
}

/// Every width of a setting that is walked divides it. Nanoseconds.
const SECOND: u64 = 1_000_000_000;

/// A host that asks about each call.
struct Caller {
    circuit: u32,
    lease: Lease,
    permits: Vec<Permit>,
}

struct Permit {
    ticket: Ticket,
    started: u64,
    /// Under the lease that admitted the call.
    call_timeout: Option<Nanoseconds>,
    measured: bool,
}

impl Caller {
    fn step(&mut self, pair: &mut Pair, clock: &ManualClock, step: Step) -> Result<()> {
        let circuit = self.circuit;
        match step {
            Step::Tick => clock.advance(Duration::from_nanos(UNIT)),
            Step::Acquire => self.acquire(pair, clock.monotonic())?,
            Step::Success(permit) => self.settle(pair, clock, permit, Outcome::Success)?,
            Step::Failure(permit) => self.settle(pair, clock, permit, Outcome::Failure)?,
            Step::Timeout(permit) => self.settle(pair, clock, permit, Outcome::Timeout)?,
            Step::Ignored(permit) => self.settle(pair, clock, permit, Outcome::Ignored)?,
            Step::Trip => self.lease = pair.both("trip", |guest| guest.trip(circuit, None))?.lease,
            Step::TripFor => {
                self.lease = pair
                    .both("trip", |guest| guest.trip(circuit, Some(3 * UNIT)))?
                    .lease;
            }
            Step::Reset => self.lease = pair.both("reset", |guest| guest.reset(circuit))?.lease,
            Step::SetMode(mode) => {
                self.lease = pair
                    .both("set-mode", |guest| guest.set_mode(circuit, mode))?
                    .lease;
            }
            Step::CoolDown => {
                pair.both("cool-down", |guest| guest.cool_down())?;
            }
            Step::Inspect => pair.look_at(circuit)?,
        }
        Ok(())
    }

    fn acquire(&mut self, pair: &mut Pair, now: u64) -> Result<()> {
        let circuit = self.circuit;
        let admission = pair.both("acquire", |guest| guest.acquire(circuit))?;
        self.lease = admission.lease;
        if let Decision::Admit(ticket) = admission.decision {
            self.permits.push(Permit {
                ticket,
                started: now,
                call_timeout: self.lease.call_timeout,
                measured: self.lease.call_timeout.is_some() || self.lease.slow_after.is_some(),
            });
        }
        Ok(())
    }

    fn settle(
        &mut self,
        pair: &mut Pair,
        clock: &ManualClock,
        permit: usize,
        outcome: Outcome,
    ) -> Result<()> {
        ensure!(
            permit < self.permits.len(),
            "the walk admitted a call that these rejected"
        );
        let permit = self.permits.remove(permit);
        let took = clock.monotonic().saturating_sub(permit.started);
        let late = permit.call_timeout.is_some_and(|limit| took > limit);
        let report = Report {
            outcome: match outcome {
                Outcome::Success | Outcome::Failure if late => Outcome::Timeout,
                Outcome::Success | Outcome::Failure | Outcome::Timeout | Outcome::Ignored => outcome,
            },
            took: permit.measured.then_some(took),
            retry_after: (outcome == Outcome::Failure).then_some(2 * UNIT),
            cause: (outcome == Outcome::Failure).then(|| "refused".to_owned()),
        };
        let circuit = self.circuit;
        let settlement = pair.both("settle", |guest| guest.settle(circuit, permit.ticket, &report))?;
        self.lease = settlement.lease;
        Ok(())
    }
}
