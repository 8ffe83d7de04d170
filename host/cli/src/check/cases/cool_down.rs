//! Cool-down cycles.

use tripwit::raw::{Operation, State};

use crate::check::answer::Did;
use crate::check::circuit::Circuit;
use crate::check::problem::{Checked, ensure};
use crate::check::ran::Ran;
use crate::check::subject::Subject;

/// As many cycles as a circuit is given.
const CYCLES: u32 = 5_000;

pub(in crate::check) fn cool_down(subject: &Subject) -> Checked<Ran> {
    let mut counts = false;
    for settings in &subject.settings {
        let mut circuit = Circuit::new(subject, settings)?;
        circuit.cool_down()?;
        circuit.open()?;
        match circuit.look()?.cooldown_count {
            Some(count) if count < CYCLES => {
                counts = true;
                counts_down(&mut circuit, count)?;
            }
            Some(_) => counts = true,
            None => drop(circuit.cool_down()?),
        }
    }
    Ok(if counts {
        Ran::done("tripped circuits cooled down cycle by cycle")
    } else {
        Ran::not_applicable("counts no cycles, and is not touched by them")
    })
}

fn counts_down(circuit: &mut Circuit<'_>, count: u32) -> Checked {
    for left in (0..count).rev() {
        circuit.cool_down()?;
        let status = circuit.look()?;
        let counted = status.state == State::Open && status.cooldown_count == Some(left);
        ensure!(counted, format!("open, {left} cycles left"), || {
            format!("{:?} with {:?}", status.state, status.cooldown_count)
        })?;
    }
    let last = circuit.cool_down()?;
    let reset = last.did == Did::Cooled(true)
        && last
            .transition
            .is_some_and(|transition| transition.operation == Operation::Reset);
    ensure!(reset, format!("a reset by the cycle after {count}"), || {
        last.to_string()
    })?;
    let none = circuit.cool_down()?;
    ensure!(
        none.did == Did::Cooled(false),
        "a closed circuit counts no cycles",
        || none.to_string(),
    )
}
