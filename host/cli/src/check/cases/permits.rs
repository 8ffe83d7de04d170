//! Permits: of calls in closed, and of probes.

use tripwit::raw::{Outcome, State};

use crate::check::answer::{Did, report};
use crate::check::case::Case;
use crate::check::circuit::Circuit;
use crate::check::problem::{Checked, ensure};
use crate::check::ran::Ran;
use crate::check::subject::Subject;
use crate::check::walk::{Play, Walks};

/// A number that no policy hands out early.
const UNKNOWN: [u64; 3] = [0, u64::MAX, 0x7472_6970_7769_7401];

pub(in crate::check) fn permits(subject: &Subject, walks: &Walks) -> Checked<Ran> {
    let mut probes = false;
    for settings in &subject.settings {
        unknown_tickets_are_void(&mut Circuit::new(subject, settings)?)?;
        let mut circuit = Circuit::new(subject, settings)?;
        if circuit.half_open()? {
            probes = true;
            a_probe_counts_once(&mut circuit)?;
            ignored_probes_free_their_place(&mut Circuit::new(subject, settings)?)?;
        }
    }
    let walked = walks.play(subject, Play::VoidTickets)?;
    let probes = if probes {
        "and of probes"
    } else {
        "(it has no probes)"
    };
    Ok(Ran::done(format!(
        "unknown and used tickets of calls {probes}; {walked}"
    )))
}

fn unknown_tickets_are_void(circuit: &mut Circuit<'_>) -> Checked {
    circuit.acquire()?;
    for ticket in UNKNOWN {
        for outcome in [
            Outcome::Failure,
            Outcome::Success,
            Outcome::Timeout,
            Outcome::Ignored,
        ] {
            circuit.settle_void(ticket, &report(outcome), Case::Permits)?;
        }
    }
    Ok(())
}

fn a_probe_counts_once(circuit: &mut Circuit<'_>) -> Checked {
    for outcome in [Outcome::Success, Outcome::Failure] {
        let Some(probe) = circuit.permits.first().filter(|permit| permit.probe).copied() else {
            return Ok(());
        };
        let first = circuit.end(0, outcome)?;
        ensure!(
            first.did == Did::Settled(true),
            "the probe's result counts",
            || first.to_string(),
        )?;
        for again in [Outcome::Success, Outcome::Failure, Outcome::Ignored] {
            circuit.settle_void(probe.ticket, &report(again), Case::Permits)?;
        }
        circuit.reset()?;
        circuit.half_open()?;
    }
    Ok(())
}

/// Asks until no more probes are admitted; each that is ignored makes room for one.
fn ignored_probes_free_their_place(circuit: &mut Circuit<'_>) -> Checked {
    circuit.half_open()?;
    while circuit.permits.len() < 64 {
        if circuit.acquire()?.did != Did::Admitted {
            break;
        }
    }
    for _ in 0..circuit.permits.len().min(8) {
        let out = circuit.permits.len();
        let ignored = circuit.end(0, Outcome::Ignored)?;
        ensure!(
            circuit.lease.state == State::HalfOpen,
            "half-open still: an ignored probe says nothing",
            || ignored.to_string(),
        )?;
        let next = circuit.acquire()?;
        ensure!(
            next.did == Did::Admitted,
            format!("admitted: {} probes are under way, and {out} may be", out - 1),
            || next.to_string(),
        )?;
    }
    Ok(())
}
