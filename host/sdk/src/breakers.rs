//! A set of circuits under one policy.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::breaker::Breaker;
use crate::builder::BreakersBuilder;
use crate::circuit::Circuit;
use crate::env::Env;
use crate::error::{AttachError, BuildError, check_key};
use crate::policy::Policy;
use crate::settings::Settings;
use crate::shard::{Attached, MAX_IN_SHARD, Shard};
use crate::status::{Event, Moved, State, Status};
use crate::subscription::Subscription;

/// Circuits under one policy, found by key. Cheap to clone; clones share the circuits.
#[derive(Clone)]
pub struct Breakers(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) env: Env,
    pub(crate) shards: Box<[Shard]>,
    hasher: RandomState,
}

impl Breakers {
    /// Makes circuits under a policy, step by step.
    pub fn builder(policy: Policy) -> BreakersBuilder {
        BreakersBuilder::new(policy)
    }

    /// Makes circuits under a policy, with the default of each setting.
    ///
    /// # Errors
    ///
    /// When the component does not start.
    pub fn new(policy: Policy) -> Result<Self, BuildError> {
        Self::builder(policy).build()
    }

    pub(crate) fn of(env: Env, shards: Box<[Shard]>) -> Self {
        env.connect();
        Self(Arc::new(Inner {
            env,
            shards,
            hasher: RandomState::new(),
        }))
    }

    /// The circuit of a key, which is added if there is none yet.
    ///
    /// A key stands for what fails together and recovers together: choose it at that boundary, and keep it stable. Too
    /// broad is one key `webhook` for the endpoints of all customers: one customer's broken server then stops the
    /// deliveries to all others. Too narrow is the full URL with a delivery's number in it: no circuit ever sees enough
    /// failures to open. The host name, in lower case and without port and path, is right there.
    ///
    /// A circuit that is in use, that is, while a [`Breaker`] or a permit of it lives, is never given up, nor is one
    /// that is open, half-open or not automatic. Of the others, those with nothing recorded go first when there are as
    /// many circuits as may be.
    ///
    /// # Errors
    ///
    /// When the key is empty or longer than 512 bytes, or when there are as many circuits as may be and none can go.
    pub fn breaker(&self, key: &str) -> Result<Breaker, AttachError> {
        self.find_or_add(key, None)
    }

    /// The circuit of a key under settings of its own.
    ///
    /// # Errors
    ///
    /// As [`breaker`](Self::breaker); and when the policy refuses the settings, or the key has a circuit with other
    /// settings. Settings that say the same in other words are the same.
    pub fn breaker_with(&self, key: &str, settings: impl Into<Settings>) -> Result<Breaker, AttachError> {
        self.find_or_add(key, Some(settings.into()))
    }

    fn find_or_add(&self, key: &str, settings: Option<Settings>) -> Result<Breaker, AttachError> {
        check_key(key).map_err(|problem| AttachError::Key {
            key: shown(key),
            problem,
        })?;
        let index = self.0.shard_of(key);
        let shard = self.0.shard(index);
        let found = shard.registry.read().get(key).cloned();
        if let Some(circuit) = found {
            return self.confirmed(index, circuit, settings);
        }
        self.0.make_room(key, index)?;
        match shard.attach(&self.0.env, key, settings.as_ref()) {
            Ok(Attached::Added(circuit)) => {
                self.0.env.connect();
                Ok(Breaker::new(self.0.clone(), index, circuit))
            }
            Ok(Attached::Found(circuit)) => {
                self.0.env.give_place_back();
                self.confirmed(index, circuit, settings)
            }
            Err(error) => {
                self.0.env.give_place_back();
                Err(error)
            }
        }
    }

    /// A circuit that was there already, if it has the settings that are wanted.
    fn confirmed(
        &self,
        shard: usize,
        circuit: Arc<Circuit>,
        settings: Option<Settings>,
    ) -> Result<Breaker, AttachError> {
        if let Some(settings) = settings {
            self.0.shard(shard).confirm(&self.0.env, &circuit, &settings)?;
        }
        Ok(Breaker::new(self.0.clone(), shard, circuit))
    }

    /// One cool-down cycle over all circuits. Gives those that it changed.
    ///
    /// For policies that count in cycles, such as `outbox`; circuits of others are left alone.
    pub fn cool_down(&self) -> Vec<Moved> {
        self.0.env.connect();
        self.0
            .shards
            .iter()
            .flat_map(|shard| shard.cool_down(&self.0.env))
            .collect()
    }

    /// The keys of the circuits that are not closed, whatever their mode, in order.
    #[must_use]
    pub fn tripped(&self) -> Vec<String> {
        let mut keys = Vec::new();
        for (index, shard) in self.0.shards.iter().enumerate() {
            let registry = shard.registry.read();
            let open = registry
                .iter()
                .filter(|circuit| self.0.state(index, circuit) != State::Closed);
            keys.extend(open.map(|circuit| circuit.key.to_string()));
        }
        keys.sort_unstable();
        keys
    }

    /// Everything there is to see of each circuit, in the order of the keys.
    #[must_use]
    pub fn statuses(&self) -> Vec<Status> {
        let mut all = Vec::new();
        for shard in &self.0.shards {
            let circuits: Vec<_> = shard.registry.read().iter().cloned().collect();
            all.extend(circuits.iter().map(|circuit| shard.status(&self.0.env, circuit)));
        }
        all.sort_unstable_by(|one, other| one.key.cmp(&other.key));
        all
    }

    /// How many circuits there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0
            .shards
            .iter()
            .map(|shard| shard.registry.read().len())
            .sum()
    }

    /// Whether there is no circuit.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How often the policy component has failed: trapped, not ended in time, handed out nonsense, or not started.
    /// Each is in the log, as an error.
    #[must_use]
    pub fn faults(&self) -> u64 {
        self.0.env.ledger.faults.load(Ordering::Relaxed)
    }

    /// How many log lines, spans and moves were dropped because more came than could be given out.
    #[must_use]
    pub fn dropped_telemetry(&self) -> u64 {
        self.0.env.ledger.dropped.load(Ordering::Relaxed)
    }

    /// Calls `subscriber` with each move of each circuit, in order for each circuit.
    ///
    /// It is called after the move, on the thread that made it or that was giving out at that moment, and under no lock:
    /// it may call the breaker, and then sees the new state. What it panics with is lost, and changes nothing.
    pub fn subscribe(&self, subscriber: impl Fn(&Event) + Send + Sync + 'static) -> Subscription {
        self.0.env.subscribers.add(Arc::new(subscriber))
    }

    /// The policy that decides.
    #[must_use]
    pub fn policy(&self) -> Policy {
        self.0.env.regime().policy.clone()
    }
}

impl Inner {
    pub(crate) fn shard_of(&self, key: &str) -> usize {
        let shards = self.shards.len() as u64;
        usize::try_from(self.hasher.hash_one(key) % shards).unwrap_or(0)
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "indices come from `shard_of` only, and shards never go"
    )]
    pub(crate) fn shard(&self, index: usize) -> &Shard {
        &self.shards[index]
    }

    /// The state that a circuit's last lease told.
    pub(crate) fn state(&self, shard: usize, circuit: &Circuit) -> State {
        self.view(shard, circuit).lease.state
    }

    /// The lease as it stands, for those that are in no hurry.
    pub(crate) fn view(&self, shard: usize, circuit: &Circuit) -> crate::gate::View {
        circuit
            .gate
            .read()
            .unwrap_or_else(|| self.shard(shard).view(circuit))
    }

    /// Takes a place for one more circuit, for which another one may have to go: of the same shard where it can be.
    fn make_room(&self, key: &str, index: usize) -> Result<(), AttachError> {
        let shard = self.shard(index);
        if shard.is_full() && !self.evict(shard) {
            return Err(AttachError::Full {
                key: key.into(),
                limit: MAX_IN_SHARD,
            });
        }
        if shard.is_tight(&self.env) && !self.evict(shard) {
            return Err(AttachError::Memory {
                key: key.into(),
                limit: self.env.max_memory,
            });
        }
        while !self.env.take_place() {
            let (before, from) = self.shards.split_at(index);
            if !from.iter().chain(before).any(|shard| self.evict(shard)) {
                return Err(AttachError::Full {
                    key: key.into(),
                    limit: self.env.max_circuits,
                });
            }
        }
        Ok(())
    }

    fn evict(&self, shard: &Shard) -> bool {
        let evicted = shard.evict(&self.env);
        if evicted {
            self.env.give_place_back();
        }
        evicted
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.env.ledger.end();
    }
}

impl fmt::Debug for Breakers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Breakers")
            .field("policy", &self.0.env.regime().policy)
            .field("circuits", &self.len())
            .finish_non_exhaustive()
    }
}

/// A key as errors show it: not longer than a line.
fn shown(key: &str) -> String {
    let end = key.floor_char_boundary(60);
    let (start, rest) = key.split_at(end);
    if rest.is_empty() {
        start.to_owned()
    } else {
        format!("{start}…")
    }
}
