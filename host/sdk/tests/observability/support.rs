//! A pipeline that keeps everything in memory, and circuits that report to it.

use std::collections::BTreeMap;
use std::fmt::{Debug, Display};
use std::sync::{Arc, Mutex};

use opentelemetry::KeyValue;
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, Metric, MetricData};
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, SdkMeterProvider};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, TracerProviderBuilder};
use tracing::field::{Field, Visit};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tripwit::otel::TripCounter;
use tripwit::settings::Consecutive;
use tripwit::{Breakers, BreakersBuilder, ManualClock, Policy, Telemetry};

/// Tracers and meters, and what came of them.
pub(crate) struct Pipeline {
    pub(crate) tracers: SdkTracerProvider,
    pub(crate) meters: SdkMeterProvider,
    pub(crate) spans: InMemorySpanExporter,
    metrics: InMemoryMetricExporter,
}

impl Pipeline {
    pub(crate) fn new() -> Self {
        Self::with(|tracers, meters| tracers.with_span_processor(TripCounter::new(meters)))
    }

    pub(crate) fn with(
        build: impl FnOnce(TracerProviderBuilder, &SdkMeterProvider) -> TracerProviderBuilder,
    ) -> Self {
        let spans = InMemorySpanExporter::default();
        let metrics = InMemoryMetricExporter::default();
        let meters = SdkMeterProvider::builder()
            .with_periodic_exporter(metrics.clone())
            .build();
        let tracers = SdkTracerProvider::builder().with_simple_exporter(spans.clone());
        Self {
            tracers: build(tracers, &meters).build(),
            meters,
            spans,
            metrics,
        }
    }

    pub(crate) fn telemetry(&self) -> Telemetry {
        Telemetry::default()
            .tracer_provider(self.tracers.clone())
            .meter_provider(self.meters.clone())
    }

    /// The metrics as they are now: instruments by name.
    pub(crate) fn metrics(&self) -> BTreeMap<String, Shown> {
        self.metrics.reset();
        self.meters.force_flush().unwrap();
        exported(&self.metrics)
    }

    /// The values of one instrument by attributes; empty where it has none.
    pub(crate) fn values(&self, name: &str) -> BTreeMap<String, f64> {
        self.metrics()
            .remove(name)
            .map(|shown| shown.values)
            .unwrap_or_default()
    }
}

/// What an exporter was given: instruments by name.
fn exported(exporter: &InMemoryMetricExporter) -> BTreeMap<String, Shown> {
    let all = exporter.get_finished_metrics().unwrap();
    let mut shown = BTreeMap::new();
    for scope in all.iter().flat_map(|it| it.scope_metrics()) {
        for metric in scope.metrics() {
            let one = Shown::of(metric, scope.scope().name(), scope.scope().version());
            shown.insert(metric.name().to_owned(), one);
        }
    }
    shown
}

/// The values of one instrument that an exporter was given, by attributes; empty where it has none.
pub(crate) fn values(exporter: &InMemoryMetricExporter, name: &str) -> BTreeMap<String, f64> {
    exported(exporter)
        .remove(name)
        .map(|shown| shown.values)
        .unwrap_or_default()
}

/// One instrument.
#[derive(Debug, PartialEq)]
pub(crate) struct Shown {
    pub(crate) scope: String,
    pub(crate) unit: String,
    pub(crate) description: String,
    pub(crate) kind: &'static str,
    pub(crate) values: BTreeMap<String, f64>,
}

impl Shown {
    fn of(metric: &Metric, scope: &str, version: Option<&str>) -> Self {
        let (kind, values) = match metric.data() {
            AggregatedMetrics::F64(data) => points(data, |value| value),
            AggregatedMetrics::U64(data) => points(data, |value| value as f64),
            AggregatedMetrics::I64(data) => points(data, |value| value as f64),
        };
        Self {
            scope: format!("{scope} {}", version.unwrap_or("")),
            unit: metric.unit().into(),
            description: metric.description().into(),
            kind,
            values,
        }
    }
}

fn points<T: Copy>(data: &MetricData<T>, number: impl Fn(T) -> f64) -> (&'static str, BTreeMap<String, f64>) {
    match data {
        MetricData::Gauge(gauge) => (
            "gauge",
            gauge
                .data_points()
                .map(|it| (written(it.attributes()), number(it.value())))
                .collect(),
        ),
        MetricData::Sum(sum) => (
            if sum.is_monotonic() {
                "counter"
            } else {
                "up-down counter"
            },
            sum.data_points()
                .map(|it| (written(it.attributes()), number(it.value())))
                .collect(),
        ),
        MetricData::Histogram(_) | MetricData::ExponentialHistogram(_) => panic!("no histogram is expected"),
    }
}

/// Attributes as one text, in order of their names.
pub(crate) fn written<'a>(attributes: impl IntoIterator<Item = &'a KeyValue>) -> String {
    let mut all: Vec<_> = attributes
        .into_iter()
        .map(|it| format!("{}={}", it.key, it.value))
        .collect();
    all.sort();
    all.join(" ")
}

/// What is expected of an instrument.
pub(crate) fn expected<const N: usize>(values: [(&str, f64); N]) -> BTreeMap<String, f64> {
    values.map(|(key, value)| (key.to_owned(), value)).into()
}

/// Circuits under `outbox`, in one shard, on a manual clock.
pub(crate) fn outbox(telemetry: Telemetry) -> (Breakers, ManualClock) {
    build(Breakers::builder(Policy::outbox().unwrap()), telemetry)
}

/// Circuits that two failures open, for five seconds, in one shard, on a manual clock.
pub(crate) fn consecutive(telemetry: Telemetry) -> (Breakers, ManualClock) {
    build(
        Breakers::builder(Policy::consecutive().unwrap()).settings(touchy()),
        telemetry,
    )
}

pub(crate) fn touchy() -> Consecutive {
    Consecutive::default()
        .failure_threshold(2)
        .success_threshold(1)
        .open_for(WAIT)
}

pub(crate) const WAIT: std::time::Duration = std::time::Duration::from_secs(5);

pub(crate) fn build(builder: BreakersBuilder, telemetry: Telemetry) -> (Breakers, ManualClock) {
    let clock = ManualClock::new();
    let breakers = builder
        .clock(clock.clone())
        .shards(1)
        .telemetry(telemetry)
        .build()
        .unwrap();
    (breakers, clock)
}

pub(crate) fn refused() -> Result<(), &'static str> {
    Err("refused")
}

pub(crate) fn fine() -> Result<(), &'static str> {
    Ok(())
}

/// An event of target `tripwit`: level, message, and the other fields in order of their names.
pub(crate) type Line = (String, String, Vec<(String, String)>);

/// A log that keeps its lines, from this level on.
#[derive(Clone)]
pub(crate) struct Log {
    lines: Arc<Mutex<Vec<Line>>>,
    least: tracing::Level,
}

impl Log {
    pub(crate) fn from(least: tracing::Level) -> Self {
        Self {
            lines: Arc::default(),
            least,
        }
    }

    /// Keeps what this thread logs meanwhile.
    pub(crate) fn during<R>(&self, work: impl FnOnce() -> R) -> R {
        let filter = tracing_subscriber::filter::LevelFilter::from_level(self.least);
        let subscriber = tracing_subscriber::registry().with(self.clone().with_filter(filter));
        tracing::subscriber::with_default(subscriber, work)
    }

    pub(crate) fn lines(&self) -> Vec<Line> {
        self.lines.lock().unwrap().clone()
    }

    pub(crate) fn messages(&self) -> Vec<String> {
        self.lines().into_iter().map(|(_, message, _)| message).collect()
    }
}

impl<S: tracing::Subscriber> Layer<S> for Log {
    fn on_event(&self, event: &tracing::Event<'_>, _cx: Context<'_, S>) {
        if event.metadata().target() != "tripwit" {
            return;
        }
        let mut fields = Fields::default();
        event.record(&mut fields);
        let message = fields.0.remove("message").unwrap_or_default();
        let level = event.metadata().level().to_string();
        self.lines
            .lock()
            .unwrap()
            .push((level, message, fields.0.into_iter().collect()));
    }
}

#[derive(Default)]
struct Fields(BTreeMap<String, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name().into(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().into(), value.into());
    }
}

pub(crate) fn line(level: &str, message: &str, fields: &[(&str, &dyn Display)]) -> Line {
    let fields = fields
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.to_string()))
        .collect();
    (level.into(), message.into(), fields)
}
