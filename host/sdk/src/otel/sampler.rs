//! A sampler that loses no span of a circuit breaker.

use opentelemetry::trace::{Link, SpanKind, TraceId};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::trace::{SamplingDecision, SamplingResult, ShouldSample};

use super::are_of_a_breaker;

/// Decides as the sampler within, except that a span of a circuit breaker which that one would drop is recorded all
/// the same, though not exported. So a [`TripCounter`](super::TripCounter) counts every move, whatever share of the
/// traces is kept.
///
/// It must be the outermost sampler: `RecordBreakerSpans(Sampler::ParentBased(..))`, not the other way round. Spans are
/// known by their attribute `instrumentation.domain` = `circuit_breaker` at the start, so
/// [`Instrumentation`](crate::Instrumentation) must not be turned off altogether.
#[derive(Clone, Debug)]
pub struct RecordBreakerSpans<S>(
    /// The sampler that decides on everything else.
    pub S,
);

impl<S: ShouldSample + Clone + 'static> ShouldSample for RecordBreakerSpans<S> {
    fn should_sample(
        &self,
        parent_context: Option<&Context>,
        trace_id: TraceId,
        name: &str,
        span_kind: &SpanKind,
        attributes: &[KeyValue],
        links: &[Link],
    ) -> SamplingResult {
        let mut result = self
            .0
            .should_sample(parent_context, trace_id, name, span_kind, attributes, links);
        if result.decision == SamplingDecision::Drop && are_of_a_breaker(attributes) {
            result.decision = SamplingDecision::RecordOnly;
        }
        result
    }
}
