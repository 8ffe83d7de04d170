//! Who decides.

use tripwit::raw::{Mode, Outcome, State};

use super::operator::counts_nothing;
use crate::check::circuit::Circuit;
use crate::check::problem::{Checked, ensure};
use crate::check::ran::Ran;
use crate::check::subject::Subject;
use crate::check::walk::{Play, Walks};
use crate::check::words;

const HOUR: u64 = 3_600_000_000_000;

pub(in crate::check) fn modes(subject: &Subject, walks: &Walks) -> Checked<Ran> {
    for settings in &subject.settings {
        for mode in [Mode::ForcedOpen, Mode::Disabled] {
            for from in [State::Closed, State::Open, State::HalfOpen] {
                state_stands_still(subject, settings, mode, from)?;
            }
        }
        setting_it_again_changes_nothing(&mut Circuit::new(subject, settings)?)?;
    }
    let walked = walks.play(subject, Play::Shadow)?;
    Ok(Ran::done(format!(
        "every mode from every state, twice; shadow and automatic side by side: {walked}"
    )))
}

fn state_stands_still(subject: &Subject, settings: &str, mode: Mode, from: State) -> Checked {
    let mut circuit = Circuit::new(subject, settings)?;
    circuit.acquire()?;
    circuit.end(0, Outcome::Failure)?;
    match from {
        State::Closed => drop(circuit.reset()?),
        State::Open => circuit.open()?,
        State::HalfOpen if !circuit.half_open()? => return Ok(()),
        State::HalfOpen => {}
    }
    circuit.set_mode(mode)?;
    let fresh = circuit.look()?.counts;
    ensure!(
        counts_nothing(&fresh),
        "fresh counts after a change of mode",
        || format!("{fresh:?}"),
    )?;
    for _ in 0..12 {
        circuit.acquire()?;
        circuit.end(0, Outcome::Failure)?;
        circuit.cool_down()?;
        circuit.advance(HOUR);
    }
    let status = circuit.look()?;
    ensure!(
        status.state == from && counts_nothing(&status.counts),
        format!("{} beneath, with nothing recorded", words::state(from)),
        || format!("{} with {:?}", words::state(status.state), status.counts),
    )?;
    circuit.set_mode(Mode::Automatic)?;
    let status = circuit.look()?;
    ensure!(
        status.state == from,
        format!("it goes on with {}", words::state(from)),
        || words::state(status.state).into(),
    )?;
    circuit.acquire()?;
    Ok(())
}

fn setting_it_again_changes_nothing(circuit: &mut Circuit<'_>) -> Checked {
    for mode in [
        Mode::Automatic,
        Mode::Shadow,
        Mode::ForcedOpen,
        Mode::Disabled,
        Mode::Automatic,
    ] {
        circuit.set_mode(mode)?;
        circuit.acquire()?;
        circuit.end(0, Outcome::Failure)?;
        let before = circuit.look()?;
        circuit.set_mode(mode)?;
        let after = circuit.look()?;
        ensure!(
            before == after,
            "a mode that is set already changes nothing",
            || crate::check::answer::differences(&before, &after).unwrap_or_default(),
        )?;
    }
    Ok(())
}
