//! Healthy blocking calls, spread over many circuits.

use anyhow::Result;
use tripwit_bench::{Guarding, Inputs, sixteen_byte_key};

use crate::group::{Group, blocking};
use crate::guard::{Bare, Guard};
use crate::peers;
use crate::subject::Subject;

/// How many circuits: their gates do not fit into the innermost cache.
const CIRCUITS: usize = 10_000;

/// Alone, and on two threads that rarely meet.
pub(crate) fn group() -> Result<Group> {
    let inputs = Inputs::healthy_at_random();
    let mut group = Group::new("healthy, many circuits", &[1, 2]);
    group.add(Subject::Bare, "", blocking(Bare, &inputs));
    let breakers = Guarding::Consecutive.breakers()?;
    let circuits = (0..CIRCUITS).map(|number| breakers.breaker(&sixteen_byte_key(number)));
    let circuits = Many(circuits.collect::<Result<Vec<_>, _>>()?);
    group.add(
        Subject::Tripwit,
        Guarding::Consecutive,
        blocking(circuits, &inputs),
    );
    group.add(
        Subject::Recloser,
        peers::RECLOSER,
        blocking(many(peers::recloser), &inputs),
    );
    let failsafe = blocking(many(peers::failsafe_consecutive), &inputs);
    group.add(
        Subject::FailsafeConsecutive,
        peers::FAILSAFE_CONSECUTIVE,
        failsafe,
    );
    let failsafe = blocking(many(peers::failsafe_default), &inputs);
    group.add(Subject::FailsafeDefault, peers::FAILSAFE_DEFAULT, failsafe);
    Ok(group)
}

/// The input says which one guards the call.
struct Many<G>(Vec<G>);

impl<G: Guard> Guard for Many<G> {
    type Answer = G::Answer;

    #[inline]
    #[expect(clippy::indexing_slicing, reason = "a remainder is within bounds")]
    fn call(&self, input: u64) -> Self::Answer {
        self.0[input as usize % CIRCUITS].call(input)
    }
}

fn many<G>(one: impl Fn() -> G) -> Many<G> {
    Many((0..CIRCUITS).map(|_| one()).collect())
}
