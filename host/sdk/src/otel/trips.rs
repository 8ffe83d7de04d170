//! The counter of trips, re-trips and resets: a metric that is derived from spans.

use std::sync::Arc;
use std::time::Duration;

use opentelemetry::metrics::{Counter, MeterProvider};
use opentelemetry::{Context, InstrumentationScope, KeyValue, global};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Span, SpanData, SpanProcessor};
use parking_lot::Mutex;

use super::are_of_a_breaker;
use crate::names::{self, OUTBOX_NAMESPACE, OUTBOX_SCOPE, TOPIC, TRIPS};

/// Counts the spans of circuit breakers as they end: each is a trip, a re-trip, a reset or, where the policy has that
/// state, a circuit that became half-open.
///
/// The counter is `{namespace}.circuit_breaker.trips`. Of a span's attributes it keeps `{namespace}.operation` and
/// `circuit_breaker.topic`; of the tracer provider's resource it adds the attributes that begin with `service.`. It
/// counts whatever else is listened to, and whatever the log level is. To count under a sampler that drops spans, put
/// [`RecordBreakerSpans`](super::RecordBreakerSpans) around it.
///
/// The namespace is that of the span's operation where it is known here: `paramore.brighter`, `tripwit` and those given
/// to the [builder](Self::builder). A span without an operation, or with one of another namespace, counts as
/// `paramore.brighter` when its scope is `Paramore.Brighter`, else under the first namespace that was given, else as
/// `tripwit`.
///
/// There is one series for each topic and operation; the SDK keeps 2,000 of them by default and adds up the rest as one
/// overflow series. Raise that by a view where there are more topics.
#[derive(Debug)]
pub struct TripCounter {
    /// Those given, then `tripwit`, then `paramore.brighter`.
    namespaces: Vec<Namespace>,
    counters: Counters,
    service: Vec<KeyValue>,
}

/// Makes a [`TripCounter`].
#[must_use = "a builder makes nothing until `build` is called"]
pub struct TripCounterBuilder {
    provider: Option<Arc<dyn MeterProvider + Send + Sync>>,
    namespaces: Vec<Namespace>,
}

#[derive(Debug)]
struct Namespace {
    name: String,
    operation: String,
    scope: &'static str,
}

impl Namespace {
    fn new(name: &str, scope: &'static str) -> Self {
        Self {
            name: name.to_owned(),
            operation: names::operation(name),
            scope,
        }
    }
}

/// The counters, in the order of the namespaces.
#[derive(Debug)]
enum Counters {
    Made(Vec<Counter<u64>>),
    /// Made with the global provider, and made again when that is another one.
    OfGlobal(Mutex<Global>),
}

#[derive(Default)]
struct Global {
    provider: Option<Arc<dyn MeterProvider + Send + Sync>>,
    counters: Vec<Counter<u64>>,
}

impl std::fmt::Debug for Global {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(&self.counters).finish()
    }
}

impl TripCounter {
    /// Counts with meters of this provider.
    pub fn new<P: MeterProvider>(provider: &P) -> Self {
        let namespaces = with_shipped(Vec::new());
        Self {
            counters: Counters::Made(counters(provider, &namespaces)),
            namespaces,
            service: Vec::new(),
        }
    }

    /// Counts step by step: with the global provider and in the namespaces of the shipped policies, unless told
    /// otherwise.
    pub fn builder() -> TripCounterBuilder {
        TripCounterBuilder {
            provider: None,
            namespaces: Vec::new(),
        }
    }

    fn namespace_of(&self, span: &SpanData) -> usize {
        let has = |namespace: &Namespace| {
            span.attributes
                .iter()
                .any(|it| it.key.as_str() == namespace.operation)
        };
        let scope = span.instrumentation_scope.name();
        self.namespaces
            .iter()
            .position(has)
            .or_else(|| {
                self.namespaces
                    .iter()
                    .position(|it| it.name == OUTBOX_NAMESPACE && scope == OUTBOX_SCOPE)
            })
            .unwrap_or(0)
    }
}

impl TripCounterBuilder {
    /// Whose meters count. Default: the global provider, looked up at each span, so it may be set later.
    pub fn meter_provider(mut self, provider: impl MeterProvider + Send + Sync + 'static) -> Self {
        self.provider = Some(Arc::new(provider));
        self
    }

    /// One more namespace: what [`Telemetry::namespace`](crate::Telemetry::namespace) was given.
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.namespaces
            .push(Namespace::new(namespace, names::DEFAULT_SCOPE));
        self
    }

    /// Makes the counter.
    #[must_use]
    pub fn build(self) -> TripCounter {
        let namespaces = with_shipped(self.namespaces);
        TripCounter {
            counters: match self.provider {
                Some(provider) => Counters::Made(counters(&*provider, &namespaces)),
                None => Counters::OfGlobal(Mutex::default()),
            },
            namespaces,
            service: Vec::new(),
        }
    }
}

impl std::fmt::Debug for TripCounterBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TripCounterBuilder")
            .field("namespaces", &self.namespaces)
            .finish_non_exhaustive()
    }
}

fn with_shipped(mut namespaces: Vec<Namespace>) -> Vec<Namespace> {
    for (name, scope) in [
        (names::DEFAULT_NAMESPACE, names::DEFAULT_SCOPE),
        (OUTBOX_NAMESPACE, OUTBOX_SCOPE),
    ] {
        if namespaces.iter().all(|there| there.name != name) {
            namespaces.push(Namespace::new(name, scope));
        }
    }
    namespaces
}

fn counters(provider: &(impl MeterProvider + ?Sized), namespaces: &[Namespace]) -> Vec<Counter<u64>> {
    namespaces
        .iter()
        .map(|namespace| {
            let scope = InstrumentationScope::builder(namespace.scope)
                .with_version(env!("CARGO_PKG_VERSION"))
                .build();
            provider
                .meter_with_scope(scope)
                .u64_counter(TRIPS.full_name(&namespace.name))
                .with_description(TRIPS.description)
                .with_unit(TRIPS.unit)
                .build()
        })
        .collect()
}

impl Counters {
    fn add(&self, namespaces: &[Namespace], index: usize, attributes: &[KeyValue]) {
        let count = |counters: &[Counter<u64>]| {
            if let Some(counter) = counters.get(index) {
                counter.add(1, attributes);
            }
        };
        match self {
            Self::Made(made) => count(made),
            Self::OfGlobal(global) => {
                let provider = global::meter_provider();
                let mut made = global.lock();
                if made
                    .provider
                    .as_ref()
                    .is_none_or(|last| !Arc::ptr_eq(last, &provider))
                {
                    made.counters = counters(&*provider, namespaces);
                    made.provider = Some(provider);
                }
                count(&made.counters);
            }
        }
    }
}

impl SpanProcessor for TripCounter {
    fn on_start(&self, _span: &mut Span, _cx: &Context) {}

    fn on_end(&self, span: SpanData) {
        if !are_of_a_breaker(&span.attributes) {
            return;
        }
        let index = self.namespace_of(&span);
        let Some(namespace) = self.namespaces.get(index) else {
            return;
        };
        let allowed = [&*namespace.operation, TOPIC];
        let mut attributes: Vec<_> = span
            .attributes
            .into_iter()
            .filter(|attribute| allowed.contains(&attribute.key.as_str()))
            .collect();
        attributes.extend_from_slice(&self.service);
        self.counters.add(&self.namespaces, index, &attributes);
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _timeout: Duration) -> OTelSdkResult {
        Ok(())
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.service = resource
            .iter()
            .filter(|(key, _)| key.as_str().starts_with("service."))
            .map(|(key, value)| KeyValue::new(key.clone(), value.clone()))
            .collect();
    }
}
