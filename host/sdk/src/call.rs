//! Guarded calls: admitted, timed, classified, settled.

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use pin_project_lite::pin_project;
use tokio::time::Sleep;

use crate::admission::{Held, Report};
use crate::breaker::Breaker;
use crate::classify::{Classify, Verdict};
use crate::gate::{Outcome, Plain};
use crate::permit::{Admitted, Through, panic_verdict};
use crate::rejection::{CallError, Rejection};

/// A [`Breaker`] with a classification of its own: see [`Breaker::classify`].
pub struct Classified<'a, C> {
    breaker: &'a Breaker,
    classify: C,
}

impl<'a, C> Classified<'a, C> {
    pub(crate) fn new(breaker: &'a Breaker, classify: C) -> Self {
        Self { breaker, classify }
    }

    /// As [`Breaker::call`].
    ///
    /// # Errors
    ///
    /// As [`Breaker::call`].
    ///
    /// # Panics
    ///
    /// As [`Breaker::call`].
    pub fn call<T, E, F>(&self, call: F) -> impl Future<Output = Result<T, CallError<E>>>
    where
        F: Future<Output = Result<T, E>>,
        C: Classify<T, E>,
    {
        Guarded::new(self, call)
    }

    /// As [`Breaker::call_blocking`].
    ///
    /// # Errors
    ///
    /// As [`Breaker::call_blocking`].
    #[inline(always)]
    pub fn call_blocking<T, E>(&self, call: impl FnOnce() -> Result<T, E>) -> Result<T, CallError<E>>
    where
        C: Classify<T, E>,
    {
        // Twice the same, so that a healthy call is not held up by what the others need.
        match self.breaker.admit_plainly() {
            Some(plain) => self.make(plain, call),
            None => self.call_by_lease(call),
        }
    }

    #[inline(never)]
    fn call_by_lease<T, E>(&self, call: impl FnOnce() -> Result<T, E>) -> Result<T, CallError<E>>
    where
        C: Classify<T, E>,
    {
        let held = self.breaker.hold_by_lease()?;
        self.make(held, call)
    }

    /// Makes a call that was admitted.
    #[inline(always)]
    fn make<T, E>(
        &self,
        admitted: impl Admitted,
        call: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, CallError<E>>
    where
        C: Classify<T, E>,
    {
        let made = || {
            let result = call();
            let verdict = self.classify.classify(&result);
            (result, verdict)
        };
        match catch_unwind(AssertUnwindSafe(made)) {
            Ok((result, verdict)) => {
                admitted.end(self.breaker, verdict);
                result.map_err(CallError::Inner)
            }
            Err(panic) => {
                // Settled before the thread unwinds any further, so that what there is to tell is told at once.
                admitted.panicked(self.breaker);
                resume_unwind(panic);
            }
        }
    }

    /// As [`Breaker::call_or_else`].
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
        C: Classify<T, E>,
    {
        match self.call(call).await {
            Ok(value) => Ok(value),
            Err(error) => fallback(error).await,
        }
    }
}

impl<C> fmt::Debug for Classified<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Classified")
            .field("breaker", &self.breaker)
            .finish_non_exhaustive()
    }
}

/// What a call goes through a circuit by, which also says what its result counts as.
pub(crate) trait Judging: Through {
    type Judge;

    fn judge(&self) -> &Self::Judge;
}

impl<C> Through for Classified<'_, C> {
    fn breaker(&self) -> &Breaker {
        self.breaker
    }
}

impl<C> Judging for Classified<'_, C> {
    type Judge = C;

    fn judge(&self) -> &C {
        &self.classify
    }
}

impl<C> Through for &Classified<'_, C> {
    fn breaker(&self) -> &Breaker {
        self.breaker
    }
}

impl<C> Judging for &Classified<'_, C> {
    type Judge = C;

    fn judge(&self) -> &C {
        &self.classify
    }
}

pin_project! {
    /// A call that is awaited.
    pub(crate) struct Guarded<F, B: Through> {
        // None once the call has been given up.
        #[pin]
        call: Option<F>,
        // None until the call is first found pending, and where it is not limited.
        #[pin]
        timer: Option<Sleep>,
        timed: bool,
        on: B,
        stage: Stage,
    }

    impl<F, B: Through> PinnedDrop for Guarded<F, B> {
        fn drop(this: Pin<&mut Self>) {
            let this = this.project();
            // Whoever waited for the call has left it, which says nothing about it.
            this.stage.leave(this.on.breaker(), Verdict::Ignored);
        }
    }
}

/// How far a call is.
#[derive(Clone, Copy)]
pub(crate) enum Stage {
    /// The circuit has not been asked.
    New,
    /// It was admitted by a plain lease.
    Plain(Plain),
    /// It was admitted otherwise.
    Held(Held),
    /// It is settled, or was rejected.
    Over,
}

impl Stage {
    /// Asks the circuit to make a call.
    #[inline(always)]
    pub(crate) fn of(breaker: &Breaker) -> Result<Self, Rejection> {
        match breaker.admit_plainly() {
            Some(plain) => Ok(Self::Plain(plain)),
            None => breaker.hold_by_lease().map(Self::Held),
        }
    }

    /// Says how a call ended that nobody polls any more.
    #[inline(always)]
    pub(crate) fn leave(self, breaker: &Breaker, verdict: Verdict) {
        match self {
            Self::Plain(plain) => breaker.settle_plainly(plain, verdict),
            Self::Held(held) => breaker.settle(held, verdict.into()),
            Self::New | Self::Over => {}
        }
    }

    fn started(&self) -> Option<u64> {
        match self {
            Self::Plain(plain) => plain.started(),
            Self::Held(held) => held.started,
            Self::New | Self::Over => None,
        }
    }

    fn call_timeout(&self) -> Option<u64> {
        match self {
            Self::Plain(plain) => plain.call_timeout(),
            Self::Held(held) => held.call_timeout,
            Self::New | Self::Over => None,
        }
    }
}

impl<F, B: Through> Guarded<F, B> {
    /// A call that the circuit is asked for when it is first polled.
    #[inline(always)]
    pub(crate) fn new(on: B, call: F) -> Self {
        Self::at(Stage::New, on, call)
    }

    /// A call that has come so far.
    #[inline(always)]
    pub(crate) fn at(stage: Stage, on: B, call: F) -> Self {
        Self {
            call: Some(call),
            timer: None,
            timed: false,
            on,
            stage,
        }
    }
}

impl<T, E, F, B> Future for Guarded<F, B>
where
    F: Future<Output = Result<T, E>>,
    B: Judging<Judge: Classify<T, E>>,
{
    type Output = Result<T, CallError<E>>;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.as_mut().project();
        let plain = match this.stage {
            Stage::New => this.on.breaker().admit_plainly(),
            Stage::Plain(plain) => Some(*plain),
            Stage::Held(_) | Stage::Over => None,
        };
        // A call that is ready at once never writes down that it was admitted.
        let Some(plain) = plain else {
            return self.poll_by_lease(cx);
        };
        let Some(call) = this.call.as_pin_mut() else {
            return Poll::Pending;
        };
        match judged(call, this.on.judge(), cx) {
            Ok(Poll::Ready((result, verdict))) => {
                *this.stage = Stage::Over;
                this.on.breaker().end_plainly(plain, verdict);
                Poll::Ready(result.map_err(CallError::Inner))
            }
            Ok(Poll::Pending) => {
                *this.stage = Stage::Plain(plain);
                if plain.call_timeout().is_none() {
                    return Poll::Pending;
                }
                self.poll_timer(cx).map(Err)
            }
            Err(panic) => {
                *this.stage = Stage::Over;
                this.on.breaker().settle_plainly(plain, panic_verdict());
                resume_unwind(panic);
            }
        }
    }
}

impl<F, B: Through> Guarded<F, B> {
    /// Whether the time of a call is up that is pending. Then it is given up.
    #[inline(never)]
    fn poll_timer<E>(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<CallError<E>> {
        let mut this = self.project();
        let breaker = this.on.breaker();
        if !*this.timed {
            *this.timed = true;
            this.timer.set(timer(breaker, this.stage));
        }
        let Some(timer) = this.timer.as_mut().as_pin_mut() else {
            return Poll::Pending;
        };
        std::task::ready!(timer.poll(cx));
        let error = CallError::TimedOut {
            key: breaker.shared_key(),
            after: Duration::from_nanos(this.stage.call_timeout().unwrap_or_default()),
        };
        let held = match std::mem::replace(this.stage, Stage::Over) {
            Stage::Plain(plain) => plain.into(),
            Stage::Held(held) => held,
            Stage::New | Stage::Over => return Poll::Pending,
        };
        breaker.settle(held, Report::of(Outcome::Timeout));
        this.call.set(None);
        Poll::Ready(error)
    }
}

impl<T, E, F, B> Guarded<F, B>
where
    F: Future<Output = Result<T, E>>,
    B: Judging<Judge: Classify<T, E>>,
{
    /// A call that is not admitted by a plain lease.
    #[inline(never)]
    fn poll_by_lease(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T, CallError<E>>> {
        let this = self.as_mut().project();
        let breaker = this.on.breaker();
        let held = match std::mem::replace(this.stage, Stage::Over) {
            Stage::New => breaker.hold_by_lease()?,
            Stage::Plain(plain) => plain.into(),
            Stage::Held(held) => held,
            Stage::Over => return Poll::Pending,
        };
        let Some(call) = this.call.as_pin_mut() else {
            return Poll::Pending;
        };
        match judged(call, this.on.judge(), cx) {
            Ok(Poll::Ready((result, verdict))) => {
                breaker.end(held, verdict);
                Poll::Ready(result.map_err(CallError::Inner))
            }
            Ok(Poll::Pending) => {
                *this.stage = Stage::Held(held);
                self.poll_timer(cx).map(Err)
            }
            Err(panic) => {
                breaker.settle(held, panic_verdict().into());
                resume_unwind(panic);
            }
        }
    }
}

/// What a call has come to, and what its result counts as. An error is a panic of either.
#[inline(always)]
fn judged<T, E, F, C>(
    call: Pin<&mut F>,
    judge: &C,
    cx: &mut Context<'_>,
) -> std::thread::Result<Poll<(Result<T, E>, Verdict)>>
where
    F: Future<Output = Result<T, E>>,
    C: Classify<T, E>,
{
    catch_unwind(AssertUnwindSafe(|| {
        call.poll(cx).map(|result| {
            let verdict = judge.classify(&result);
            (result, verdict)
        })
    }))
}

/// The timer of a call that is limited, where there is a runtime that can keep one.
fn timer(breaker: &Breaker, stage: &Stage) -> Option<Sleep> {
    let limit = stage.call_timeout()?;
    let ran = stage
        .started()
        .map_or(0, |started| breaker.now().saturating_sub(started));
    tokio::runtime::Handle::try_current()
        .ok()
        .map(|_| tokio::time::sleep(Duration::from_nanos(limit.saturating_sub(ran))))
}
