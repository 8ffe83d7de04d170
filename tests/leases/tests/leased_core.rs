//! Leases on the native core: equal, and found out where they lie.

use anyhow::{Context, Result};
use tripwit_core::{
    Allowance, Consecutive, Lease, Outbox, Policy, RejectionReason, Standing, Successes, Timed,
};
use tripwit_leases::{CONSECUTIVE, Difference, OUTBOX, SHARE, Setting, Share, UNIT, Walk, walk};

fn walked<P: Policy>(setting: &Setting, read: fn(Lease) -> Lease) -> Result<Result<Walk, Difference>> {
    Ok(walk::<P>(P::parse(setting.json)?, setting.bounds, read))
}

fn leased_as_asked<P: Policy>(settings: &[Setting]) -> Result<()> {
    for setting in settings {
        let walk = walked::<P>(setting, |lease| lease)??;
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
        assert!(
            walk.begun_unasked > 0 && walk.ended_untold > 0,
            "the leases decide nothing"
        );
    }
    Ok(())
}

#[test]
fn consecutive_decides_by_leases_as_when_asked() -> Result<()> {
    leased_as_asked::<Consecutive>(CONSECUTIVE)
}

#[test]
fn outbox_decides_by_leases_as_when_asked() -> Result<()> {
    leased_as_asked::<Outbox>(OUTBOX)
}

#[test]
fn successes_kept_back_by_number_change_nothing() -> Result<()> {
    leased_as_asked::<Timed<Share>>(SHARE)
}

#[test]
fn an_allowance_that_is_one_too_many_is_found_out() -> Result<()> {
    let lie = |lease: Lease| Lease {
        successes: match lease.successes {
            Successes::Each => Successes::UpTo(Allowance {
                successes: 1,
                before: None,
            }),
            Successes::UpTo(allowance) => Successes::UpTo(Allowance {
                successes: allowance.successes.saturating_add(1),
                ..allowance
            }),
            Successes::Never => Successes::Never,
        },
        ..lease
    };
    shows_at::<Timed<Share>>(
        &SHARE[0],
        lie,
        "acquire, acquire, failure of 0, acquire, failure of 0, success of 0",
    )
}

#[test]
fn a_lease_that_drops_successes_that_count_is_found_out() -> Result<()> {
    let lie = |lease: Lease| Lease {
        successes: Successes::Never,
        ..lease
    };
    shows_at::<Consecutive>(
        &CONSECUTIVE[0],
        lie,
        "acquire, acquire, failure of 0, success of 0",
    )
}

#[test]
fn a_lease_that_holds_one_tick_too_long_is_found_out() -> Result<()> {
    let lie = |lease: Lease| Lease {
        until: lease.until.map(|until| until + UNIT),
        ..lease
    };
    shows_at::<Consecutive>(&CONSECUTIVE[0], lie, "trip, acquire")
}

#[test]
fn a_lease_that_hides_a_free_probe_is_found_out() -> Result<()> {
    let lie = |lease: Lease| Lease {
        standing: match lease.standing {
            Standing::Ask => Standing::Reject(RejectionReason::ProbeLimit),
            standing @ (Standing::Admit(_) | Standing::Pass | Standing::Reject(_)) => standing,
        },
        ..lease
    };
    let two_probes = CONSECUTIVE
        .iter()
        .find(|setting| setting.name == "two probes")
        .context("no such setting")?;
    shows_at::<Consecutive>(two_probes, lie, "trip, tick, acquire, acquire")
}

#[test]
fn a_tripped_circuit_that_admits_is_found_out() -> Result<()> {
    let lie = |lease: Lease| Lease {
        standing: Standing::Admit(lease.generation),
        ..lease
    };
    shows_at::<Outbox>(&OUTBOX[0], lie, "trip, acquire")
}

/// The first difference, which a shortest trace shows.
fn shows_at<P: Policy>(setting: &Setting, lie: fn(Lease) -> Lease, trace: &str) -> Result<()> {
    let difference = walked::<P>(setting, lie)?
        .err()
        .context("the lie went unnoticed")?;
    println!("{difference}");
    assert_eq!(difference.trace.to_string(), trace);
    Ok(())
}
