//! Blocking calls some of which fail, but never so many that the circuit opens.

use anyhow::Result;
use tripwit_bench::{Guarding, Inputs};

use super::crossing::told_of_each;
use crate::group::{Group, blocking};
use crate::guard::Bare;
use crate::peers;
use crate::subject::Subject;

/// Four failures, then a success, under a threshold of five: every call counts.
pub(crate) fn below_the_threshold() -> Result<Group> {
    let inputs = Inputs::failing(4, 5);
    let mut group = group(NAME, &inputs)?;
    for guarding in [Guarding::Consecutive, Guarding::WindowCount] {
        group.add_named(RAW, guarding, told_of_each(guarding, &inputs));
    }
    Ok(group)
}

/// One call of a hundred fails.
pub(crate) fn one_percent() -> Result<Group> {
    group("failing, 1 %", &Inputs::failing(1, 100))
}

/// Every second call fails.
pub(crate) fn fifty_percent() -> Result<Group> {
    group("failing, 50 %", &Inputs::failing(1, 2))
}

fn group(name: &'static str, inputs: &Inputs) -> Result<Group> {
    let mut group = Group::new(name, &[1]);
    group.add(Subject::Bare, "", blocking(Bare, inputs));
    for guarding in [Guarding::Consecutive, Guarding::WindowCount] {
        let breaker = guarding.breakers()?.breaker("orders")?;
        group.add(Subject::Tripwit, guarding, blocking(breaker, inputs));
    }
    group.add(
        Subject::Recloser,
        peers::RECLOSER,
        blocking(peers::recloser(), inputs),
    );
    let failsafe = blocking(peers::failsafe_consecutive(), inputs);
    group.add(
        Subject::FailsafeConsecutive,
        peers::FAILSAFE_CONSECUTIVE,
        failsafe,
    );
    let failsafe = blocking(peers::failsafe_default(), inputs);
    group.add(Subject::FailsafeDefault, peers::FAILSAFE_DEFAULT, failsafe);
    Ok(group)
}

/// The name of the rows.
pub(crate) const NAME: &str = "failing below the threshold";
/// The name of the rows of the crossings that those calls need.
pub(crate) const RAW: &str = "crossings, failing below the threshold";
