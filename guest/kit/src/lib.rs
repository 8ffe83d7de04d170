//! Turns a [`Policy`](tripwit_core::Policy) into a WebAssembly component of the contract `tripwit:breaker`.
//!
//! A policy crate is a `cdylib` with one line:
//!
//! ```ignore
//! tripwit_policy::export!(tripwit_core::Consecutive);
//! ```
//!
//! Built for `wasm32-unknown-unknown` and componentised, it exports the contract and imports two clocks, a log and a place
//! for spans. [`Circuits`] is what the component is made of: the circuits of one instance by key and number, their
//! log lines and spans. It runs natively too, over any [`Host`].
//!
//! What it does not do: decide. Every decision is the policy's.
#![no_std]
#![deny(unsafe_code)]

extern crate alloc;

mod circuits;
#[doc(hidden)]
pub mod component;
mod error;
mod telemetry;

pub use circuits::{
    Admission, Attachment, Circuits, Host, MAX_KEY, Moved, Settlement, Setup, Snapshot, Stamped, Status,
};
pub use error::AttachError;
pub use telemetry::{FieldValue, Instrumentation, Level, Line, Span};

/// Nanoseconds since the Unix epoch, for people and telemetry only.
pub type Timestamp = u64;
