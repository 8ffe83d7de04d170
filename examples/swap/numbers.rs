//! What the breaker itself counts, as a meter provider sees it.

use std::collections::BTreeMap;

use anyhow::Context as _;
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, MetricData};
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, SdkMeterProvider};
use tripwit::Telemetry;

/// A meter provider that keeps what it exports.
#[derive(Debug)]
pub(crate) struct Numbers {
    exporter: InMemoryMetricExporter,
    provider: SdkMeterProvider,
}

impl Numbers {
    pub(crate) fn new() -> Self {
        let exporter = InMemoryMetricExporter::default();
        let provider = SdkMeterProvider::builder()
            .with_periodic_exporter(exporter.clone())
            .build();
        Self { exporter, provider }
    }

    /// For the breakers whose numbers these are to be.
    pub(crate) fn telemetry(&self) -> Telemetry {
        Telemetry::default().meter_provider(self.provider.clone())
    }

    /// The totals now: instruments without their namespace, `calls` by outcome as in `calls success`.
    pub(crate) fn totals(&self) -> anyhow::Result<BTreeMap<String, u64>> {
        self.exporter.reset();
        self.provider.force_flush().context("the metrics cannot be had")?;
        let exported = self.exporter.get_finished_metrics();
        let exported = exported.context("the metrics cannot be had")?;
        let mut totals = BTreeMap::new();
        let scopes = exported.iter().flat_map(|metrics| metrics.scope_metrics());
        for metric in scopes.flat_map(|scope| scope.metrics()) {
            let (Some(name), AggregatedMetrics::U64(MetricData::Sum(sum))) =
                (metric.name().strip_prefix(NAMESPACE), metric.data())
            else {
                continue;
            };
            for point in sum.data_points() {
                let mut attributes = point.attributes();
                let outcome = attributes.find(|attribute| attribute.key.as_str() == OUTCOME);
                let name = match outcome {
                    Some(outcome) => format!("{name} {}", outcome.value),
                    None => name.to_owned(),
                };
                *totals.entry(name).or_default() += point.value();
            }
        }
        Ok(totals)
    }
}

const NAMESPACE: &str = "tripwit.circuit_breaker.";
const OUTCOME: &str = "circuit_breaker.outcome";
