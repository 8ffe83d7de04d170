//! The contract as Rust types, generated from `wit/`.

wasmtime::component::bindgen!({
    path: "wit",
    world: "breaker",
    // The linker functions of WASI ask for it.
    require_store_data_send: true,
    additional_derives: [PartialEq],
    with: {
        "wasi:clocks": wasmtime_wasi::p2::bindings::clocks,
        "wasi:io": wasmtime_wasi::p2::bindings::io,
    },
});
