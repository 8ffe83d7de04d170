//! Guarded calls: admitted, timed, classified, settled.

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;
use tokio::time::Sleep;

use crate::breaker::Breaker;
use crate::classify::{Classify, Verdict};
use crate::gate::Held;
use crate::permit::{Through, panic_verdict};
use crate::rejection::CallError;

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
        // Twice the same, so that the shortest way is not held up by what the others keep.
        match self.breaker.hold_simply() {
            Some(held) => self.make(held, call),
            None => self.call_by_lease(call),
        }
    }

    #[inline(never)]
    fn call_by_lease<T, E>(&self, call: impl FnOnce() -> Result<T, E>) -> Result<T, CallError<E>>
    where
        C: Classify<T, E>,
    {
        self.make(self.breaker.hold()?, call)
    }

    /// Makes a call that was admitted.
    #[inline(always)]
    fn make<T, E>(&self, held: Held, call: impl FnOnce() -> Result<T, E>) -> Result<T, CallError<E>>
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
                self.breaker.end(held, verdict);
                result.map_err(CallError::Inner)
            }
            Err(panic) => {
                // Settled before the thread unwinds any further, so that what there is to tell is told at once.
                self.breaker.settle(held, panic_verdict());
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

impl<B: Judging> Judging for &B {
    type Judge = B::Judge;

    fn judge(&self) -> &B::Judge {
        (**self).judge()
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
            if let Stage::Admitted(held) = *this.stage {
                // Whoever waited for the call has left it, which says nothing about it.
                let settle = || this.on.breaker().settle(held, Verdict::Ignored);
                give_up(this.call, settle);
            }
        }
    }
}

/// How far a call is.
#[derive(Clone, Copy)]
enum Stage {
    /// The circuit has not been asked.
    New,
    Admitted(Held),
    /// It is settled, or was rejected.
    Over,
}

impl<F, B: Through> Guarded<F, B> {
    /// A call that the circuit is asked for when it is first polled.
    #[inline(always)]
    pub(crate) fn new(on: B, call: F) -> Self {
        Self::at(Stage::New, on, call)
    }

    /// A call that the circuit has admitted.
    #[inline(always)]
    pub(crate) fn admitted(held: Held, on: B, call: F) -> Self {
        Self::at(Stage::Admitted(held), on, call)
    }

    #[inline(always)]
    fn at(stage: Stage, on: B, call: F) -> Self {
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
        let mut this = self.as_mut().project();
        // A call that is ready at once never writes down that it was admitted.
        let held = match std::mem::replace(this.stage, Stage::Over) {
            Stage::New => match this.on.breaker().hold() {
                Ok(held) => held,
                Err(rejection) => {
                    this.call.set(None);
                    return Poll::Ready(Err(rejection.into()));
                }
            },
            Stage::Admitted(held) => held,
            Stage::Over => return Poll::Pending,
        };
        let Some(call) = this.call.as_pin_mut() else {
            return Poll::Pending;
        };
        let (judge, breaker) = (this.on.judge(), this.on.breaker());
        let judged = || {
            call.poll(cx).map(|result| {
                let verdict = judge.classify(&result);
                (result, verdict)
            })
        };
        match catch_unwind(AssertUnwindSafe(judged)) {
            Ok(Poll::Ready((result, verdict))) => {
                breaker.end(held, verdict);
                Poll::Ready(result.map_err(CallError::Inner))
            }
            Ok(Poll::Pending) => {
                *this.stage = Stage::Admitted(held);
                if held.call_timeout().is_some() {
                    return self.poll_timer(cx).map(Err);
                }
                Poll::Pending
            }
            Err(panic) => {
                breaker.settle(held, panic_verdict());
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
        let Stage::Admitted(held) = this.stage else {
            return Poll::Pending;
        };
        let breaker = this.on.breaker();
        if !*this.timed {
            *this.timed = true;
            if can_wait() {
                let ran = held
                    .started()
                    .map_or(0, |started| breaker.stamp().saturating_sub(started));
                let limit = held.call_timeout().unwrap_or(u64::MAX);
                let left = Duration::from_nanos(limit.saturating_sub(ran));
                this.timer.set(Some(tokio::time::sleep(left)));
            }
        }
        let Some(timer) = this.timer.as_mut().as_pin_mut() else {
            return Poll::Pending;
        };
        ready!(timer.poll(cx));
        let held = *held;
        *this.stage = Stage::Over;
        give_up(this.call, || breaker.time_out(held));
        Poll::Ready(CallError::TimedOut {
            key: breaker.key().into(),
            after: Duration::from_nanos(held.call_timeout().unwrap_or_default()),
        })
    }
}

/// Drops a call and then settles it, whatever it does in the end: a probe's place is free when the call is gone, and not before.
fn give_up<F>(mut call: Pin<&mut Option<F>>, settle: impl FnOnce()) {
    let gone = catch_unwind(AssertUnwindSafe(|| call.set(None)));
    settle();
    if let Err(panic) = gone {
        resume_unwind(panic);
    }
}

/// Whether there is a runtime that can keep a timer.
fn can_wait() -> bool {
    tokio::runtime::Handle::try_current().is_ok()
}
