//! The policy `outbox` as a component of the contract `tripwit:breaker`; see [`tripwit_core::Outbox`].
#![cfg_attr(target_arch = "wasm32", no_std)]

tripwit_policy::export!(tripwit_core::Outbox);
