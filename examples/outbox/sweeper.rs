//! The sweeper: publishes what is outstanding, and leaves tripped topics alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context as _;
use tokio::task::JoinSet;
use tripwit::{Breaker, Breakers, CallError, Failure, Verdict, classify};
use tripwit_examples::transitions::Transitions;

use crate::producers::{AsyncProducer, BlockingProducer};
use crate::store::{Message, Store};

/// How many messages a sweep publishes at most.
const BATCH: u32 = 100;
/// After how many sweeps a message that is not confirmed is sent again.
const PATIENCE: u32 = 4;

/// Who publishes a topic.
#[derive(Debug)]
pub(crate) enum Producer {
    Async(AsyncProducer),
    Blocking(BlockingProducer),
}

/// One topic's circuit and producer.
#[derive(Debug)]
pub(crate) struct Outlet {
    pub(crate) breaker: Breaker,
    pub(crate) producer: Producer,
}

/// Sweeps the outbox.
#[derive(Debug)]
pub(crate) struct Sweeper {
    breakers: Breakers,
    store: Arc<Store>,
    transitions: Arc<Transitions>,
    outlets: BTreeMap<String, Outlet>,
    sweep: u32,
    skipped: BTreeMap<String, u32>,
}

impl Sweeper {
    pub(crate) fn new(
        breakers: Breakers,
        store: Arc<Store>,
        transitions: Arc<Transitions>,
        outlets: Vec<Outlet>,
    ) -> Self {
        let outlets = outlets
            .into_iter()
            .map(|outlet| (outlet.breaker.key().to_owned(), outlet))
            .collect();
        Self {
            breakers,
            store,
            transitions,
            outlets,
            sweep: 0,
            skipped: BTreeMap::new(),
        }
    }

    /// How many sweeps there were.
    pub(crate) fn sweeps(&self) -> u32 {
        self.sweep
    }

    /// How many sweeps left a topic out because it was tripped.
    pub(crate) fn skipped(&self, topic: &str) -> u32 {
        self.skipped.get(topic).copied().unwrap_or(0)
    }

    /// One sweep: cools down, reads what is outstanding without the topics that are still tripped, and publishes it, all topics at
    /// the same time and each in the order of its messages.
    pub(crate) async fn sweep(&mut self) -> anyhow::Result<()> {
        self.sweep += 1;
        self.breakers.cool_down();
        let tripped = self.breakers.tripped();
        for topic in &tripped {
            *self.skipped.entry(topic.clone()).or_default() += 1;
        }
        let mut batches = BTreeMap::<String, Vec<Message>>::new();
        for message in self
            .store
            .take_outstanding(&tripped, self.sweep, PATIENCE, BATCH)?
        {
            batches.entry(message.topic.clone()).or_default().push(message);
        }
        let mut publishing = JoinSet::new();
        for (topic, batch) in batches {
            let outlet = self
                .outlets
                .remove(&topic)
                .with_context(|| format!("nobody publishes topic {topic}"))?;
            let batch = Batch {
                breaker: outlet.breaker,
                messages: batch,
                store: Arc::clone(&self.store),
                transitions: Arc::clone(&self.transitions),
            };
            match outlet.producer {
                Producer::Async(producer) => publishing.spawn(batch.publish(producer)),
                Producer::Blocking(producer) => {
                    publishing.spawn_blocking(|| batch.publish_blocking(producer))
                }
            };
        }
        while let Some(published) = publishing.join_next().await {
            let outlet = published.context("a publisher has panicked")??;
            self.outlets.insert(outlet.breaker.key().to_owned(), outlet);
        }
        Ok(())
    }
}

/// The messages of one topic in one sweep.
#[derive(Debug)]
struct Batch {
    breaker: Breaker,
    messages: Vec<Message>,
    store: Arc<Store>,
    transitions: Arc<Transitions>,
}

impl Batch {
    /// Two permits a message: the call's own for the answer, and one that waits for the confirmation. Once the topic has tripped, the rest
    /// of the batch is rejected and stays in the outbox.
    async fn publish(self, mut producer: AsyncProducer) -> anyhow::Result<Outlet> {
        let guarded = self.breaker.classify(classify::by_value(verdict));
        let mut rejected = Vec::new();
        for message in &self.messages {
            match self.breaker.acquire_owned() {
                Ok(confirmation) => {
                    self.record(
                        message,
                        guarded.call(producer.publish(message, confirmation)).await,
                    )?;
                }
                Err(_) => rejected.push(message.id),
            }
        }
        self.leave(&rejected)?;
        Ok(Outlet {
            breaker: self.breaker,
            producer: Producer::Async(producer),
        })
    }

    /// The same, on a plain thread.
    fn publish_blocking(self, mut producer: BlockingProducer) -> anyhow::Result<Outlet> {
        let guarded = self.breaker.classify(classify::by_value(verdict));
        let mut rejected = Vec::new();
        for message in &self.messages {
            match self.breaker.acquire_owned() {
                Ok(confirmation) => {
                    self.record(
                        message,
                        guarded.call_blocking(|| producer.publish(message, confirmation)),
                    )?;
                }
                Err(_) => rejected.push(message.id),
            }
        }
        self.leave(&rejected)?;
        Ok(Outlet {
            breaker: self.breaker,
            producer: Producer::Blocking(producer),
        })
    }

    /// An accepted message waits for its confirmation; any other stays in the outbox for a later sweep.
    fn record(
        &self,
        message: &Message,
        published: Result<bool, CallError<anyhow::Error>>,
    ) -> anyhow::Result<()> {
        let problem = match published {
            Ok(true) => return Ok(()),
            Ok(false) => "not accepted (a plain false)".to_owned(),
            Err(error) => error.to_string(),
        };
        self.transitions
            .note(&format!("{}: message {}: {problem}", message.topic, message.id));
        self.store.mark_refused(&[message.id])
    }

    fn leave(&self, rejected: &[i64]) -> anyhow::Result<()> {
        if !rejected.is_empty() {
            let topic = self.breaker.key();
            self.transitions.note(&format!(
                "{topic}: {} more message(s) stay in the outbox",
                rejected.len()
            ));
        }
        self.store.mark_refused(rejected)
    }
}

/// A broker that does not accept has failed, although nothing is thrown.
fn verdict(accepted: &bool) -> Verdict {
    if *accepted {
        Verdict::Success
    } else {
        Verdict::Failure(Failure::new().cause("not accepted"))
    }
}
