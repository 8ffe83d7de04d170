//! Guarded calls: admitted, timed, classified, settled.

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use tokio::time::Sleep;

use crate::admission::Held;
use crate::breaker::Breaker;
use crate::classify::Classify;
use crate::permit::{Admitted, Guard, Through, panic_verdict};
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
    pub async fn call<T, E, F>(&self, call: F) -> Result<T, CallError<E>>
    where
        F: Future<Output = Result<T, E>>,
        C: Classify<T, E>,
    {
        Guarded::new(self, call).await
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
        match self.breaker.admit_simply() {
            Some(simple) => self.make(simple, call),
            None => self.call_by_lease(call),
        }
    }

    #[inline(never)]
    fn call_by_lease<T, E>(&self, call: impl FnOnce() -> Result<T, E>) -> Result<T, CallError<E>>
    where
        C: Classify<T, E>,
    {
        let held = match self.breaker.admit_plainly() {
            Some(plain) => Held::plainly(plain, || self.breaker.now()),
            None => self.breaker.hold_by_lease()?,
        };
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
        let judged = || {
            let result = call();
            let verdict = self.classify.classify(&result);
            (result, verdict)
        };
        match catch_unwind(AssertUnwindSafe(judged)) {
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
        // None until the call is first found pending.
        #[pin]
        timer: Option<Sleep>,
        timed: bool,
        stage: Stage<B>,
    }
}

/// How far a call is.
enum Stage<B: Through> {
    /// The circuit has not been asked.
    New(B),
    Admitted(Guard<B>),
    /// It is settled, or was rejected.
    Over,
}

impl<F, B: Through> Guarded<F, B> {
    /// A call that the circuit is asked for when it is first polled.
    #[inline]
    pub(crate) fn new(on: B, call: F) -> Self {
        Self::at(Stage::New(on), call)
    }

    /// A call that the circuit has admitted.
    #[inline]
    pub(crate) fn admitted(guard: Guard<B>, call: F) -> Self {
        Self::at(Stage::Admitted(guard), call)
    }

    #[inline]
    fn at(stage: Stage<B>, call: F) -> Self {
        Self {
            call: Some(call),
            timer: None,
            timed: false,
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

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        // A call that is ready at once never writes down that it was admitted.
        let guard = match std::mem::replace(this.stage, Stage::Over) {
            Stage::New(on) => Guard::begin(on)?,
            Stage::Admitted(guard) => guard,
            Stage::Over => return Poll::Pending,
        };
        let Some(call) = this.call.as_mut().as_pin_mut() else {
            return Poll::Pending;
        };
        match catch_unwind(AssertUnwindSafe(|| call.poll(cx))) {
            Ok(Poll::Ready(result)) => {
                let verdict = guard.on().judge().classify(&result);
                guard.end(verdict);
                return Poll::Ready(result.map_err(CallError::Inner));
            }
            Ok(Poll::Pending) => {}
            Err(panic) => {
                guard.end(panic_verdict());
                resume_unwind(panic);
            }
        }
        if !*this.timed {
            *this.timed = true;
            this.timer.set(timer(&guard));
        }
        if let Some(timer) = this.timer.as_mut().as_pin_mut()
            && timer.poll(cx).is_ready()
        {
            let (key, after) = (
                guard.on().breaker().shared_key(),
                guard.call_timeout().unwrap_or_default(),
            );
            guard.time_out();
            this.call.set(None);
            return Poll::Ready(Err(CallError::TimedOut { key, after }));
        }
        *this.stage = Stage::Admitted(guard);
        Poll::Pending
    }
}

/// The timer of a call that is limited, where there is a runtime that can keep one.
fn timer<B: Through>(guard: &Guard<B>) -> Option<Sleep> {
    let left = guard.time_left()?;
    tokio::runtime::Handle::try_current()
        .ok()
        .map(|_| tokio::time::sleep(left))
}
