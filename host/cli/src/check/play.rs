//! Taking a walk with one circuit, or with two that must come to the same.

use tripwit::raw::{Mode, Outcome};

use super::answer::{Answer, differences, report};
use super::case::Case;
use super::circuit::Circuit;
use super::leased;
use super::problem::{Checked, Problem, ensure_of};
use super::step::Step;
use super::subject::Subject;
use super::walk::Play;

const SECOND: u64 = 1_000_000_000;

/// Takes a walk.
///
/// `draws`: what happens depends on the seed under these settings.
pub(super) fn take(subject: &Subject, settings: &str, steps: &[Step], play: Play, draws: bool) -> Checked {
    match play {
        Play::Plain => plain(subject, settings, steps),
        Play::Looks => looks(subject, settings, steps),
        Play::VoidTickets => void_tickets(subject, settings, steps),
        Play::Shadow => shadow(subject, settings, steps),
        Play::TakenOver => taken_over(subject, settings, steps, draws),
        Play::StepsBack => steps_back(subject, settings, steps),
        Play::Leases => leased::take(subject, settings, steps),
    }
}

fn plain(subject: &Subject, settings: &str, steps: &[Step]) -> Checked {
    let mut circuit = Circuit::new(subject, settings)?;
    for step in steps {
        circuit.look()?;
        circuit.step(*step)?;
    }
    circuit.look()?;
    Ok(())
}

fn steps_back(subject: &Subject, settings: &str, steps: &[Step]) -> Checked {
    let mut circuit = Circuit::new(subject, settings)?;
    for (place, step) in steps.iter().enumerate() {
        // At every ninth step, by one of five lengths.
        if place % 9 == 4 {
            let back = [1, SECOND, 20 * SECOND, 500 * SECOND, u64::MAX];
            let by = back.get(place / 9 % back.len()).copied().unwrap_or(1);
            circuit.step(Step::Back(by))?;
        }
        circuit.step(*step)?;
        circuit.look()?;
    }
    Ok(())
}

/// A circuit that is written about, and one beside it that is not.
fn pair<'s>(subject: &'s Subject, settings: &str, name: &'static str) -> Checked<(Circuit<'s>, Circuit<'s>)> {
    let mut shown = Circuit::new(subject, settings)?;
    shown.name = name;
    let mut other = Circuit::beside(subject, settings, shown.same_time(), "")?;
    other.quiet = true;
    Ok((shown, other))
}

fn looks(subject: &Subject, settings: &str, steps: &[Step]) -> Checked {
    let (mut looked_at, mut other) = pair(subject, settings, "looked at")?;
    for step in steps {
        looked_at.look_around()?;
        looked_at.did("look in every way", "");
        let answers = (looked_at.step(*step)?, other.step(*step)?);
        same(
            Case::Queries,
            "the circuit that nobody looks at",
            &answers.1,
            "the one that is",
            &answers.0,
        )?;
    }
    same_status(Case::Queries, &mut other, &mut looked_at)
}

/// After each step a ticket that is used up, of an older generation or unknown is settled in one of them.
fn void_tickets(subject: &Subject, settings: &str, steps: &[Step]) -> Checked {
    let (mut circuit, mut other) = pair(subject, settings, "with void tickets")?;
    for (place, step) in steps.iter().enumerate() {
        let answers = (circuit.step(*step)?, other.step(*step)?);
        same(
            Case::Permits,
            "without void tickets",
            &answers.1,
            "with them",
            &answers.0,
        )?;
        let outcomes = [
            Outcome::Failure,
            Outcome::Success,
            Outcome::Timeout,
            Outcome::Ignored,
        ];
        let outcome = outcomes
            .get(place % outcomes.len())
            .copied()
            .unwrap_or(Outcome::Failure);
        let generation = circuit.lease.generation;
        let older = circuit
            .permits
            .iter()
            .find(|permit| permit.generation < generation);
        let (ticket, case) = match (place % 3, older, circuit.void.last()) {
            (0, Some(older), _) => (older.ticket, Case::Generations),
            (1, _, Some(used)) => (*used, Case::Permits),
            _ => (u64::MAX - place as u64, Case::Permits),
        };
        circuit.settle_void(ticket, &report(outcome), case)?;
    }
    same_status(Case::Permits, &mut other, &mut circuit)
}

fn shadow(subject: &Subject, settings: &str, steps: &[Step]) -> Checked {
    let (mut shadow, mut other) = pair(subject, settings, "shadow")?;
    // As many changes for both, so that what is drawn for a generation is drawn for both.
    shadow.set_mode(Mode::Disabled)?;
    other.set_mode(Mode::Disabled)?;
    shadow.set_mode(Mode::Shadow)?;
    other.set_mode(Mode::Automatic)?;
    for step in steps {
        let decides = matches!(step, Step::SetMode(Mode::Automatic | Mode::Shadow));
        let (in_shadow, in_automatic) = if decides {
            (Step::SetMode(Mode::Shadow), Step::SetMode(Mode::Automatic))
        } else {
            (*step, *step)
        };
        let mut answers = (shadow.step(in_shadow)?, other.step(in_automatic)?);
        if let (Some(one), Some(other)) = (&mut answers.0.lease, &answers.1.lease) {
            one.mode = other.mode;
        }
        same(Case::Modes, "in automatic", &answers.1, "in shadow", &answers.0)?;
    }
    Ok(())
}

/// Half-way, or as soon after as no probe is under way, the circuit is saved and taken over.
fn taken_over(subject: &Subject, settings: &str, steps: &[Step], draws: bool) -> Checked {
    let mut circuit = Circuit::new(subject, settings)?;
    let mut saved: Option<Circuit<'_>> = None;
    for (place, step) in steps.iter().enumerate() {
        if let Some(restored) = &mut saved {
            let answers = (circuit.step(*step)?, restored.step(*step)?);
            same(
                Case::Snapshots,
                "the circuit that was saved",
                &answers.0,
                "the one that was restored",
                &answers.1,
            )?;
        } else {
            circuit.step(*step)?;
        }
        if saved.is_none() && place >= steps.len() / 2 && circuit.look()?.counts.probes_in_flight == 0 {
            let mut restored = circuit.over(settings)?;
            same_status(Case::Snapshots, &mut circuit, &mut restored)?;
            circuit.quiet = true;
            if draws {
                return Ok(());
            }
            saved = Some(restored);
        }
    }
    match saved {
        Some(mut restored) => same_status(Case::Snapshots, &mut circuit, &mut restored),
        None => Ok(()),
    }
}

/// Whether a walk comes out otherwise with another seed.
pub(super) fn draws(subject: &Subject, settings: &str, steps: &[Step]) -> Checked<bool> {
    let mut one = Circuit::new(subject, settings)?;
    let clock = one.same_time();
    let instance = subject.start_with(&clock, subject.seed.wrapping_add(1))?;
    let mut other = Circuit::of(subject, instance, settings, clock, "other seed")?;
    for step in steps {
        if one.step(*step)? != other.step(*step)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn same(case: Case, one: &str, expected: &Answer, other: &str, got: &Answer) -> Checked {
    if expected == got {
        return Ok(());
    }
    Err(Problem::of(
        case,
        format!("as {one}: {expected}"),
        format!("{other}: {got}"),
    ))
}

fn same_status(case: Case, one: &mut Circuit<'_>, other: &mut Circuit<'_>) -> Checked {
    let statuses = (one.look()?, other.look()?);
    let difference = differences(&statuses.0, &statuses.1);
    ensure_of!(case, difference.is_none(), "both circuits show the same", || {
        difference.unwrap_or_default()
    })
}
