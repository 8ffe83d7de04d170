//! How often calls allocate.

use anyhow::Result;
use tower::{Layer, Service, ServiceExt, service_fn};
use tripwit::Breakers;
use tripwit::tower::BreakerLayer;
use tripwit_bench::{Guarding, allocations, work};

use crate::group::runtime;
use crate::results::Results;
use crate::runner::Effort;

/// So many calls of each kind.
const CALLS: u64 = 1_000;

/// Blocking, awaited and in a tower service.
pub(crate) fn measure(results: &mut Results, _effort: Effort) -> Result<()> {
    let breakers = Guarding::ConsecutiveTimeout.breakers()?;
    let breaker = breakers.breaker(KEY)?;
    results.figure(HEALTHY, counted(&breakers)? as f64, "allocations");
    breaker.trip();
    results.figure(REJECTED, counted(&breakers)? as f64, "allocations");
    Ok(())
}

/// The name of the figure.
pub(crate) const HEALTHY: &str = "allocations of 1,000 healthy calls each: blocking, async, tower";
/// The name of the figure.
pub(crate) const REJECTED: &str = "allocations of 1,000 rejected calls each: blocking, async, tower";

const KEY: &str = "orders";

fn counted(breakers: &Breakers) -> Result<u64> {
    let (runtime, breaker) = (runtime()?, breakers.breaker(KEY)?);
    let mut service =
        BreakerLayer::new(breakers.clone(), |_: &u64| KEY).layer(service_fn(async |input| work(input)));
    let mut calls = |calls: u64| {
        for input in 0..calls {
            drop(breaker.call_blocking(|| work(input)));
        }
        runtime.block_on(async {
            for input in 0..calls {
                drop(breaker.call(async { work(input) }).await);
                if let Ok(service) = service.ready().await {
                    drop(service.call(input).await);
                }
            }
        });
    };
    // What a thread needs once it has then.
    calls(1);
    Ok(allocations(|| calls(CALLS)))
}
