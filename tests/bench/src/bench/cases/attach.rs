//! What a new circuit costs.

use anyhow::Result;
use tripwit::{Breakers, Clock, Settings, SystemClock};
use tripwit_bench::{Guarding, metrics, sixteen_byte_key};

use crate::results::{Results, Row, Spread};
use crate::runner::Effort;
use crate::subject::Subject;

/// So many circuits are added at a time; their mean is one sample.
const BATCH: usize = 500;

/// Circuits that share a short settings text, and circuits that share a long one.
pub(crate) fn measure(results: &mut Results, effort: Effort) -> Result<()> {
    let circuits = effort.of(100_000, 10_000);
    for (name, settings) in [(SHORT, Settings::default()), (LONG, every_setting())] {
        let breakers = Breakers::builder(Guarding::Consecutive.policy()?)
            .settings(settings)
            .telemetry(metrics())
            .build()?;
        let keys: Vec<_> = (0..circuits).map(sixteen_byte_key).collect();
        let mut samples = Vec::new();
        for batch in keys.chunks(BATCH) {
            let start = SystemClock.monotonic();
            for key in batch {
                breakers.breaker(key)?;
            }
            samples.push((SystemClock.monotonic() - start) as f64 / batch.len() as f64);
        }
        results.rows.push(Row {
            name: name.to_owned(),
            subject: Subject::Tripwit,
            threads: 1,
            policy: Guarding::Consecutive.to_string(),
            time: Spread::of(samples),
            ratio: None,
        });
    }
    Ok(())
}

/// The name of the row.
pub(crate) const SHORT: &str = "attach, default settings";
/// The name of the row.
pub(crate) const LONG: &str = "attach, every setting written out";

fn every_setting() -> Settings {
    r#"{
        "failure_threshold": 5, "success_threshold": 2, "open_for": "30s", "backoff_factor": 1.5, "open_for_max": "1h",
        "jitter": 0.125, "retry_after_max": "10m", "probes": 1, "probe_timeout": "1m30s", "call_timeout": "10s"
    }"#
    .into()
}
