//! The run: incidents that raise notifications, and passes over the records that failed.

use std::convert::Infallible;
use std::sync::Arc;

use anyhow::Context as _;
use reqwest::Url;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tripwit::{Breakers, Subscription};
use tripwit_examples::scale::Scale;
use tripwit_examples::transitions::Transitions;

use crate::channels::Channel;
use crate::deliveries::{Deliveries, Notification};
use crate::http::Http;
use crate::ledger::Ledger;
use crate::providers::Provider;
use crate::script::{INCIDENT_EVERY, INCIDENTS, PASS_EVERY, PLANS};
use crate::sender::Sender;

/// Everything that takes part in one run.
#[derive(Debug)]
pub(crate) struct World {
    scale: Scale,
    pub(crate) providers: Vec<Arc<Provider>>,
    pub(crate) sender: Sender,
    pub(crate) deliveries: Deliveries,
    pub(crate) transitions: Transitions,
    destinations: Vec<Destination>,
    /// Keeps the ledger informed of transitions.
    _observing: Subscription,
}

/// Where notifications go.
#[derive(Clone, Debug)]
struct Destination {
    channel: Channel,
    url: Url,
    /// Every how many incidents.
    every: u32,
}

impl World {
    /// Starts the servers, whose time line begins now. `left_open` are the circuits that an earlier run left open.
    pub(crate) async fn start<'a>(
        scale: Scale,
        breakers: Breakers,
        left_open: impl Iterator<Item = &'a str>,
    ) -> anyhow::Result<Arc<Self>> {
        let transitions = Transitions::install()?;
        transitions.follow(&breakers);
        let ledger = Arc::new(Ledger::default());
        left_open.for_each(|key| ledger.restore(key));
        let observer = Arc::clone(&ledger);
        let observing = breakers.subscribe(move |event| observer.observe(event));

        let started = Instant::now();
        let mut providers = Vec::new();
        let mut destinations = Vec::new();
        for plan in &PLANS {
            let provider = Provider::start(plan, scale, started).await?;
            for (url, every) in provider.destinations()? {
                destinations.push(Destination {
                    channel: plan.channel,
                    url,
                    every,
                });
            }
            providers.push(provider);
        }
        let http = Http::new(providers.iter().map(Arc::as_ref), scale)?;
        let sender = Sender::new(breakers, http, scale, ledger);
        let deliveries = Deliveries::default();
        Ok(Arc::new(Self {
            scale,
            providers,
            sender,
            deliveries,
            transitions,
            destinations,
            _observing: observing,
        }))
    }

    /// Runs until every notification is sent or given up.
    pub(crate) async fn run(self: &Arc<Self>) -> anyhow::Result<()> {
        let mut announcements = JoinSet::new();
        for provider in &self.providers {
            let (world, provider) = (Arc::clone(self), Arc::clone(provider));
            announcements.spawn(async move { provider.announce(&world.transitions).await });
        }
        let mut passes = JoinSet::new();
        for destination in &self.destinations {
            passes.spawn(Arc::clone(self).pass_again_and_again(destination.url.clone()));
        }
        tokio::select! {
            ended = self.raise_incidents_until_settled() => ended,
            Some(failed) = passes.join_next() => failed.context("a pass ended early")?.map(|never| match never {}),
        }
    }

    async fn raise_incidents_until_settled(self: &Arc<Self>) -> anyhow::Result<()> {
        let mut deliveries = JoinSet::new();
        let mut next = interval(self.scale.wait(INCIDENT_EVERY));
        next.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for incident in 0..INCIDENTS {
            next.tick().await;
            for to in self
                .destinations
                .iter()
                .filter(|to| incident.is_multiple_of(to.every))
            {
                let text = format!("incident {incident}: checkout is slow");
                let notification = self.deliveries.add(to.channel, to.url.clone(), text);
                let world = Arc::clone(self);
                deliveries.spawn(async move { world.deliver(&notification).await });
            }
        }
        while let Some(ended) = deliveries.join_next().await {
            ended.context("a delivery ended early")??;
        }
        while !self.deliveries.are_settled() {
            sleep(self.scale.wait(INCIDENT_EVERY)).await;
        }
        Ok(())
    }

    /// Passes over the failed records of one destination, one after the other.
    async fn pass_again_and_again(self: Arc<Self>, url: Url) -> anyhow::Result<Infallible> {
        loop {
            sleep(self.scale.wait(PASS_EVERY)).await;
            for notification in self.deliveries.take_due(&url) {
                self.deliver(&notification).await?;
            }
        }
    }

    async fn deliver(&self, notification: &Arc<Notification>) -> anyhow::Result<()> {
        let ended = self.sender.deliver(notification).await?;
        self.deliveries.settle(notification, &ended);
        Ok(())
    }
}
