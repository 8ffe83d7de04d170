//! The permit of one call, and how its end is told.

use std::fmt;
use std::time::Duration;

use crate::breaker::Breaker;
use crate::classify::{Failure, Verdict};
use crate::gate::Held;

/// The permit to make one call. Say how the call ended: each method takes the permit.
///
/// Dropped, it counts as nothing, and the place of a probe is free again. Dropped by a panic, it counts as a failure.
///
/// It cannot be used twice:
///
/// ```compile_fail,E0382
/// # use tripwit::Breaker;
/// fn twice(breaker: &Breaker) -> Result<(), tripwit::Rejection> {
///     let permit = breaker.acquire()?;
///     permit.success();
///     permit.failure(tripwit::Failure::new());
///     Ok(())
/// }
/// ```
#[must_use = "a permit that is dropped counts as a call that was never made"]
pub struct Permit<'a>(Guard<&'a Breaker>);

/// A [`Permit`] that holds its circuit instead of borrowing it.
#[must_use = "a permit that is dropped counts as a call that was never made"]
pub struct OwnedPermit(Guard<Breaker>);

macro_rules! endings {
    ($permit:ty) => {
        impl $permit {
            /// The call ended well.
            #[inline]
            pub fn success(self) {
                self.0.end(Verdict::Success);
            }

            /// The call failed.
            pub fn failure(self, failure: Failure) {
                self.0.end(Verdict::Failure(failure));
            }

            /// The call ran too long.
            pub fn timeout(self) {
                self.0.time_out();
            }

            /// The call ended without saying anything about what it calls: cancelled, filtered out, never sent.
            pub fn ignored(self) {
                self.0.end(Verdict::Ignored);
            }

            /// How long the call may run, where the policy limits that. A call that runs strictly longer counts as a
            /// time-out, whatever is said of it.
            #[must_use]
            pub fn call_timeout(&self) -> Option<Duration> {
                self.0.call_timeout()
            }
        }

        impl fmt::Debug for $permit {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($permit))
                    .field(&self.0.on.breaker().key())
                    .finish()
            }
        }
    };
}

endings!(Permit<'_>);
endings!(OwnedPermit);

impl<'a> Permit<'a> {
    pub(crate) fn new(breaker: &'a Breaker, held: Held) -> Self {
        Self(Guard::new(breaker, held))
    }
}

impl OwnedPermit {
    pub(crate) fn new(breaker: Breaker, held: Held) -> Self {
        Self(Guard::new(breaker, held))
    }
}

/// What a call goes through a circuit by.
pub(crate) trait Through {
    fn breaker(&self) -> &Breaker;
}

impl Through for Breaker {
    fn breaker(&self) -> &Breaker {
        self
    }
}

impl<B: Through> Through for &B {
    fn breaker(&self) -> &Breaker {
        (**self).breaker()
    }
}

/// Settles once, at the latest when it is dropped.
struct Guard<B: Through> {
    on: B,
    held: Held,
    ended: bool,
    /// Begun while unwinding already: then its drop says nothing about the call.
    begun_unwinding: bool,
}

impl<B: Through> Guard<B> {
    #[inline]
    fn new(on: B, held: Held) -> Self {
        Self {
            on,
            held,
            ended: false,
            begun_unwinding: std::thread::panicking(),
        }
    }

    fn call_timeout(&self) -> Option<Duration> {
        self.held.call_timeout().map(Duration::from_nanos)
    }

    #[inline(always)]
    fn end(mut self, verdict: Verdict) {
        self.ended = true;
        self.on.breaker().end(self.held, verdict);
    }

    fn time_out(mut self) {
        self.ended = true;
        self.on.breaker().time_out(self.held);
    }

    /// The call was left: by whoever holds the permit, or by a panic.
    #[cold]
    fn leave(&mut self) {
        let panicked = std::thread::panicking() && !self.begun_unwinding;
        let verdict = if panicked {
            panic_verdict()
        } else {
            Verdict::Ignored
        };
        self.on.breaker().settle(self.held, verdict);
    }
}

impl<B: Through> Drop for Guard<B> {
    #[inline]
    fn drop(&mut self) {
        if !self.ended {
            self.leave();
        }
    }
}

/// What is told of a call that panicked.
pub(crate) fn panic_verdict() -> Verdict {
    Verdict::Failure(Failure::new().cause("the call panicked"))
}
