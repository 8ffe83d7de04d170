//! Where an instance of the component sits: it outlives the instance, so that another one can take its place.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::circuit::Strikes;
use crate::env::Env;
use crate::instance::{Fault, Instance};
use crate::numbers::Numbers;
use crate::regime::Regime;

/// Tells the seats of one shard apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SeatId(u32);

impl SeatId {
    pub(crate) fn next(self) -> Self {
        Self(self.0.wrapping_add(1))
    }
}

/// One instance after another of one policy.
pub(crate) struct Seat {
    pub(crate) id: SeatId,
    pub(crate) regime: Arc<Regime>,
    /// None while the component cannot be started.
    pub(crate) instance: Option<Instance>,
    /// Another one for every instance of the shard; permits of others are void.
    pub(crate) incarnation: u64,
    /// Which slot a circuit of the instance has.
    pub(crate) numbers: Numbers,
    pub(crate) strikes: Strikes,
    /// Struck out: no circuit's component is asked any more.
    pub(crate) fallen: bool,
    /// When to try again to start the component.
    pub(crate) revive_at: u64,
    pub(crate) memory: Arc<AtomicUsize>,
}

impl Seat {
    /// A seat with a running instance, which no circuit is in yet.
    pub(crate) fn start(env: &Env, regime: &Arc<Regime>) -> Result<Self, Fault> {
        let memory = Arc::new(AtomicUsize::new(0));
        Ok(Self {
            id: SeatId::default(),
            regime: regime.clone(),
            instance: Some(regime.start(env, &memory)?),
            incarnation: 1,
            numbers: Numbers::default(),
            strikes: Strikes::default(),
            fallen: false,
            revive_at: 0,
            memory,
        })
    }

    /// Whether so much of the instance's memory is used up that a circuit must go before one can come.
    pub(crate) fn is_tight(&self, env: &Env) -> bool {
        self.instance.as_ref().is_some_and(|instance| {
            let at_start = instance.memory_at_start();
            let grown = self.memory.load(Ordering::Relaxed).saturating_sub(at_start);
            grown > env.max_memory.saturating_sub(at_start) / TIGHT
        })
    }
}

/// One part in so many of the memory may be used up by circuits: a list that doubles takes as much as itself twice over
/// for a moment, and what circuits have already been taken for grows as their calls fail.
const TIGHT: usize = 5;
