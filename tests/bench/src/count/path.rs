//! The ways that a call can take.

use std::hint::black_box;

use anyhow::{Result, ensure};
use clap::ValueEnum;
use tower::{Layer, Service, ServiceExt, service_fn};
use tripwit::tower::BreakerLayer;
use tripwit::{Breaker, Breakers, CallError, State};
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

    /// Makes so many calls.
    ///
    /// # Errors
    ///
    /// When there is no circuit, or it is not in the state that this path takes.
    pub(crate) fn run(self, calls: u64) -> Result<()> {
        let breakers = Guarding::Consecutive.breakers()?;
        let breaker = breakers.breaker(KEY)?;
        let state = match self {
            Self::Healthy | Self::HealthyTower | Self::Failing => State::Closed,
            Self::Rejected => {
                breaker.trip();
                State::Open
            }
        };
        match self {
            Self::Healthy | Self::Rejected => blocking(&breaker, &Inputs::healthy(), calls),
            Self::Failing => blocking(&breaker, &Inputs::failing(4, 5), calls),
            Self::HealthyTower => in_tower(breakers, calls)?,
        }
        ensure!(breaker.state() == state, "the circuit is {} now", breaker.state());
        Ok(())
    }
}

fn blocking(breaker: &Breaker, inputs: &Inputs, calls: u64) {
    for input in inputs.each(calls) {
        let answer: Result<u64, CallError<_>> = breaker.call_blocking(|| work(input));
        drop(black_box(answer));
    }
}

fn in_tower(breakers: Breakers, calls: u64) -> Result<()> {
    let layer = BreakerLayer::new(breakers, |_: &u64| KEY);
    let mut service = layer.layer(service_fn(async |input| work(input)));
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    runtime.block_on(async {
        for input in Inputs::healthy().each(calls) {
            black_box(service.ready().await?.call(input).await?);
        }
        Ok(())
    })
}

const KEY: &str = "orders";
