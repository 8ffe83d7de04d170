//! The policy `window` as its users see it.

use std::thread;
use std::time::Duration;

use tripwit::settings::Window;
use tripwit::{Breakers, BreakersBuilder, BuildError, ManualClock, Policy, State};

use crate::support::{fine, refused};

fn circuits(settings: Window) -> (BreakersBuilder, ManualClock) {
    let clock = ManualClock::new();
    let builder = Breakers::builder(Policy::window().unwrap())
        .settings(settings)
        .clock(clock.clone());
    (builder, clock)
}

#[test]
fn half_of_the_calls_open_the_circuit_and_good_probes_close_it() {
    let settings = Window::default()
        .window_calls(4)
        .probe_calls(2)
        .open_for(Duration::from_secs(5));
    let (builder, clock) = circuits(settings);
    let breakers = builder.build().unwrap();
    let breaker = breakers.breaker("sms").unwrap();
    for call in [fine, refused, fine] {
        let _ = breaker.call_blocking(call);
    }
    assert_eq!(breaker.state(), State::Closed);
    assert!(breaker.call_blocking(refused).is_err());
    assert_eq!(breaker.state(), State::Open);

    clock.advance(Duration::from_secs(5));
    breaker.call_blocking(fine).unwrap();
    assert_eq!(breaker.state(), State::HalfOpen);
    breaker.call_blocking(fine).unwrap();
    assert_eq!(breaker.state(), State::Closed);
}

#[test]
fn slow_calls_open_the_circuit_though_they_succeed() {
    let settings = Window::default()
        .window_time(Duration::from_secs(60))
        .minimum_calls(2)
        .slow_after(Duration::from_secs(1))
        .slow_rate(100.0)
        .no_call_timeout();
    let (builder, clock) = circuits(settings);
    let breakers = builder.build().unwrap();
    let breaker = breakers.breaker("sms").unwrap();
    for state in [State::Closed, State::Open] {
        let permit = breaker.acquire().unwrap();
        clock.advance(Duration::from_millis(1_001));
        permit.success();
        assert_eq!(breaker.state(), state);
    }
    assert_eq!(breaker.status().last_failure, None);
}

#[test]
fn successes_that_many_threads_keep_back_are_all_counted() {
    let (builder, _clock) = circuits(Window::default().window_calls(10_000));
    let breakers = builder.build().unwrap();
    let breaker = breakers.breaker("sms").unwrap();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..1_000).for_each(|_| breaker.call_blocking(fine).unwrap()));
        }
    });
    assert!(breaker.call_blocking(refused).is_err());
    let counts = breaker.status().counts;
    assert_eq!((counts.successes, counts.failures), (4_000, 1));
}

#[test]
fn failures_and_kept_back_successes_of_many_threads_open_the_circuit_at_their_share_and_not_before() {
    let settings = Window::default()
        .window_calls(10_000)
        .minimum_calls(4_000)
        .failure_rate(25.0);
    for (failures, state) in [(249, State::Closed), (250, State::Open)] {
        let (builder, _clock) = circuits(settings.clone());
        let breakers = builder.build().unwrap();
        let breaker = breakers.breaker("sms").unwrap();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for place in 0..1_000 {
                        let call = if place < failures { refused } else { fine };
                        let _ = breaker.call_blocking(call);
                    }
                });
            }
        });
        assert_eq!(breaker.status().state, state, "{failures} of 1000 failed");
    }
}

#[test]
fn settings_that_do_not_fit_together_are_refused_by_name() {
    let both = Window::default()
        .window_calls(10)
        .window_time(Duration::from_secs(10));
    let (builder, _clock) = circuits(both);
    let Err(error) = builder.build() else {
        panic!("a window of two sizes was taken");
    };
    assert!(matches!(error, BuildError::Settings { .. }), "{error:?}");
    assert!(error.to_string().contains("/window_time"), "{error}");
}
