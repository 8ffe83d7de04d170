//! Clocks that do not do as they should.

use tripwit::raw::{Outcome, RejectionReason, State};

use crate::check::answer::Did;
use crate::check::circuit::Circuit;
use crate::check::problem::{Checked, ensure};
use crate::check::ran::Ran;
use crate::check::step::Step;
use crate::check::subject::Subject;
use crate::check::walk::{Play, Walks};
use crate::check::words;

const SECOND: u64 = 1_000_000_000;

pub(in crate::check) fn clock(subject: &Subject, walks: &Walks) -> Checked<Ran> {
    let mut waits = false;
    for settings in &subject.settings {
        steps_back_when_closed(&mut Circuit::new(subject, settings)?)?;
        far_ahead(&mut Circuit::new(subject, settings)?)?;
        for back in [SECOND, 60 * SECOND, u64::MAX] {
            waits |= steps_back_when_open(&mut Circuit::new(subject, settings)?, back)?;
        }
    }
    let walked = walks.play(subject, Play::StepsBack)?;
    let waits = if waits { "an open wait and " } else { "" };
    Ok(Ran::done(format!(
        "{waits}a clock that steps back and far ahead; {walked}"
    )))
}

fn steps_back_when_closed(circuit: &mut Circuit<'_>) -> Checked {
    circuit.acquire()?;
    circuit.end(0, Outcome::Failure)?;
    circuit.acquire()?;
    circuit.step(Step::Back(1_800 * SECOND))?;
    circuit.end(0, Outcome::Failure)?;
    circuit.acquire()?;
    circuit.end(0, Outcome::Success)?;
    circuit.look_around()?;
    circuit.reset()?;
    circuit.open()?;
    circuit.look_around()?;
    Ok(())
}

/// A wait of 40 s. Whether a clock decides at all.
fn steps_back_when_open(circuit: &mut Circuit<'_>, back: u64) -> Checked<bool> {
    circuit.trip(Some(40 * SECOND))?;
    if circuit.look()?.retry_after.is_none() {
        return Ok(false);
    }
    circuit.advance(10 * SECOND);
    rejected(circuit, Some(30 * SECOND))?;
    let back = back.min(circuit.now());
    circuit.step(Step::Back(back))?;
    rejected(circuit, None)?;
    circuit.look_around()?;
    circuit.advance(back);
    rejected(circuit, Some(30 * SECOND))?;
    circuit.advance(30 * SECOND - 1);
    rejected(circuit, Some(1))?;
    circuit.advance(1);
    let then = circuit.acquire()?;
    let over = !matches!(then.did, Did::Rejected(RejectionReason::Open, _));
    ensure!(over, "the wait is over: 40s have passed since the trip", || {
        then.to_string()
    })?;
    Ok(true)
}

fn rejected(circuit: &mut Circuit<'_>, left: Option<u64>) -> Checked {
    let answer = circuit.acquire()?;
    let Did::Rejected(_, retry_after) = answer.did else {
        return ensure!(false, "rejected: the wait is not over", || answer.to_string());
    };
    let state = circuit.lease.state;
    ensure!(state == State::Open, "open still", || words::state(state).into())?;
    let fits = left.is_none() || retry_after == left;
    ensure!(
        fits,
        format!("{} left of the wait", words::optional_time(left)),
        || words::optional_time(retry_after),
    )
}

/// Up to the last nanosecond that there is.
fn far_ahead(circuit: &mut Circuit<'_>) -> Checked {
    circuit.acquire()?;
    for now in [u64::MAX / 2, u64::MAX - 1, u64::MAX] {
        circuit.did(&format!("the clock stands at {now} ns"), "");
        circuit.clock.set_monotonic(now);
        for outcome in [Outcome::Failure, Outcome::Success, Outcome::Ignored] {
            circuit.acquire()?;
            circuit.end(0, outcome)?;
        }
        circuit.trip(None)?;
        circuit.acquire()?;
        circuit.look_around()?;
        circuit.trip(Some(u64::MAX))?;
        circuit.save()?;
        circuit.reset()?;
    }
    Ok(())
}
