//! Plays steps on a guest as a host would that asks about each call and keeps nothing back.

mod take_over;

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tripwit::{Clock, ManualClock};
use tripwit_core::{Decision, Lease, Outcome, Report, Ticket};
use tripwit_policy::{AttachError, Attachment, Setup, Snapshot};

use crate::answer::{admission, attach_error, inspection, lease, transition};
use crate::guest::{Guest, Start};
use crate::runner::Player;
use crate::scenario::{Scenario, Step};
use crate::told::Told;
use crate::verb::{Details, End, PolicyName, Verb, settings_text};

pub(crate) struct Driver {
    start: Start,
    policy: PolicyName,
    guest: Box<dyn Guest>,
    clock: ManualClock,
    setup: Setup,
    /// Of circuits that are not attached with their own.
    settings: String,
    circuits: BTreeMap<String, Attached>,
    permits: BTreeMap<String, Permit>,
    /// Counts the instances: permits of one before mean nothing.
    incarnation: u32,
    snapshots: BTreeMap<String, Snapshot>,
}

struct Attached {
    number: u32,
    settings: Given,
    /// The generations that its leases had, in order.
    generations: Vec<u64>,
}

/// The settings of a circuit.
#[derive(Clone)]
struct Given {
    text: String,
    /// Whether they are the circuit's own, and not those of every circuit.
    own: bool,
}

#[derive(Clone)]
struct Permit {
    key: String,
    incarnation: u32,
    circuit: u32,
    ticket: Ticket,
    started: u64,
    /// Under the lease that admitted the call.
    call_timeout: Option<u64>,
    /// Whether that lease asks how long the call takes.
    measured: bool,
}

impl Driver {
    pub(crate) fn new(
        start: Start,
        policy: PolicyName,
        scenario: &Scenario,
        clock: &ManualClock,
    ) -> Result<Self> {
        let setup = Setup::from(&scenario.setup);
        Ok(Self {
            start,
            policy,
            guest: prepared(start, policy, clock, &setup)?,
            clock: clock.clone(),
            setup,
            settings: settings_text(&scenario.settings),
            circuits: BTreeMap::new(),
            permits: BTreeMap::new(),
            incarnation: 0,
            snapshots: BTreeMap::new(),
        })
    }

    /// The number of a key's circuit, which is attached first where it must be.
    fn number(&mut self, key: &str) -> Result<u32> {
        if let Some(attached) = self.circuits.get(key) {
            return Ok(attached.number);
        }
        let settings = self.table();
        let attachment = self
            .guest
            .attach(key, &settings.text)?
            .with_context(|| format!("attaching {key:?}"))?;
        self.remember(key, &attachment, settings)?;
        Ok(attachment.circuit)
    }

    /// The settings of circuits that have none of their own.
    fn table(&self) -> Given {
        Given {
            text: self.settings.clone(),
            own: false,
        }
    }

    /// One that is known keeps the settings that it has.
    fn remember(&mut self, key: &str, attachment: &Attachment, settings: Given) -> Result<()> {
        let known = self.circuits.entry(key.to_owned()).or_insert(Attached {
            number: attachment.circuit,
            settings,
            generations: Vec::new(),
        });
        ensure!(
            known.number == attachment.circuit,
            "the circuit of {key:?} had number {} and has {} now",
            known.number,
            attachment.circuit
        );
        self.heed(key, &attachment.lease).map(drop)
    }

    /// Holds an answer's lease against the rules of the contract, and says which generation of its circuit it is.
    fn heed(&mut self, key: &str, answered: &Lease) -> Result<usize> {
        let attached = self.circuits.get_mut(key).context("a lease of no circuit")?;
        let stands = self.guest.lease_of(attached.number)?;
        ensure!(
            stands == *answered,
            "the answer's lease is {answered:?}, and that of lease-of {stands:?}"
        );
        match attached.generations.last() {
            Some(last) if *last == answered.generation => {}
            Some(last) if *last > answered.generation => {
                bail!("generation {} came after {last}", answered.generation)
            }
            Some(_) | None => attached.generations.push(answered.generation),
        }
        Ok(attached.generations.len())
    }

    fn acquire(&mut self, key: &str, label: Option<&str>) -> Result<(Value, Option<Permit>)> {
        let circuit = self.number(key)?;
        let started = self.clock.monotonic();
        let answer = self.guest.acquire(circuit)?;
        self.heed(key, &answer.lease)?;
        let permit = match answer.decision {
            Decision::Admit(ticket) => Some(Permit {
                key: key.to_owned(),
                incarnation: self.incarnation,
                circuit,
                ticket,
                started,
                call_timeout: answer.lease.call_timeout,
                measured: answer.lease.call_timeout.is_some() || answer.lease.slow_after.is_some(),
            }),
            Decision::Pass | Decision::Reject(_) => None,
        };
        if let Some((label, permit)) = label.zip(permit.clone()) {
            self.permits.insert(label.to_owned(), permit);
        }
        Ok((admission(answer.decision, answer.transition), permit))
    }

    fn settle(&mut self, permit: &Permit, end: End, details: Details) -> Result<Value> {
        if permit.incarnation != self.incarnation {
            // A host does not ask an instance about the tickets of another.
            return Ok(json!({"counted": false, "transition": null}));
        }
        let took = self.clock.monotonic().saturating_sub(permit.started);
        let late = permit.call_timeout.is_some_and(|limit| took > limit);
        let report = Report {
            // Which calls ran too long is the host's to say.
            outcome: match end {
                End::Success | End::Failure if late => Outcome::Timeout,
                End::Success | End::Failure | End::Timeout | End::Ignored => end.into(),
            },
            took: permit.measured.then_some(took),
            retry_after: details.retry_after,
            cause: details.cause,
        };
        let answer = self.guest.settle(permit.circuit, permit.ticket, &report)?;
        self.heed(&permit.key, &answer.lease)?;
        Ok(json!({"counted": answer.counted, "transition": transition(answer.transition)}))
    }

    fn call(&mut self, key: &str, end: End, details: Details) -> Result<Value> {
        let (answer, permit) = self.acquire(key, None)?;
        let permit = permit.with_context(|| format!("the call was not admitted: {answer}"))?;
        self.settle(&permit, end, details)
    }

    fn permit(&self, label: &str) -> Result<Permit> {
        self.permits
            .get(label)
            .cloned()
            .with_context(|| format!("no call was admitted as {label:?}"))
    }

    /// A command on one circuit.
    fn command(
        &mut self,
        key: &str,
        command: impl FnOnce(&mut dyn Guest, u32) -> Result<tripwit_policy::Moved>,
    ) -> Result<Value> {
        let number = self.number(key)?;
        let moved = command(self.guest.as_mut(), number)?;
        self.heed(key, &moved.lease)?;
        Ok(json!({"transition": transition(moved.transition)}))
    }

    fn cool_down(&mut self) -> Result<Value> {
        let mut all = BTreeMap::new();
        for (number, moved) in self.guest.cool_down()? {
            let key = self
                .circuits
                .iter()
                .find_map(|(key, attached)| (attached.number == number).then(|| key.clone()))
                .with_context(|| format!("cool-down moved circuit {number}, which is unknown"))?;
            self.heed(&key, &moved.lease)?;
            let answer = json!({"key": key.clone(), "transition": transition(moved.transition)});
            ensure!(
                all.insert(key, answer).is_none(),
                "cool-down moved a circuit twice"
            );
        }
        Ok(all.into_values().collect())
    }

    fn available(&mut self, key: &str) -> Result<Value> {
        let number = self.number(key)?;
        let lease = self.guest.lease_of(number)?;
        let rejects = match lease.standing {
            tripwit_core::Standing::Reject(_) => lease.mode != tripwit_core::Mode::Shadow,
            tripwit_core::Standing::Admit(_) | tripwit_core::Standing::Pass | tripwit_core::Standing::Ask => {
                false
            }
        };
        let holds = lease.until.is_none_or(|until| self.clock.monotonic() < until);
        Ok(json!({"available": !(rejects && holds)}))
    }

    fn describe(&mut self) -> Result<Value> {
        let it = self.guest.describe()?;
        let schema: Value = serde_json::from_str(&it.settings_schema).context("the settings' schema")?;
        Ok(json!({
            "name": it.name, "version": it.version, "summary": it.summary, "settings_schema": schema, "extra": it.extra,
        }))
    }

    fn attach(&mut self, key: &str, settings: &Value) -> Result<Value> {
        let settings = Given {
            text: settings_text(settings),
            own: true,
        };
        let attached = self.guest.attach(key, &settings.text)?;
        self.attached(key, attached, settings)
    }

    fn attached(
        &mut self,
        key: &str,
        attached: Result<Attachment, AttachError>,
        settings: Given,
    ) -> Result<Value> {
        match attached {
            Ok(attachment) => {
                self.remember(key, &attachment, settings)?;
                Ok(json!({"error": null}))
            }
            Err(error) => Ok(attach_error(&error)),
        }
    }

    fn configure(&mut self, key: &str, settings: &Value) -> Result<Value> {
        let number = self.number(key)?;
        let settings = Given {
            text: settings_text(settings),
            own: true,
        };
        match self.guest.configure(number, &settings.text)? {
            Ok(moved) => {
                if let Some(attached) = self.circuits.get_mut(key) {
                    attached.settings = settings;
                }
                self.heed(key, &moved.lease)?;
                Ok(json!({"error": null, "transition": transition(moved.transition)}))
            }
            Err(error) => Ok(attach_error(&error)),
        }
    }

    fn detach(&mut self, key: &str) -> Result<Value> {
        let attached = self
            .circuits
            .remove(key)
            .with_context(|| format!("{key:?} is not attached"))?;
        self.guest.detach(attached.number)?;
        self.permits.retain(|_, permit| permit.key != key);
        Ok(json!({}))
    }

    fn lease(&mut self, key: &str) -> Result<Value> {
        let number = self.number(key)?;
        let stands = self.guest.lease_of(number)?;
        let generation = self.heed(key, &stands)?;
        Ok(lease(&stands, generation))
    }
}

/// A new instance, set up.
fn prepared(start: Start, policy: PolicyName, clock: &ManualClock, setup: &Setup) -> Result<Box<dyn Guest>> {
    let mut guest = start(policy, clock)?;
    guest.prepare(setup)?;
    Ok(guest)
}

impl Player for Driver {
    fn play(&mut self, step: &Step) -> Result<Value> {
        let key = step.key.as_str();
        match &step.verb {
            Verb::Wait { .. } | Verb::Clock { .. } | Verb::Wall { .. } => bail!("the clock is the runner's"),
            Verb::Acquire { value } => self.acquire(key, Some(value)).map(|(answer, _)| answer),
            Verb::Settle(settle) => {
                let permit = self.permit(&settle.value)?;
                self.settle(&permit, settle.outcome, settle.details())
            }
            Verb::Call(call) => call.repeat(|end, details| self.call(key, end, details)),
            Verb::SettleSuccesses { value, count } => {
                let permit = self.permit(value)?;
                ensure!(
                    permit.incarnation == self.incarnation,
                    "{value:?} is of another instance"
                );
                self.command(&permit.key, |guest, number| {
                    guest.settle_successes(number, permit.ticket, *count)
                })
            }
            Verb::Trip { value } => self.command(key, |guest, number| guest.trip(number, value.own())),
            Verb::Reset { .. } => self.command(key, |guest, number| guest.reset(number)),
            Verb::Mode { value } => {
                self.command(key, |guest, number| guest.set_mode(number, (*value).into()))
            }
            Verb::CoolDown { .. } => self.cool_down(),
            Verb::Tripped { .. } => self.guest.tripped().map(Value::from),
            Verb::Inspect { .. } => {
                let number = self.number(key)?;
                self.guest.inspect(number).map(|it| inspection(&it))
            }
            Verb::Available { .. } => self.available(key),
            Verb::Lease { .. } => self.lease(key),
            Verb::Describe { .. } => self.describe(),
            Verb::Attach { value } => self.attach(key, value),
            Verb::Configure { value } => self.configure(key, value),
            Verb::Detach { .. } => self.detach(key),
            Verb::Prepare { value } => {
                self.setup = Setup::from(value);
                self.guest.prepare(&self.setup).map(|()| json!({}))
            }
            Verb::Save { value } => self.save(key, value),
            Verb::Restore(restore) => self.restore(restore),
            Verb::Restart(restart) => self.restart(*restart),
            Verb::Swap(swap) => self.swap(swap),
            Verb::Reconfigure { value } => self.reconfigure(value),
        }
    }

    fn take_told(&mut self) -> Result<Told> {
        Ok(self.guest.take_told())
    }
}
