//! What a reference is.

use std::fmt;
use std::hash::Hash;

use tripwit_core::{Counts, Instant, Mode, Nanoseconds, Operation, RejectionReason, State};

use crate::event::End;

/// What came of one event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// Of an acquire: whether the call is made.
    pub verdict: Option<Verdict>,
    /// Of a call that ended: whether it counted.
    pub counted: Option<bool>,
    /// The move that was made.
    pub moved: Option<Operation>,
}

/// What is said of a call that wants to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is made, and its end is told.
    Admitted,
    /// It is made, and its end is of no interest.
    Passed,
    /// It is not made, and when it is worth asking again.
    Rejected(RejectionReason, Option<Nanoseconds>),
}

/// A circuit as the documents have it. Told the same events as a circuit of the core, in the same order.
///
/// Permits are numbers that are used again once their call has ended. Instants never go back.
pub trait Reference: Clone + fmt::Debug + Eq + Hash {
    /// A call asks to be made, and would have this permit.
    fn acquire(&mut self, now: Instant, permit: usize) -> Said;
    /// The call of a permit ends.
    fn settle(&mut self, now: Instant, permit: usize, end: End) -> Said;
    /// An operator opens the circuit.
    fn trip(&mut self, now: Instant, wait: Option<Nanoseconds>) -> Said;
    /// An operator closes it.
    fn reset(&mut self, now: Instant) -> Said;
    /// An operator says who decides.
    fn set_mode(&mut self, now: Instant, mode: Mode) -> Said;
    /// A cool-down cycle.
    fn cool_down(&mut self, now: Instant) -> Said;
    /// Another instance takes it over, so long after it was saved.
    fn take_over(&mut self, now: Instant, age: Nanoseconds) -> Said;

    /// Where it is.
    fn state(&self) -> State;
    /// Who decides.
    fn mode(&self) -> Mode;
    /// What it decides on.
    fn counts(&self, now: Instant) -> Counts;
    /// How long it stays open yet, where the clock decides.
    fn retry_after(&self, now: Instant) -> Option<Nanoseconds>;
    /// Cool-down cycles still to go.
    fn cooldown_count(&self) -> Option<u32>;
    /// How often it has opened in a row.
    fn reopenings(&self) -> u32;

    /// What of it can still matter, with instants as they lie from `now`: two that are alike here are alike for ever.
    fn essence(&self, now: Instant) -> Self;
    /// What of `now` itself can matter.
    fn phase(&self, _now: Instant) -> Nanoseconds {
        0
    }
    /// How many calls can still matter.
    fn recorded(&self, _now: Instant) -> usize {
        0
    }
    /// The most probes that may be under way.
    fn probes(&self) -> u32;
}
