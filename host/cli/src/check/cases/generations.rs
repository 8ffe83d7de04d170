//! Late results.

use tripwit::raw::{Mode, Outcome};

use crate::check::answer::report;
use crate::check::case::Case;
use crate::check::circuit::{Circuit, Permit};
use crate::check::problem::Checked;
use crate::check::ran::Ran;
use crate::check::subject::Subject;

const SECOND: u64 = 1_000_000_000;

/// What makes the calls under way late.
#[derive(Clone, Copy, Debug)]
enum Event {
    Reset,
    Trip,
    HalfOpen,
    Mode,
    Settings,
}

pub(in crate::check) fn generations(subject: &Subject) -> Checked<Ran> {
    let mut late = 0;
    for settings in &subject.settings {
        for event in [
            Event::Reset,
            Event::Trip,
            Event::HalfOpen,
            Event::Mode,
            Event::Settings,
        ] {
            late += late_results(subject, settings, event)?;
        }
    }
    Ok(Ran::done(format!(
        "{late} late results after moves, resets, changes of mode and of settings"
    )))
}

fn late_results(subject: &Subject, settings: &str, event: Event) -> Checked<usize> {
    let mut circuit = Circuit::new(subject, settings)?;
    circuit.acquire()?;
    circuit.acquire()?;
    let mut late = std::mem::take(&mut circuit.permits);
    happen(&mut circuit, event)?;
    // Calls that began in half-open are late as well once the circuit is reset.
    if matches!(event, Event::HalfOpen) {
        circuit.advance(SECOND / 1_000);
        settle_all(&mut circuit, &late)?;
        late.extend(std::mem::take(&mut circuit.permits));
        circuit.reset()?;
    }
    circuit.advance(SECOND / 1_000);
    settle_all(&mut circuit, &late)
}

fn happen(circuit: &mut Circuit<'_>, event: Event) -> Checked {
    match event {
        Event::Reset => drop(circuit.reset()?),
        Event::Trip => circuit.open()?,
        Event::HalfOpen => drop(circuit.half_open()?),
        Event::Mode => {
            circuit.set_mode(Mode::Disabled)?;
            circuit.set_mode(Mode::Automatic)?;
        }
        Event::Settings => {
            let before = circuit.lease.generation;
            let others: Vec<String> = circuit.subject.settings.iter().skip(1).cloned().collect();
            for settings in others {
                if circuit.configure(&settings)?.is_ok() {
                    circuit.starts_generation("a change of settings", before)?;
                    break;
                }
            }
        }
    }
    Ok(())
}

/// Settles those that are of an older generation.
fn settle_all(circuit: &mut Circuit<'_>, late: &[Permit]) -> Checked<usize> {
    let mut settled = 0;
    for permit in late {
        for outcome in [Outcome::Failure, Outcome::Success, Outcome::Timeout] {
            if permit.generation < circuit.lease.generation {
                circuit.settle_void(permit.ticket, &report(outcome), Case::Generations)?;
                settled += 1;
            }
        }
    }
    Ok(settled)
}
