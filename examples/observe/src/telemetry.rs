//! The OpenTelemetry of this process: what a program sets up once, and the breakers then find by themselves.

use std::time::Duration;

use anyhow::Context as _;
use opentelemetry::global;
use opentelemetry_appender_tracing::layer::OpenTelemetryTracingBridge;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::logs::SdkLoggerProvider;
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider};
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};
use tokio::runtime::Handle;
use tracing::Level;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tripwit::otel::{RecordBreakerSpans, TripCounter};

use crate::otlp::Exporters;
use crate::page::Page;

/// The name of this program in its telemetry.
pub(crate) const SERVICE: &str = "observe";

/// The target of every log line of a breaker.
const LOG_TARGET: &str = "tripwit";

/// How often metrics leave by OTLP. A service that runs for long would take the usual minute.
const METRICS_EVERY: Duration = Duration::from_secs(2);

/// The providers of the three signals.
pub(crate) struct Telemetry {
    page: Page,
    tracers: SdkTracerProvider,
    meters: SdkMeterProvider,
    loggers: SdkLoggerProvider,
}

impl Telemetry {
    /// Makes the providers this process's own, and prints its log lines from `info` on.
    ///
    /// Everything goes to the collector at `otlp` if there is one, with the lines from `debug` on, where re-trips are.
    pub(crate) fn install(otlp: Option<&str>, sample: f64, runtime: &Handle) -> anyhow::Result<Self> {
        let resource = Resource::builder()
            .with_service_name(SERVICE)
            .with_attribute(opentelemetry::KeyValue::new(
                "service.version",
                env!("CARGO_PKG_VERSION"),
            ))
            .build();
        let exporters = otlp
            .map(|endpoint| Exporters::to(endpoint, runtime))
            .transpose()?;
        let page = Page::new();

        let mut meters = SdkMeterProvider::builder()
            .with_resource(resource.clone())
            .with_reader(page.reader());
        let mut tracers = SdkTracerProvider::builder().with_resource(resource.clone());
        let mut loggers = SdkLoggerProvider::builder().with_resource(resource);
        if let Some(Exporters { spans, metrics, logs }) = exporters {
            let reader = PeriodicReader::builder(metrics).with_interval(METRICS_EVERY);
            meters = meters.with_reader(reader.build());
            tracers = tracers.with_batch_exporter(spans);
            loggers = loggers.with_batch_exporter(logs);
        }
        let meters = meters.build();
        // The counter is derived from spans as they end. So that it counts every one of them, the sampler must not drop
        // those of the breakers; it may still keep them from being exported.
        let sampler = Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(sample)));
        let tracers = tracers
            .with_span_processor(TripCounter::new(&meters))
            .with_sampler(RecordBreakerSpans(sampler))
            .build();
        let loggers = loggers.build();

        global::set_meter_provider(meters.clone());
        global::set_tracer_provider(tracers.clone());
        let of_breakers = |level| Targets::new().with_target(LOG_TARGET, level);
        let printed = tracing_subscriber::fmt::layer().with_filter(of_breakers(Level::INFO));
        let exported = OpenTelemetryTracingBridge::new(&loggers).with_filter(of_breakers(Level::DEBUG));
        let subscriber = tracing_subscriber::registry().with(printed).with(exported);
        tracing::subscriber::set_global_default(subscriber).context("this process logs elsewhere already")?;
        Ok(Self {
            page,
            tracers,
            meters,
            loggers,
        })
    }

    /// The page for Prometheus.
    pub(crate) fn page(&self) -> Page {
        self.page.clone()
    }

    /// Exports what is left. Not to be called from a thread of the runtime.
    pub(crate) fn shut_down(self) -> anyhow::Result<()> {
        // All three, whatever becomes of the others.
        let ended = [
            self.tracers.shutdown(),
            self.meters.shutdown(),
            self.loggers.shutdown(),
        ];
        ended.into_iter().collect::<Result<Vec<()>, _>>()?;
        Ok(())
    }
}
