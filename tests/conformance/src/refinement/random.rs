//! A long way at random, natively and as a component.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Context, Result};
use fastrand::Rng;
use tripwit::{Clock, ManualClock};
use tripwit_core::{Decision, Lease, Successes, Ticket};
use tripwit_policy::{Attachment, Instrumentation, Setup, Snapshot, Stamped};

use super::Refined;
use super::pair::Pair;
use super::steps::{Action, Command, Event, key, mode, nonsense, report, wait};
use crate::runner::clock;

/// How far it went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Walked {
    /// Steps.
    pub steps: u64,
    /// Moves, by what they are called: `Trip`, `ReTrip`, `HalfOpen`, `Reset`.
    pub moves: BTreeMap<String, u64>,
    /// Instances that were started, the first among them.
    pub instances: u64,
}

impl fmt::Display for Walked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            steps,
            moves,
            instances,
        } = self;
        write!(f, "{steps} random steps, moves {moves:?}, {instances} instances")
    }
}

/// Goes so many steps. The same seed goes the same way.
///
/// # Errors
///
/// The first step at which the native core and the component are not the same.
pub fn random(refined: Refined, seed: u64, steps: u64) -> Result<Walked> {
    let clock = clock();
    let mut walk = Walk {
        pair: Pair::start(refined.policy, &clock)?,
        refined,
        rng: Rng::with_seed(seed),
        clock,
        circuits: Vec::new(),
        walked: Walked {
            instances: 1,
            ..Walked::default()
        },
    };
    for step in 0..steps {
        let action = Action::draw(&mut walk.rng);
        walk.take(action)
            .with_context(|| format!("seed {seed}, step {step}, {action:?}"))?;
        walk.walked.steps += 1;
    }
    Ok(walk.walked)
}

struct Walk {
    pair: Pair,
    refined: Refined,
    rng: Rng,
    clock: ManualClock,
    circuits: Vec<Attached>,
    walked: Walked,
}

struct Attached {
    key: String,
    number: u32,
    lease: Lease,
    /// The last tickets, those that were used among them.
    tickets: Vec<Ticket>,
}

/// As many as have keys.
const CIRCUITS: usize = 4;
/// The last so many are tried again.
const TICKETS: usize = 8;

impl Walk {
    fn take(&mut self, action: Action) -> Result<()> {
        match action {
            Action::PassTime => self.pass_time(),
            Action::SetWall => {
                let seconds = Duration::from_secs(self.rng.u64(0..4_000_000_000));
                self.clock.set_wall(UNIX_EPOCH + seconds);
            }
            Action::Attach => self.attach()?,
            Action::Refused => self.refused()?,
            Action::Restart => self.restart()?,
            Action::CoolDown => {
                let cooled = self.pair.both("cool-down", |guest| guest.cool_down())?;
                for (number, moved) in cooled {
                    self.note(number, moved.lease, moved.transition);
                }
            }
            Action::With(event) => return self.with_one(event),
        }
        Ok(())
    }

    /// Does it with one of the circuits, where there is any.
    fn with_one(&mut self, event: Event) -> Result<()> {
        if self.circuits.is_empty() {
            return self.attach();
        }
        let place = self.rng.usize(..self.circuits.len());
        let Some(one) = self.circuits.get(place) else {
            return Ok(());
        };
        let number = one.number;
        let (lease, moved) = match event {
            Event::Detach => {
                self.pair.both("detach", |guest| guest.detach(number))?;
                self.circuits.swap_remove(place);
                return Ok(());
            }
            Event::TakeOver => {
                let snapshot = self.pair.both("save", |guest| guest.save(number))?;
                return self.take_over(&snapshot);
            }
            Event::Acquire => self.acquire(place, number)?,
            Event::Settle => {
                let (ticket, report) = (one.ticket(&mut self.rng), report(&mut self.rng, &one.lease));
                let settled = self
                    .pair
                    .both("settle", |guest| guest.settle(number, ticket, &report))?;
                (settled.lease, settled.transition)
            }
            Event::SettleSuccesses => {
                let ticket = one.ticket(&mut self.rng);
                let most = match one.lease.successes {
                    Successes::UpTo(allowance) => allowance.successes.min(1_000),
                    Successes::Each | Successes::Never => 3,
                };
                let count = self.rng.u32(0..=most);
                let moved = self.pair.both("settle-successes", |guest| {
                    guest.settle_successes(number, ticket, count)
                })?;
                (moved.lease, moved.transition)
            }
            Event::Configure => {
                let (lease, settings) = (one.lease, self.settings());
                let answer = self
                    .pair
                    .both("configure", |guest| guest.configure(number, settings))?;
                answer.map_or((lease, None), |moved| (moved.lease, moved.transition))
            }
            Event::Command(command) => self.command(command, number)?,
        };
        self.note(number, lease, moved);
        self.pair.look_at(number)
    }

    fn acquire(&mut self, place: usize, number: u32) -> Result<(Lease, Option<Stamped>)> {
        let admission = self.pair.both("acquire", |guest| guest.acquire(number))?;
        if let (Decision::Admit(ticket), Some(one)) = (admission.decision, self.circuits.get_mut(place)) {
            one.tickets.push(ticket);
            let most = one.tickets.len().saturating_sub(TICKETS);
            one.tickets.drain(..most);
        }
        Ok((admission.lease, admission.transition))
    }

    /// An operator's command, or a look.
    fn command(&mut self, command: Command, number: u32) -> Result<(Lease, Option<Stamped>)> {
        let moved = match command {
            Command::Trip => {
                let wait = wait(&mut self.rng);
                self.pair.both("trip", |guest| guest.trip(number, wait))?
            }
            Command::Reset => self.pair.both("reset", |guest| guest.reset(number))?,
            Command::SetMode => {
                let mode = mode(&mut self.rng);
                self.pair.both("set-mode", |guest| guest.set_mode(number, mode))?
            }
            Command::Look => {
                let lease = self.pair.both("lease-of", |guest| guest.lease_of(number))?;
                return Ok((lease, None));
            }
        };
        Ok((moved.lease, moved.transition))
    }

    fn settings(&mut self) -> &'static str {
        self.rng.choice(self.refined.settings).copied().unwrap_or("{}")
    }

    fn note(&mut self, number: u32, lease: Lease, moved: Option<Stamped>) {
        if let Some(moved) = moved {
            let operation = format!("{:?}", moved.transition.operation);
            *self.walked.moves.entry(operation).or_default() += 1;
        }
        for known in &mut self.circuits {
            if known.number == number {
                known.lease = lease;
            }
        }
    }

    /// A little, or a lot, or just so much as a lease says matters, or back.
    fn pass_time(&mut self) {
        let now = self.clock.monotonic();
        let ends = self
            .circuits
            .iter()
            .flat_map(|one| one.ends())
            .filter(|end| *end > now);
        let next = ends.min().unwrap_or(now);
        let to = match self.rng.u8(..8) {
            0 => next,
            1 => next.saturating_sub(1).max(now),
            2 => next.saturating_add(1),
            3 => now.saturating_sub(self.rng.u64(..5_000_000_000)),
            4 => now.saturating_add(self.rng.u64(..100_000_000_000)),
            _ => now.saturating_add(self.rng.u64(..3) * 1_000_000),
        };
        self.clock.set_monotonic(to);
    }

    fn attach(&mut self) -> Result<()> {
        let key = key(self.rng.usize(..CIRCUITS));
        let settings = self.settings();
        let answer = self.pair.both("attach", |guest| guest.attach(&key, settings))?;
        if let Ok(attachment) = answer {
            self.remember(key, &attachment);
        }
        Ok(())
    }

    fn remember(&mut self, key: String, attachment: &Attachment) {
        self.circuits.retain(|known| known.key != key);
        self.circuits.push(Attached {
            key,
            number: attachment.circuit,
            lease: attachment.lease,
            tickets: Vec::new(),
        });
    }

    /// Keys and settings that no policy takes.
    fn refused(&mut self) -> Result<()> {
        let (key, settings) = nonsense(&mut self.rng);
        let answer = self.pair.both("attach", |guest| guest.attach(&key, settings))?;
        anyhow::ensure!(
            answer.is_err(),
            "{settings:?} for a key of {} bytes is taken",
            key.len()
        );
        Ok(())
    }

    /// Goes on with other instances, which take over what these had.
    fn restart(&mut self) -> Result<()> {
        let numbers: Vec<_> = self.circuits.iter().map(|one| one.number).collect();
        let mut saved = Vec::new();
        for number in numbers {
            saved.push(self.pair.both("save", |guest| guest.save(number))?);
        }
        self.circuits.clear();
        self.pair = Pair::start(self.refined.policy, &self.clock)?;
        self.walked.instances += 1;
        let setup = self.setup();
        self.pair.both("prepare", |guest| guest.prepare(&setup))?;
        saved.iter().try_for_each(|snapshot| self.take_over(snapshot))
    }

    fn setup(&mut self) -> Setup {
        let rng = &mut self.rng;
        Setup {
            seed: rng.u64(..),
            instrumentation: Instrumentation {
                request_information: rng.bool(),
                circuit_breaker: rng.bool(),
                other: rng.bool(),
            },
            namespace: rng.bool().then(|| "shop.orders".to_owned()),
        }
    }

    /// As it was saved, or with a detail that was damaged on the way.
    fn take_over(&mut self, snapshot: &Snapshot) -> Result<()> {
        let mut snapshot = snapshot.clone();
        let settings = self.settings();
        if self.rng.u8(..8) == 0 && !snapshot.detail.is_empty() {
            let place = self.rng.usize(..snapshot.detail.len());
            if let Some(byte) = snapshot.detail.get_mut(place) {
                *byte ^= 1 << self.rng.u8(..8);
            }
        }
        let age = wait(&mut self.rng).unwrap_or(0);
        let answer = self
            .pair
            .both("restore", |guest| guest.restore(&snapshot, settings, age))?;
        if let Ok(attachment) = answer {
            self.remember(snapshot.key, &attachment);
            self.pair.look_at(attachment.circuit)?;
        }
        Ok(())
    }
}

impl Attached {
    /// One of those that were handed out, or one that never was.
    fn ticket(&self, rng: &mut Rng) -> Ticket {
        let known = rng.choice(&self.tickets).copied();
        known
            .filter(|_| rng.u8(..16) > 0)
            .unwrap_or_else(|| rng.u64(..50))
    }

    /// The instants at which its lease ends.
    fn ends(&self) -> impl Iterator<Item = u64> {
        let before = match self.lease.successes {
            Successes::UpTo(allowance) => allowance.before,
            Successes::Each | Successes::Never => None,
        };
        [self.lease.until, before].into_iter().flatten()
    }
}
