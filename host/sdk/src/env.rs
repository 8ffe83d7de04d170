//! What all shards of one set of circuits share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use opentelemetry::InstrumentationScope;

use crate::bindings::exports::tripwit::breaker::policy::Setup;
use crate::builder::OnFault;
use crate::clock::Clock;
use crate::instance::{Fault, Instance, Start};
use crate::policy::Policy;
use crate::settings::Table;
use crate::status::FieldValue;
use crate::subscription::Subscribers;

pub(crate) struct Env {
    pub(crate) policy: Policy,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) settings: Table,
    pub(crate) setup: Setup,
    pub(crate) max_memory: usize,
    pub(crate) max_circuits: usize,
    pub(crate) on_fault: OnFault,
    pub(crate) ignore_leases: bool,
    pub(crate) scope: InstrumentationScope,
    pub(crate) subscribers: Arc<Subscribers>,
    pub(crate) faults: AtomicU64,
    /// How many circuits there are, over all shards.
    pub(crate) circuits: AtomicUsize,
}

impl Env {
    /// A fresh instance of the policy, set up.
    pub(crate) fn start(&self, memory: &Arc<AtomicUsize>) -> Result<Instance, Fault> {
        Instance::start(
            self.policy.pre(),
            Start {
                clock: self.clock.clone(),
                setup: self.setup.clone(),
                max_memory: self.max_memory,
                memory,
            },
        )
    }

    /// Takes the place of one more circuit, if there is one.
    pub(crate) fn take_place(&self) -> bool {
        let more = |places: usize| (places < self.max_circuits).then_some(places + 1);
        self.circuits
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .is_ok()
    }

    pub(crate) fn give_place_back(&self) {
        self.circuits.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The scope that spans of this policy have.
pub(crate) fn scope(policy: &Policy) -> InstrumentationScope {
    let named = policy
        .description()
        .extra
        .iter()
        .find_map(|(name, value)| match value {
            FieldValue::Text(text) if name == "instrumentation_scope" => Some(text.clone()),
            FieldValue::Text(_) | FieldValue::Integer(_) | FieldValue::Number(_) | FieldValue::Boolean(_) => {
                None
            }
        });
    InstrumentationScope::builder(named.unwrap_or_else(|| "tripwit".into()))
        .with_version(env!("CARGO_PKG_VERSION"))
        .build()
}
