//! What a component exports.

use alloc::{string::String, vec, vec::Vec};
use core::marker::PhantomData;

use spin::Mutex;
use tripwit_core::Policy;

use super::{
    Imports,
    bindings::exports::tripwit::breaker::policy::{
        Admission, AttachError, Attachment, Circuit, Description, Guest, Lease, Mode, Moved, Nanoseconds,
        Report, Settlement, Setup, Snapshot, Status, Ticket,
    },
    convert::text_field,
};
use crate::Circuits;

/// The circuits of a component's one instance.
#[derive(Debug)]
pub struct Instance<P: Policy>(Mutex<Option<Circuits<P, Imports>>>);

impl<P: Policy> Instance<P> {
    /// Not yet used.
    #[must_use]
    pub const fn new() -> Self {
        Self(Mutex::new(None))
    }

    fn with<R>(&self, run: impl FnOnce(&mut Circuits<P, Imports>) -> R) -> R {
        // A component is entered once at a time, so the lock is free unless it was left by a trap.
        let Some(mut circuits) = self.0.try_lock() else {
            trap()
        };
        run(circuits.get_or_insert_with(|| Circuits::new(Imports)))
    }
}

impl<P: Policy> Default for Instance<P> {
    fn default() -> Self {
        Self::new()
    }
}

/// A policy and the place of its instance.
pub trait Component {
    /// The policy.
    type Policy: Policy + 'static;

    /// The version of the crate that makes the component.
    const VERSION: &'static str;

    /// The place.
    fn instance() -> &'static Instance<Self::Policy>;
}

/// The exports of a [`Component`].
#[derive(Debug)]
pub struct Adapter<C>(PhantomData<C>);

fn of<C: Component, R>(run: impl FnOnce(&mut Circuits<C::Policy, Imports>) -> Option<R>) -> R {
    C::instance().with(run).unwrap_or_else(|| trap())
}

/// Ends the instance: only a faulty host asks for a circuit that is not attached.
#[cfg_attr(
    not(target_arch = "wasm32"),
    expect(clippy::panic, reason = "there is no trap on the host")
)]
fn trap() -> ! {
    #[cfg(target_arch = "wasm32")]
    core::arch::wasm32::unreachable();
    #[cfg(not(target_arch = "wasm32"))]
    panic!("no such circuit")
}

impl<C: Component> Guest for Adapter<C> {
    fn describe() -> Description {
        let telemetry = C::Policy::TELEMETRY;
        Description {
            name: C::Policy::NAME.into(),
            version: C::VERSION.into(),
            summary: C::Policy::SUMMARY.into(),
            settings_schema: C::Policy::schema(),
            extra: vec![
                text_field("namespace", telemetry.namespace),
                text_field("instrumentation_scope", telemetry.scope),
            ],
        }
    }

    fn prepare(setup: Setup) {
        C::instance().with(|circuits| circuits.prepare(setup.into()));
    }

    fn attach(key: String, settings: String) -> Result<Attachment, AttachError> {
        let attached = C::instance().with(|circuits| circuits.attach(&key, &settings));
        attached.map(Into::into).map_err(Into::into)
    }

    fn configure(circuit: Circuit, settings: String) -> Result<Moved, AttachError> {
        of::<C, _>(|circuits| circuits.configure(circuit, &settings))
            .map(Into::into)
            .map_err(Into::into)
    }

    fn detach(circuit: Circuit) {
        of::<C, _>(|circuits| circuits.detach(circuit));
    }

    fn acquire(circuit: Circuit) -> Admission {
        of::<C, _>(|circuits| circuits.acquire(circuit)).into()
    }

    fn settle(circuit: Circuit, ticket: Ticket, report: Report) -> Settlement {
        of::<C, _>(|circuits| circuits.settle(circuit, ticket, &report.into())).into()
    }

    fn settle_successes(circuit: Circuit, ticket: Ticket, count: u32) -> Moved {
        of::<C, _>(|circuits| circuits.settle_successes(circuit, ticket, count)).into()
    }

    fn lease_of(circuit: Circuit) -> Lease {
        of::<C, _>(|circuits| circuits.lease_of(circuit)).into()
    }

    fn trip(circuit: Circuit, wait: Option<Nanoseconds>) -> Moved {
        of::<C, _>(|circuits| circuits.trip(circuit, wait)).into()
    }

    fn reset(circuit: Circuit) -> Moved {
        of::<C, _>(|circuits| circuits.reset(circuit)).into()
    }

    fn set_mode(circuit: Circuit, mode: Mode) -> Moved {
        of::<C, _>(|circuits| circuits.set_mode(circuit, mode.into())).into()
    }

    fn cool_down() -> Vec<(Circuit, Moved)> {
        let moved = C::instance().with(Circuits::cool_down);
        moved
            .into_iter()
            .map(|(circuit, moved)| (circuit, moved.into()))
            .collect()
    }

    fn inspect(circuit: Circuit) -> Status {
        of::<C, _>(|circuits| circuits.inspect(circuit)).into()
    }

    fn tripped() -> Vec<String> {
        C::instance().with(|circuits| circuits.tripped())
    }

    fn save(circuit: Circuit) -> Snapshot {
        of::<C, _>(|circuits| circuits.save(circuit)).into()
    }

    fn restore(snapshot: Snapshot, settings: String, age: Nanoseconds) -> Result<Attachment, AttachError> {
        let restored = C::instance().with(|circuits| circuits.restore(&snapshot.into(), &settings, age));
        restored.map(Into::into).map_err(Into::into)
    }
}
