//! What a new circuit costs.

use anyhow::Result;
use tripwit::{Breakers, Clock, Settings, SystemClock};
use tripwit_bench::{Guarding, metrics, sixteen_byte_key};

use super::crossing::Circuit;
use crate::results::{Results, Row, Spread};
use crate::runner::Effort;
use crate::subject::Subject;

/// So many are made at a time; their mean is one sample.
const BATCH: usize = 500;

/// Circuits that share a short settings text, circuits that share a long one, and crossings, in turns.
pub(crate) fn measure(results: &mut Results, effort: Effort) -> Result<()> {
    let guarding = Guarding::Consecutive;
    let breakers = |settings: Settings| {
        Breakers::builder(guarding.policy()?)
            .settings(settings)
            .telemetry(metrics())
            .build()
            .map_err(anyhow::Error::from)
    };
    let (short, long) = (breakers(Settings::default())?, breakers(every_setting())?);
    let mut circuit = Circuit::new(guarding)?;
    let keys: Vec<_> = (0..effort.of(100_000, 10_000)).map(sixteen_byte_key).collect();
    let mut samples = [const { Vec::new() }; 3];
    for batch in keys.chunks(BATCH) {
        let each = [
            timed(batch, |key| attach(&short, key))?,
            timed(batch, |key| attach(&long, key))?,
            timed(batch, |_| circuit.acquire_and_settle())?,
        ];
        for (samples, sample) in samples.iter_mut().zip(each) {
            samples.push(sample);
        }
    }
    for (name, samples) in [SHORT, LONG, CROSSINGS].into_iter().zip(samples) {
        results.rows.push(Row {
            name: name.to_owned(),
            subject: Subject::Tripwit,
            threads: 1,
            policy: guarding.to_string(),
            time: Spread::of(samples),
            ratio: None,
        });
    }
    Ok(())
}

/// A circuit that nobody holds.
fn attach(breakers: &Breakers, key: &str) -> Result<()> {
    breakers.breaker(key)?;
    Ok(())
}

/// The nanoseconds that each key takes.
fn timed(keys: &[String], mut each: impl FnMut(&str) -> Result<()>) -> Result<f64> {
    let start = SystemClock.monotonic();
    for key in keys {
        each(key)?;
    }
    Ok((SystemClock.monotonic() - start) as f64 / keys.len() as f64)
}

/// The name of the row.
pub(crate) const SHORT: &str = "attach, default settings";
/// The name of the row.
pub(crate) const LONG: &str = "attach, every setting written out";
/// The name of the row: two crossings each.
pub(crate) const CROSSINGS: &str = "crossings, acquire and settle, beside attach";

fn every_setting() -> Settings {
    r#"{
        "failure_threshold": 5, "success_threshold": 2, "open_for": "30s", "backoff_factor": 1.5, "open_for_max": "1h",
        "jitter": 0.125, "retry_after_max": "10m", "probes": 1, "probe_timeout": "1m30s", "call_timeout": "10s"
    }"#
    .into()
}
