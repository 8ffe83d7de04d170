//! The other breakers, each set up as near to Tripwit's policies as it can be.

use std::iter::Repeat;
use std::time::Duration;

use anyhow::Result;
use failsafe::failure_policy::{ConsecutiveFailures, OrElse, SuccessRateOverTimeWindow};
use failsafe::{FailurePolicy, StateMachine, backoff, failure_policy};
use recloser::Recloser;
use tower_resilience_circuitbreaker::{CircuitBreakerLayer, DefaultClassifier, SlidingWindowType};
use tripwit_bench::Guarding;

/// Both wait as long as every other subject: by default it would be some seconds, drawn at random.
pub(crate) type FailsafeConsecutive = StateMachine<ConsecutiveFailures<Wait>, ()>;
pub(crate) type FailsafeDefault =
    StateMachine<OrElse<SuccessRateOverTimeWindow<Wait>, ConsecutiveFailures<Wait>>, ()>;
type Wait = Repeat<Duration>;

/// What its policy is called in the tables.
pub(crate) const RECLOSER: &str = "90 % of the last 100";
/// What its policy is called in the tables.
pub(crate) const FAILSAFE_CONSECUTIVE: &str = "5 in a row";
/// What its policy is called in the tables. The success rate counts from the thirtieth second on.
pub(crate) const FAILSAFE_DEFAULT: &str = "5 in a row, or 20 % of the last 30 s";

/// Over as many calls as the window of Tripwit that it is held against. No measurement reaches its error rate.
pub(crate) fn recloser() -> Recloser {
    Recloser::custom()
        .error_rate(0.9)
        .closed_len(Guarding::WINDOW_CALLS as usize)
        .open_wait(Guarding::OPEN_FOR)
        .build()
}

pub(crate) fn failsafe_consecutive() -> FailsafeConsecutive {
    failsafe::Config::new().failure_policy(in_a_row()).build()
}

/// The policies that are its default.
pub(crate) fn failsafe_default() -> FailsafeDefault {
    let window = Duration::from_secs(30);
    let rate = failure_policy::success_rate_over_time_window(0.8, 5, window, wait());
    failsafe::Config::new()
        .failure_policy(rate.or_else(in_a_row()))
        .build()
}

fn in_a_row() -> ConsecutiveFailures<Wait> {
    failure_policy::consecutive_failures(Guarding::FAILURE_THRESHOLD, wait())
}

fn wait() -> Wait {
    backoff::constant(Guarding::OPEN_FOR)
}

/// Under what comes nearest to that policy of Tripwit.
///
/// # Errors
///
/// When its builder refuses that.
pub(crate) fn tower_resilience(guarding: Guarding) -> Result<CircuitBreakerLayer<DefaultClassifier>> {
    let builder = CircuitBreakerLayer::builder()
        .failure_rate_threshold(1.0)
        .wait_duration_in_open(Guarding::OPEN_FOR);
    let builder = match guarding {
        Guarding::Consecutive | Guarding::ConsecutiveTimeout => {
            builder.consecutive_failures(Guarding::FAILURE_THRESHOLD as usize)
        }
        Guarding::WindowCount | Guarding::WindowSlow => {
            builder.sliding_window_size(Guarding::WINDOW_CALLS as usize)
        }
        Guarding::WindowTime => builder
            .sliding_window_type(SlidingWindowType::TimeBased)
            .sliding_window_duration(Guarding::WINDOW_TIME)
            .minimum_number_of_calls(20),
    };
    Ok(builder.build()?)
}
