//! Every move is reported once, and keeps to the edges that there are.

use tripwit::raw::{Outcome, State};

use crate::check::circuit::Circuit;
use crate::check::problem::{Checked, ensure};
use crate::check::ran::Ran;
use crate::check::subject::Subject;

/// As many calls as a policy is given to open or close a circuit.
pub(super) const CALLS: usize = 2_000;
const MILLISECOND: u64 = 1_000_000;

pub(in crate::check) fn moves(subject: &Subject) -> Checked<Ran> {
    let mut circuit = Circuit::new(subject, subject.main_settings())?;
    circuit.open()?;
    circuit.reset()?;
    let voice = subject.has_heard_enough();
    match (voice.spans, voice.lines) {
        (true, true) => {}
        (false, false) => subject.note("tells nothing: it hands in no spans and writes no log lines"),
        (false, true) => subject.note("hands in no spans"),
        (true, false) => subject.note("writes no log lines"),
    }
    round(subject, subject.main_settings())?;
    Ok(Ran::done(
        "opened by an operator and by failures, probed badly and well, closed",
    ))
}

pub(in crate::check) fn edges(subject: &Subject) -> Checked<Ran> {
    for settings in &subject.settings {
        round(subject, settings)?;
    }
    Ok(Ran::done(format!(
        "the same under {} settings",
        subject.settings.len()
    )))
}

/// Takes a circuit around every edge that it has.
fn round(subject: &Subject, settings: &str) -> Checked {
    let mut circuit = Circuit::new(subject, settings)?;
    if fail_until_open(&mut circuit)? {
        circuit.look()?;
    } else {
        subject.note(format!("{CALLS} failures in a row opened no circuit"));
    }
    circuit.reset()?;
    if circuit.half_open()? {
        circuit.end(0, Outcome::Failure)?;
        circuit.reset()?;
        circuit.half_open()?;
        circuit.trip(None)?;
        ensure!(
            circuit.lease.state == State::Open,
            "open after a trip from half-open",
            || "another state".into(),
        )?;
        circuit.reset()?;
        circuit.half_open()?;
        recover(&mut circuit)?;
    }
    circuit.reset()?;
    Ok(())
}

/// Lets calls fail until the circuit opens.
pub(super) fn fail_until_open(circuit: &mut Circuit<'_>) -> Checked<bool> {
    for _ in 0..CALLS {
        circuit.acquire()?;
        circuit.end(0, Outcome::Failure)?;
        if circuit.lease.state != State::Closed {
            return Ok(true);
        }
        circuit.advance(MILLISECOND);
    }
    Ok(false)
}

/// Lets probes succeed until the circuit closes.
pub(super) fn recover(circuit: &mut Circuit<'_>) -> Checked<bool> {
    for _ in 0..CALLS {
        if circuit.permits.is_empty() {
            circuit.acquire()?;
        }
        circuit.end(0, Outcome::Success)?;
        if circuit.lease.state == State::Closed {
            return Ok(true);
        }
        circuit.advance(MILLISECOND);
    }
    Ok(false)
}
