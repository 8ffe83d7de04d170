//! The contract as Rust types, generated from `wit/`.

wasmtime::component::bindgen!({
    path: "wit",
    world: "breaker",
    with: {
        "wasi:clocks": wasmtime_wasi::p2::bindings::clocks,
        "wasi:io": wasmtime_wasi::p2::bindings::io,
    },
});
