//! How a set of circuits is made.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use crate::bindings::exports::tripwit::breaker::policy as wit;
use crate::breakers::Breakers;
use crate::clock::{Clock, SystemClock, steady};
use crate::env::{self, Env};
use crate::error::BuildError;
use crate::instance::Fault;
use crate::instrumentation::Instrumentation;
use crate::ledger::Ledger;
use crate::limits::MEMORY_RANGE;
use crate::meters::Meters;
use crate::policy::Policy;
use crate::providers::{Telemetry, check_namespace};
use crate::regime::Regime;
use crate::settings::Settings;
use crate::shard::Shard;
use crate::subscription::Subscribers;
use crate::table::SettingsTable;
use crate::trial::{faulty, try_settings};

/// What becomes of calls while the policy component fails: it traps, never ends or hands out nonsense.
///
/// A rejection that has not run out stays in either case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFault {
    /// Calls are made, and not recorded.
    #[default]
    Admit,
    /// Calls are rejected.
    Reject,
}

/// Makes [`Breakers`]. Every setting has a default.
#[must_use = "a builder makes nothing until `build` is called"]
pub struct BreakersBuilder {
    policy: Policy,
    settings: SettingsTable,
    clock: Arc<dyn Clock>,
    shards: Option<usize>,
    max_circuits: usize,
    max_memory: Option<usize>,
    on_fault: OnFault,
    seed: Option<u64>,
    telemetry: Telemetry,
    ignore_leases: bool,
}

impl BreakersBuilder {
    pub(crate) fn new(policy: Policy) -> Self {
        Self {
            policy,
            settings: SettingsTable::default(),
            clock: Arc::new(SystemClock),
            shards: None,
            max_circuits: 100_000,
            max_memory: None,
            on_fault: OnFault::default(),
            seed: None,
            telemetry: Telemetry::default(),
            ignore_leases: false,
        }
    }

    /// Settings of every key that has none of its own. Default: the policy's defaults.
    pub fn settings(mut self, settings: impl Into<Settings>) -> Self {
        self.settings.every = settings.into();
        self
    }

    /// Settings of one key. They beat those of a prefix.
    pub fn settings_for(mut self, key: &str, settings: impl Into<Settings>) -> Self {
        self.settings = self.settings.for_key(key, settings);
        self
    }

    /// Settings of every key that begins with `prefix`. Of several prefixes the longest counts.
    pub fn settings_for_prefix(mut self, prefix: &str, settings: impl Into<Settings>) -> Self {
        self.settings = self.settings.for_prefix(prefix, settings);
        self
    }

    /// Where the time is read. Default: [`SystemClock`]; [`ManualClock`](crate::ManualClock) is for tests.
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = steady(Arc::new(clock));
        self
    }

    /// Over how many instances of the component the circuits are spread by key. An instance answers one thread at a
    /// time. Range: 1 to 64. Default: as many as threads run in parallel here, up to 64.
    pub fn shards(mut self, shards: usize) -> Self {
        self.shards = Some(shards);
        self
    }

    /// The most circuits, over all shards. Range: 1 to 10,000,000. Default: 100,000.
    pub fn max_circuits(mut self, circuits: usize) -> Self {
        self.max_circuits = circuits;
        self
    }

    /// The most memory of one shard's instance, in bytes. When a fifth of what an instance does not need for itself is
    /// used up, a new circuit must take the place of an old one: the rest is for lists that double, and for what is kept
    /// of circuits as calls fail. Range: from 2 MiB to 4 GiB. Default: what the policy's
    /// [`Loader`](crate::Loader::max_memory) says; unless that says something else 192 MiB, room for 100,000 circuits of a shipped policy in each
    /// shard.
    pub fn max_memory(mut self, bytes: usize) -> Self {
        self.max_memory = Some(bytes);
        self
    }

    /// What becomes of calls while the component fails. Default: they are admitted.
    pub fn on_fault(mut self, on_fault: OnFault) -> Self {
        self.on_fault = on_fault;
        self
    }

    /// What jitter is drawn from: the same seed gives the same waits. Default: drawn anew in each process, so that
    /// replicas do not probe at the same moment.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Where spans and metrics go, and what they are called. Default: the global providers, the policy's names.
    pub fn telemetry(mut self, telemetry: Telemetry) -> Self {
        self.telemetry = telemetry;
        self
    }

    /// As [`Telemetry::instrumentation`]; of the two, what is called last counts.
    pub fn instrumentation(mut self, instrumentation: Instrumentation) -> Self {
        self.telemetry = self.telemetry.instrumentation(instrumentation);
        self
    }

    /// As [`Telemetry::namespace`]; of the two, what is called last counts.
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.telemetry = self.telemetry.namespace(namespace);
        self
    }

    /// Asks the component about each call and tells it of each result, whatever its leases say. Answers are the same
    /// and cost some hundred times more: this is for comparing the two, and for finding a policy whose leases lie.
    /// Default: off.
    pub fn ignore_leases(mut self, ignore: bool) -> Self {
        self.ignore_leases = ignore;
        self
    }

    /// Starts the component in each shard, after every settings text has been tried on an instance of its own.
    ///
    /// # Errors
    ///
    /// When the policy refuses a settings text, a number is out of its range, the namespace cannot begin the name of an
    /// instrument, or the component does not start.
    pub fn build(self) -> Result<Breakers, BuildError> {
        let shards = self.shards.unwrap_or_else(default_shards);
        in_range("shards", shards, 1, 64, "1 to 64")?;
        in_range(
            "max_circuits",
            self.max_circuits,
            1,
            10_000_000,
            "1 to 10,000,000",
        )?;
        let (memory, range) = MEMORY_RANGE;
        in_range(
            "max_memory",
            self.memory_limit(),
            *memory.start(),
            *memory.end(),
            range,
        )?;
        in_range(
            "state_series",
            self.telemetry.state_series,
            0,
            10_000,
            "0 to 10,000",
        )?;
        let env = self.env()?;
        let regime = env.regime();
        try_settings(&env, &regime)?;
        let shards = (0..shards)
            .map(|_| Shard::start(&env, &regime))
            .collect::<Result<Box<[Shard]>, Fault>>();
        Ok(Breakers::of(env, shards.map_err(faulty)?))
    }

    fn memory_limit(&self) -> usize {
        self.max_memory.unwrap_or_else(|| self.policy.max_memory())
    }

    /// What the shards will share.
    fn env(self) -> Result<Env, BuildError> {
        let max_memory = self.memory_limit();
        let scope = env::scope(&self.policy);
        let namespace = match &self.telemetry.namespace {
            Some(given) => given.clone(),
            None => env::namespace(&self.policy).to_owned(),
        };
        if let Err(problem) = check_namespace(&namespace) {
            return Err(BuildError::Namespace { namespace, problem });
        }
        let setup = wit::Setup {
            // A hash with a random key is as random as the key.
            seed: self.seed.unwrap_or_else(|| RandomState::new().hash_one(0_u8)),
            instrumentation: self.telemetry.instrumentation.into(),
            namespace: self.telemetry.namespace.clone(),
        };
        Ok(Env {
            regime: RwLock::new(Regime::new(self.policy, self.settings, &self.telemetry)),
            changing: Mutex::new(()),
            meters: Meters::new(
                self.telemetry.meters.clone(),
                scope,
                namespace,
                self.telemetry.state_series,
            ),
            ledger: Arc::new(Ledger::new(self.clock.clone())),
            telemetry: self.telemetry,
            clock: self.clock,
            setup,
            max_memory,
            max_circuits: self.max_circuits,
            on_fault: self.on_fault,
            ignore_leases: self.ignore_leases,
            subscribers: Arc::new(Subscribers::default()),
        })
    }
}

impl fmt::Debug for BreakersBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BreakersBuilder")
            .field("policy", &self.policy)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

fn in_range(
    what: &'static str,
    got: usize,
    least: usize,
    most: usize,
    range: &'static str,
) -> Result<(), BuildError> {
    if (least..=most).contains(&got) {
        Ok(())
    } else {
        Err(BuildError::OutOfRange { what, got, range })
    }
}

fn default_shards() -> usize {
    std::thread::available_parallelism().map_or(1, |threads| threads.get().min(64))
}
