//! The one WebAssembly engine of the process, and the ticker that ends calls which never end.

use std::time::Duration;

use parking_lot::Mutex;
use wasmtime::{Config, Engine, EngineWeak};

/// How many ticks a component may take for one answer: about two seconds, so that a thread which is merely
/// preempted does not look like a loop.
pub(crate) const DEADLINE_TICKS: u64 = 200;

/// The engine, made when it is first wanted.
pub(crate) fn engine() -> wasmtime::Result<Engine> {
    static ENGINE: Mutex<Option<Engine>> = Mutex::new(None);
    let mut made = ENGINE.lock();
    if let Some(engine) = &*made {
        return Ok(engine.clone());
    }
    let engine = Engine::new(&config())?;
    let weak = engine.weak();
    std::thread::Builder::new()
        .name("tripwit-ticker".into())
        .spawn(move || tick(&weak))
        .map_err(wasmtime::Error::from)?;
    *made = Some(engine.clone());
    Ok(engine)
}

fn config() -> Config {
    let mut config = Config::new();
    config
        // A policy never waits, and a crossing with concurrency support costs three times as much.
        .concurrency_support(false)
        .epoch_interruption(true)
        .wasm_component_model(true)
        .wasm_relaxed_simd(false)
        .wasm_memory64(false)
        .wasm_multi_memory(false)
        // One shard has some megabytes at the most, and there may be many.
        .memory_reservation(16 << 20)
        .memory_reservation_for_growth(4 << 20)
        .memory_guard_size(64 << 10)
        .max_wasm_stack(256 << 10);
    config
}

fn tick(engine: &EngineWeak) {
    while let Some(engine) = engine.upgrade() {
        engine.increment_epoch();
        drop(engine);
        // Nobody unparks this thread; a wake-up out of turn only makes one tick short.
        std::thread::park_timeout(TICK);
    }
}

const TICK: Duration = Duration::from_millis(10);
