//! Calls that are healthy or rejected allocate nothing, whichever way they are made, with metrics on.
#![expect(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

use std::future::poll_fn;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use tower::{Layer, Service, service_fn};
use tripwit::tower::{BreakerLayer, ServiceError};
use tripwit::{Breaker, Breakers, CallError, ManualClock, State};
use tripwit_bench::{Counting, Guarding, Refused, allocations, work};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// One that is copied, and one that is too long for that.
const KEYS: [&str; 2] = ["orders", "orders.of.a.tenant.whose.name.is.long"];

/// The answer of a future that is ready when it is first asked.
fn ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("a call that is ready at once is pending"),
    }
}

/// Allocations of a hundred calls, after a first one that may: a thread needs some things once.
fn of_a_hundred(mut call: impl FnMut(u64)) -> u64 {
    call(0);
    allocations(|| (1..=100).for_each(call))
}

fn circuits(guarding: Guarding, key: &str, state: State) -> (Breakers, Breaker) {
    // The clock stands still, so that no bucket of a window ends.
    let breakers = guarding
        .builder()
        .unwrap()
        .clock(ManualClock::new())
        .build()
        .unwrap();
    let breaker = breakers.breaker(key).unwrap();
    if state == State::Open {
        breaker.trip();
    }
    (breakers, breaker)
}

/// Holds the three ways to call against what they must come to.
fn assert_nothing_is_allocated(
    state: State,
    call: fn(&Result<u64, CallError<Refused>>) -> bool,
    service: fn(&Result<u64, ServiceError<Refused>>) -> bool,
) {
    for (guarding, key) in Guarding::ALL
        .into_iter()
        .flat_map(|guarding| KEYS.map(|key| (guarding, key)))
    {
        let (breakers, breaker) = circuits(guarding, key, state);
        let blocking = of_a_hundred(|input| assert!(call(&breaker.call_blocking(|| work(input)))));
        assert_eq!(blocking, 0, "blocking, {guarding}, {key}");
        let awaited = of_a_hundred(|input| assert!(call(&ready(breaker.call(async { work(input) })))));
        assert_eq!(awaited, 0, "awaited, {guarding}, {key}");
        let mut tower =
            BreakerLayer::new(breakers, move |_: &u64| key).layer(service_fn(async |input| work(input)));
        let requested = of_a_hundred(|input| assert!(service(&ready(tower.call(input)))));
        assert_eq!(requested, 0, "tower, {guarding}, {key}");
    }
}

#[test]
fn a_healthy_call_allocates_nothing() {
    assert_nothing_is_allocated(State::Closed, Result::is_ok, Result::is_ok);
}

#[test]
fn a_healthy_call_that_has_to_be_waited_for_allocates_nothing() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    for guarding in Guarding::ALL {
        let (_breakers, breaker) = circuits(guarding, "orders", State::Closed);
        let awaited = of_a_hundred(|input| {
            let mut asked = false;
            let call = poll_fn(|cx| {
                if std::mem::replace(&mut asked, true) {
                    return Poll::Ready(work(input));
                }
                cx.waker().wake_by_ref();
                Poll::Pending
            });
            assert!(runtime.block_on(breaker.call(call)).is_ok());
        });
        assert_eq!(awaited, 0, "{guarding}");
    }
}

#[test]
fn a_rejected_call_allocates_nothing() {
    assert_nothing_is_allocated(
        State::Open,
        |answer| matches!(answer, Err(CallError::Rejected(_))),
        |answer| matches!(answer, Err(ServiceError::Rejected(_))),
    );
}

#[test]
fn what_allocates_is_counted() {
    let grow = || {
        let mut list = Vec::with_capacity(1);
        list.extend([1, 2, 3]);
        assert_eq!(std::hint::black_box(list).len(), 3);
    };
    assert_eq!(allocations(grow), 2);
}
