//! A caller of the real host, who speaks in the words of the core.

use std::fmt;
use std::mem::take;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tripwit::{Breaker, Breakers, Failure, Permit, Status, Subscription};
use tripwit_core as native;

use crate::answer::{Answer, Shown};
use crate::step::{CAUSE, RETRY_AFTER, Step, TRIP_WAIT};

/// A set of circuits, and what was heard of them.
pub(crate) struct Side {
    pub(crate) breakers: Breakers,
    heard: Arc<Mutex<Vec<native::Transition>>>,
    _subscription: Subscription,
}

/// A caller of one circuit.
pub(crate) struct Client<'a> {
    side: &'a Side,
    breaker: &'a Breaker,
    permits: Vec<Permit<'a>>,
}

/// All that can be seen of a circuit.
#[derive(Debug, PartialEq)]
pub(crate) struct Seen {
    /// What its status says.
    pub(crate) shown: Shown,
    /// What its lease says of state and mode.
    pub(crate) by_lease: (native::State, native::Mode),
    tripped: Vec<String>,
    status: Status,
}

impl Side {
    pub(crate) fn of(breakers: Breakers) -> Self {
        let heard = Arc::<Mutex<Vec<_>>>::default();
        let list = heard.clone();
        let subscription = breakers.subscribe(move |event| {
            let mut heard = list.lock().unwrap_or_else(PoisonError::into_inner);
            heard.push(transition(&event.transition));
        });
        Self {
            breakers,
            heard,
            _subscription: subscription,
        }
    }

    fn take_heard(&self) -> Vec<native::Transition> {
        take(&mut self.heard.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.breakers.fmt(f)
    }
}

impl<'a> Client<'a> {
    pub(crate) fn of(side: &'a Side, breaker: &'a Breaker) -> Self {
        Self {
            side,
            breaker,
            permits: Vec::new(),
        }
    }

    /// Does what a step says. The caller keeps the clock, and knows what the core answers: the real host does not say
    /// whether the end of an admitted call is of interest.
    pub(crate) fn step(&mut self, step: Step, core: &Answer) -> Answer {
        match step {
            Step::Tick => Answer::Done,
            Step::Acquire => self.acquire(matches!(core, Answer::Passed { .. })),
            Step::Success(permit) => self.end(permit, Permit::success),
            Step::Failure(permit) => self.end(permit, |permit| {
                let failure = Failure::new().cause(CAUSE);
                permit.failure(failure.retry_after(Duration::from_nanos(RETRY_AFTER)));
            }),
            Step::Timeout(permit) => self.end(permit, Permit::timeout),
            Step::Ignored(permit) => self.end(permit, Permit::ignored),
            Step::Trip => moved(self.breaker.trip()),
            Step::TripFor => moved(self.breaker.trip_for(Duration::from_nanos(TRIP_WAIT))),
            Step::Reset => moved(self.breaker.reset()),
            Step::SetMode(mode) => {
                self.breaker.set_mode(mode_of(mode));
                Answer::Done
            }
            Step::CoolDown => {
                let changed = self.side.breakers.cool_down();
                Answer::Cooled(changed.iter().any(|moved| *moved.key == *self.breaker.key()))
            }
            Step::Inspect => Answer::Shown(shown(self.breaker, &self.breaker.status())),
        }
    }

    /// The moves that were heard of since this was last called.
    pub(crate) fn moves(&self) -> Vec<native::Transition> {
        self.side.take_heard()
    }

    /// All that can be seen.
    pub(crate) fn seen(&self) -> Seen {
        let status = self.breaker.status();
        Seen {
            shown: shown(self.breaker, &status),
            by_lease: (self.breaker.state().into_core(), self.breaker.mode().into_core()),
            tripped: self.side.breakers.tripped(),
            status,
        }
    }

    /// Leaves the circuit such that it can be forgotten.
    pub(crate) fn leave(self) {
        drop(self.permits);
        self.breaker.set_mode(tripwit::Mode::Automatic);
        self.breaker.reset();
        self.side.take_heard();
    }

    fn acquire(&mut self, passes: bool) -> Answer {
        match self.breaker.acquire() {
            Ok(permit) => {
                let call_timeout = permit.call_timeout().map(nanoseconds);
                if passes {
                    permit.success();
                    return Answer::Passed { call_timeout };
                }
                self.permits.push(permit);
                Answer::Admitted { call_timeout }
            }
            Err(rejection) => Answer::Rejected {
                reason: rejection.reason().into_core(),
                retry_after: rejection.retry_after().map(nanoseconds),
            },
        }
    }

    fn end(&mut self, permit: usize, end: impl FnOnce(Permit<'a>)) -> Answer {
        end(self.permits.remove(permit));
        Answer::Done
    }
}

/// How a circuit stands, in the words of the core.
fn shown(breaker: &Breaker, status: &Status) -> Shown {
    let counts = status.counts;
    Shown {
        state: status.state.into_core(),
        mode: status.mode.into_core(),
        available: breaker.is_available(),
        retry_after: status.retry_after.map(nanoseconds),
        cooldown_count: status.cooldown_count,
        counts: native::Counts {
            successes: counts.successes,
            failures: counts.failures,
            timeouts: counts.timeouts,
            slow: counts.slow,
            consecutive_successes: counts.consecutive_successes,
            consecutive_failures: counts.consecutive_failures,
            probes_in_flight: counts.probes_in_flight,
        },
        stale_results: status.stale_results,
        would_have_rejected: status.would_have_rejected,
    }
}

fn moved(transition_: Option<tripwit::Transition>) -> Answer {
    Answer::Moved(transition_.as_ref().map(transition))
}

fn transition(from: &tripwit::Transition) -> native::Transition {
    native::Transition {
        operation: from.operation.into_core(),
        cause: from.cause.into_core(),
        before: from.before.into_core(),
        after: from.after.into_core(),
        wait: from.wait.map(nanoseconds),
        cooldown_count: from.cooldown_count,
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The same word in the core.
trait IntoCore {
    type Core;

    fn into_core(self) -> Self::Core;
}

macro_rules! same_words {
    ($($word:ident { $($case:ident),+ })+) => {$(
        impl IntoCore for tripwit::$word {
            type Core = native::$word;

            fn into_core(self) -> native::$word {
                match self { $(Self::$case => native::$word::$case),+ }
            }
        }
    )+};
}

same_words! {
    State { Closed, Open, HalfOpen }
    Mode { Automatic, ForcedOpen, Disabled, Shadow }
    RejectionReason { Open, ProbeLimit, ForcedOpen, Throttled, Other }
    Operation { Trip, ReTrip, HalfOpen, Reset }
    Cause { Policy, Operator, CoolDown }
}

fn mode_of(mode: native::Mode) -> tripwit::Mode {
    match mode {
        native::Mode::Automatic => tripwit::Mode::Automatic,
        native::Mode::ForcedOpen => tripwit::Mode::ForcedOpen,
        native::Mode::Disabled => tripwit::Mode::Disabled,
        native::Mode::Shadow => tripwit::Mode::Shadow,
    }
}
