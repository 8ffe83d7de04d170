//! Calls of a tower service.

use std::hint::black_box;

use anyhow::Result;
use tower::{Layer, Service, ServiceExt, service_fn};
use tripwit::tower::{BreakerLayer, ServiceError};
use tripwit_bench::{Guarding, Inputs, Refused};

use crate::group::{Group, Readiness, Start, runtime};
use crate::guard::{Answer, Ending};
use crate::peers;
use crate::subject::Subject;

/// Healthy calls.
pub(crate) fn healthy() -> Result<Group> {
    let inputs = Inputs::healthy();
    let mut group = Group::new("healthy, tower", &[1]);
    group.add(Subject::Bare, "", called(bare(Readiness::Ready), &inputs));
    for guarding in [Guarding::Consecutive, Guarding::WindowCount, Guarding::WindowTime] {
        add_both(&mut group, guarding, &inputs)?;
    }
    Ok(group)
}

/// Tripwit and its peer.
fn add_both(group: &mut Group, guarding: Guarding, inputs: &Inputs) -> Result<()> {
    let ours = tripwit(guarding, Readiness::Ready)?;
    group.add(Subject::Tripwit, guarding, called(ours, inputs));
    let peer = peers::tower_resilience(guarding)?.layer(bare(Readiness::Ready));
    group.add(Subject::TowerResilience, guarding, called(peer, inputs));
    Ok(())
}

/// Healthy calls with a time-out, ready at once.
pub(crate) fn ready_with_timeout() -> Result<Group> {
    with_timeout("healthy, tower, time-out, ready at once", Readiness::Ready)
}

/// Healthy calls with a time-out, pending first: a timer runs.
pub(crate) fn pending_with_timeout() -> Result<Group> {
    with_timeout("healthy, tower, time-out, pending once", Readiness::Pending)
}

fn with_timeout(name: &'static str, pace: Readiness) -> Result<Group> {
    let inputs = Inputs::healthy();
    let mut group = Group::new(name, &[1]);
    group.add(Subject::Bare, "", called(bare(pace), &inputs));
    let guarding = Guarding::ConsecutiveTimeout;
    group.add(
        Subject::Tripwit,
        guarding,
        called(tripwit(guarding, pace)?, &inputs),
    );
    let timeout = service_fn(move |input| tokio::time::timeout(Guarding::CALL_TIMEOUT, pace.work(input)));
    group.add(Subject::TokioTimeout, "", called(timeout, &inputs));
    Ok(group)
}

/// Calls to an open circuit.
pub(crate) fn rejected() -> Result<Group> {
    let (inputs, guarding) = (Inputs::healthy(), Guarding::Consecutive);
    let mut group = Group::new("rejected, tower", &[1]);
    group.add(Subject::Bare, "", called(bare(Readiness::Ready), &inputs));
    let breakers = guarding.breakers()?;
    breakers.breaker(KEY)?.trip();
    let service = BreakerLayer::new(breakers, |_: &u64| KEY).layer(bare(Readiness::Ready));
    group.add_rejecting(Subject::Tripwit, guarding, called(service, &inputs));
    let peer = peers::tower_resilience(guarding)?.layer(bare(Readiness::Ready));
    runtime()?.block_on(peer.force_open());
    group.add_rejecting(Subject::TowerResilience, guarding, called(peer, &inputs));
    Ok(group)
}

/// Four failures, then a success, under a threshold of five.
pub(crate) fn failing() -> Result<Group> {
    let inputs = Inputs::failing(4, 5);
    let mut group = Group::new("failing below the threshold, tower", &[1]);
    group.add(Subject::Bare, "", called(bare(Readiness::Ready), &inputs));
    add_both(&mut group, Guarding::Consecutive, &inputs)?;
    Ok(group)
}

fn bare(
    pace: Readiness,
) -> impl Service<u64, Response = u64, Error = Refused, Future: Send> + Clone + Send + Sync + 'static {
    service_fn(move |input| pace.work(input))
}

fn tripwit(
    guarding: Guarding,
    pace: Readiness,
) -> Result<impl Service<u64, Response = u64, Error = ServiceError<Refused>> + Clone + Send + Sync + 'static>
{
    Ok(BreakerLayer::new(guarding.breakers()?, |_: &u64| KEY).layer(bare(pace)))
}

/// Calls one after the other, in a runtime of the thread's own.
fn called<S>(service: S, inputs: &Inputs) -> Start
where
    S: Service<u64> + Clone + Send + Sync + 'static,
    Result<S::Response, S::Error>: Answer,
{
    let inputs = inputs.clone();
    Box::new(move || {
        let (mut service, inputs, runtime) = (service.clone(), inputs.clone(), runtime()?);
        Ok(Box::new(move |calls| {
            runtime.block_on(async {
                let mut ending = Ending::Made;
                for input in inputs.each(calls) {
                    let answer = match service.ready().await {
                        Ok(service) => service.call(black_box(input)).await,
                        Err(error) => Err(error),
                    };
                    ending = black_box(&answer).ending();
                }
                ending
            })
        }))
    })
}

/// The circuit that every request goes through.
const KEY: &str = "orders";
