//! Calls of all kinds, through the shipped component.

use std::future::{pending, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use tripwit::settings::Consecutive;
use tripwit::{
    Breaker, Breakers, CallError, Clock, Failure, ManualClock, Mode, Operation, RejectionReason, State,
    Verdict, classify,
};

use crate::support::{circuits, fine, moves, refused, touchy, touchy_circuits};

fn reason<T, E>(result: Result<T, CallError<E>>) -> Option<RejectionReason> {
    result
        .err()
        .and_then(|error| error.rejection().map(tripwit::Rejection::reason))
}

/// A circuit that was open until now: the next call is a probe.
fn about_to_probe(breakers: &Breakers, clock: &ManualClock) -> Breaker {
    let breaker = breakers.breaker("sms").unwrap();
    breaker.trip();
    clock.advance(Duration::from_secs(5));
    breaker
}

#[test]
fn failures_open_the_circuit_and_a_probe_closes_it() {
    let (breakers, clock) = touchy_circuits();
    let breaker = breakers.breaker("sms").unwrap();
    let (heard, _subscription) = moves(&breakers);
    assert!(matches!(
        breaker.call_blocking(refused),
        Err(CallError::Inner("refused"))
    ));
    assert_eq!(breaker.state(), State::Closed);
    assert!(breaker.call_blocking(refused).is_err());
    assert_eq!((breaker.state(), breaker.is_available()), (State::Open, false));

    let rejection = breaker.acquire().unwrap_err();
    assert_eq!(
        (rejection.key(), rejection.reason()),
        ("sms", RejectionReason::Open)
    );
    assert_eq!(rejection.retry_after(), Some(Duration::from_secs(5)));
    clock.advance(Duration::from_secs(5) - Duration::from_nanos(1));
    assert_eq!(
        breaker.acquire().unwrap_err().retry_after(),
        Some(Duration::from_nanos(1))
    );

    clock.advance(Duration::from_nanos(1));
    assert!(breaker.is_available());
    assert_eq!(breaker.state(), State::Open, "to look at it changes nothing");
    breaker.call_blocking(fine).unwrap();
    assert_eq!(breaker.state(), State::Closed);
    assert_eq!(
        *heard.lock().unwrap(),
        [Operation::Trip, Operation::HalfOpen, Operation::Reset]
    );
}

#[test]
fn a_rejected_call_is_not_made() {
    let (breakers, _clock) = touchy_circuits();
    let breaker = breakers.breaker("sms").unwrap();
    breaker.trip();
    let result = breaker.call_blocking(|| -> Result<(), ()> { panic!("the call was made") });
    assert_eq!(reason(result), Some(RejectionReason::Open));
}

#[test]
fn a_success_between_failures_sets_their_count_to_zero() {
    let (breakers, _clock) = touchy_circuits();
    let breaker = breakers.breaker("sms").unwrap();
    for _ in 0..3 {
        breaker.call_blocking(refused).unwrap_err();
        breaker.call_blocking(fine).unwrap();
    }
    assert_eq!(breaker.state(), State::Closed);
    assert_eq!(breaker.status().counts.consecutive_failures, 0);
}

#[test]
fn one_probe_at_a_time_and_the_others_are_told_why() {
    let (breakers, clock) = touchy_circuits();
    let breaker = about_to_probe(&breakers, &clock);
    let probe = breaker.acquire().unwrap();
    assert_eq!(breaker.state(), State::HalfOpen);
    assert_eq!(
        breaker.acquire().unwrap_err().reason(),
        RejectionReason::ProbeLimit
    );
    assert!(!breaker.is_available());
    probe.failure(Failure::new());
    assert_eq!(breaker.state(), State::Open);
}

#[test]
fn a_permit_that_is_dropped_frees_the_place_of_its_probe() {
    let (breakers, clock) = touchy_circuits();
    let breaker = about_to_probe(&breakers, &clock);
    drop(breaker.acquire().unwrap());
    drop(breaker.acquire_owned().unwrap());
    assert_eq!(breaker.state(), State::HalfOpen);
    breaker.acquire().unwrap().success();
    assert_eq!(breaker.state(), State::Closed);
}

#[test]
fn an_owned_permit_goes_to_another_thread() {
    let (breakers, _clock) = touchy_circuits();
    let breaker = breakers.breaker("sms").unwrap();
    for _ in 0..2 {
        let permit = breaker.acquire_owned().unwrap();
        std::thread::spawn(move || permit.failure(Failure::new().cause("no answer")))
            .join()
            .unwrap();
    }
    assert_eq!(breaker.state(), State::Open);
    assert_eq!(breaker.status().last_cause.as_deref(), Some("no answer"));
}

#[test]
fn a_panic_counts_as_a_failure_and_goes_on() {
    let (breakers, _clock) = touchy_circuits();
    let breaker = breakers.breaker("sms").unwrap();
    let (heard, _subscription) = moves(&breakers);
    let panicking = || breaker.call_blocking(|| -> Result<(), ()> { panic!("boom") });
    let panic = catch_unwind(AssertUnwindSafe(panicking)).unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"boom"));
    let with_a_permit = || {
        let _permit = breaker.acquire().unwrap();
        panic!("boom");
    };
    catch_unwind(AssertUnwindSafe(with_a_permit)).unwrap_err();
    assert_eq!(breaker.state(), State::Open);
    assert!(
        heard.lock().unwrap().is_empty(),
        "nothing is told while a thread unwinds"
    );
    assert_eq!(breaker.status().last_cause.as_deref(), Some("the call panicked"));
    assert_eq!(*heard.lock().unwrap(), [Operation::Trip], "but nothing is lost");
}

#[test]
fn a_permit_taken_and_dropped_while_unwinding_counts_as_nothing() {
    struct Calls(Breaker);
    impl Drop for Calls {
        fn drop(&mut self) {
            drop(self.0.acquire().unwrap());
            drop(self.0.acquire().unwrap());
        }
    }
    let (breakers, _clock) = touchy_circuits();
    let breaker = breakers.breaker("sms").unwrap();
    let calls = Calls(breaker.clone());
    catch_unwind(AssertUnwindSafe(move || {
        let _calls = calls;
        panic!("boom");
    }))
    .unwrap_err();
    assert_eq!(
        (breaker.state(), breaker.status().counts.failures),
        (State::Closed, 0)
    );
}

#[test]
fn results_of_calls_begun_before_a_move_are_stale() {
    let (breakers, _clock) = touchy_circuits();
    let breaker = breakers.breaker("sms").unwrap();
    let late: Vec<_> = (0..3).map(|_| breaker.acquire().unwrap()).collect();
    breaker.trip();
    breaker.reset();
    for permit in late {
        permit.failure(Failure::new());
    }
    assert_eq!(breaker.state(), State::Closed);
    assert_eq!(breaker.status().stale_results, 3);
}

#[test]
fn a_blocking_call_that_overran_is_a_time_out_and_keeps_its_result() {
    let settings = touchy().call_timeout(Duration::from_secs(1));
    let (builder, clock) = circuits(settings);
    let breaker = builder.build().unwrap().breaker("sms").unwrap();
    let lasting = |time: Duration| {
        breaker.call_blocking(|| {
            clock.advance(time);
            fine()
        })
    };
    for _ in 0..2 {
        lasting(Duration::from_secs(1)).unwrap();
    }
    assert_eq!(breaker.status().counts.timeouts, 0, "just as long as it may");
    lasting(Duration::from_secs(1) + Duration::from_nanos(1)).unwrap();
    lasting(Duration::from_secs(2)).unwrap();
    assert_eq!(breaker.state(), State::Open);
}

#[test]
fn a_failure_that_does_not_count_is_none() {
    let (breakers, _clock) = touchy_circuits();
    let breaker = breakers.breaker("http").unwrap();
    let not_found_says_nothing = classify::by_error(|status: &u16| match status {
        404 => Verdict::Ignored,
        _ => Verdict::Failure(Failure::new().retry_after(Duration::from_secs(9))),
    });
    let guarded = breaker.classify(not_found_says_nothing);
    for _ in 0..3 {
        assert!(guarded.call_blocking(|| Err::<(), _>(404)).is_err());
    }
    assert_eq!(breaker.state(), State::Closed);
    for _ in 0..2 {
        assert!(guarded.call_blocking(|| Err::<(), _>(503)).is_err());
    }
    assert_eq!(breaker.state(), State::Open);
}

#[test]
fn modes_decide_before_the_policy() {
    let (breakers, _clock) = touchy_circuits();
    let breaker = breakers.breaker("sms").unwrap();
    breaker.set_mode(Mode::ForcedOpen);
    assert_eq!(breaker.mode(), Mode::ForcedOpen);
    let rejection = breaker.acquire().unwrap_err();
    assert_eq!(
        (rejection.reason(), rejection.retry_after()),
        (RejectionReason::ForcedOpen, None)
    );

    breaker.set_mode(Mode::Disabled);
    for _ in 0..3 {
        breaker.call_blocking(refused).unwrap_err();
    }
    assert_eq!(breaker.state(), State::Closed);

    breaker.set_mode(Mode::Shadow);
    for _ in 0..4 {
        assert!(
            matches!(breaker.call_blocking(refused), Err(CallError::Inner(_))),
            "shadow rejects nothing"
        );
    }
    assert!(breaker.is_available());
    assert_eq!(
        (breaker.state(), breaker.status().would_have_rejected),
        (State::Open, 2)
    );
}

#[test]
fn a_subscriber_may_call_the_breaker_and_sees_the_new_state() {
    let (breakers, _clock) = touchy_circuits();
    let breaker = breakers.breaker("sms").unwrap();
    let within = breaker.clone();
    let seen = Arc::new(AtomicUsize::new(0));
    let count = seen.clone();
    let _subscription = breakers.subscribe(move |event| {
        assert_eq!(within.state(), event.transition.after);
        if event.transition.operation == Operation::Trip {
            assert_eq!(within.acquire().unwrap_err().reason(), RejectionReason::Open);
            within.reset();
        }
        count.fetch_add(1, Ordering::Relaxed);
    });
    for _ in 0..2 {
        breaker.call_blocking(refused).unwrap_err();
    }
    assert_eq!(
        (breaker.state(), seen.load(Ordering::Relaxed)),
        (State::Closed, 2)
    );
}

#[test]
fn a_subscriber_that_panics_or_leaves_changes_nothing() {
    let (breakers, _clock) = touchy_circuits();
    let breaker = breakers.breaker("sms").unwrap();
    let _panics = breakers.subscribe(|_| panic!("a bad subscriber"));
    let (heard, subscription) = moves(&breakers);
    breaker.trip();
    drop(subscription);
    breaker.reset();
    assert_eq!(breaker.state(), State::Closed);
    assert_eq!(*heard.lock().unwrap(), [Operation::Trip]);
}

#[test]
fn threads_that_fail_at_once_open_the_circuit_once() {
    for _ in 0..50 {
        let (breakers, _clock) = touchy_circuits();
        let (heard, _subscription) = moves(&breakers);
        let breaker = breakers.breaker("sms").unwrap();
        std::thread::scope(|threads| {
            for _ in 0..4 {
                threads.spawn(|| {
                    for _ in 0..3 {
                        let _ = breaker.call_blocking(refused);
                    }
                });
            }
        });
        assert_eq!(*heard.lock().unwrap(), [Operation::Trip]);
    }
}

#[test]
fn asking_each_time_gives_the_same_answers() {
    let mut answers = Vec::new();
    for ignore in [false, true] {
        let (builder, clock) = circuits(touchy());
        let breaker = builder
            .ignore_leases(ignore)
            .build()
            .unwrap()
            .breaker("sms")
            .unwrap();
        let mut seen = Vec::new();
        for step in 0..40_u32 {
            let result = if step % 7 == 3 {
                breaker.call_blocking(fine)
            } else {
                breaker.call_blocking(refused)
            };
            seen.push((format!("{result:?}"), breaker.state()));
            clock.advance(Duration::from_millis(1_300));
        }
        answers.push(seen);
    }
    let direct = answers.pop();
    assert_eq!(answers.pop(), direct);
}

#[tokio::test]
async fn a_call_within_a_runtime_is_guarded() {
    let (breakers, _clock) = touchy_circuits();
    let breaker = breakers.breaker("sms").unwrap();
    breaker.call(async { fine() }).await.unwrap();
    for _ in 0..2 {
        assert!(matches!(
            breaker.call(async { refused() }).await,
            Err(CallError::Inner("refused"))
        ));
    }
    assert_eq!(
        reason(breaker.call(async { fine() }).await),
        Some(RejectionReason::Open)
    );
}

#[test]
fn a_call_needs_no_runtime() {
    let (breakers, _clock) = touchy_circuits();
    let breaker = breakers.breaker("sms").unwrap();
    let mut polls = 0;
    let call = breaker.call(poll_fn(|cx| {
        polls += 1;
        cx.waker().wake_by_ref();
        if polls < 3 {
            Poll::Pending
        } else {
            Poll::Ready(fine())
        }
    }));
    let mut call = std::pin::pin!(call);
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    let ended = (0..3).find_map(|_| match call.as_mut().poll(&mut cx) {
        Poll::Ready(result) => Some(result),
        Poll::Pending => None,
    });
    assert!(matches!(ended, Some(Ok(()))));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_runs_too_long_is_dropped_and_counts_as_a_time_out() {
    struct Dropped(Arc<AtomicUsize>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let (builder, _clock) = circuits(touchy().call_timeout(Duration::from_secs(1)));
    let breaker = builder.build().unwrap().breaker("sms").unwrap();
    let drops = Arc::new(AtomicUsize::new(0));
    for _ in 0..2 {
        let held = Dropped(drops.clone());
        let endless = async move {
            let _held = held;
            pending::<Result<(), ()>>().await
        };
        let begun = tokio::time::Instant::now();
        match breaker.call(endless).await {
            Err(CallError::TimedOut { key, after }) => {
                assert_eq!((&*key, after), ("sms", Duration::from_secs(1)))
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(begun.elapsed().as_secs(), 1);
    }
    assert_eq!((breaker.state(), drops.load(Ordering::Relaxed)), (State::Open, 2));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_ready_in_time_leaves_no_trace_of_the_timer() {
    let (builder, _clock) = circuits(touchy().call_timeout(Duration::from_secs(1)));
    let breaker = builder.build().unwrap().breaker("sms").unwrap();
    let in_time = async {
        tokio::time::sleep(Duration::from_millis(999)).await;
        fine()
    };
    breaker.call(in_time).await.unwrap();
    assert_eq!(breaker.status().counts.timeouts, 0);
}

#[tokio::test(start_paused = true)]
async fn without_a_limit_a_call_may_run_as_long_as_it_likes() {
    let (builder, _clock) = circuits(Consecutive::default().no_call_timeout());
    let breaker = builder.build().unwrap().breaker("sms").unwrap();
    let long = async {
        tokio::time::sleep(Duration::from_secs(86_400)).await;
        fine()
    };
    breaker.call(long).await.unwrap();
}

#[tokio::test]
async fn a_call_that_is_dropped_half_way_counts_as_nothing() {
    let (breakers, clock) = touchy_circuits();
    let breaker = about_to_probe(&breakers, &clock);
    {
        let mut probe = std::pin::pin!(breaker.call(pending::<Result<(), ()>>()));
        let polled = poll_fn(|cx| Poll::Ready(probe.as_mut().poll(cx).is_pending())).await;
        assert!(polled);
        assert_eq!(
            breaker.acquire().unwrap_err().reason(),
            RejectionReason::ProbeLimit
        );
    }
    breaker.call(async { fine() }).await.unwrap();
    assert_eq!(breaker.state(), State::Closed);
}

#[tokio::test]
async fn a_task_that_panics_in_a_call_counts_as_a_failure() {
    let (breakers, _clock) = touchy_circuits();
    let breaker = breakers.breaker("sms").unwrap();
    let (heard, _subscription) = moves(&breakers);
    for _ in 0..2 {
        let guarded = breaker.clone();
        let task = tokio::spawn(async move { guarded.call::<(), (), _>(async { panic!("boom") }).await });
        assert!(task.await.unwrap_err().is_panic());
    }
    assert_eq!(breaker.state(), State::Open);
    assert_eq!(*heard.lock().unwrap(), [Operation::Trip]);
}

/// Polls a call once, and says whether that panicked.
fn panics<T>(call: std::pin::Pin<&mut impl Future<Output = T>>) -> bool {
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    catch_unwind(AssertUnwindSafe(|| call.poll(&mut cx).is_ready())).is_err()
}

#[test]
fn a_classification_that_panics_counts_as_a_failure_and_the_call_is_over() {
    let (breakers, _clock) = touchy_circuits();
    let breaker = breakers.breaker("sms").unwrap();
    let undecided = breaker.classify(classify::by_value(|(): &()| panic!("undecided")));
    for _ in 0..2 {
        let mut call = std::pin::pin!(undecided.call(async { fine() }));
        assert!(panics(call.as_mut()));
        assert!(!panics(call), "polled again, it does nothing");
    }
    assert_eq!(
        (breaker.state(), breaker.status().stale_results),
        (State::Open, 0)
    );
}

#[test]
fn a_pending_call_that_a_panic_elsewhere_drops_counts_as_nothing() {
    let (breakers, _clock) = touchy_circuits();
    let breaker = breakers.breaker("sms").unwrap();
    for _ in 0..2 {
        let elsewhere = || {
            let mut call = Box::pin(breaker.call(pending::<Result<(), ()>>()));
            assert!(!panics(call.as_mut()));
            panic!("elsewhere");
        };
        assert!(catch_unwind(AssertUnwindSafe(elsewhere)).is_err());
    }
    assert_eq!(
        (breaker.state(), breaker.status().counts.failures),
        (State::Closed, 0)
    );
}

/// Asks for a place when it is dropped, and writes down whether there was one.
struct Asks(Breaker, Arc<AtomicUsize>);

impl Drop for Asks {
    fn drop(&mut self) {
        if self.0.acquire().is_ok() {
            self.1.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[test]
fn a_probe_keeps_its_place_until_it_is_gone() {
    let (breakers, clock) = touchy_circuits();
    let breaker = about_to_probe(&breakers, &clock);
    let places = Arc::new(AtomicUsize::new(0));
    let asks = Asks(breaker.clone(), places.clone());
    let mut probe = Box::pin(breaker.call(async {
        let _asks = asks;
        pending::<Result<(), ()>>().await
    }));
    assert!(!panics(probe.as_mut()));
    drop(probe);
    assert_eq!(places.load(Ordering::Relaxed), 0);
    assert!(breaker.acquire().is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_runs_too_long_keeps_its_place_until_it_is_gone() {
    let (builder, clock) = circuits(touchy().call_timeout(Duration::from_secs(1)));
    let breaker = about_to_probe(&builder.build().unwrap(), &clock);
    let places = Arc::new(AtomicUsize::new(0));
    let asks = Asks(breaker.clone(), places.clone());
    let probe = breaker.call(async {
        let _asks = asks;
        pending::<Result<(), ()>>().await
    });
    assert!(matches!(probe.await, Err(CallError::TimedOut { .. })));
    assert_eq!(places.load(Ordering::Relaxed), 0);
    assert_eq!(breaker.state(), State::Open);
}

#[test]
fn what_a_rejected_call_holds_is_dropped_at_once() {
    let (breakers, _clock) = touchy_circuits();
    let breaker = breakers.breaker("sms").unwrap();
    breaker.trip();
    let held = Arc::new(());
    let captured = held.clone();
    let mut call = Box::pin(breaker.call(async move {
        let _captured = captured;
        Ok::<(), ()>(())
    }));
    assert!(!panics(call.as_mut()));
    assert_eq!(Arc::strong_count(&held), 1);
}

#[test]
fn a_probe_that_panics_when_it_is_dropped_frees_its_place() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }
    let (breakers, clock) = touchy_circuits();
    let breaker = about_to_probe(&breakers, &clock);
    let mut probe = Box::pin(breaker.call(async {
        let _bomb = Bomb;
        pending::<Result<(), ()>>().await
    }));
    assert!(!panics(probe.as_mut()));
    assert!(breaker.acquire().is_err());
    assert!(catch_unwind(AssertUnwindSafe(|| drop(probe))).is_err());
    breaker.call_blocking(fine).unwrap();
    assert_eq!(breaker.state(), State::Closed);
}

#[test]
fn a_probe_that_finds_no_timer_in_its_runtime_panics_and_frees_its_place() {
    let (builder, clock) = circuits(touchy().call_timeout(Duration::from_secs(1)));
    let breaker = about_to_probe(&builder.build().unwrap(), &clock);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let probe = || runtime.block_on(breaker.call(pending::<Result<(), ()>>()));
    assert!(catch_unwind(AssertUnwindSafe(probe)).is_err());
    breaker.call_blocking(fine).unwrap();
    assert_eq!(breaker.state(), State::Closed);
}

#[tokio::test]
async fn a_fallback_answers_for_whatever_gives_no_value() {
    let (breakers, _clock) = touchy_circuits();
    let breaker = breakers.breaker("quotes").unwrap();
    let quote = |call: Result<u32, &'static str>| {
        breaker.call_or_else(async move { call }, async |error| match error {
            CallError::Rejected(_) => Ok::<_, ()>(0),
            CallError::Inner(_) => Ok(1),
            _ => Err(()),
        })
    };
    assert_eq!(quote(Ok(7)).await, Ok(7));
    assert_eq!(quote(Err("down")).await, Ok(1));
    assert_eq!(quote(Err("down")).await, Ok(1));
    assert_eq!(quote(Ok(7)).await, Ok(0));
}

#[test]
fn guarded_futures_are_send_when_the_call_is() {
    fn is_send<T: Send>(_: &T) {}
    let (breakers, clock) = touchy_circuits();
    let breaker = breakers.breaker("sms").unwrap();
    is_send(&breaker.call(async { fine() }));
    is_send(&breaker.acquire_owned().unwrap());
    assert_eq!(clock.monotonic(), 0);
}

#[test]
fn cycles_close_a_circuit_of_the_outbox_policy() {
    let breakers = Breakers::builder(tripwit::Policy::outbox().unwrap())
        .settings(tripwit::settings::Outbox::default().cooldown_count(1))
        .shards(2)
        .build()
        .unwrap();
    let topic = breakers.breaker("orders").unwrap();
    topic.call_blocking(refused).unwrap_err();
    assert_eq!(breakers.tripped(), ["orders"]);
    let first = breakers.cool_down();
    assert_eq!(first.len(), 1);
    assert!(
        first
            .iter()
            .all(|moved| &*moved.key == "orders" && moved.transition.is_none())
    );
    assert_eq!(breakers.tripped(), ["orders"]);
    let operations: Vec<_> = breakers
        .cool_down()
        .into_iter()
        .filter_map(|moved| moved.transition)
        .map(|it| it.operation)
        .collect();
    assert_eq!(operations, [Operation::Reset]);
    assert!(breakers.tripped().is_empty());
    assert!(breakers.cool_down().is_empty());
}
