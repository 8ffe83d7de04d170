//! The host's gate, every line of it as it stands in `host/sdk/src`, under [loom](https://docs.rs/loom); and what its clock shares
//! among threads.
//!
//! The gate takes its atomics from one module, `crate::sync`. Here that module hands out loom's, so each model runs in every
//! order of its threads' steps and with every value that the memory model may show them, up to a bound. What is around
//! the gate in the host is here in small: [`Shard`](shard) keeps the host's rules of a crossing, over a component that is
//! plain Rust.
//!
//! A model that cannot fail proves nothing. So each property is also checked where one rule is broken, a [`Weakness`] of
//! the memory or a [`Flaw`] of the rules, and loom must then find a schedule that shows it.

mod anchors;
mod component;
mod orders;
mod readers;
mod scenario;
mod shard;
mod sync;

#[path = "../../../host/sdk/src"]
#[expect(dead_code, unreachable_pub, reason = "the host uses the rest")]
mod host {
    pub(crate) mod anchor;
    pub(crate) mod gate;
    pub(crate) mod lease;
    pub(crate) mod words;
}
use host::{anchor, gate, lease, words};

pub use anchors::readers_see_whole_anchors;
pub use component::{Component, Rule};
pub use readers::{Publishing, readers_see_whole_leases};
pub use scenario::{Explored, Scenario};
pub use shard::{Flaw, Op, Outcome};
pub use sync::Weakness;
