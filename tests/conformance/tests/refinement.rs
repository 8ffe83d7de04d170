//! The shipped component does what the native core does, step by step. `TRIPWIT_STEPS` says how many random steps each
//! policy goes, and `TRIPWIT_SEED` which way.

use anyhow::{Context, Result};
use tripwit_conformance::refinement::{CONSECUTIVE, OUTBOX, Refined, WINDOW, every_step, random};
use tripwit_core::{Consecutive, Outbox, Policy, Window};
use tripwit_leases::settings::{
    BACK_OFF, CALL_TIMEOUT, LAST_CALLS, LAST_TICKS, NO_CYCLES, RETRY_AFTER, SLOW_CALLS, Setting, THRESHOLD,
    TWO_CYCLES, TWO_PROBES,
};

/// Steps of each policy where nothing else is said.
const STEPS: u64 = 20_000;

fn number(variable: &str, default: u64) -> Result<u64> {
    match std::env::var(variable) {
        Ok(text) => text
            .parse()
            .with_context(|| format!("{variable} is {text:?}; write a whole number")),
        Err(_) => Ok(default),
    }
}

/// `operations` are those that the policy has.
fn goes_the_same_way(refined: Refined, operations: &[&str]) -> Result<()> {
    let (seed, steps) = (number("TRIPWIT_SEED", 1)?, number("TRIPWIT_STEPS", STEPS)?);
    let walked = random(refined, seed, steps)?;
    println!("{walked}");
    let few = |operation: &&str| walked.moves.get(*operation).is_none_or(|moves| *moves < 10);
    assert!(
        !operations.iter().any(few),
        "too few moves to mean anything: {walked}"
    );
    Ok(())
}

fn takes_every_step<P: Policy>(refined: Refined, settings: &[Setting]) -> Result<()> {
    for setting in settings {
        let replayed = every_step::<P>(refined, setting)?;
        println!("{}, {}: {replayed}", P::NAME, setting.name);
    }
    Ok(())
}

#[test]
fn consecutive_goes_the_same_way_as_a_component() -> Result<()> {
    goes_the_same_way(CONSECUTIVE, &["Trip", "ReTrip", "HalfOpen", "Reset"])
}

#[test]
fn outbox_goes_the_same_way_as_a_component() -> Result<()> {
    goes_the_same_way(OUTBOX, &["Trip", "ReTrip", "Reset"])
}

#[test]
fn window_goes_the_same_way_as_a_component() -> Result<()> {
    goes_the_same_way(WINDOW, &["Trip", "ReTrip", "HalfOpen", "Reset"])
}

#[test]
fn consecutive_takes_every_step_as_a_component() -> Result<()> {
    takes_every_step::<Consecutive>(
        CONSECUTIVE,
        &[THRESHOLD, CALL_TIMEOUT, TWO_PROBES, BACK_OFF, RETRY_AFTER],
    )
}

#[test]
fn outbox_takes_every_step_as_a_component() -> Result<()> {
    takes_every_step::<Outbox>(OUTBOX, &[NO_CYCLES, TWO_CYCLES])
}

#[test]
fn window_takes_every_step_as_a_component() -> Result<()> {
    takes_every_step::<Window>(WINDOW, &[LAST_CALLS, LAST_TICKS, SLOW_CALLS])
}
