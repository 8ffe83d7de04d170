//! A component that is `consecutive`, except where a fault is asked for: `{fault}:{export}`, where the export is named as in
//! the contract. A circuit's key asks for faults of that circuit; what follows a second colon in it is free, so that there can
//! be many such circuits. The order asks for faults of the whole instance: [`ORDER`] is a text of fixed length in the
//! component's data, which a test may overwrite.
//!
//! Faults of any export:
//!
//! - `trap`: it traps;
//! - `loop`: it never returns;
//! - `recurse`: it calls itself without end;
//! - `bomb`: it takes memory without end;
//! - `flood`: it writes ten thousand log lines, and goes on;
//! - `spans`: it hands in ten thousand spans, and goes on;
//! - `giant`: it writes a log line of 4 MiB;
//! - `same`: it writes a log line with ten thousand fields that are all the same 64 KiB.
//!
//! Faults of exports that answer with a lease:
//!
//! - `past`: the lease ended long ago;
//! - `nothing`: it allows no success to be kept back;
//! - `older`: it is of generation 0;
//! - `unknown`: it admits with a ticket that nobody knows, and lets every success be kept back;
//! - `ever`: it holds until the end of time, and so do its limits;
//! - `never`: its limits are 0.
//!
//! Faults of some exports:
//!
//! - `number`: `attach` and `restore` hand out one number for all circuits, `cool-down` moves one that nobody has;
//! - `key`: `inspect` and `save` answer for another key;
//! - `large`: `describe`, `attach`, `configure`, `inspect`, `save` and `restore` answer with a text of 4 MiB, `cool-down` with
//!   ten thousand moves;
//! - `some`: `save` answers with a detail of 32 KiB.
#![cfg_attr(target_arch = "wasm32", no_std)]

#[cfg(target_arch = "wasm32")]
extern crate alloc;

#[cfg(target_arch = "wasm32")]
mod faulty;

/// The fault of the whole instance: what follows the equals sign, up to the first blank.
pub static ORDER: [u8; 48] = *b"tripwit-faulty-order=                           ";
