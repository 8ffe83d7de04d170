//! Saving a circuit and taking it over.

use tripwit::raw::{AttachError, Mode, Outcome, Snapshot, State};

use super::moves::fail_until_open;
use crate::check::circuit::Circuit;
use crate::check::problem::{Checked, Problem, ensure, refusal};
use crate::check::ran::Ran;
use crate::check::subject::Subject;
use crate::check::walk::{Play, Walks};
use crate::check::words;

const SECOND: u64 = 1_000_000_000;

pub(in crate::check) fn snapshots(subject: &Subject, walks: &Walks) -> Checked<Ran> {
    for settings in &subject.settings {
        modes_go_over(subject, settings)?;
        waits_go_over(subject, settings)?;
        probes_do_not(subject, settings)?;
        replaces_a_circuit(subject, settings)?;
        damage_is_refused(subject, settings)?;
    }
    let walked = walks.play(subject, Play::TakenOver)?;
    let drawing = walks.drawing();
    let drawing = if drawing == 0 {
        String::new()
    } else {
        format!(", {drawing} of them up to the take-over only, since what comes later is drawn by lot")
    };
    Ok(Ran::done(format!(
        "every state and mode, several ages, foreign and damaged snapshots; saved and restored side by side: {walked}{drawing}"
    )))
}

fn modes_go_over(subject: &Subject, settings: &str) -> Checked {
    for mode in [Mode::Automatic, Mode::ForcedOpen, Mode::Disabled, Mode::Shadow] {
        let mut circuit = Circuit::new(subject, settings)?;
        circuit.acquire()?;
        circuit.end(0, Outcome::Failure)?;
        circuit.set_mode(mode)?;
        let before = circuit.look_around()?;
        let mut restored = circuit.over(settings)?;
        let after = restored.look_around()?;
        ensure!(
            (after.mode, after.state) == (before.mode, before.state),
            format!("{}, {}", words::mode(mode), words::state(before.state)),
            || format!("{}, {}", words::mode(after.mode), words::state(after.state)),
        )?;
        restored.acquire()?;
    }
    Ok(())
}

fn waits_go_over(subject: &Subject, settings: &str) -> Checked {
    let mut circuit = Circuit::new(subject, settings)?;
    circuit.trip(Some(50 * SECOND))?;
    circuit.advance(10 * SECOND);
    let before = circuit.look()?;
    let snapshot = circuit.save()?;
    for (age, left) in [
        (0, 40),
        (15, 25),
        (39, 1),
        (40, 0),
        (4_000, 0),
        (u64::MAX / SECOND, 0),
    ] {
        let mut restored = circuit.restored(&snapshot, settings, age * SECOND)?;
        let after = restored.look()?;
        ensure!(after.state == State::Open, "open", || {
            words::state(after.state).into()
        })?;
        ensure!(
            after.cooldown_count == before.cooldown_count,
            format!("{:?} cycles left", before.cooldown_count),
            || format!("{:?}", after.cooldown_count),
        )?;
        if before.retry_after.is_some() {
            ensure!(
                after.retry_after == Some(left * SECOND),
                format!("{left}s left of the wait"),
                || words::optional_time(after.retry_after),
            )?;
            restored.acquire()?;
            let open = restored.lease.state == State::Open;
            ensure!(
                open == (left > 0),
                if left > 0 {
                    "open until the wait is over"
                } else {
                    "open no more: the wait is over"
                },
                || words::state(restored.lease.state).into(),
            )?;
        }
    }
    Ok(())
}

/// Half-open is taken over with no probe under way.
fn probes_do_not(subject: &Subject, settings: &str) -> Checked {
    let mut circuit = Circuit::new(subject, settings)?;
    if !circuit.half_open()? {
        return Ok(());
    }
    let mut restored = circuit.over(settings)?;
    let status = restored.look()?;
    let fresh = status.state == State::HalfOpen && status.counts.probes_in_flight == 0;
    ensure!(fresh, "half-open with no probe under way", || {
        format!(
            "{} with {}",
            words::state(status.state),
            status.counts.probes_in_flight
        )
    })?;
    let probe = restored.acquire()?;
    ensure!(!restored.permits.is_empty(), "a probe admitted", || {
        probe.to_string()
    })
}

/// A circuit that has this key is replaced, and calls from before are void.
fn replaces_a_circuit(subject: &Subject, settings: &str) -> Checked {
    let mut circuit = Circuit::new(subject, settings)?;
    let closed = circuit.save()?;
    circuit.acquire()?;
    let generation = circuit.lease.generation;
    let attached = circuit
        .instance
        .restore(&closed, settings, 0)?
        .map_err(|error| Problem::refused(&error))?;
    circuit.did("restore over the circuit", "");
    ensure!(
        attached.circuit == circuit.number || circuit.instance.tripped()?.is_empty(),
        "one circuit under the key",
        || "two".into(),
    )?;
    circuit.number = attached.circuit;
    circuit.lease = attached.lease;
    circuit.starts_generation("a take-over", generation)?;
    circuit.end(0, Outcome::Failure)?;
    Ok(())
}

fn damage_is_refused(subject: &Subject, settings: &str) -> Checked {
    let mut circuit = Circuit::new(subject, settings)?;
    for _ in 0..3 {
        circuit.acquire()?;
        circuit.end(0, Outcome::Success)?;
        circuit.advance(SECOND);
    }
    let closed = circuit.save()?;
    fail_until_open(&mut circuit)?;
    let open = circuit.save()?;
    for sound in [&closed, &open] {
        let foreign = Snapshot {
            detail: vec![0xff; 40],
            detail_format: "no-such-format/9".into(),
            ..sound.clone()
        };
        circuit.restored(&foreign, settings, SECOND)?.look()?;
        for damaged in damages(sound) {
            judge(&mut circuit, &damaged, settings)?;
        }
        for senseless in senseless(sound) {
            // Whether it makes sense is the policy's to say; it must not fail over it, then or later.
            if let Ok(mut restored) = circuit.restored(&senseless, settings, u64::MAX) {
                restored.acquire()?;
                restored.end(0, Outcome::Success)?;
                restored.trip(None)?;
                restored.reset()?;
            }
        }
    }
    Ok(())
}

/// The detail of a snapshot, damaged beyond recognition.
fn damages(sound: &Snapshot) -> Vec<Snapshot> {
    if sound.detail.is_empty() {
        return Vec::new();
    }
    let half = sound
        .detail
        .iter()
        .take(sound.detail.len() / 2)
        .copied()
        .collect();
    let details = [half, vec![0xff; sound.detail.len()], vec![0xff; 100_000]];
    details
        .map(|detail| Snapshot {
            detail,
            ..sound.clone()
        })
        .to_vec()
}

fn judge(circuit: &mut Circuit<'_>, damaged: &Snapshot, settings: &str) -> Checked {
    circuit.did(
        &format!("restore with a damaged detail of {} bytes", damaged.detail.len()),
        "",
    );
    let mut instance = circuit.subject.start(&circuit.clock)?;
    match instance.restore(damaged, settings, 0)? {
        Err(AttachError::Snapshot(problem)) if !problem.is_empty() => Ok(()),
        Err(other) => Err(Problem::new("a snapshot error", refusal(&other))),
        Ok(_) => Err(Problem::new("a snapshot error", "a damaged detail was accepted")),
    }
}

/// Snapshots whose parts do not fit together.
fn senseless(sound: &Snapshot) -> Vec<Snapshot> {
    let mut all = Vec::new();
    for state in [State::Closed, State::Open, State::HalfOpen] {
        let mut counts = sound.counts;
        counts.failures = u32::MAX;
        counts.timeouts = u32::MAX;
        counts.successes = u32::MAX;
        counts.consecutive_failures = u32::MAX;
        counts.consecutive_successes = u32::MAX;
        counts.probes_in_flight = u32::MAX;
        all.push(Snapshot {
            state,
            counts,
            reopenings: u32::MAX,
            retry_after: Some(u64::MAX),
            ..sound.clone()
        });
        all.push(Snapshot {
            state,
            cooldown_count: Some(u32::MAX),
            ..sound.clone()
        });
    }
    all
}
