//! The handle of one circuit.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use crate::admission::Report;
use crate::breakers::Inner;
use crate::call::{Classified, Guarded};
use crate::circuit::Circuit;
use crate::classify::{Verdict, errors_are_failures};
use crate::clock::nanoseconds;
use crate::gate::{For, Held, Outcome};
use crate::permit::{OwnedPermit, Permit};
use crate::rejection::{CallError, Rejection};
use crate::status::{Mode, State, Status, Transition};
use crate::tally::Ending;

/// The circuit of one key. Cheap to clone; while one lives, the circuit is not given up.
///
/// Keep it where calls are made, rather than looking it up each time.
#[derive(Clone)]
pub struct Breaker {
    breakers: Arc<Inner>,
    shard: usize,
    circuit: Arc<Circuit>,
}

impl Breaker {
    pub(crate) fn new(breakers: Arc<Inner>, shard: usize, circuit: Arc<Circuit>) -> Self {
        Self {
            breakers,
            shard,
            circuit,
        }
    }

    /// The circuit's key.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.circuit.key
    }

    /// Makes a call, if the circuit admits it, and tells the circuit how it ended. An `Err` is a failure; for other
    /// classifications see [`classify`](Self::classify).
    ///
    /// Where the policy limits how long a call may run, a call that is still pending then is dropped and counts as a
    /// time-out. **What the call started elsewhere goes on**: a spawned task, a request that was sent, a blocking thread.
    /// The limit needs a tokio runtime with its timer enabled around the call; on other executors no timer runs, and a
    /// call that ran too long counts as a time-out when it has ended, and its result is returned.
    ///
    /// The circuit is asked when the future is first polled. Dropping the future before its end counts as nothing, also where
    /// a panic elsewhere drops it; a panic of the call itself counts as a failure, and goes on. Polled again after its end, it
    /// stays pending.
    ///
    /// # Errors
    ///
    /// [`CallError::Rejected`] when the call was not made, [`CallError::TimedOut`] when it was given up, and
    /// [`CallError::Inner`] with its own error.
    ///
    /// # Panics
    ///
    /// When the call is not ready at once, the policy limits how long it may run, and the tokio runtime around it has no timer.
    pub fn call<T, E, F>(&self, call: F) -> impl Future<Output = Result<T, CallError<E>>>
    where
        F: Future<Output = Result<T, E>>,
    {
        Guarded::new(self.classify(errors_are_failures()), call)
    }

    /// Makes a blocking call, if the circuit admits it, and tells the circuit how it ended.
    ///
    /// A call that ran longer than the policy lets it counts as a time-out, and its result is returned all the same:
    /// nothing can end it from outside. Do not use this in async code. A panic counts as a failure, and goes on.
    ///
    /// # Errors
    ///
    /// [`CallError::Rejected`] when the call was not made, and [`CallError::Inner`] with its own error.
    // A closure is a type of its own, so each copy of this has one caller.
    #[inline(always)]
    pub fn call_blocking<T, E>(&self, call: impl FnOnce() -> Result<T, E>) -> Result<T, CallError<E>> {
        self.classify(errors_are_failures()).call_blocking(call)
    }

    /// As [`call`](Self::call); whatever it does not give a value for, the fallback does.
    ///
    /// # Errors
    ///
    /// Those of the fallback.
    pub async fn call_or_else<T, E, E2, F, Fut>(
        &self,
        call: F,
        fallback: impl FnOnce(CallError<E>) -> Fut,
    ) -> Result<T, E2>
    where
        F: Future<Output = Result<T, E>>,
        Fut: Future<Output = Result<T, E2>>,
    {
        self.classify(errors_are_failures())
            .call_or_else(call, fallback)
            .await
    }

    /// The same calls under another classification of their results.
    ///
    /// ```
    /// # use tripwit::{Breakers, Policy, Failure, Verdict, classify};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let breaker = Breakers::new(Policy::consecutive()?)?.breaker("orders")?;
    /// // A status below 500 says nothing bad about the service.
    /// let server_errors = classify::by_value(|status: &u16| match status {
    ///     500.. => Verdict::Failure(Failure::new().cause("5xx")),
    ///     _ => Verdict::Success,
    /// });
    /// let status = breaker.classify(server_errors).call_blocking(|| Ok::<u16, std::io::Error>(404))?;
    /// # assert_eq!(status, 404);
    /// # Ok(()) }
    /// ```
    pub fn classify<C>(&self, classify: C) -> Classified<'_, C> {
        Classified::new(self, classify)
    }

    /// Asks to make one call, and gives the permit for it.
    ///
    /// # Errors
    ///
    /// When the circuit says no: do not make the call then.
    #[inline]
    pub fn acquire(&self) -> Result<Permit<'_>, Rejection> {
        self.hold().map(|held| Permit::new(self, held))
    }

    /// As [`acquire`](Self::acquire), with a permit that can be moved anywhere.
    ///
    /// # Errors
    ///
    /// When the circuit says no: do not make the call then.
    pub fn acquire_owned(&self) -> Result<OwnedPermit, Rejection> {
        self.hold().map(|held| OwnedPermit::new(self.clone(), held))
    }

    /// Whether a call would be admitted now, as far as can be told without asking for it. Takes no probe's place and
    /// changes nothing. `true` for a circuit whose wait is over.
    #[must_use]
    pub fn is_available(&self) -> bool {
        let view = self.breakers.view(self.shard, &self.circuit);
        let rejects = || match view.lease.until {
            None => view.lease.rejects_at(0),
            Some(_) => view.lease.rejects_at(self.now()),
        };
        view.lease.mode == Mode::Shadow || !rejects()
    }

    /// Opens the circuit, as if the policy had decided so.
    ///
    /// The log line of a trip is a warning. That of a re-trip (the circuit had not closed since it tripped) is at debug,
    /// so at the usual levels it is not seen; the counter of trips counts it all the same.
    ///
    /// On a circuit that has struck out (its component failed too often, see [`Status::at_fault`]) this does nothing and
    /// gives `None`.
    pub fn trip(&self) -> Option<Transition> {
        self.breakers
            .shard(self.shard)
            .trip(&self.breakers.env, &self.circuit, None)
    }

    /// Opens the circuit for so long. On an open one the later end counts.
    ///
    /// On a circuit that has struck out (its component failed too often, see [`Status::at_fault`]) this does nothing and
    /// gives `None`.
    pub fn trip_for(&self, wait: Duration) -> Option<Transition> {
        self.breakers
            .shard(self.shard)
            .trip(&self.breakers.env, &self.circuit, Some(nanoseconds(wait)))
    }

    /// Closes the circuit and forgets what was recorded. The mode stays.
    ///
    /// On a circuit that has struck out (its component failed too often, see [`Status::at_fault`]) this does nothing and
    /// gives `None`.
    pub fn reset(&self) -> Option<Transition> {
        self.breakers
            .shard(self.shard)
            .reset(&self.breakers.env, &self.circuit)
    }

    /// Says who decides. Every change starts with fresh counts.
    pub fn set_mode(&self, mode: Mode) {
        self.breakers
            .shard(self.shard)
            .set_mode(&self.breakers.env, &self.circuit, mode);
    }

    /// The circuit's state. An open circuit whose wait is over stays open until the next call.
    #[must_use]
    pub fn state(&self) -> State {
        self.breakers.state(self.shard, &self.circuit)
    }

    /// Who decides.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.breakers.view(self.shard, &self.circuit).lease.mode
    }

    /// Everything there is to see. Changes nothing.
    #[must_use]
    pub fn status(&self) -> Status {
        self.breakers
            .shard(self.shard)
            .status(&self.breakers.env, &self.circuit)
    }

    /// Asks to make a call that is healthy, under the simplest of leases. `None`: it may be, or not.
    #[inline(always)]
    pub(crate) fn hold_simply(&self) -> Option<Held> {
        self.circuit.gate.admit_simply()
    }

    /// Asks to make one call. A healthy one takes a few instructions.
    #[inline(always)]
    pub(crate) fn hold(&self) -> Result<Held, Rejection> {
        match self.circuit.gate.admit_plainly(|| self.stamp()) {
            Some(held) => Ok(held),
            None => self.hold_by_lease(),
        }
    }

    /// Asks to make a call that no plain lease admits: where a lease rejects it, that takes a few instructions; else the whole
    /// lease, or the component, is asked.
    #[inline(never)]
    fn hold_by_lease(&self) -> Result<Held, Rejection> {
        let (env, shard) = (&self.breakers.env, self.breakers.shard(self.shard));
        match self.circuit.gate.reject_plainly(|| self.now()) {
            Some((reason, left)) => {
                shard.reject(env, reason);
                Err(Rejection::new(&self.circuit.key, reason, Some(left)))
            }
            None => shard.acquire(env, &self.circuit),
        }
    }

    /// Says how an admitted call ended.
    #[inline(always)]
    pub(crate) fn end(&self, held: Held, verdict: Verdict) {
        if matches!(verdict, Verdict::Success)
            && self
                .circuit
                .gate
                .succeed_plainly(held, |reading| self.read(reading))
        {
            self.breakers.env.count(Ending::Ended(Outcome::Success));
        } else {
            self.settle(held, verdict);
        }
    }

    /// The same for a call that a plain lease does not settle.
    #[inline(always)]
    pub(crate) fn settle(&self, held: Held, verdict: Verdict) {
        let [a, b, c, d, e, f] = held.words();
        self.settle_words(a, b, c, d, e, f, verdict);
    }

    /// Word by word: as a structure, they would be written to memory by a healthy call too.
    #[cold]
    #[inline(never)]
    #[expect(clippy::too_many_arguments, reason = "they are what is to stay in registers")]
    fn settle_words(&self, a: u64, b: u64, c: u64, d: u64, e: u64, f: u64, verdict: Verdict) {
        self.report(Held::of_words([a, b, c, d, e, f]), verdict.into());
    }

    pub(crate) fn time_out(&self, held: Held) {
        self.report(held, Report::of(Outcome::Timeout));
    }

    fn report(&self, held: Held, report: Report) {
        self.breakers
            .shard(self.shard)
            .settle(&self.breakers.env, &self.circuit, &held, report);
    }

    pub(crate) fn circuit(&self) -> &Circuit {
        &self.circuit
    }

    /// Which shard the circuit is in.
    pub(crate) fn shard(&self) -> usize {
        self.shard
    }

    #[inline(always)]
    fn now(&self) -> u64 {
        self.breakers.env.clock.monotonic()
    }

    #[inline(always)]
    pub(crate) fn stamp(&self) -> u64 {
        self.breakers.env.clock.stamp()
    }

    #[inline(always)]
    fn read(&self, reading: For) -> u64 {
        match reading {
            For::Length => self.stamp(),
            For::Deadline => self.now(),
        }
    }
}

impl fmt::Debug for Breaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Breaker")
            .field("key", &self.circuit.key)
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}
