//! Healthy calls that are awaited.

use anyhow::Result;
use recloser::AsyncRecloser;
use tripwit_bench::{Guarding, Inputs};

use crate::group::{Group, Readiness, awaited};
use crate::guard::{Bare, Timeout};
use crate::peers;
use crate::subject::Subject;

/// Without a time-out.
pub(crate) fn group() -> Result<Group> {
    let inputs = Inputs::healthy();
    let mut group = Group::new("healthy, async", &[1]);
    group.add(Subject::Bare, "", awaited(Bare, Readiness::Ready, &inputs));
    for guarding in [Guarding::Consecutive, Guarding::WindowCount] {
        let breaker = guarding.breakers()?.breaker("orders")?;
        group.add(
            Subject::Tripwit,
            guarding,
            awaited(breaker, Readiness::Ready, &inputs),
        );
    }
    let recloser = awaited(AsyncRecloser::from(peers::recloser()), Readiness::Ready, &inputs);
    group.add(Subject::Recloser, peers::RECLOSER, recloser);
    let failsafe = awaited(peers::failsafe_consecutive(), Readiness::Ready, &inputs);
    group.add(
        Subject::FailsafeConsecutive,
        peers::FAILSAFE_CONSECUTIVE,
        failsafe,
    );
    let failsafe = awaited(peers::failsafe_default(), Readiness::Ready, &inputs);
    group.add(Subject::FailsafeDefault, peers::FAILSAFE_DEFAULT, failsafe);
    Ok(group)
}

/// With a time-out, of calls that are ready at once.
pub(crate) fn ready_with_timeout() -> Result<Group> {
    with_timeout("healthy, async, time-out, ready at once", Readiness::Ready)
}

/// With a time-out, of calls that are pending first: a timer runs.
pub(crate) fn pending_with_timeout() -> Result<Group> {
    with_timeout("healthy, async, time-out, pending once", Readiness::Pending)
}

fn with_timeout(name: &'static str, pace: Readiness) -> Result<Group> {
    let inputs = Inputs::healthy();
    let mut group = Group::new(name, &[1]);
    group.add(Subject::Bare, "", awaited(Bare, pace, &inputs));
    let guarding = Guarding::ConsecutiveTimeout;
    let breaker = guarding.breakers()?.breaker("orders")?;
    group.add(Subject::Tripwit, guarding, awaited(breaker, pace, &inputs));
    group.add(Subject::TokioTimeout, "", awaited(Timeout, pace, &inputs));
    Ok(group)
}
