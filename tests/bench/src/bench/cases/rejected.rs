//! Blocking calls to an open circuit.

use anyhow::Result;
use tripwit_bench::{Guarding, Inputs};

use super::add_clock_readings;
use crate::group::{Group, blocking};
use crate::guard::{Bare, Guard};
use crate::peers;
use crate::subject::Subject;

/// Alone, and two threads on the same circuit. The bare call is made.
pub(crate) fn group() -> Result<Group> {
    let inputs = Inputs::healthy();
    let mut group = Group::new(NAME, &[1, 2]);
    group.add(Subject::Bare, "", blocking(Bare, &inputs));
    for guarding in [Guarding::Consecutive, Guarding::WindowCount] {
        let breaker = guarding.breakers()?.breaker("orders")?;
        breaker.trip();
        group.add_rejecting(Subject::Tripwit, guarding, blocking(breaker, &inputs));
    }
    let recloser = blocking(tripped(peers::recloser()), &inputs);
    group.add_rejecting(Subject::Recloser, peers::RECLOSER, recloser);
    let failsafe = blocking(tripped(peers::failsafe_consecutive()), &inputs);
    group.add_rejecting(
        Subject::FailsafeConsecutive,
        peers::FAILSAFE_CONSECUTIVE,
        failsafe,
    );
    let failsafe = blocking(tripped(peers::failsafe_default()), &inputs);
    group.add_rejecting(Subject::FailsafeDefault, peers::FAILSAFE_DEFAULT, failsafe);
    add_clock_readings(&mut group);
    Ok(group)
}

/// Opened by calls that fail: the runner finds it out where that was not enough.
fn tripped<G: Guard>(guard: G) -> G {
    for input in Inputs::failing(1, 1).each(200) {
        guard.call(input);
    }
    guard
}

/// The name of the rows.
pub(crate) const NAME: &str = "rejected";
