//! The page that Prometheus scrapes: what the meter provider has at that moment, in Prometheus's text format.
//!
//! Names follow OpenTelemetry's rules for Prometheus, so they are the same as by way of a collector: dots become underscores,
//! a unit that Prometheus knows is a suffix, counters end in `_total`, and each series names its scope.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::sync::{Arc, Weak};
use std::time::Duration;

use opentelemetry::{InstrumentationScope, Key, KeyValue, Value};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, Metric, MetricData, ResourceMetrics};
use opentelemetry_sdk::metrics::reader::MetricReader;
use opentelemetry_sdk::metrics::{InstrumentKind, ManualReader, Pipeline, Temporality};

/// The type of the page.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The page. Its clones are one and the same.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    reader: Reader,
}

/// What a meter provider gives its numbers to when the page is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Reader(Arc<ManualReader>);

impl Page {
    pub(crate) fn new() -> Self {
        Self {
            reader: Reader(Arc::new(ManualReader::builder().build())),
        }
    }

    /// To be handed to the meter provider.
    pub(crate) fn reader(&self) -> Reader {
        self.reader.clone()
    }

    /// The text of the page now.
    pub(crate) fn render(&self) -> anyhow::Result<String> {
        let mut metrics = ResourceMetrics::default();
        self.reader.collect(&mut metrics)?;
        Ok(render(&metrics))
    }
}

impl MetricReader for Reader {
    fn register_pipeline(&self, pipeline: Weak<Pipeline>) {
        self.0.register_pipeline(pipeline);
    }

    fn collect(&self, metrics: &mut ResourceMetrics) -> OTelSdkResult {
        self.0.collect(metrics)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.0.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.0.shutdown_with_timeout(timeout)
    }

    fn temporality(&self, kind: InstrumentKind) -> Temporality {
        self.0.temporality(kind)
    }
}

/// All series of one name, whatever their scopes.
#[derive(Debug)]
struct Family {
    kind: &'static str,
    help: String,
    /// A line each.
    series: BTreeSet<String>,
}

fn render(metrics: &ResourceMetrics) -> String {
    let about = Family {
        kind: "gauge",
        help: "What this process says of itself.".to_owned(),
        series: BTreeSet::from([format!(
            "target_info{{{}}} 1\n",
            labels(metrics.resource().iter())
        )]),
    };
    let mut families = BTreeMap::from([("target_info".to_owned(), about)]);
    for scope in metrics.scope_metrics() {
        for metric in scope.metrics() {
            match metric.data() {
                AggregatedMetrics::F64(data) => add(&mut families, scope.scope(), metric, data),
                AggregatedMetrics::U64(data) => add(&mut families, scope.scope(), metric, data),
                AggregatedMetrics::I64(data) => add(&mut families, scope.scope(), metric, data),
            }
        }
    }
    let mut text = String::new();
    for (name, Family { kind, help, series }) in &families {
        text.push_str(&format!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
        text.extend(series.iter().map(String::as_str));
    }
    text
}

fn add<T: Copy + Display>(
    families: &mut BTreeMap<String, Family>,
    scope: &InstrumentationScope,
    metric: &Metric,
    data: &MetricData<T>,
) {
    let (kind, points) = match data {
        MetricData::Sum(sum) => {
            let points = sum
                .data_points()
                .map(|point| (labels(attributes(point.attributes())), point.value()));
            (
                if sum.is_monotonic() {
                    Kind::Counter
                } else {
                    Kind::UpDownCounter
                },
                points.collect::<Vec<_>>(),
            )
        }
        MetricData::Gauge(gauge) => {
            let points = gauge
                .data_points()
                .map(|point| (labels(attributes(point.attributes())), point.value()));
            (Kind::Gauge, points.collect())
        }
        // Neither the breakers nor this program have any.
        MetricData::Histogram(_) | MetricData::ExponentialHistogram(_) => return,
    };
    let name = name(metric, kind);
    let family = families.entry(name.clone()).or_insert_with(|| Family {
        kind: if kind == Kind::Counter { "counter" } else { "gauge" },
        help: escape(metric.description()),
        series: BTreeSet::new(),
    });
    let scope = scope_labels(scope);
    for (labels, value) in points {
        let comma = if labels.is_empty() { "" } else { "," };
        family
            .series
            .insert(format!("{name}{{{labels}{comma}{scope}}} {value}\n"));
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Counter,
    UpDownCounter,
    Gauge,
}

fn name(metric: &Metric, kind: Kind) -> String {
    let unit = match metric.unit() {
        "s" => "_seconds",
        "1" if kind == Kind::Gauge => "_ratio",
        _ => "",
    };
    let total = if kind == Kind::Counter { "_total" } else { "" };
    format!("{}{unit}{total}", underscored(metric.name()))
}

fn attributes<'a>(all: impl Iterator<Item = &'a KeyValue>) -> impl Iterator<Item = (&'a Key, &'a Value)> {
    all.map(|attribute| (&attribute.key, &attribute.value))
}

/// As they stand between braces.
fn labels<'a>(attributes: impl Iterator<Item = (&'a Key, &'a Value)>) -> String {
    let mut labels: Vec<_> = attributes
        .map(|(key, value)| format!("{}={}", underscored(key.as_str()), quoted(&value.as_str())))
        .collect();
    labels.sort_unstable();
    labels.join(",")
}

fn scope_labels(scope: &InstrumentationScope) -> String {
    let (name, version) = (quoted(scope.name()), quoted(scope.version().unwrap_or_default()));
    format!("otel_scope_name={name},otel_scope_version={version}")
}

/// A name that Prometheus takes.
fn underscored(name: &str) -> String {
    name.replace(|character: char| !character.is_ascii_alphanumeric(), "_")
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", escape(text).replace('"', r#"\""#))
}

/// A text on one line.
fn escape(text: &str) -> String {
    text.replace('\\', r"\\").replace('\n', r"\n")
}

#[cfg(test)]
mod tests {
    use opentelemetry::metrics::MeterProvider as _;
    use opentelemetry_sdk::Resource;
    use opentelemetry_sdk::metrics::SdkMeterProvider;

    use super::*;

    #[test]
    fn each_instrument_is_a_family_with_its_labels_and_its_scope() {
        let page = Page::new();
        let resource = Resource::builder_empty().with_service_name("observe").build();
        let provider = SdkMeterProvider::builder()
            .with_resource(resource)
            .with_reader(page.reader())
            .build();
        let meter = |name| {
            let scope = InstrumentationScope::builder(name).with_version("1.2.3");
            provider.meter_with_scope(scope.build())
        };
        let meter_a = meter("a");
        let trips = meter_a
            .u64_counter("a.b.trips")
            .with_unit("{trip}")
            .with_description("The \"trips\".\n")
            .build();
        trips.add(2, &[KeyValue::new("circuit_breaker.topic", "say \"a\\b\"\n")]);
        meter_a
            .f64_counter("open_time")
            .with_unit("s")
            .build()
            .add(1.5, &[]);
        meter_a
            .i64_up_down_counter("circuits")
            .with_unit("{circuit}")
            .build()
            .add(-1, &[]);
        meter("b")
            .i64_up_down_counter("circuits")
            .with_unit("{circuit}")
            .build()
            .add(4, &[]);
        meter_a.u64_gauge("state").with_unit("1").build().record(1, &[]);

        let text = page.render().expect("the provider is there");
        let scope = r#"otel_scope_name="a",otel_scope_version="1.2.3""#;
        for part in [
            "# HELP a_b_trips_total The \"trips\".\\n\n# TYPE a_b_trips_total counter\n",
            &format!("a_b_trips_total{{circuit_breaker_topic=\"say \\\"a\\\\b\\\"\\n\",{scope}}} 2\n"),
            &format!("# TYPE open_time_seconds_total counter\nopen_time_seconds_total{{{scope}}} 1.5\n"),
            &format!(
                "# TYPE circuits gauge\ncircuits{{{scope}}} -1\ncircuits{{otel_scope_name=\"b\",otel_scope_version=\"1.2.3\"}} 4\n"
            ),
            &format!("# TYPE state_ratio gauge\nstate_ratio{{{scope}}} 1\n"),
            "# TYPE target_info gauge\ntarget_info{service_name=\"observe\"} 1\n",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
    }

    #[test]
    fn a_page_without_a_provider_is_an_error() {
        assert!(Page::new().render().is_err());
    }
}
