//! A component that is `consecutive`, except for circuits whose key asks for a fault: `{fault}:{export}`, where the export
//! is named as in the contract and the fault is one of
//!
//! - `trap`: the export traps;
//! - `loop`: it never returns;
//! - `bomb`: it takes memory without end;
//! - `flood`: it writes ten thousand log lines, and goes on;
//! - `past`: its lease ended long ago;
//! - `nothing`: its lease allows no success to be kept back;
//! - `older`: its lease is of generation 0.
//!
//! What follows a second colon in the key is free, so that there can be many such circuits.
#![cfg_attr(target_arch = "wasm32", no_std)]

#[cfg(target_arch = "wasm32")]
extern crate alloc;

#[cfg(target_arch = "wasm32")]
mod faulty;
