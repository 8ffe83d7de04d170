//! The load: callers that call again and again, and keep a record of every call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use reqwest::StatusCode;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};
use tripwit::{Breaker, CallError, Clock as _, Failure, Verdict, classify};

use crate::clock::SteadyClock;

/// How many call at once, spread over the threads of the runtime.
pub(crate) const CALLERS: usize = 8;

/// How one call came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Good,
    /// HTTP 503.
    Bad,
    /// No answer came.
    Unanswered,
    TimedOut,
    Rejected,
}

/// One call. Times are readings of the breaker's clock, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    /// When the breaker was asked.
    pub(crate) asked: u64,
    /// When the breaker had answered: the call begins, or is not made.
    pub(crate) answered: u64,
    /// When the call had ended, and the breaker was told.
    pub(crate) ended: u64,
    /// When all was over.
    pub(crate) done: u64,
    pub(crate) ending: Ending,
}

impl Call {
    pub(crate) fn is_admitted(&self) -> bool {
        self.ending != Ending::Rejected
    }

    /// How long the breaker itself took, at the begin and at the end.
    pub(crate) fn wait(&self) -> Duration {
        Duration::from_nanos((self.answered - self.asked) + (self.done - self.ended))
    }
}

/// The callers.
#[derive(Debug)]
pub(crate) struct Load {
    callers: JoinSet<anyhow::Result<Vec<Call>>>,
    shared: Arc<Shared>,
}

/// What all of them have.
#[derive(Debug)]
struct Shared {
    breaker: Breaker,
    clock: SteadyClock,
    client: reqwest::Client,
    url: String,
    /// How long each rests between two calls.
    pause: Duration,
    begun: AtomicU64,
    stop: AtomicBool,
}

impl Load {
    pub(crate) fn start(
        breaker: Breaker,
        clock: SteadyClock,
        url: String,
        pause: Duration,
    ) -> anyhow::Result<Self> {
        let client = reqwest::Client::builder().no_proxy().build();
        let shared = Arc::new(Shared {
            breaker,
            clock,
            client: client.context("the HTTP client cannot be built")?,
            url,
            pause,
            begun: AtomicU64::new(0),
            stop: AtomicBool::new(false),
        });
        let mut callers = JoinSet::new();
        for _ in 0..CALLERS {
            callers.spawn(Arc::clone(&shared).call_again_and_again());
        }
        Ok(Self { callers, shared })
    }

    /// Lets every call end, until `deadline`. Gives how many were begun, and those that ended.
    pub(crate) async fn stop(mut self, deadline: Instant) -> anyhow::Result<(u64, Vec<Call>)> {
        self.shared.stop.store(true, Ordering::Relaxed);
        let mut calls = Vec::new();
        while let Ok(Some(ended)) = timeout_at(deadline, self.callers.join_next()).await {
            calls.extend(ended.context("a caller ended early")??);
        }
        Ok((self.shared.begun.load(Ordering::Relaxed), calls))
    }
}

impl Shared {
    async fn call_again_and_again(self: Arc<Self>) -> anyhow::Result<Vec<Call>> {
        let mut calls = Vec::new();
        while !self.stop.load(Ordering::Relaxed) {
            self.begun.fetch_add(1, Ordering::Relaxed);
            calls.push(self.call().await?);
            sleep(self.pause).await;
        }
        Ok(calls)
    }

    async fn call(&self) -> anyhow::Result<Call> {
        let (mut answered, mut ended) = (None, None);
        let call = async {
            answered = Some(self.clock.monotonic());
            let response = self.client.get(&self.url).send().await;
            ended = Some(self.clock.monotonic());
            response.map(|response| response.status())
        };
        let asked = self.clock.monotonic();
        let by_status = classify::by_value(|status: &StatusCode| match status.is_server_error() {
            true => Verdict::Failure(Failure::new().cause(status.to_string())),
            false => Verdict::Success,
        });
        let result = self.breaker.classify(by_status).call(call).await;
        let done = self.clock.monotonic();
        let ending = match result {
            Ok(status) if status.is_success() => Ending::Good,
            Ok(_) => Ending::Bad,
            Err(CallError::Inner(_)) => Ending::Unanswered,
            Err(CallError::TimedOut { .. }) => Ending::TimedOut,
            Err(CallError::Rejected(_)) => Ending::Rejected,
            Err(other) => anyhow::bail!("a call came out in a way that is not known here: {other:?}"),
        };
        Ok(Call {
            asked,
            answered: answered.unwrap_or(done),
            ended: ended.unwrap_or(done),
            done,
            ending,
        })
    }
}
