//! What several tests use: circuits on a manual clock, and a list of what subscribers heard.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tripwit::settings::Consecutive;
use tripwit::{Breakers, BreakersBuilder, ManualClock, Operation, Policy, Subscription};

/// Two failures open, five seconds later one probe closes.
pub(crate) fn touchy() -> Consecutive {
    Consecutive::default()
        .failure_threshold(2)
        .success_threshold(1)
        .open_for(Duration::from_secs(5))
}

/// A builder of circuits with these settings, in one shard, on a manual clock.
pub(crate) fn circuits(settings: Consecutive) -> (BreakersBuilder, ManualClock) {
    let clock = ManualClock::new();
    let policy = Policy::consecutive().unwrap();
    (
        Breakers::builder(policy)
            .settings(settings)
            .clock(clock.clone())
            .shards(1),
        clock,
    )
}

/// Circuits that open at two failures.
pub(crate) fn touchy_circuits() -> (Breakers, ManualClock) {
    let (builder, clock) = circuits(touchy());
    (builder.build().unwrap(), clock)
}

/// The moves of all circuits from now on.
pub(crate) fn moves(breakers: &Breakers) -> (Arc<Mutex<Vec<Operation>>>, Subscription) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let list = heard.clone();
    let subscription = breakers.subscribe(move |event| list.lock().unwrap().push(event.transition.operation));
    (heard, subscription)
}

/// A call that fails.
pub(crate) fn refused() -> Result<(), &'static str> {
    Err("refused")
}

/// A call that ends well.
pub(crate) fn fine() -> Result<(), &'static str> {
    Ok(())
}
