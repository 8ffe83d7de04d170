//! Plays steps on a guest as a host would that asks about each call and keeps nothing back.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tripwit::{Clock, ManualClock};
use tripwit_core::{Decision, Lease, Outcome, Report, Ticket};
use tripwit_policy::{AttachError, Attachment, Setup, Snapshot};

use crate::answer::{admission, attach_error, changed, lease, snapshot, status, transition};
use crate::guest::{Guest, Start};
use crate::runner::Player;
use crate::scenario::{Scenario, Step};
use crate::told::Told;
use crate::verb::{Details, End, PolicyName, Restore, Verb, settings_text};

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
    snapshots: BTreeMap<String, Snapshot>,
}

struct Attached {
    number: u32,
    /// The generations that its leases had, in order.
    generations: Vec<u64>,
}

#[derive(Clone)]
struct Permit {
    key: String,
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
        let mut guest = start(policy, clock)?;
        guest.prepare(&setup)?;
        Ok(Self {
            start,
            policy,
            guest,
            clock: clock.clone(),
            setup,
            settings: settings_text(&scenario.settings),
            circuits: BTreeMap::new(),
            permits: BTreeMap::new(),
            snapshots: BTreeMap::new(),
        })
    }

    /// The number of a key's circuit, which is attached first where it must be.
    fn number(&mut self, key: &str) -> Result<u32> {
        if let Some(attached) = self.circuits.get(key) {
            return Ok(attached.number);
        }
        let attachment = self
            .guest
            .attach(key, &self.settings)?
            .with_context(|| format!("attaching {key:?}"))?;
        self.remember(key, &attachment)?;
        Ok(attachment.circuit)
    }

    fn remember(&mut self, key: &str, attachment: &Attachment) -> Result<()> {
        let known = self.circuits.entry(key.to_owned()).or_insert(Attached {
            number: attachment.circuit,
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
        let attached = self.guest.attach(key, &settings_text(settings))?;
        self.attached(key, attached)
    }

    fn attached(&mut self, key: &str, attached: Result<Attachment, AttachError>) -> Result<Value> {
        match attached {
            Ok(attachment) => {
                self.remember(key, &attachment)?;
                Ok(json!({"error": null}))
            }
            Err(error) => Ok(attach_error(&error)),
        }
    }

    fn configure(&mut self, key: &str, settings: &Value) -> Result<Value> {
        let number = self.number(key)?;
        match self.guest.configure(number, &settings_text(settings))? {
            Ok(moved) => {
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
        self.permits.retain(|_, permit| permit.circuit != attached.number);
        Ok(json!({}))
    }

    fn save(&mut self, key: &str, label: &str) -> Result<Value> {
        let number = self.number(key)?;
        let saved = self.guest.save(number)?;
        let answer = snapshot(&saved);
        self.snapshots.insert(label.to_owned(), saved);
        answer
    }

    fn restore(&mut self, restore: &Restore) -> Result<Value> {
        if let Some(policy) = restore.policy {
            self.start_anew(policy)?;
        }
        let saved = self
            .snapshots
            .get(&restore.value)
            .with_context(|| format!("nothing was saved as {:?}", restore.value))?;
        let snapshot = changed(saved, &restore.with)?;
        let settings = match &restore.settings {
            Some(settings) => settings_text(settings),
            None => self.settings.clone(),
        };
        let restored = self.guest.restore(&snapshot, &settings, restore.age.0)?;
        self.attached(&snapshot.key, restored)
    }

    /// Goes on with a new instance, in which nothing is attached and no permit of before means anything.
    fn start_anew(&mut self, policy: PolicyName) -> Result<()> {
        self.policy = policy;
        self.guest = (self.start)(policy, &self.clock)?;
        self.guest.prepare(&self.setup)?;
        self.circuits.clear();
        self.permits.clear();
        Ok(())
    }

    fn lease(&mut self, key: &str) -> Result<Value> {
        let number = self.number(key)?;
        let stands = self.guest.lease_of(number)?;
        let generation = self.heed(key, &stands)?;
        Ok(lease(&stands, generation))
    }
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
                self.guest.inspect(number).map(|it| status(&it))
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
            Verb::Restart { .. } => self.start_anew(self.policy).map(|()| json!({})),
            Verb::Restore(restore) => self.restore(restore),
        }
    }

    fn take_told(&mut self) -> Result<Told> {
        Ok(self.guest.take_told())
    }
}
