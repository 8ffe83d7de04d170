//! The guarded calls: three services under `consecutive`, and an outbox of two topics under `outbox`.

use std::convert::Infallible;
use std::time::Duration;

use anyhow::{Context as _, bail};
use opentelemetry::trace::{FutureExt as _, SpanKind, TraceContextExt as _, Tracer as _};
use opentelemetry::{Context, global};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tripwit::settings::{Consecutive, Outbox};
use tripwit::{Breaker, Breakers, Failure, Mode, Policy};
use tripwit_examples::terminal;

use crate::services::Services;
use crate::telemetry::SERVICE;

/// What is called under `consecutive`. The circuit of shipping is on trial: it rejects nothing, and counts what it would have.
const SERVICES: [(&str, Mode); 3] = [
    ("payments", Mode::Automatic),
    ("inventory", Mode::Automatic),
    ("shipping", Mode::Shadow),
];
const CALL_EVERY: Duration = Duration::from_millis(50);

/// What the outbox publishes to, and how many messages of a topic in one sweep.
const TOPICS: [&str; 2] = ["orders", "invoices"];
const MESSAGES: usize = 5;
const SWEEP_EVERY: Duration = Duration::from_millis(500);

/// Two sets of circuits, each under a policy of its own, and what they guard.
pub(crate) struct Calls {
    services: Breakers,
    topics: Breakers,
    http: Http,
}

impl Calls {
    pub(crate) fn new(servers: &Services) -> anyhow::Result<Self> {
        // Short waits, so that a round of the servers' time line shows every transition.
        let settings = Consecutive::default()
            .failure_threshold(3)
            .open_for(Duration::from_millis(500))
            .success_threshold(2)
            .call_timeout(Duration::from_millis(250));
        let services = Breakers::builder(Policy::consecutive()?)
            .settings(settings)
            .build()?;
        let topics = Breakers::builder(Policy::outbox()?)
            .settings(Outbox::default().cooldown_count(2))
            .build()?;
        let client = reqwest::Client::builder().no_proxy().build();
        let client = client.context("the HTTP client cannot be built")?;
        let http = Http {
            client,
            servers: servers.clone(),
        };
        Ok(Self {
            services,
            topics,
            http,
        })
    }

    /// Calls and sweeps until the time is up, and says what became of the circuits.
    pub(crate) async fn go_on_for(&self, time: Duration) -> anyhow::Result<()> {
        let [payments, inventory, shipping] = SERVICES.map(|(name, mode)| self.call(name, mode));
        let forever = async { tokio::try_join!(payments, inventory, shipping, self.sweep()) };
        if let Ok(ended) = timeout(time, forever).await {
            ended?;
        }
        for status in self.services.statuses().into_iter().chain(self.topics.statuses()) {
            terminal::say(&format!("{}: {}, {}", status.key, status.state, status.mode));
        }
        Ok(())
    }

    /// Calls one service again and again.
    async fn call(&self, name: &'static str, mode: Mode) -> anyhow::Result<Infallible> {
        let breaker = self.services.breaker(name)?;
        breaker.set_mode(mode);
        let mut ticks = interval(CALL_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let span = span(format!("call {name}"));
            // What the breaker does becomes a child of the span that is current here. A call that fails or is rejected
            // is left at that: there will be another.
            let _ = breaker.call(self.http.post(name)).with_context(span).await;
        }
    }

    /// Publishes the messages of an outbox again and again, except to the topics that have tripped.
    async fn sweep(&self) -> anyhow::Result<Infallible> {
        let mut ticks = interval(SWEEP_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let span = span("sweep".to_owned());
            {
                let _current = span.clone().attach();
                self.topics.cool_down();
            }
            let tripped = self.topics.tripped();
            for topic in TOPICS {
                if !tripped.iter().any(|key| key == topic) {
                    let breaker = self.topics.breaker(topic)?;
                    self.publish(&breaker, topic).with_context(span.clone()).await;
                }
            }
        }
    }

    /// Publishes some messages. All were let through at once, so where they fail the first trips the topic, and the
    /// others are re-trips.
    async fn publish(&self, breaker: &Breaker, topic: &str) {
        let permits: Vec<_> = (0..MESSAGES).map_while(|_| breaker.acquire().ok()).collect();
        for permit in permits {
            match self.http.post(topic).await {
                Ok(()) => permit.success(),
                Err(error) => permit.failure(Failure::new().cause(error.to_string())),
            }
        }
    }
}

/// A span of this program that has just begun, to be made current. It ends when the last of its contexts goes.
fn span(name: String) -> Context {
    let tracer = global::tracer(SERVICE);
    let span = tracer
        .span_builder(name)
        .with_kind(SpanKind::Internal)
        .start(&tracer);
    Context::current_with_span(span)
}

/// The calls as they are without a breaker.
#[derive(Clone, Debug)]
struct Http {
    client: reqwest::Client,
    servers: Services,
}

impl Http {
    async fn post(&self, name: &str) -> anyhow::Result<()> {
        let answer = self.client.post(self.servers.url(name)).send().await?;
        if !answer.status().is_success() {
            bail!("HTTP {}", answer.status().as_u16());
        }
        Ok(())
    }
}
