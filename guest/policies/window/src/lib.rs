//! The policy `window` as a component of the contract `tripwit:breaker`; see [`tripwit_core::Window`].
#![cfg_attr(target_arch = "wasm32", no_std)]

tripwit_policy::export!(tripwit_core::Window);
