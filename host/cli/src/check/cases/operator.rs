//! An operator's commands.

use tripwit::raw::{Counts, Mode, Operation, Outcome, State, Status};

use crate::check::circuit::Circuit;
use crate::check::problem::{Checked, ensure};
use crate::check::ran::Ran;
use crate::check::subject::Subject;
use crate::check::words;

const SECOND: u64 = 1_000_000_000;

pub(in crate::check) fn operator(subject: &Subject) -> Checked<Ran> {
    for settings in &subject.settings {
        resets_forget(&mut Circuit::new(subject, settings)?)?;
        trips_last(&mut Circuit::new(subject, settings)?)?;
        commands_keep_the_mode(&mut Circuit::new(subject, settings)?)?;
    }
    Ok(Ran::done(
        "trip and reset of closed, open and half-open circuits, twice each, with waits, in every mode",
    ))
}

fn resets_forget(circuit: &mut Circuit<'_>) -> Checked {
    let closed = circuit.reset()?;
    ensure!(
        closed.transition.is_none(),
        "no move: the circuit was closed",
        || closed.to_string(),
    )?;
    circuit.acquire()?;
    circuit.end(0, Outcome::Failure)?;
    circuit.reset()?;
    forgotten(&circuit.look()?)?;
    circuit.open()?;
    circuit.reset()?;
    forgotten(&circuit.look()?)?;
    let again = circuit.reset()?;
    ensure!(
        again.transition.is_none(),
        "no move: the circuit is closed already",
        || again.to_string(),
    )?;
    forgotten(&circuit.look()?)
}

fn forgotten(status: &Status) -> Checked {
    let nothing = status.state == State::Closed
        && counts_nothing(&status.counts)
        && status.retry_after.is_none()
        && status.cooldown_count.is_none()
        && status.last_failure.is_none()
        && status.last_cause.is_none();
    ensure!(nothing, "closed after a reset, with nothing recorded", || {
        format!("{status:?}")
    })
}

/// Whether all counts are 0.
pub(super) fn counts_nothing(counts: &Counts) -> bool {
    *counts
        == Counts {
            successes: 0,
            failures: 0,
            timeouts: 0,
            slow: 0,
            consecutive_successes: 0,
            consecutive_failures: 0,
            probes_in_flight: 0,
        }
}

fn trips_last(circuit: &mut Circuit<'_>) -> Checked {
    let tripped = circuit.trip(Some(20 * SECOND))?;
    let status = circuit.look()?;
    ensure!(status.state == State::Open, "open after a trip", || {
        words::state(status.state).into()
    })?;
    let operation = tripped.transition.map(|transition| transition.operation);
    ensure!(operation == Some(Operation::Trip), "a trip", || {
        tripped.to_string()
    })?;
    let Some(left) = status.retry_after else {
        return Ok(());
    };
    ensure!(left == 20 * SECOND, "a wait of 20s, as the operator said", || {
        words::time(left)
    })?;
    circuit.advance(5 * SECOND);
    for (wait, left) in [(SECOND, 15 * SECOND), (40 * SECOND, 40 * SECOND)] {
        let again = circuit.trip(Some(wait))?;
        ensure!(
            again.transition.is_none(),
            "no move: the circuit is open already",
            || again.to_string(),
        )?;
        let now = circuit.look()?.retry_after;
        ensure!(
            now == Some(left),
            format!("the later end: {} left", words::time(left)),
            || words::optional_time(now),
        )?;
    }
    circuit.reset()?;
    if circuit.half_open()? {
        let again = circuit.trip(Some(SECOND))?;
        let operation = again.transition.map(|transition| transition.operation);
        ensure!(
            operation == Some(Operation::ReTrip),
            "a re-trip from half-open",
            || again.to_string(),
        )?;
    }
    circuit.reset()?;
    circuit.trip(Some(u64::MAX))?;
    let admitted = circuit.acquire()?;
    ensure!(
        circuit.lease.state == State::Open,
        "open for as long as there are nanoseconds",
        || admitted.to_string(),
    )
}

fn commands_keep_the_mode(circuit: &mut Circuit<'_>) -> Checked {
    for mode in [Mode::ForcedOpen, Mode::Disabled, Mode::Shadow] {
        circuit.set_mode(mode)?;
        circuit.open()?;
        let status = circuit.look()?;
        ensure!(status.mode == mode, words::mode(mode), || {
            words::mode(status.mode).into()
        })?;
        circuit.reset()?;
        let status = circuit.look()?;
        let reset = status.mode == mode && status.state == State::Closed;
        ensure!(reset, format!("closed, and still {}", words::mode(mode)), || {
            format!("{}, {}", words::state(status.state), words::mode(status.mode))
        })?;
    }
    Ok(())
}
