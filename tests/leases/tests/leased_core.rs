//! Leases on the native core: equal, and found out where they lie.
#![expect(clippy::unwrap_used, reason = "these are tests")]

use tripwit_core::{Allowance, Consecutive, Lease, Outbox, Policy, Standing, Successes, Timed};
use tripwit_leases::{Bounds, CONSECUTIVE, Difference, OUTBOX, SHARE, Setting, Share, UNIT, Walk, walk};

fn walked<P: Policy>(setting: &Setting, read: fn(Lease) -> Lease) -> Result<Walk, Difference> {
    walk::<P>(P::parse(setting.json).unwrap(), setting.bounds, read)
}

fn leased_as_asked<P: Policy>(settings: &[Setting]) {
    for setting in settings {
        let walk = walked::<P>(setting, |lease| lease).unwrap_or_else(|difference| panic!("{difference}"));
        println!(
            "{}, {}: {} states, {} steps; of {} calls {} began without asking, and of {} ends {} were not told at once",
            P::NAME,
            setting.name,
            walk.states(),
            walk.steps,
            walk.begun,
            walk.begun_unasked,
            walk.ended,
            walk.ended_untold,
        );
        assert!(walk.begun_unasked > 0 && walk.ended_untold > 0, "the leases decide nothing");
    }
}

#[test]
fn consecutive_decides_by_leases_as_when_asked() {
    leased_as_asked::<Consecutive>(CONSECUTIVE);
}

#[test]
fn outbox_decides_by_leases_as_when_asked() {
    leased_as_asked::<Outbox>(OUTBOX);
}

#[test]
fn successes_kept_back_by_number_change_nothing() {
    leased_as_asked::<Timed<Share>>(SHARE);
}

