//! Many circuits in one instance.

use std::collections::BTreeSet;

use tripwit::ManualClock;
use tripwit::raw::{AttachError, Attachment, Instance, State};

use crate::check::problem::{Checked, Problem, ensure, refusal};
use crate::check::ran::Ran;
use crate::check::schema::Schema;
use crate::check::subject::Subject;
use crate::check::words;

/// Keys that are easily taken for one another.
const ALIKE: [&str; 10] = [
    "orders",
    "Orders",
    "orders ",
    " orders",
    "order",
    "ordérs",
    "orde\u{301}rs",
    "orders\0",
    "orders/1",
    "{}",
];
/// The longest key that the host takes, in bytes.
const LONG: usize = 512;
/// Circuits at once.
const MANY: usize = 1_000;
/// As often they may take more memory than before.
const ROUNDS: usize = 10;
/// Circuits that come and go.
const PASSING: usize = 10_000;
/// What they may leave behind, in bytes.
const LEFT: usize = 1 << 20;

pub(in crate::check) fn keys(subject: &Subject) -> Checked<Ran> {
    let settings = subject.main_settings();
    subject.begin(settings);
    let mut instance = subject.start(&ManualClock::new())?;
    match instance.attach("", settings)? {
        Err(AttachError::Key(problem)) if !problem.is_empty() => {}
        other => return Err(Problem::new("a key error for an empty key", said(&other))),
    }
    let mut circuits = Vec::new();
    for key in ALIKE {
        circuits.push((key, attached(subject, &mut instance, key, settings)?.circuit));
    }
    let distinct: BTreeSet<u32> = circuits.iter().map(|(_, circuit)| *circuit).collect();
    ensure!(
        distinct.len() == ALIKE.len(),
        "a number of its own for each key",
        || format!("{circuits:?}"),
    )?;
    found_again(subject, &mut instance, &circuits)?;
    for (key, circuit) in &circuits {
        subject.did(format!("trip {key:?}"));
        instance.trip(*circuit, None)?;
        let tripped = instance.tripped()?;
        ensure!(tripped == [*key], format!("tripped names {key:?} alone"), || {
            format!("{tripped:?}")
        })?;
        for (other, circuit) in &circuits {
            let status = instance.inspect(*circuit)?;
            let state = if other == key { State::Open } else { State::Closed };
            ensure!(
                status.key == *other && status.state == state,
                format!("{other:?} {}", words::state(state)),
                || format!("{:?} {}", status.key, words::state(status.state)),
            )?;
        }
        instance.reset(*circuit)?;
    }
    detached_is_forgotten(subject, &mut instance, settings)?;
    Ok(Ran::done(format!(
        "{} keys that look alike, the empty key, keys that are attached again and detached",
        ALIKE.len()
    )))
}

/// The same key and equal settings are the same circuit; other settings are a conflict.
fn found_again(subject: &Subject, instance: &mut Instance, circuits: &[(&str, u32)]) -> Checked {
    let settings = subject.main_settings();
    for (key, circuit) in circuits {
        for written in [settings.to_owned(), format!(" {settings}\n")] {
            let again = attached(subject, instance, key, &written)?.circuit;
            ensure!(
                again == *circuit,
                format!("circuit {circuit} for {key:?} with equal settings"),
                || format!("circuit {again}"),
            )?;
        }
    }
    let Ok(schema) = Schema::read(&subject.policy.description().settings_schema) else {
        return Ok(());
    };
    let other = subject
        .settings
        .iter()
        .find(|other| schema.filled(other) != schema.filled(settings));
    let (Some((key, _)), Some(other)) = (circuits.first(), other) else {
        return Ok(());
    };
    subject.did(format!("attach {key:?} with {other}"));
    match instance.attach(key, other)? {
        Err(AttachError::Conflict) => Ok(()),
        got => Err(Problem::new(
            format!("a conflict: {key:?} has other settings"),
            said(&got),
        )),
    }
}

fn detached_is_forgotten(subject: &Subject, instance: &mut Instance, settings: &str) -> Checked {
    let before = attached(subject, instance, "passing", settings)?;
    let tripped = instance.trip(before.circuit, None)?;
    subject.did("detach \"passing\"");
    instance.detach(before.circuit)?;
    ensure!(
        instance.tripped()?.is_empty(),
        "tripped names no circuit that is detached",
        || "it does".into(),
    )?;
    let after = attached(subject, instance, "passing", settings)?;
    let status = instance.inspect(after.circuit)?;
    ensure!(status.state == State::Closed, "closed: it is new", || {
        words::state(status.state).into()
    })?;
    let latest = tripped.lease.generation;
    ensure!(
        after.lease.generation > latest,
        format!("a generation above {latest}: none repeats within an instance"),
        || format!("generation {}", after.lease.generation),
    )
}

pub(in crate::check) fn limits(subject: &Subject) -> Checked<Ran> {
    let settings = subject.main_settings();
    subject.begin(settings);
    let mut instance = subject.start(&ManualClock::new())?;
    let longest = "k".repeat(LONG);
    if let Err(error) = instance.attach(&longest, settings)? {
        subject.note(format!(
            "refuses a key of {LONG} bytes, which the host takes: {}",
            refusal(&error)
        ));
    }
    match instance.attach(&"k".repeat(4 << 20), settings)? {
        Ok(_) => subject.note("takes a key of 4 MiB"),
        Err(AttachError::Key(_)) => {}
        Err(other) => return Err(Problem::new("a key error for a key of 4 MiB", refusal(&other))),
    }
    subject.did(format!("attach {MANY} circuits"));
    let mut numbers = BTreeSet::new();
    for circuit in 0..MANY {
        match instance.attach(&format!("many {circuit}"), settings)? {
            Ok(attachment) => drop(numbers.insert(attachment.circuit)),
            Err(AttachError::Full(limit)) => {
                subject.note(format!("holds {limit} circuits at the most"));
                break;
            }
            Err(other) => return Err(Problem::new("a circuit, or `full`", refusal(&other))),
        }
        ensure!(
            numbers.len() == circuit + 1,
            "a number of its own for each circuit",
            || format!("circuit {circuit} has another's"),
        )?;
    }
    passing(subject, settings)?;
    Ok(Ran::done(format!(
        "{} circuits at once, {PASSING} that come and go, keys of {LONG} bytes and 4 MiB",
        numbers.len()
    )))
}

/// Circuits that are detached give their memory back: at once, or after a while where it is collected now and then. So it may grow
/// for some rounds, and not for all of them.
fn passing(subject: &Subject, settings: &str) -> Checked {
    let mut instance = subject.start(&ManualClock::new())?;
    let mut before = come_and_go(subject, settings, &mut instance, PASSING / 10)?;
    let mut more = 0;
    for _ in 0..ROUNDS {
        let after = come_and_go(subject, settings, &mut instance, PASSING)?;
        more = after.saturating_sub(before);
        if more <= LEFT {
            return Ok(());
        }
        before = after;
    }
    Err(Problem::new(
        format!("a round that takes at most {LEFT} bytes more than the one before"),
        format!("{ROUNDS} that took more, the last one {more} bytes"),
    ))
}

/// The size of the memory after so many circuits.
fn come_and_go(
    subject: &Subject,
    settings: &str,
    instance: &mut Instance,
    circuits: usize,
) -> Checked<usize> {
    subject.did(format!(
        "attach, trip and detach {circuits} circuits, one after the other"
    ));
    for circuit in 0..circuits {
        let attached = instance
            .attach(&format!("passing {circuit}"), settings)?
            .map_err(|error| Problem::refused(&error))?;
        instance.acquire(attached.circuit)?;
        instance.trip(attached.circuit, None)?;
        instance.detach(attached.circuit)?;
        instance.heard();
    }
    Ok(instance.memory())
}

fn attached(subject: &Subject, instance: &mut Instance, key: &str, settings: &str) -> Checked<Attachment> {
    subject.did(format!("attach {key:?} with {settings:?}"));
    instance
        .attach(key, settings)?
        .map_err(|error| Problem::refused(&error))
}

fn said(answer: &Result<Attachment, AttachError>) -> String {
    match answer {
        Ok(attachment) => format!("circuit {}", attachment.circuit),
        Err(error) => refusal(error),
    }
}
