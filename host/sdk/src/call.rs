//! Guarded calls: admitted, timed, classified, settled.

use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tokio::time::Sleep;

use crate::breaker::Breaker;
use crate::classify::Classify;
use crate::permit::{Guard, panic_verdict};
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
        let held = self.breaker.hold()?;
        Guarded::new(Guard::new(self.breaker, held), &self.classify, call).await
    }

    /// As [`Breaker::call_blocking`].
    ///
    /// # Errors
    ///
    /// As [`Breaker::call_blocking`].
    pub fn call_blocking<T, E>(&self, call: impl FnOnce() -> Result<T, E>) -> Result<T, CallError<E>>
    where
        C: Classify<T, E>,
    {
        let guard = Guard::new(self.breaker, self.breaker.hold()?);
        let result = match catch_unwind(AssertUnwindSafe(call)) {
            Ok(result) => result,
            Err(panic) => {
                // Settled before the thread unwinds any further, so that what there is to tell is told at once.
                guard.end(panic_verdict());
                resume_unwind(panic);
            }
        };
        guard.end(self.classify.classify(&result));
        result.map_err(CallError::Inner)
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

pin_project! {
    /// An admitted call under way.
    pub(crate) struct Guarded<F, C, B: AsRef<Breaker>> {
        // None once the call has been given up.
        #[pin]
        call: Option<F>,
        // None until the call is first found pending.
        #[pin]
        timer: Option<Sleep>,
        timed: bool,
        // None once the call is settled.
        guard: Option<Guard<B>>,
        classify: C,
    }
}

impl<F, C, B: AsRef<Breaker>> Guarded<F, C, B> {
    pub(crate) fn new(guard: Guard<B>, classify: C, call: F) -> Self {
        Self {
            call: Some(call),
            timer: None,
            timed: false,
            guard: Some(guard),
            classify,
        }
    }
}

impl<T, E, F, C, R, B> Future for Guarded<F, R, B>
where
    F: Future<Output = Result<T, E>>,
    R: Deref<Target = C>,
    C: Classify<T, E>,
    B: AsRef<Breaker>,
{
    type Output = Result<T, CallError<E>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let Some(call) = this.call.as_mut().as_pin_mut() else {
            return Poll::Pending;
        };
        match catch_unwind(AssertUnwindSafe(|| call.poll(cx))) {
            Ok(Poll::Ready(result)) => {
                if let Some(guard) = this.guard.take() {
                    guard.end(this.classify.classify(&result));
                }
                return Poll::Ready(result.map_err(CallError::Inner));
            }
            Ok(Poll::Pending) => {}
            Err(panic) => {
                if let Some(guard) = this.guard.take() {
                    guard.end(panic_verdict());
                }
                resume_unwind(panic);
            }
        }
        if !*this.timed {
            *this.timed = true;
            this.timer.set(this.guard.as_ref().and_then(timer));
        }
        let Some(timer) = this.timer.as_mut().as_pin_mut() else {
            return Poll::Pending;
        };
        ready!(timer.poll(cx));
        let Some(guard) = this.guard.take() else {
            return Poll::Pending;
        };
        let (key, after) = (guard.on().shared_key(), guard.call_timeout().unwrap_or_default());
        guard.time_out();
        this.call.set(None);
        Poll::Ready(Err(CallError::TimedOut { key, after }))
    }
}

/// The timer of a call that is limited, where there is a runtime that can keep one.
fn timer<B: AsRef<Breaker>>(guard: &Guard<B>) -> Option<Sleep> {
    let left = guard.time_left()?;
    tokio::runtime::Handle::try_current()
        .ok()
        .map(|_| tokio::time::sleep(left))
}
