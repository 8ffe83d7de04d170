//! The ways that a call can take.

use std::hint::black_box;

use anyhow::{Result, ensure};
use clap::ValueEnum;
use tower::{Layer, Service, ServiceExt, service_fn};
use tripwit::tower::BreakerLayer;
use tripwit::{Breaker, Breakers, CallError, Policy, State};
use tripwit_bench::{Guarding, Inputs, work};

/// One of them. All are under `consecutive` without a time-out, and with metrics on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Path {
    /// A blocking call that ends well.
    Healthy,
    /// A request to a tower service that ends well.
    HealthyTower,
    /// A blocking call to an open circuit.
    Rejected,
    /// Four failures, then a success: each is told to the component.
    Failing,
}

impl Path {
    pub(crate) const ALL: [Self; 4] = [Self::Healthy, Self::HealthyTower, Self::Rejected, Self::Failing];

    /// As options and counts spell it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::HealthyTower => "healthy-tower",
            Self::Rejected => "rejected",
            Self::Failing => "failing",
        }
    }

    /// Makes so many calls, within [`counted`].
    ///
    /// # Errors
    ///
    /// When there is no circuit, or it is not in the state that this path takes.
    pub(crate) fn run(self, policy: Policy, calls: u64) -> Result<()> {
        let breakers = Guarding::Consecutive.builder_of(policy).build()?;
        let breaker = breakers.breaker(KEY)?;
        let state = match self {
            Self::Healthy | Self::HealthyTower | Self::Failing => State::Closed,
            Self::Rejected => {
                breaker.trip();
                State::Open
            }
        };
        let mut make: Box<dyn FnMut(u64)> = match self {
            Self::Healthy | Self::Rejected => blocking(breaker.clone(), Inputs::healthy()),
            Self::Failing => blocking(breaker.clone(), Inputs::failing(4, 5)),
            Self::HealthyTower => in_tower(breakers)?,
        };
        // What a thread needs once it has then.
        make(Inputs::PERIOD);
        counted(&mut *make, calls);
        ensure!(breaker.state() == state, "the circuit is {} now", breaker.state());
        Ok(())
    }
}

/// What is within this is counted.
#[inline(never)]
fn counted(make: &mut dyn FnMut(u64), calls: u64) {
    make(black_box(calls));
}

/// As callgrind sees it.
pub(crate) const COUNTED: &str = concat!(module_path!(), "::counted*");

fn blocking(breaker: Breaker, inputs: Inputs) -> Box<dyn FnMut(u64)> {
    Box::new(move |calls| {
        for input in inputs.each(calls) {
            let answer: Result<u64, CallError<_>> = breaker.call_blocking(|| work(input));
            drop(black_box(answer));
        }
    })
}

fn in_tower(breakers: Breakers) -> Result<Box<dyn FnMut(u64)>> {
    let layer = BreakerLayer::new(breakers, |_: &u64| KEY);
    let mut service = layer.layer(service_fn(async |input| work(input)));
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    Ok(Box::new(move |calls| {
        runtime.block_on(async {
            for input in Inputs::healthy().each(calls) {
                if let Ok(service) = service.ready().await {
                    drop(black_box(service.call(input).await));
                }
            }
        });
    }))
}

const KEY: &str = "orders";
