//! What a circuit takes of memory.
//!
//! The host's part is what it asks the allocator for. The component's part is by how much the memory of an instance grows
//! that has as many circuits of the same keys as one shard.

use anyhow::Result;
use tripwit_bench::{Guarding, held, sixteen_byte_key};

use super::crossing;
use crate::results::Results;
use crate::runner::Effort;

/// 100,000 circuits, all closed, under one settings text, and no handles of them.
pub(crate) fn measure(results: &mut Results, effort: Effort) -> Result<()> {
    let circuits = effort.of(100_000, 20_000);
    let shards = std::thread::available_parallelism()?.get();
    let guarding = Guarding::Consecutive;
    let guest = guest(guarding, circuits / shards)? * shards;

    let breakers = guarding
        .builder()?
        .shards(shards)
        .max_circuits(circuits)
        .build()?;
    let before = held();
    for number in 0..circuits {
        drop(breakers.breaker(&sixteen_byte_key(number))?);
    }
    let host = held() - before;

    let each = |bytes: f64| bytes / circuits as f64;
    results.figure(
        "circuits in the measurements of memory",
        circuits as f64,
        "circuits",
    );
    results.figure("memory of a circuit, host", each(host as f64), "bytes");
    results.figure("memory of a circuit, component", each(guest as f64), "bytes");
    results.figure(TOGETHER, each(host as f64 + guest as f64), "bytes");
    Ok(())
}

/// The name of the figure.
pub(crate) const TOGETHER: &str = "memory of a circuit, host and component";

/// By how many bytes an instance grows.
fn guest(guarding: Guarding, circuits: usize) -> Result<usize> {
    let mut instance = crossing::instance(guarding)?;
    let before = instance.memory();
    let settings = guarding.settings();
    for number in 0..circuits {
        crossing::attach(&mut instance, &sixteen_byte_key(number), settings.as_str())?;
    }
    Ok(instance.memory() - before)
}
