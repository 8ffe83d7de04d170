//! More keys than there may be circuits: a registry that is bounded must not grow.

use anyhow::Result;
use tripwit::{Clock, SystemClock};
use tripwit_bench::{Guarding, held, sixteen_byte_key};

use crate::machine;
use crate::results::{Results, Row, Spread};
use crate::runner::Effort;
use crate::subject::Subject;

/// The most circuits that there may be.
const BOUND: usize = 10_000;
/// So many keys are asked for at a time; their mean is one sample.
const BATCH: usize = 1_000;

/// A million distinct keys, one after the other.
pub(crate) fn measure(results: &mut Results, effort: Effort) -> Result<()> {
    let keys = effort.of(1_000_000, 100_000);
    let breakers = Guarding::Consecutive.builder()?.max_circuits(BOUND).build()?;
    let add = |numbers: std::ops::Range<usize>| -> Result<Vec<f64>> {
        let mut samples = Vec::new();
        for first in numbers.step_by(BATCH) {
            let batch: Vec<_> = (first..first + BATCH).map(sixteen_byte_key).collect();
            let start = SystemClock.monotonic();
            for key in &batch {
                breakers.breaker(key)?;
            }
            samples.push((SystemClock.monotonic() - start) as f64 / batch.len() as f64);
        }
        Ok(samples)
    };
    // Every circuit has been replaced often: what there is to grow has grown.
    add(0..5 * BOUND)?;
    let (held_before, resident_before) = (held(), machine::resident()?);
    let samples = add(5 * BOUND..keys)?;
    let resident = machine::resident()? as f64 - resident_before as f64;
    results.figure("keys through the bounded registry", keys as f64, "keys");
    results.figure(
        "growth of the bounded registry, host",
        (held() - held_before) as f64,
        "bytes",
    );
    results.figure(GROWTH, resident / 1024.0, "KiB");
    results.figure(
        "circuits in the bounded registry at the end",
        breakers.len() as f64,
        "circuits",
    );
    results.rows.push(Row {
        name: "attach in another's place".to_owned(),
        subject: Subject::Tripwit,
        threads: 1,
        policy: Guarding::Consecutive.to_string(),
        time: Spread::of(samples),
        ratio: None,
    });
    Ok(())
}

/// The name of the figure.
pub(crate) const GROWTH: &str = "growth of the bounded registry, resident set";
