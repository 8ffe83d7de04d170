//! One call to a provider, and whether it is worth another try.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use tokio::time::sleep;
use tripwit::Rejection;

use crate::http::Answer;

/// How one call ended, or why it was not made.
#[derive(Debug)]
pub(crate) enum Attempt {
    Answered(Answer),
    /// No answer came: a network error.
    Unanswered(anyhow::Error),
    TimedOut(Duration),
    /// The circuit did not let it begin.
    Rejected(Rejection),
}

impl Attempt {
    pub(crate) fn is_sent(&self) -> bool {
        matches!(self, Self::Answered(answer) if answer.is_sent())
    }

    /// Network errors, time-outs, 429 and 5xx, and nothing else. A rejection is not: the circuit has just said that a try is in vain.
    pub(crate) fn is_retryable(&self) -> bool {
        match self {
            Self::Answered(answer) => answer.is_temporary(),
            Self::Unanswered(error) => error.is::<reqwest::Error>(),
            Self::TimedOut(_) => true,
            Self::Rejected(_) => false,
        }
    }

    /// How long the provider asked to be left alone, where it did.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Answered(answer) => answer.retry_after,
            Self::Unanswered(_) | Self::TimedOut(_) | Self::Rejected(_) => None,
        }
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answered(answer) => f.write_str(&answer.problem()),
            Self::Unanswered(error) => write!(f, "{error:#}"),
            Self::TimedOut(after) => write!(f, "no answer within {after:?}"),
            Self::Rejected(rejection) => write!(f, "circuit open: {rejection}"),
        }
    }
}

/// Makes a call, and makes it again while that is worth it, `tries` times in all; answers with how the last one ended.
///
/// `wait` is given the number of tries so far and how the last of them ended.
pub(crate) async fn retry<F: Future<Output = Attempt>>(
    tries: u32,
    mut call: impl FnMut() -> F,
    wait: impl Fn(u32, &Attempt) -> Duration,
) -> Attempt {
    let mut tried = 1;
    loop {
        let attempt = call().await;
        if tried >= tries || !attempt.is_retryable() {
            return attempt;
        }
        sleep(wait(tried, &attempt)).await;
        tried += 1;
    }
}

/// The usual wait before another try: `first`, then twice as long each time.
pub(crate) fn back_off(first: Duration, tried: u32) -> Duration {
    first.saturating_mul(2_u32.saturating_pow(tried.saturating_sub(1)))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use reqwest::StatusCode;
    use tripwit::Verdict;

    use super::*;
    use crate::http::Receipt;

    const SECOND: Duration = Duration::from_secs(1);

    fn answer(status: u16, sent: Option<bool>) -> Answer {
        let status = StatusCode::from_u16(status).expect("a status");
        Answer {
            status,
            retry_after: None,
            receipt: Receipt { sent, reason: None },
        }
    }

    fn answered(status: u16) -> Attempt {
        Attempt::Answered(answer(status, None))
    }

    /// A real network error: nobody listens on port 0.
    async fn network_error() -> Attempt {
        let error = reqwest::get("http://127.0.0.1:0/")
            .await
            .expect_err("nobody is there");
        Attempt::Unanswered(error.into())
    }

    #[tokio::test]
    async fn network_errors_time_outs_429_and_5xx_are_retried_and_nothing_else() {
        assert!(network_error().await.is_retryable());
        assert!(Attempt::TimedOut(SECOND).is_retryable());
        for status in [429, 500, 502, 503, 599] {
            assert!(answered(status).is_retryable(), "{status}");
        }
        for status in [200, 204, 301, 400, 401, 404, 408, 410, 428, 430, 499] {
            assert!(!answered(status).is_retryable(), "{status}");
        }
        assert!(!Attempt::Answered(answer(200, Some(false))).is_retryable());
        assert!(!Attempt::Unanswered(anyhow::anyhow!("a bug of ours")).is_retryable());
    }

    #[test]
    fn answers_that_are_no_errors_count_as_failures_of_the_provider_all_the_same() {
        for bad in [
            answer(500, None),
            answer(503, Some(true)),
            answer(429, None),
            answer(200, Some(false)),
        ] {
            assert!(matches!(bad.verdict(), Verdict::Failure(_)), "{bad:?}");
        }
        for good in [answer(200, None), answer(202, Some(true))] {
            assert!(matches!(good.verdict(), Verdict::Success), "{good:?}");
        }
    }

    #[test]
    fn refusals_of_the_request_say_nothing_about_the_provider() {
        for refused in [
            answer(400, None),
            answer(404, Some(false)),
            answer(410, None),
            answer(302, None),
        ] {
            assert!(matches!(refused.verdict(), Verdict::Ignored), "{refused:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn tries_end_at_the_limit_and_their_waits_double() {
        let calls = AtomicU32::new(0);
        let begin = tokio::time::Instant::now();
        let call = || async {
            calls.fetch_add(1, Ordering::Relaxed);
            answered(503)
        };
        let last = retry(3, call, |tried, _| back_off(SECOND, tried)).await;
        assert_eq!(calls.load(Ordering::Relaxed), 3);
        assert_eq!(begin.elapsed(), 3 * SECOND);
        assert_eq!(last.to_string(), "HTTP 503");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_not_worth_a_retry_is_tried_once() {
        let calls = AtomicU32::new(0);
        let call = || async {
            calls.fetch_add(1, Ordering::Relaxed);
            answered(410)
        };
        retry(3, call, |_, _| SECOND).await;
        assert_eq!(calls.load(Ordering::Relaxed), 1);
    }
}
