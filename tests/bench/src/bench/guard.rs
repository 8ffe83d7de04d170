//! How each subject guards a call, blocking or awaited.

use recloser::{AsyncRecloser, Recloser};
use tokio::time::error::Elapsed;
use tower_resilience_circuitbreaker::CircuitBreakerError;
use tripwit::tower::ServiceError;
use tripwit::{Breaker, CallError};
use tripwit_bench::{Guarding, Refused, work};

use crate::peers::{FailsafeConsecutive, FailsafeDefault};

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It was made, well or not.
    Made,
    /// It was not.
    Rejected,
}

/// What a guard answers with.
pub(crate) trait Answer {
    fn ending(&self) -> Ending;
}

/// Who guards a blocking call.
pub(crate) trait Guard: Send + Sync + 'static {
    type Answer: Answer;

    fn call(&self, input: u64) -> Self::Answer;
}

/// Who guards a call that is awaited.
pub(crate) trait AsyncGuard: Send + Sync + 'static {
    type Answer: Answer;

    fn call(&self, call: impl Future<Output = Result<u64, Refused>>) -> impl Future<Output = Self::Answer>;
}

/// Nobody guards the call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bare;

/// A time-out guards the call, and no breaker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeout;

macro_rules! guards {
    ($($guard:ty, $answer:ty: |$this:ident, $input:ident| $call:expr;)*) => {$(
        impl Guard for $guard {
            type Answer = $answer;

            #[inline(always)]
            fn call(&self, $input: u64) -> Self::Answer {
                let $this = self;
                $call
            }
        }
    )*};
}

guards! {
    Bare, Result<u64, Refused>: |_nobody, input| work(input);
    Breaker, Result<u64, CallError<Refused>>: |this, input| this.call_blocking(|| work(input));
    Recloser, Result<u64, recloser::Error<Refused>>: |this, input| Recloser::call(this, || work(input));
    FailsafeConsecutive, Result<u64, failsafe::Error<Refused>>:
        |this, input| failsafe::CircuitBreaker::call(this, || work(input));
    FailsafeDefault, Result<u64, failsafe::Error<Refused>>:
        |this, input| failsafe::CircuitBreaker::call(this, || work(input));
}

macro_rules! async_guards {
    ($($guard:ty, $answer:ty: |$this:ident, $future:ident| $call:expr;)*) => {$(
        impl AsyncGuard for $guard {
            type Answer = $answer;

            #[inline]
            fn call(
                &self,
                $future: impl Future<Output = Result<u64, Refused>>,
            ) -> impl Future<Output = Self::Answer> {
                let $this = self;
                $call
            }
        }
    )*};
}

async_guards! {
    Bare, Result<u64, Refused>: |_nobody, future| future;
    Timeout, Result<Result<u64, Refused>, Elapsed>:
        |_timeout, future| tokio::time::timeout(Guarding::CALL_TIMEOUT, future);
    Breaker, Result<u64, CallError<Refused>>: |this, future| Breaker::call(this, future);
    AsyncRecloser, Result<u64, recloser::Error<Refused>>: |this, future| AsyncRecloser::call(this, future);
    FailsafeConsecutive, Result<u64, failsafe::Error<Refused>>:
        |this, future| failsafe::futures::CircuitBreaker::call(this, future);
    FailsafeDefault, Result<u64, failsafe::Error<Refused>>:
        |this, future| failsafe::futures::CircuitBreaker::call(this, future);
}

macro_rules! answers {
    ($($answer:ty: $rejected:pat,)*) => {$(
        impl Answer for $answer {
            fn ending(&self) -> Ending {
                if matches!(self, $rejected) {
                    Ending::Rejected
                } else {
                    Ending::Made
                }
            }
        }
    )*};
}

answers! {
    Result<u64, CallError<Refused>>: Err(CallError::Rejected(_)),
    Result<u64, ServiceError<Refused>>: Err(ServiceError::Rejected(_) | ServiceError::Attach(_)),
    Result<u64, recloser::Error<Refused>>: Err(recloser::Error::Rejected),
    Result<u64, failsafe::Error<Refused>>: Err(failsafe::Error::Rejected),
    Result<u64, CircuitBreakerError<Refused>>: Err(CircuitBreakerError::OpenCircuit),
}

impl Answer for Result<u64, Refused> {
    fn ending(&self) -> Ending {
        Ending::Made
    }
}

impl Answer for Result<Result<u64, Refused>, Elapsed> {
    fn ending(&self) -> Ending {
        Ending::Made
    }
}
