//! What belongs into the pipeline of the OpenTelemetry SDK: a processor that counts trips, and a sampler that lets it.
//!
//! ```
//! use opentelemetry_sdk::metrics::SdkMeterProvider;
//! use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};
//! use tripwit::otel::{RecordBreakerSpans, TripCounter};
//! use tripwit::{Breakers, Policy, Telemetry};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let meters = SdkMeterProvider::builder().build();
//! let tracers = SdkTracerProvider::builder()
//!     .with_sampler(RecordBreakerSpans(Sampler::TraceIdRatioBased(0.01)))
//!     .with_span_processor(TripCounter::new(&meters))
//!     .build();
//! let breakers = Breakers::builder(Policy::consecutive()?)
//!     .telemetry(Telemetry::default().tracer_provider(tracers).meter_provider(meters))
//!     .build()?;
//! # let _ = breakers;
//! # Ok(()) }
//! ```

mod sampler;
mod trips;

pub use sampler::RecordBreakerSpans;
pub use trips::{TripCounter, TripCounterBuilder};

use opentelemetry::KeyValue;

use crate::names::{DOMAIN, DOMAIN_VALUE};

/// Whether these are the attributes of a span of a circuit breaker.
fn are_of_a_breaker(attributes: &[KeyValue]) -> bool {
    attributes
        .iter()
        .any(|attribute| attribute.key.as_str() == DOMAIN && attribute.value.as_str() == DOMAIN_VALUE)
}
