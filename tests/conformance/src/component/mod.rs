//! The second subject: the shipped component through wasmtime, with nothing of the host's crate around it.

mod convert;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use parking_lot::Mutex;
use tripwit::{Clock, ManualClock};
use tripwit_core::{Lease, Mode, Nanoseconds, Report, Ticket};
use tripwit_policy::{Admission, AttachError, Attachment, Moved, Settlement, Setup, Snapshot};
use wasmtime::component::{Component, HasSelf, Linker, ResourceTable};
use wasmtime::{Config, Engine, Store};
use wasmtime_wasi::clocks::{HostMonotonicClock, HostWallClock, WasiClocks, WasiClocksCtxView};
use wasmtime_wasi::{WasiCtx, WasiCtxBuilder};

use bindings::tripwit::breaker::{log, spans, types};
use bindings::{Breaker, BreakerPre};

use crate::guest::{Description, Guest, Inspection};
use crate::native::wall;
use crate::told::{Line, Span, Told};
use crate::verb::PolicyName;

mod bindings {
    //! The contract as Rust types, generated from `wit/`.

    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "breaker",
        require_store_data_send: true,
        with: {
            "wasi:clocks": wasmtime_wasi::p2::bindings::clocks,
            "wasi:io": wasmtime_wasi::p2::bindings::io,
        },
    });
}

pub(crate) fn start(policy: PolicyName, clock: &ManualClock) -> Result<Box<dyn Guest>> {
    let policy = compiled(policy)?;
    let mut store = Store::new(policy.engine(), Surroundings::new(clock));
    let breaker = policy
        .instantiate(&mut store)
        .map_err(|error| failed("instantiation", &error))?;
    Ok(Box::new(Instance { store, breaker }))
}

/// The shipped component, compiled once.
fn compiled(policy: PolicyName) -> Result<Arc<BreakerPre<Surroundings>>> {
    static COMPILED: Mutex<BTreeMap<&str, Arc<BreakerPre<Surroundings>>>> = Mutex::new(BTreeMap::new());
    let mut all = COMPILED.lock();
    if let Some(known) = all.get(policy.text()) {
        return Ok(known.clone());
    }
    let made = Arc::new(compile(policy).map_err(|error| failed(policy.text(), &error))?);
    all.insert(policy.text(), made.clone());
    Ok(made)
}

/// `wasmtime` has an error type of its own.
fn failed(what: &str, error: &wasmtime::Error) -> anyhow::Error {
    anyhow::anyhow!("{what}: {error:#}")
}

fn compile(policy: PolicyName) -> wasmtime::Result<BreakerPre<Surroundings>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../host/sdk/components")
        .join(format!("{}.wasm", policy.text()));
    let mut config = Config::new();
    config.concurrency_support(false).wasm_component_model(true);
    let engine = Engine::new(&config)?;
    let component = Component::from_file(&engine, &path)?;
    let mut linker = Linker::new(&engine);
    link(&mut linker)?;
    BreakerPre::new(linker.instantiate_pre(&component)?)
}

fn link(linker: &mut Linker<Surroundings>) -> wasmtime::Result<()> {
    use wasmtime_wasi::p2::bindings::clocks::{monotonic_clock, wall_clock};
    fn clocks(around: &mut Surroundings) -> WasiClocksCtxView<'_> {
        WasiClocksCtxView {
            ctx: around.wasi.clocks(),
            table: &mut around.table,
        }
    }
    monotonic_clock::add_to_linker::<_, WasiClocks>(linker, clocks)?;
    wall_clock::add_to_linker::<_, WasiClocks>(linker, clocks)?;
    log::add_to_linker::<_, HasSelf<Surroundings>>(linker, |around| around)?;
    spans::add_to_linker::<_, HasSelf<Surroundings>>(linker, |around| around)
}

/// What a component's imports reach: two clocks that are set by hand, and a list of what was told.
struct Surroundings {
    wasi: WasiCtx,
    table: ResourceTable,
    told: Told,
}

impl Surroundings {
    fn new(clock: &ManualClock) -> Self {
        let wasi = WasiCtxBuilder::new()
            .monotonic_clock(Hands(clock.clone()))
            .wall_clock(Hands(clock.clone()))
            .build();
        Self {
            wasi,
            table: ResourceTable::new(),
            told: Told::default(),
        }
    }
}

impl log::Host for Surroundings {
    fn log(&mut self, level: log::Level, message: String, fields: Vec<types::Field>) {
        let level = convert::level(level);
        self.told
            .log
            .push(Line::new(level, &message, convert::fields(fields)));
    }
}

impl spans::Host for Surroundings {
    fn export_span(&mut self, span: spans::Span) {
        let attributes = convert::fields(span.attributes);
        self.told
            .spans
            .push(Span::new(span.name, span.start, span.end, attributes));
    }
}

struct Hands(ManualClock);

impl HostMonotonicClock for Hands {
    fn resolution(&self) -> u64 {
        1
    }

    fn now(&self) -> u64 {
        self.0.monotonic()
    }
}

impl HostWallClock for Hands {
    fn resolution(&self) -> Duration {
        Duration::from_nanos(1)
    }

    fn now(&self) -> Duration {
        Duration::from_nanos(wall(&self.0))
    }
}

struct Instance {
    store: Store<Surroundings>,
    breaker: Breaker,
}

/// Calls an export.
macro_rules! call {
    ($instance:ident.$call:ident($($arg:expr),*)) => {
        $instance
            .breaker
            .tripwit_breaker_policy()
            .$call(&mut $instance.store, $($arg),*)
            .map_err(|error| failed(stringify!($call), &error))?
    };
}

impl Guest for Instance {
    fn describe(&mut self) -> Result<Description> {
        let it = call!(self.call_describe());
        Ok(Description {
            name: it.name,
            version: it.version,
            summary: it.summary,
            settings_schema: it.settings_schema,
            extra: convert::fields(it.extra),
        })
    }

    fn prepare(&mut self, setup: &Setup) -> Result<()> {
        call!(self.call_prepare(&convert::setup(setup)));
        Ok(())
    }

    fn attach(&mut self, key: &str, settings: &str) -> Result<Result<Attachment, AttachError>> {
        convert::refusable(call!(self.call_attach(key, settings)))
    }

    fn configure(&mut self, circuit: u32, settings: &str) -> Result<Result<Moved, AttachError>> {
        convert::refusable(call!(self.call_configure(circuit, settings)))
    }

    fn detach(&mut self, circuit: u32) -> Result<()> {
        call!(self.call_detach(circuit));
        Ok(())
    }

    fn acquire(&mut self, circuit: u32) -> Result<Admission> {
        Ok(call!(self.call_acquire(circuit)).into())
    }

    fn settle(&mut self, circuit: u32, ticket: Ticket, report: &Report) -> Result<Settlement> {
        Ok(call!(self.call_settle(circuit, ticket, &convert::report(report))).into())
    }

    fn settle_successes(&mut self, circuit: u32, ticket: Ticket, count: u32) -> Result<Moved> {
        Ok(call!(self.call_settle_successes(circuit, ticket, count)).into())
    }

    fn lease_of(&mut self, circuit: u32) -> Result<Lease> {
        Ok(call!(self.call_lease_of(circuit)).into())
    }

    fn trip(&mut self, circuit: u32, wait: Option<Nanoseconds>) -> Result<Moved> {
        Ok(call!(self.call_trip(circuit, wait)).into())
    }

    fn reset(&mut self, circuit: u32) -> Result<Moved> {
        Ok(call!(self.call_reset(circuit)).into())
    }

    fn set_mode(&mut self, circuit: u32, mode: Mode) -> Result<Moved> {
        Ok(call!(self.call_set_mode(circuit, mode.into())).into())
    }

    fn cool_down(&mut self) -> Result<Vec<(u32, Moved)>> {
        let moved = call!(self.call_cool_down());
        Ok(moved
            .into_iter()
            .map(|(circuit, moved)| (circuit, moved.into()))
            .collect())
    }

    fn inspect(&mut self, circuit: u32) -> Result<Inspection> {
        Ok(call!(self.call_inspect(circuit)).into())
    }

    fn tripped(&mut self) -> Result<Vec<String>> {
        let mut keys = call!(self.call_tripped());
        keys.sort();
        Ok(keys)
    }

    fn save(&mut self, circuit: u32) -> Result<Snapshot> {
        Ok(call!(self.call_save(circuit)).into())
    }

    fn restore(
        &mut self,
        snapshot: &Snapshot,
        settings: &str,
        age: Nanoseconds,
    ) -> Result<Result<Attachment, AttachError>> {
        convert::refusable(call!(self.call_restore(&snapshot.into(), settings, age)))
    }

    fn take_told(&mut self) -> Told {
        std::mem::take(&mut self.store.data_mut().told)
    }
}
