//! Leases on the native core: as good as asking, and found out where they lie.

use anyhow::{Context, Result};
use tripwit_core::{
    Allowance, Consecutive, Lease, Outbox, Policy, RejectionReason, Standing, Successes, Window,
};
use tripwit_leases::settings::{
    BACK_OFF, CALL_TIMEOUT, LAST_CALLS, LAST_TICKS, NO_CYCLES, RETRY_AFTER, SLOW_CALLS, Setting, THRESHOLD,
    TWO_CYCLES, TWO_PROBES,
};
use tripwit_leases::{Difference, UNIT, walk};

#[test]
fn consecutive_decides_by_leases_as_when_asked() -> Result<()> {
    [THRESHOLD, CALL_TIMEOUT, TWO_PROBES, BACK_OFF, RETRY_AFTER]
        .iter()
        .try_for_each(alike::<Consecutive>)
}

#[test]
fn outbox_decides_by_leases_as_when_asked() -> Result<()> {
    [NO_CYCLES, TWO_CYCLES].iter().try_for_each(alike::<Outbox>)
}

#[test]
fn window_of_calls_decides_by_leases_as_when_asked() -> Result<()> {
    alike::<Window>(&LAST_CALLS)
}

#[test]
fn window_of_time_decides_by_leases_as_when_asked() -> Result<()> {
    alike::<Window>(&LAST_TICKS)
}

#[test]
fn window_with_slow_calls_decides_by_leases_as_when_asked() -> Result<()> {
    alike::<Window>(&SLOW_CALLS)
}

fn alike<P: Policy>(setting: &Setting) -> Result<()> {
    let walk = walk::<P>(setting, |lease| lease)?;
    println!("{}, {}: {walk}", P::NAME, setting.name);
    assert!(
        walk.begun_unasked > 0 && walk.ended_untold > 0,
        "the leases decide nothing"
    );
    Ok(())
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
    let trace = "acquire, acquire, success of 0, acquire, failure of 0, acquire, failure of 0, success of 0";
    found_out::<Window>(&LAST_CALLS, lie, trace)
}

#[test]
fn a_lease_that_drops_successes_that_count_is_found_out() -> Result<()> {
    let lie = |lease: Lease| Lease {
        successes: Successes::Never,
        ..lease
    };
    found_out::<Consecutive>(&THRESHOLD, lie, "acquire, acquire, failure of 0, success of 0")
}

#[test]
fn a_lease_that_holds_one_tick_too_long_is_found_out() -> Result<()> {
    let lie = |lease: Lease| Lease {
        until: lease.until.map(|until| until + UNIT),
        ..lease
    };
    found_out::<Consecutive>(&THRESHOLD, lie, "trip, acquire")
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
    found_out::<Consecutive>(&TWO_PROBES, lie, "trip, tick, acquire, acquire")
}

#[test]
fn a_lease_that_admits_to_a_tripped_circuit_is_found_out() -> Result<()> {
    let lie = |lease: Lease| Lease {
        standing: Standing::Admit(lease.generation),
        ..lease
    };
    found_out::<Outbox>(&NO_CYCLES, lie, "trip, acquire")
}

/// The first difference, which a shortest trace shows.
fn found_out<P: Policy>(setting: &Setting, lie: fn(Lease) -> Lease, trace: &str) -> Result<()> {
    let error = walk::<P>(setting, lie).err().context("the lie went unnoticed")?;
    let difference = error.downcast::<Difference>()?;
    println!("{difference}");
    assert_eq!(difference.trace.to_string(), trace);
    Ok(())
}
