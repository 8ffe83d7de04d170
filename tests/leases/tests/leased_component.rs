//! Every path that was found on the native core, taken through the component in the real host.

use anyhow::Result;
use tripwit_core::{Consecutive, Outbox, Policy};
use tripwit_leases::{CONSECUTIVE, OUTBOX, Replay, Setting, walk};

fn taken_alike<P: Policy>(component: &tripwit::Policy, settings: &[Setting]) -> Result<()> {
    for setting in settings {
        let walk = walk::<P>(P::parse(setting.json)?, setting.bounds, |lease| lease)?;
        let mut replay = Replay::<P>::new(component, setting)?;
        let replayed = replay.all(walk.paths())?;
        println!(
            "{}, {}: all {} steps from all {} states, {} steps with the paths there",
            P::NAME,
            setting.name,
            replayed.paths,
            walk.states(),
            replayed.steps,
        );
        assert_eq!(replayed.paths, walk.steps);
    }
    Ok(())
}

#[test]
fn consecutive_answers_through_the_component_as_on_the_core() -> Result<()> {
    taken_alike::<Consecutive>(&tripwit::Policy::consecutive()?, CONSECUTIVE)
}

#[test]
fn outbox_answers_through_the_component_as_on_the_core() -> Result<()> {
    taken_alike::<Outbox>(&tripwit::Policy::outbox()?, OUTBOX)
}
