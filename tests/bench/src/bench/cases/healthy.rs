//! Blocking calls that end well, on one circuit.

use anyhow::Result;
use tripwit_bench::{Guarding, Inputs};

use super::add_clock_readings;
use crate::group::{Group, blocking};
use crate::guard::Bare;
use crate::peers;
use crate::subject::Subject;

/// Alone, and two threads on the same circuit.
pub(crate) fn group() -> Result<Group> {
    let inputs = Inputs::healthy();
    let mut group = Group::new(NAME, &[1, 2]);
    group.add(Subject::Bare, "", blocking(Bare, &inputs));
    for guarding in Guarding::ALL {
        let breaker = guarding.breakers()?.breaker("orders")?;
        group.add(Subject::Tripwit, guarding, blocking(breaker, &inputs));
    }
    group.add(
        Subject::Recloser,
        peers::RECLOSER,
        blocking(peers::recloser(), &inputs),
    );
    let failsafe = blocking(peers::failsafe_consecutive(), &inputs);
    group.add(
        Subject::FailsafeConsecutive,
        peers::FAILSAFE_CONSECUTIVE,
        failsafe,
    );
    let failsafe = blocking(peers::failsafe_default(), &inputs);
    group.add(Subject::FailsafeDefault, peers::FAILSAFE_DEFAULT, failsafe);
    add_clock_readings(&mut group);
    Ok(group)
}

/// The name of the rows.
pub(crate) const NAME: &str = "healthy";
