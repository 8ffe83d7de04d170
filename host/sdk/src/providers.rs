//! Where telemetry goes.

use std::fmt;
use std::sync::Arc;

use opentelemetry::InstrumentationScope;
use opentelemetry::global::{self, BoxedTracer, ObjectSafeTracerProvider};
use opentelemetry::metrics::MeterProvider;
use opentelemetry::trace::{Tracer, TracerProvider};

use crate::instrumentation::Instrumentation;
use crate::meters::Provider;

/// Where spans and metrics go, and what they are called. Everything has a default. Cheap to clone.
///
/// Sets of circuits of one policy that share a provider add their numbers up, provided that they get clones of one
/// `Telemetry` or use the global providers: two `Telemetry` made with the same provider are not known to be the same.
///
/// Log lines go to `tracing` and need nothing here.
///
/// ```
/// use tripwit::{Breakers, Instrumentation, Policy, Telemetry};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let telemetry = Telemetry::default()
///     .namespace("shop")
///     .instrumentation(Instrumentation::from_bits(129))
///     .state_series(100);
/// let breakers = Breakers::builder(Policy::consecutive()?).telemetry(telemetry).build()?;
/// # let _ = breakers;
/// # Ok(()) }
/// ```
#[derive(Clone)]
#[must_use = "hand it to `BreakersBuilder::telemetry`"]
pub struct Telemetry {
    tracers: Option<Arc<dyn ObjectSafeTracerProvider + Send + Sync>>,
    pub(crate) meters: Option<Provider>,
    pub(crate) namespace: Option<String>,
    pub(crate) instrumentation: Instrumentation,
    pub(crate) state_series: usize,
}

impl Default for Telemetry {
    fn default() -> Self {
        Self {
            tracers: None,
            meters: None,
            namespace: None,
            instrumentation: Instrumentation::ALL,
            state_series: 1_000,
        }
    }
}

impl Telemetry {
    /// Whose tracer makes the spans. Default: the global provider, as it is at each move.
    pub fn tracer_provider<P>(mut self, provider: P) -> Self
    where
        P: TracerProvider + Send + Sync + 'static,
        P::Tracer: Send + Sync + 'static,
        <P::Tracer as Tracer>::Span: Send + Sync + 'static,
    {
        self.tracers = Some(Arc::new(provider));
        self
    }

    /// Whose meter makes the instruments. Default: the global provider. Where none is set yet when the circuits are made,
    /// it is looked for at each new circuit, at each move and at each cool-down cycle, until there is one; calls are
    /// counted from then on.
    pub fn meter_provider(mut self, provider: impl MeterProvider + Send + Sync + 'static) -> Self {
        self.meters = Some(Arc::new(provider));
        self
    }

    /// What the names of instruments begin with, and that of the attribute `{namespace}.operation`. Starts with an ASCII
    /// letter; goes on with those, digits, `_`, `.`, `-` and `/`; at most 200 characters. Default: the policy's.
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// What spans carry. Default: everything.
    pub fn instrumentation(mut self, instrumentation: Instrumentation) -> Self {
        self.instrumentation = instrumentation;
        self
    }

    /// How many circuits that are not closed have a series of their own in `{namespace}.circuit_breaker.state`; the
    /// others are in the totals only. Range: 0 to 10,000. Default: 1,000. An SDK keeps 2,000 series of an instrument
    /// unless a view says otherwise, and a circuit whose state changes needs two for a moment.
    pub fn state_series(mut self, circuits: usize) -> Self {
        self.state_series = circuits;
        self
    }

    pub(crate) fn tracers(&self, scope: InstrumentationScope) -> Tracers {
        match &self.tracers {
            Some(provider) => Tracers::Given(BoxedTracer::new(provider.boxed_tracer(scope))),
            None => Tracers::Global(scope),
        }
    }
}

impl fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Telemetry")
            .field("namespace", &self.namespace)
            .field("instrumentation", &self.instrumentation)
            .field("state_series", &self.state_series)
            .finish_non_exhaustive()
    }
}

/// Where the tracer comes from.
pub(crate) enum Tracers {
    Given(BoxedTracer),
    /// Taken anew at each span, since the program may set its provider later.
    Global(InstrumentationScope),
}

impl Tracers {
    /// Does something with the tracer as it is now.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&BoxedTracer) -> R) -> R {
        match self {
            Self::Given(tracer) => work(tracer),
            Self::Global(scope) => work(&global::tracer_with_scope(scope.clone())),
        }
    }
}

/// Whether the names that begin with this are names of instruments; else what is wrong with it.
pub(crate) fn check_namespace(namespace: &str) -> Result<(), &'static str> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-/".contains(&byte);
    if !namespace.starts_with(|first: char| first.is_ascii_alphabetic()) {
        Err("it must start with an ASCII letter")
    } else if namespace.len() > 200 {
        Err("it must not be longer than 200 characters")
    } else if !namespace.bytes().all(allowed) {
        Err("it may have ASCII letters, digits, `_`, `.`, `-` and `/` only")
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_must_make_names_of_instruments() {
        for good in ["shop", "paramore.brighter", "a1_b-c/d"] {
            assert_eq!(check_namespace(good), Ok(()));
        }
        for bad in ["", ".shop", "1shop", "shöp", "two words", &"a".repeat(201)] {
            assert!(check_namespace(bad).is_err(), "{bad:?}");
        }
    }
}
