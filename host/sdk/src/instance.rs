//! One instance of a policy component: its store, its limits, and each of its functions as a plain method.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tracing::Dispatch;
use tracing::dispatcher::{self, DefaultGuard};
use tracing::level_filters::LevelFilter;
use wasmtime::component::{Component, Linker, ResourceTable};
use wasmtime::{ResourceLimiter, Store, StoreLimits, StoreLimitsBuilder};
use wasmtime_wasi::clocks::{HostMonotonicClock, HostWallClock, WasiClocks, WasiClocksCtxView};
use wasmtime_wasi::{WasiCtx, WasiCtxBuilder};

use crate::bindings::exports::tripwit::breaker::policy as wit;
use crate::bindings::tripwit::breaker::{log, spans, types};
use crate::bindings::{Breaker, BreakerPre};
use crate::clock::{Clock, timestamp};
use crate::engine::DEADLINE_TICKS;
use crate::telemetry::{Heard, Told};

/// The most that a component may hand over at once, in bytes: in an answer (but for the moves of a cool-down cycle), a log
/// line or a span. The shipped policies need a hundredth of it.
const MAX_TOLD: usize = 1 << 20;

/// A component that trapped, overran its deadline or handed out nonsense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The function that it was in.
    pub(crate) call: &'static str,
    pub(crate) problem: String,
}

impl Fault {
    pub(crate) fn new(call: &'static str, problem: impl Into<String>) -> Self {
        Self {
            call,
            problem: problem.into(),
        }
    }

    /// The fault as one text.
    pub(crate) fn text(&self) -> String {
        format!("`{}`: {}", self.call, self.problem)
    }
}

/// What an instance is given when it starts.
pub(crate) struct Start<'a> {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) setup: wit::Setup,
    pub(crate) max_memory: usize,
    /// Where the size of the instance's memory is written, in bytes.
    pub(crate) memory: &'a Arc<AtomicUsize>,
}

/// A live instance. After a fault it must be dropped.
pub(crate) struct Instance {
    store: Store<Host>,
    policy: Breaker,
    reading: Arc<AtomicU64>,
    memory_at_start: usize,
}

impl Instance {
    pub(crate) fn start(pre: &BreakerPre<Host>, start: Start<'_>) -> Result<Self, Fault> {
        let reading = Arc::new(AtomicU64::new(start.clock.monotonic()));
        let host = Host::new(start.clock, &reading, start.max_memory, start.memory);
        let mut store = Store::new(pre.engine(), host);
        store.limiter(|host| &mut host.limits);
        store.set_epoch_deadline(DEADLINE_TICKS);
        store.set_hostcall_fuel(MAX_TOLD);
        let quiet = quiet();
        let policy = pre
            .instantiate(&mut store)
            .map_err(|error| fault("instantiation", &error))?;
        drop(quiet);
        let mut instance = Self {
            store,
            policy,
            reading,
            memory_at_start: 0,
        };
        instance.prepare(&start.setup)?;
        instance.memory_at_start = start.memory.load(Ordering::Relaxed);
        Ok(instance)
    }

    /// Sets the time that the component reads until it is set again.
    pub(crate) fn set_now(&self, now: u64) {
        self.reading.store(now, Ordering::Relaxed);
    }

    /// One cool-down cycle. As many circuits as are given can have moved.
    pub(crate) fn cool_down(&mut self, circuits: usize) -> Result<Vec<(u32, types::Moved)>, Fault> {
        let moves = circuits.saturating_mul(size_of::<(u32, types::Moved)>());
        self.store.set_hostcall_fuel(MAX_TOLD.saturating_add(moves));
        let moved = self.cool_down_all();
        self.store.set_hostcall_fuel(MAX_TOLD);
        moved
    }

    /// How much memory it had before any circuit, in bytes.
    pub(crate) fn memory_at_start(&self) -> usize {
        self.memory_at_start
    }

    /// What the component has told since this was last called.
    pub(crate) fn take_told(&mut self) -> Heard {
        std::mem::take(&mut self.store.data_mut().heard)
    }
}

macro_rules! exports {
    ($($(#[$attribute:meta])* fn $name:ident($($arg:ident: $type:ty),*) -> $result:ty = $call:ident, $export:literal;)*) => {
        impl Instance {$(
            $(#[$attribute])*
            pub(crate) fn $name(&mut self, $($arg: $type),*) -> Result<$result, Fault> {
                self.store.set_epoch_deadline(DEADLINE_TICKS);
                let _quiet = quiet();
                self.policy
                    .tripwit_breaker_policy()
                    .$call(&mut self.store, $($arg),*)
                    .map_err(|error| fault($export, &error))
            }
        )*}
    };
}

exports! {
    fn describe() -> wit::Description = call_describe, "describe";
    fn prepare(setup: &wit::Setup) -> () = call_prepare, "prepare";
    fn attach(key: &str, settings: &str) -> Result<wit::Attachment, wit::AttachError> = call_attach, "attach";
    fn configure(circuit: u32, settings: &str) -> Result<types::Moved, wit::AttachError> = call_configure, "configure";
    fn detach(circuit: u32) -> () = call_detach, "detach";
    fn acquire(circuit: u32) -> wit::Admission = call_acquire, "acquire";
    fn settle(circuit: u32, ticket: u64, report: &types::Report) -> wit::Settlement = call_settle, "settle";
    fn settle_successes(circuit: u32, ticket: u64, count: u32) -> types::Moved = call_settle_successes, "settle-successes";
    #[cfg(feature = "raw")]
    fn lease_of(circuit: u32) -> types::Lease = call_lease_of, "lease-of";
    fn trip(circuit: u32, wait: Option<u64>) -> types::Moved = call_trip, "trip";
    fn reset(circuit: u32) -> types::Moved = call_reset, "reset";
    fn set_mode(circuit: u32, mode: types::Mode) -> types::Moved = call_set_mode, "set-mode";
    fn cool_down_all() -> Vec<(u32, types::Moved)> = call_cool_down, "cool-down";
    fn inspect(circuit: u32) -> wit::Status = call_inspect, "inspect";
    #[cfg(feature = "raw")]
    fn tripped() -> Vec<String> = call_tripped, "tripped";
    fn save(circuit: u32) -> wit::Snapshot = call_save, "save";
    fn restore(snapshot: &wit::Snapshot, settings: &str, age: u64) -> Result<wit::Attachment, wit::AttachError> = call_restore, "restore";
}

/// The bindings of WASI trace each call of a clock. Under the shard's lock no subscriber may hear of it.
fn quiet() -> Option<DefaultGuard> {
    let tracing = LevelFilter::current() >= LevelFilter::TRACE;
    tracing.then(|| dispatcher::set_default(&Dispatch::none()))
}

fn fault(call: &'static str, error: &wasmtime::Error) -> Fault {
    let problem = match error.downcast_ref::<wasmtime::Trap>() {
        Some(wasmtime::Trap::Interrupt) => "it did not answer within two seconds".to_owned(),
        Some(trap) => trap.to_string(),
        None => format!("{:#}", error),
    };
    Fault { call, problem }
}

/// What a component's imports reach: two clocks, and a list of what it tells.
pub(crate) struct Host {
    wasi: WasiCtx,
    table: ResourceTable,
    limits: Limits,
    heard: Heard,
}

impl Host {
    pub(crate) fn new(
        clock: Arc<dyn Clock>,
        reading: &Arc<AtomicU64>,
        max_memory: usize,
        memory: &Arc<AtomicUsize>,
    ) -> Self {
        let mut wasi = WasiCtxBuilder::new();
        wasi.monotonic_clock(Reading(reading.clone()))
            .wall_clock(Wall(clock));
        #[cfg(feature = "wasi")]
        crate::sandbox::without_chance(&mut wasi);
        let wasi = wasi.build();
        let mut table = ResourceTable::new();
        table.set_max_capacity(MAX_RESOURCES);
        memory.store(0, Ordering::Relaxed);
        let limits = StoreLimitsBuilder::new()
            .memory_size(max_memory)
            .memories(MAX_MEMORIES)
            .instances(MAX_INSTANCES)
            .tables(8)
            .table_elements(16_384)
            .build();
        Self {
            wasi,
            table,
            limits: Limits {
                within: limits,
                max_memory,
                memory: memory.clone(),
            },
            heard: Heard::default(),
        }
    }
}

impl Host {
    pub(crate) fn clocks(&mut self) -> WasiClocksCtxView<'_> {
        WasiClocksCtxView {
            ctx: self.wasi.clocks(),
            table: &mut self.table,
        }
    }

    #[cfg(feature = "wasi")]
    pub(crate) fn random(&mut self) -> &mut wasmtime_wasi::random::WasiRandomCtx {
        self.wasi.random()
    }
}

/// Links what a policy may import, and nothing else; for a component that gets a sandbox, that too.
pub(crate) fn link(linker: &mut Linker<Host>, sandboxed: Option<&Component>) -> wasmtime::Result<()> {
    use wasmtime_wasi::p2::bindings::clocks::{monotonic_clock, wall_clock};
    log::add_to_linker::<_, wasmtime::component::HasSelf<Host>>(linker, |host| host)?;
    spans::add_to_linker::<_, wasmtime::component::HasSelf<Host>>(linker, |host| host)?;
    #[cfg(feature = "wasi")]
    if let Some(component) = sandboxed {
        return crate::sandbox::link(linker, component);
    }
    #[cfg(not(feature = "wasi"))]
    let _none = sandboxed;
    monotonic_clock::add_to_linker::<_, WasiClocks>(linker, Host::clocks)?;
    wall_clock::add_to_linker::<_, WasiClocks>(linker, Host::clocks)
}

impl log::Host for Host {
    fn log(&mut self, level: log::Level, message: String, fields: Vec<types::Field>) {
        self.heard.add(Told::log(level, message, fields));
    }
}

impl spans::Host for Host {
    fn export_span(&mut self, span: spans::Span) {
        self.heard.add(Told::span(span));
    }
}

/// The one reading of the clock that a crossing is made under.
struct Reading(Arc<AtomicU64>);

impl HostMonotonicClock for Reading {
    fn resolution(&self) -> u64 {
        1
    }

    fn now(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

struct Wall(Arc<dyn Clock>);

impl HostWallClock for Wall {
    fn resolution(&self) -> Duration {
        Duration::from_nanos(1)
    }

    fn now(&self) -> Duration {
        Duration::from_nanos(timestamp(self.0.wall()))
    }
}

/// The modules that one component may be made of: componentising for an interpreter wraps it in some fifty small ones.
const MAX_INSTANCES: usize = 128;
/// Two of those may have memories of their own.
const MAX_MEMORIES: usize = 4;
/// What the host may hold for a component at once, such as what a clock could be waited for with.
const MAX_RESOURCES: usize = 1_024;

/// The store's limits, with a note of how much memory there is, in all memories.
struct Limits {
    within: StoreLimits,
    max_memory: usize,
    memory: Arc<AtomicUsize>,
}

impl ResourceLimiter for Limits {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let grown = desired.saturating_sub(current);
        let all = self.memory.load(Ordering::Relaxed).saturating_add(grown);
        let granted = all <= self.max_memory && self.within.memory_growing(current, desired, maximum)?;
        if granted {
            self.memory.store(all, Ordering::Relaxed);
        }
        Ok(granted)
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        self.within.table_growing(current, desired, maximum)
    }

    fn instances(&self) -> usize {
        self.within.instances()
    }

    fn tables(&self) -> usize {
        self.within.tables()
    }

    fn memories(&self) -> usize {
        self.within.memories()
    }
}
