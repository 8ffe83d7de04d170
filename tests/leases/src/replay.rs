//! Paths through the component, in the real host.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use tripwit::{Breakers, Clock, ManualClock};
use tripwit_core::Policy;

use crate::client::{Client, Side};
use crate::difference::{Difference, same};
use crate::host::Host;
use crate::settings::Setting;
use crate::step::{Step, Trace, UNIT};

/// Takes paths three times at once: on the native core, and through the component asked each time and by its leases.
#[derive(Debug)]
pub struct Replay<P: Policy> {
    settings: Arc<P::Settings>,
    asking: Side,
    leased: Side,
    clock: ManualClock,
    /// Every path begins at a multiple of it, as the core's does.
    period: u64,
    taken: u64,
}

/// What was replayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// How many paths.
    pub paths: u64,
    /// How many steps they have.
    pub steps: u64,
}

impl<P: Policy> Replay<P> {
    /// Of a component under `setting`, and of the core under `settings`.
    ///
    /// # Errors
    ///
    /// When the settings are refused, or the component does not start.
    pub fn new(component: &tripwit::Policy, setting: &Setting, settings: P::Settings) -> Result<Self> {
        let clock = ManualClock::new();
        let side = |ignore_leases| -> Result<Side> {
            let breakers = Breakers::builder(component.clone())
                .settings(setting.json)
                .clock(clock.clone())
                .shards(1)
                // A circuit goes soon after its path has been taken, or a cool-down would look at thousands.
                .max_circuits(4)
                .ignore_leases(ignore_leases)
                .build()?;
            Ok(Side::of(breakers))
        };
        Ok(Self {
            settings: Arc::new(settings),
            asking: side(true)?,
            leased: side(false)?,
            clock,
            period: setting.phases * UNIT,
            taken: 0,
        })
    }

    /// Takes every path that `walk` found, and from its end every step.
    ///
    /// What the last step left behind in the host is seen by what comes of one call more.
    ///
    /// # Errors
    ///
    /// The first difference that is found, or a fault of the component.
    pub fn all(&mut self, paths: impl Iterator<Item = (Vec<Step>, usize)>) -> Result<Replayed> {
        let mut replayed = Replayed::default();
        for (mut path, permits) in paths {
            for step in Step::all(permits) {
                path.push(step);
                self.take(&path)?;
                replayed.paths += 1;
                replayed.steps += path.len() as u64;
                path.pop();
            }
        }
        let faults = self.asking.breakers.faults() + self.leased.breakers.faults();
        ensure!(faults == 0, "the component failed {faults} times");
        Ok(replayed)
    }

    /// Takes one path from a new circuit.
    fn take(&mut self, path: &[Step]) -> Result<()> {
        self.taken += 1;
        let over = self.clock.monotonic() % self.period;
        self.clock
            .advance(Duration::from_nanos((self.period - over) % self.period));
        let key = format!("path {}", self.taken);
        let asking = self.asking.breakers.breaker(&key)?;
        let leased = self.leased.breakers.breaker(&key)?;
        let mut three = Three {
            core: Host::<P>::asking(self.settings.clone()),
            asking: Client::of(&self.asking, &asking),
            leased: Client::of(&self.leased, &leased),
            clock: &self.clock,
            now: 0,
        };
        for (taken, step) in (1..).zip(path) {
            three
                .step(*step)
                .map_err(|problem| at(path.get(..taken), problem))?;
        }
        let compared = three.compare().and_then(|()| three.one_call_more());
        compared.map_err(|problem| at(Some(path), problem))?;
        three.asking.leave();
        three.leased.leave();
        Ok(())
    }
}

fn at(path: Option<&[Step]>, problem: String) -> Difference {
    let trace = Trace(path.unwrap_or_default().to_vec());
    Difference { trace, problem }
}

/// The same circuit three times.
struct Three<'a, P: Policy> {
    core: Host<P>,
    asking: Client<'a>,
    leased: Client<'a>,
    clock: &'a ManualClock,
    now: u64,
}

impl<P: Policy> Three<'_, P> {
    fn step(&mut self, step: Step) -> Result<(), String> {
        if step == Step::Tick {
            self.now += UNIT;
            self.clock.advance(Duration::from_nanos(UNIT));
        }
        let answer = self.core.step(step, self.now);
        let moves = self.core.moves();
        for (client, name) in [(&mut self.asking, ASKED), (&mut self.leased, LEASED)] {
            same("answers", (CORE, &answer), (name, &client.step(step, &answer)))?;
            same("moves", (CORE, &moves), (name, &client.moves()))?;
        }
        Ok(())
    }

    /// Whether all show the circuit the same.
    fn compare(&self) -> Result<(), String> {
        let core = self.core.shown(self.now);
        let (asking, leased) = (self.asking.seen(), self.leased.seen());
        for (seen, name) in [(&asking, ASKED), (&leased, LEASED)] {
            same("statuses", (CORE, &core), (name, &seen.shown))?;
            same("leases", (CORE, &(core.state, core.mode)), (name, &seen.by_lease))?;
        }
        same("circuits", (ASKED, &asking), (LEASED, &leased))
    }

    fn one_call_more(&mut self) -> Result<(), String> {
        let permit = self.core.permits();
        self.step(Step::Acquire)
            .map_err(|problem| format!("at one call more {problem}"))?;
        if self.core.permits() > permit {
            self.step(Step::Success(permit))
                .and_then(|()| self.compare())
                .map_err(|problem| format!("at the end of one call more {problem}"))?;
        }
        Ok(())
    }
}

const CORE: &str = "by the core";
const ASKED: &str = "by the component";
const LEASED: &str = "by the component and its leases";
