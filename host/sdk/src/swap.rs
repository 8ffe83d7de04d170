//! Another policy, or other settings, while calls go on.

use crate::breakers::{Breakers, Inner};
use crate::error::SwapError;
use crate::handover::{Progress, Way};
use crate::instance::Fault;
use crate::policy::Policy;
use crate::regime::Regime;
use crate::seat::Seat;
use crate::shard::Shard;
use crate::table::SettingsTable;
use crate::trial::{faulty, try_circuits, try_settings};

use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Breakers {
    /// Lets another policy decide from now on, or another version of the same, while calls go on.
    ///
    /// The candidate is tried first, on instances that are thrown away: with each settings text and with a copy of each
    /// circuit. Then shard by shard another instance starts beside the old one and circuits move to it, a few at
    /// a time; a call waits for one such batch at most, a fifth of a millisecond or so, and longer only where the processors
    /// are busy. Calls under way end as they would after a reset: their results no longer count.
    ///
    /// What goes over: an open circuit stays open for the rest of its wait, and a closed one closed; modes stay, counts go
    /// over as far as the policy can use them. A circuit that is half-open is taken over with no probe under way, so that
    /// once at most as many more may run as its settings let run at a time. No transition is made. docs/swapping.md of the
    /// repository has every rule.
    ///
    /// Circuits get the settings that the table has for their keys. One that was asked for with settings of its own
    /// ([`breaker_with`](Self::breaker_with)) keeps those under another version of the same policy, and gets the table's
    /// under another policy. Every circuit that had struck out is asked for again. To roll back, swap back.
    ///
    /// Instruments keep the names that they have; spans are of the scope of the policy that made them.
    ///
    /// This blocks until every circuit is over, some tens of microseconds for each, half of which it sleeps so that calls find a
    /// processor: in async code, use a thread for it.
    ///
    /// # Errors
    ///
    /// When the candidate fails on trial: it does not start, refuses settings or a circuit, or would close a circuit that
    /// is open. And when another swap is under way. Nothing has changed then. After the first circuit is over no error
    /// comes back: what fails from there on is a fault of the new policy, as in any call.
    pub fn swap(&self, policy: Policy, settings: impl Into<SettingsTable>) -> Result<(), SwapError> {
        self.0.swap(policy, settings.into())
    }

    /// Gives circuits other settings under the same policy, while calls go on. A circuit that was asked for with settings
    /// of its own ([`breaker_with`](Self::breaker_with)) keeps them.
    ///
    /// State, mode and remaining wait stay, and counts as far as they still mean something. Calls under way no longer
    /// count, of circuits whose settings are others than before. Blocks as [`swap`](Self::swap) does.
    ///
    /// # Errors
    ///
    /// As [`swap`](Self::swap). Nothing has changed then.
    pub fn reconfigure(&self, settings: impl Into<SettingsTable>) -> Result<(), SwapError> {
        self.0.reconfigure(settings.into())
    }
}

impl Inner {
    fn swap(&self, policy: Policy, settings: SettingsTable) -> Result<(), SwapError> {
        let Some(_turn) = self.env.changing.try_lock() else {
            return Err(SwapError::Busy);
        };
        let regime = Regime::new(policy, settings, &self.env.telemetry);
        self.try_regime(&regime, Way::Swap)?;
        let start = |_: &Shard| Seat::start(&self.env, &regime);
        let seats = self.shards.iter().map(start).collect::<Result<Vec<_>, Fault>>();
        let seats = seats.map_err(faulty)?;
        let old = std::mem::replace(&mut *self.env.regime.write(), regime.clone());
        self.env.ledger.swaps.fetch_add(1, Ordering::Relaxed);
        for (shard, seat) in self.shards.iter().zip(seats) {
            self.hand_over(shard, seat);
        }
        let (from, to) = (old.policy.description(), regime.policy.description());
        tracing::info!(
            target: "tripwit",
            policy = to.name,
            digest = %regime.policy.digest(),
            "Policy {} {} swapped for {} {}",
            from.name, from.version, to.name, to.version
        );
        Ok(())
    }

    fn hand_over(&self, shard: &Shard, seat: Seat) {
        let (mut seat, mut from, mut gone) = (Some(seat), 0, None);
        shard.in_batches(&self.env, |machine, cx, watch| {
            if let Some(seat) = seat.take() {
                machine.seat_incoming(seat);
            }
            match machine.move_batch(cx, &mut from, watch) {
                Progress::More => true,
                Progress::Done(old) => {
                    gone = old;
                    false
                }
            }
        });
        drop(gone);
    }

    fn reconfigure(&self, settings: SettingsTable) -> Result<(), SwapError> {
        let Some(_turn) = self.env.changing.try_lock() else {
            return Err(SwapError::Busy);
        };
        let policy = self.env.regime().policy.clone();
        let regime = Regime::new(policy, settings, &self.env.telemetry);
        self.try_regime(&regime, Way::Reconfigure)?;
        *self.env.regime.write() = regime.clone();
        for shard in &self.shards {
            let mut from = 0;
            shard.in_batches(&self.env, |machine, cx, watch| {
                machine.configure_batch(cx, &mut from, watch, &regime)
            });
        }
        tracing::info!(
            target: "tripwit",
            policy = regime.policy.description().name,
            "Settings of the policy changed"
        );
        Ok(())
    }

    fn try_regime(&self, regime: &Arc<Regime>, way: Way) -> Result<(), SwapError> {
        try_settings(&self.env, regime)?;
        for shard in &self.shards {
            try_circuits(&self.env, shard, regime, way)?;
        }
        Ok(())
    }
}
