//! The way out of half-open.

use tripwit::raw::{Mode, State};

use super::moves::{CALLS, recover};
use crate::check::answer::Did;
use crate::check::circuit::Circuit;
use crate::check::problem::{Checked, ensure};
use crate::check::ran::Ran;
use crate::check::subject::Subject;
use crate::check::words;

/// A probe that has not reported for so long must have been given up.
const LONG: u64 = 10 * 24 * 3_600_000_000_000;

pub(in crate::check) fn half_open(subject: &Subject) -> Checked<Ran> {
    let mut any = false;
    for settings in &subject.settings {
        let mut circuit = Circuit::new(subject, settings)?;
        if !circuit.half_open()? {
            continue;
        }
        any = true;
        let closed = recover(&mut circuit)?;
        ensure!(
            closed,
            format!("closed after at most {CALLS} good probes"),
            || format!("{} still", words::state(circuit.lease.state)),
        )?;
        lost_probes_are_given_up(&mut Circuit::new(subject, settings)?)?;
        half_open_outlasts_other_modes(&mut Circuit::new(subject, settings)?)?;
    }
    Ok(if any {
        Ran::done("all probes lost, then good ones; probes lost in other modes")
    } else {
        Ran::not_applicable("no wait by the clock ends in half-open")
    })
}

/// Takes every probe that there is, loses them all, and waits as long as it is told to.
fn lost_probes_are_given_up(circuit: &mut Circuit<'_>) -> Checked {
    circuit.half_open()?;
    while circuit.permits.len() < 64 && circuit.acquire()?.did == Did::Admitted {}
    circuit.did("all calls under way are lost", "");
    circuit.permits.clear();
    admitted_in_time(circuit)?;
    let closed = recover(circuit)?;
    ensure!(closed, "closed after good probes", || {
        format!("{} still", words::state(circuit.lease.state))
    })
}

/// Whether a call goes through once the waits that are told have passed, or at the latest after ten days.
fn admitted_in_time(circuit: &mut Circuit<'_>) -> Checked {
    for _ in 0..4 {
        let Did::Rejected(_, retry_after) = circuit.acquire()?.did else {
            return Ok(());
        };
        circuit.advance(retry_after.unwrap_or(LONG).max(1));
    }
    circuit.advance(LONG);
    let last = circuit.acquire()?;
    ensure!(
        last.did == Did::Admitted,
        "a probe admitted: those before are long lost",
        || last.to_string(),
    )
}

fn half_open_outlasts_other_modes(circuit: &mut Circuit<'_>) -> Checked {
    circuit.half_open()?;
    for mode in [Mode::ForcedOpen, Mode::Disabled, Mode::Shadow, Mode::Automatic] {
        circuit.set_mode(mode)?;
        circuit.permits.clear();
        let state = circuit.lease.state;
        ensure!(state == State::HalfOpen, "half-open still", || {
            words::state(state).into()
        })?;
    }
    admitted_in_time(circuit)
}
