//! The policies of `tripwit-core` against references that were written from the documents, as plainly as possible.
//!
//! A [`Reference`] keeps every call that may still matter in a list, and decides by looking through it again. A [`Run`] puts
//! each event to a circuit and to its reference; both must answer the same and then be the same, and what holds of every
//! breaker must hold: no more probes under way than may be, moves along the declared edges only, generations that grow, void
//! results that change nothing.
//!
//! [`explore()`] does so for every event in every state that there is under small settings. `tests/random.rs` does it for
//! long random runs under larger ones.

mod call;
mod event;
mod explore;
mod outbox;
mod reference;
mod run;
mod shape;
mod timed;
mod window;

pub use event::{End, Event, MILLISECOND};
pub use explore::{Bounds, Explored, explore};
pub use outbox::OutboxReference;
pub use reference::{Reference, Said, Verdict};
pub use run::Run;
pub use shape::Buckets;
pub use timed::{Rule, TimedReference, Waits};
pub use window::{Reach, WindowRule};
