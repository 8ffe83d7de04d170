//! What all shards of one set of circuits share.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use opentelemetry::InstrumentationScope;
use parking_lot::{Mutex, RwLock};

use crate::bindings::exports::tripwit::breaker::policy::Setup;
use crate::builder::OnFault;
use crate::clock::Clock;
use crate::ledger::Ledger;
use crate::meters::Meters;
use crate::names::{DEFAULT_NAMESPACE, DEFAULT_SCOPE};
use crate::policy::Policy;
use crate::providers::Telemetry;
use crate::regime::Regime;
use crate::status::FieldValue;
use crate::subscription::Subscribers;
use crate::tally::Ending;

pub(crate) struct Env {
    /// The policy that decides, or is about to: shards follow one by one.
    pub(crate) regime: RwLock<Arc<Regime>>,
    /// Held while the policy or its settings are changed.
    pub(crate) changing: Mutex<()>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) setup: Setup,
    pub(crate) max_memory: usize,
    pub(crate) max_circuits: usize,
    pub(crate) on_fault: OnFault,
    pub(crate) ignore_leases: bool,
    pub(crate) telemetry: Telemetry,
    pub(crate) meters: Meters,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) subscribers: Arc<Subscribers>,
}

impl Env {
    /// The policy that decides.
    pub(crate) fn regime(&self) -> Arc<Regime> {
        self.regime.read().clone()
    }

    /// Takes the place of one more circuit, if there is one.
    pub(crate) fn take_place(&self) -> bool {
        let more = |places: usize| (places < self.max_circuits).then_some(places + 1);
        self.ledger
            .circuits
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .is_ok()
    }

    pub(crate) fn give_place_back(&self) {
        self.ledger.circuits.fetch_sub(1, Ordering::Relaxed);
    }

    /// Counts a call, if anybody can ask for the count.
    #[inline(always)]
    pub(crate) fn count(&self, ending: Ending) {
        if self.meters.are_listened_to() {
            self.ledger.calls.add(ending);
        }
    }

    /// Looks for a provider of meters, until there is one. No lock may be held.
    pub(crate) fn connect(&self) {
        self.meters.connect(&self.ledger);
    }
}

/// The scope that spans and instruments of this policy have.
pub(crate) fn scope(policy: &Policy) -> InstrumentationScope {
    let name = said(policy, "instrumentation_scope").unwrap_or(DEFAULT_SCOPE);
    InstrumentationScope::builder(name.to_owned())
        .with_version(env!("CARGO_PKG_VERSION"))
        .build()
}

/// What the names that are the product's own begin with, where nobody says otherwise.
pub(crate) fn namespace(policy: &Policy) -> &str {
    said(policy, "namespace").unwrap_or(DEFAULT_NAMESPACE)
}

/// A text that the policy says about itself beyond the common ones.
fn said<'a>(policy: &'a Policy, what: &str) -> Option<&'a str> {
    let extra = &policy.description().extra;
    extra.iter().find_map(|(name, value)| match value {
        FieldValue::Text(text) if name == what => Some(&**text),
        FieldValue::Text(_) | FieldValue::Integer(_) | FieldValue::Number(_) | FieldValue::Boolean(_) => None,
    })
}
