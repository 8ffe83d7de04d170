//! Looking at a circuit.

use tripwit::raw::Outcome;

use crate::check::circuit::Circuit;
use crate::check::problem::Checked;
use crate::check::ran::Ran;
use crate::check::subject::Subject;
use crate::check::walk::{Play, Walks};

pub(in crate::check) fn queries(subject: &Subject, walks: &Walks) -> Checked<Ran> {
    for settings in &subject.settings {
        let mut circuit = Circuit::new(subject, settings)?;
        circuit.look_around()?;
        circuit.acquire()?;
        circuit.end(0, Outcome::Failure)?;
        circuit.look_around()?;
        circuit.reset()?;
        circuit.open()?;
        circuit.look_around()?;
        // The wait is over, and nobody has called yet.
        if let Some(left) = circuit.look_around()?.retry_after {
            circuit.advance(left);
            circuit.look_around()?;
        }
        circuit.reset()?;
        if circuit.half_open()? {
            circuit.look_around()?;
        }
    }
    let walked = walks.play(subject, Play::Looks)?;
    Ok(Ran::done(format!(
        "inspect, lease-of, tripped, save and describe in every state; looked at and not, side by side: {walked}"
    )))
}
