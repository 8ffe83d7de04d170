//! What was walked on the native core, taken through the component in the real host.

use anyhow::{Context, Result};
use tripwit_core::{Consecutive, Outbox, Policy, Window};
use tripwit_leases::settings::{
    BACK_OFF, CALL_TIMEOUT, LAST_CALLS, LAST_TICKS, NO_CYCLES, RETRY_AFTER, SLOW_CALLS, Setting, THRESHOLD,
    TWO_CYCLES, TWO_PROBES,
};
use tripwit_leases::{Difference, Replay, walk};

#[test]
fn consecutive_with_thresholds_is_the_same_as_a_component() -> Result<()> {
    alike::<Consecutive>(&tripwit::Policy::consecutive()?, &THRESHOLD)
}

#[test]
fn consecutive_with_a_call_timeout_is_the_same_as_a_component() -> Result<()> {
    alike::<Consecutive>(&tripwit::Policy::consecutive()?, &CALL_TIMEOUT)
}

#[test]
fn consecutive_with_two_probes_is_the_same_as_a_component() -> Result<()> {
    alike::<Consecutive>(&tripwit::Policy::consecutive()?, &TWO_PROBES)
}

#[test]
fn consecutive_with_back_off_is_the_same_as_a_component() -> Result<()> {
    alike::<Consecutive>(&tripwit::Policy::consecutive()?, &BACK_OFF)
}

#[test]
fn consecutive_that_heeds_retry_after_is_the_same_as_a_component() -> Result<()> {
    alike::<Consecutive>(&tripwit::Policy::consecutive()?, &RETRY_AFTER)
}

#[test]
fn window_of_calls_is_the_same_as_a_component() -> Result<()> {
    alike::<Window>(&tripwit::Policy::window()?, &LAST_CALLS)
}

#[test]
fn window_of_time_is_the_same_as_a_component() -> Result<()> {
    alike::<Window>(&tripwit::Policy::window()?, &LAST_TICKS)
}

#[test]
fn window_with_slow_calls_is_the_same_as_a_component() -> Result<()> {
    alike::<Window>(&tripwit::Policy::window()?, &SLOW_CALLS)
}

#[test]
fn outbox_is_the_same_as_a_component() -> Result<()> {
    let component = tripwit::Policy::outbox()?;
    alike::<Outbox>(&component, &NO_CYCLES)?;
    alike::<Outbox>(&component, &TWO_CYCLES)
}

fn alike<P: Policy>(component: &tripwit::Policy, setting: &Setting) -> Result<()> {
    let walk = walk::<P>(setting, |lease| lease)?;
    let replayed = Replay::<P>::new(component, setting, P::parse(setting.json)?)?.all(walk.paths())?;
    println!(
        "{}, {}: all {} steps from all {} states, {} steps with the paths there",
        P::NAME,
        setting.name,
        replayed.paths,
        walk.states(),
        replayed.steps,
    );
    assert_eq!(replayed.paths, walk.steps);
    Ok(())
}

#[test]
fn a_component_that_decides_otherwise_is_found_out() -> Result<()> {
    let walk = walk::<Outbox>(&TWO_CYCLES, |lease| lease)?;
    let other = Outbox::parse(r#"{"cooldown_count": 1}"#)?;
    let mut replay = Replay::<Outbox>::new(&tripwit::Policy::outbox()?, &TWO_CYCLES, other)?;
    let error = replay
        .all(walk.paths())
        .err()
        .context("the difference went unnoticed")?;
    assert_eq!(error.downcast::<Difference>()?.trace.to_string(), "trip");
    Ok(())
}
