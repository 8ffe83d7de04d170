//! The third subject: the host's public API, and nothing that its users could not reach.

mod capture;
mod take_over;
mod words;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use tripwit::{
    AttachError, Breaker, Breakers, Event, Failure, ManualClock, Mode, OwnedPermit, Subscription, Verdict,
};

use crate::runner::Player;
use crate::scenario::{Scenario, Step};
use crate::told::Told;
use crate::verb::{Details, End, ModeName, PolicyName, Verb, settings_text};
use capture::Capture;
use take_over::{Making, shipped};

pub(crate) struct Host {
    breakers: Breakers,
    /// What the circuits of a process that starts anew are made with.
    making: Making,
    /// Held, so that no circuit is given up while the scenario runs.
    handles: BTreeMap<String, Breaker>,
    permits: BTreeMap<String, (String, OwnedPermit)>,
    moves: Arc<Mutex<Vec<Event>>>,
    subscription: Subscription,
    capture: Capture,
    /// Spans go to one place for the whole process, so one scenario runs at a time.
    _alone: MutexGuard<'static, ()>,
}

static ALONE: Mutex<()> = Mutex::new(());

impl Host {
    pub(crate) fn start(
        policy: PolicyName,
        scenario: &Scenario,
        clock: &ManualClock,
        ignore_leases: bool,
    ) -> Result<Self> {
        let alone = ALONE.lock();
        let making = Making {
            policy: shipped(policy)?,
            settings: settings_text(&scenario.settings),
            setup: scenario.setup.clone(),
            clock: clock.clone(),
            ignore_leases,
        };
        let capture = Capture::start(words::scope(&making.policy));
        let breakers = making.breakers()?;
        let moves = Arc::default();
        Ok(Self {
            subscription: listen(&breakers, &moves),
            breakers,
            making,
            handles: BTreeMap::new(),
            permits: BTreeMap::new(),
            moves,
            capture,
            _alone: alone,
        })
    }

    fn breaker(&mut self, key: &str) -> Result<Breaker> {
        if let Some(breaker) = self.handles.get(key) {
            return Ok(breaker.clone());
        }
        let breaker = self.breakers.breaker(key)?;
        self.handles.insert(key.to_owned(), breaker.clone());
        Ok(breaker)
    }

    /// The move of this step, which can be one at the most.
    fn moved(&self) -> Result<Value> {
        let moves = std::mem::take(&mut *self.moves.lock());
        match moves.as_slice() {
            [] => Ok(Value::Null),
            [event] => Ok(words::transition(Some(&event.transition))),
            several => bail!("one step made several moves: {several:?}"),
        }
    }

    fn acquire(&mut self, key: &str, label: &str) -> Result<Value> {
        let breaker = self.breaker(key)?;
        let mode = breaker.mode();
        let rejected = || match mode {
            Mode::Shadow => breaker.status().would_have_rejected,
            Mode::Automatic | Mode::ForcedOpen | Mode::Disabled => 0,
        };
        let before = rejected();
        match breaker.acquire_owned() {
            Ok(permit) => {
                // The API does not say which permits mean nothing; what it does say is enough to tell.
                let decision = match mode {
                    Mode::Disabled => "pass",
                    Mode::Shadow if rejected() > before => "reject",
                    Mode::Shadow | Mode::Automatic | Mode::ForcedOpen => "admit",
                };
                if decision == "admit" {
                    self.permits.insert(label.to_owned(), (key.to_owned(), permit));
                }
                let transition = self.moved()?;
                // A permit has neither reason nor wait; those of a call that shadow let through are not told.
                Ok(match decision {
                    "reject" => json!({"decision": decision, "transition": transition}),
                    _ => {
                        json!({"decision": decision, "reason": null, "retry_after": null, "transition": transition})
                    }
                })
            }
            Err(rejection) => Ok(json!({
                "decision": "reject",
                "reason": rejection.reason().to_string(),
                "retry_after": words::time(rejection.retry_after()),
                "transition": self.moved()?,
            })),
        }
    }

    fn settle(&mut self, label: &str, end: End, details: Details, wants_counted: bool) -> Result<Value> {
        let (key, permit) = self
            .permits
            .remove(label)
            .with_context(|| format!("no call was admitted as {label:?}"))?;
        let breaker = self.breaker(&key)?;
        let stale = || wants_counted.then(|| breaker.status().stale_results);
        let before = stale();
        match end {
            End::Success => permit.success(),
            End::Failure => permit.failure(failure(details)),
            End::Timeout => permit.timeout(),
            End::Ignored => permit.ignored(),
        }
        self.settled(before.map(|before| Some(before) == stale()))
    }

    fn settled(&self, counted: Option<bool>) -> Result<Value> {
        let transition = self.moved()?;
        Ok(match counted {
            None => json!({"transition": transition}),
            Some(counted) => json!({"counted": counted, "transition": transition}),
        })
    }

    /// A call as users make it. Only a time-out is beyond a call that takes no time.
    fn call(&mut self, key: &str, end: End, details: Details, wants_counted: bool) -> Result<Value> {
        if end == End::Timeout {
            let answer = self.acquire(key, CALL)?;
            anyhow::ensure!(
                answer.get("decision").is_some_and(|it| it == "admit"),
                "the call was not admitted: {answer}"
            );
            return self.settle(CALL, end, details, wants_counted);
        }
        let breaker = self.breaker(key)?;
        let stale = || wants_counted.then(|| breaker.status().stale_results);
        let before = stale();
        let verdict = match end {
            End::Success => Verdict::Success,
            End::Failure | End::Timeout => Verdict::Failure(failure(details)),
            End::Ignored => Verdict::Ignored,
        };
        let moves = self.moves.clone();
        let call = || {
            // The answer is about the call's end; a move that its beginning made is told in log and spans.
            moves.lock().clear();
            Ok::<(), std::convert::Infallible>(())
        };
        breaker
            .classify(|_: &Result<(), _>| verdict.clone())
            .call_blocking(call)
            .context("the call was not admitted")?;
        self.settled(before.map(|before| Some(before) == stale()))
    }

    fn set_mode(&mut self, key: &str, mode: ModeName) -> Result<Value> {
        self.breaker(key)?.set_mode(match mode {
            ModeName::Automatic => Mode::Automatic,
            ModeName::ForcedOpen => Mode::ForcedOpen,
            ModeName::Disabled => Mode::Disabled,
            ModeName::Shadow => Mode::Shadow,
        });
        self.settled(None)
    }

    fn cool_down(&self) -> Result<Value> {
        let moved: BTreeMap<_, _> = self
            .breakers
            .cool_down()
            .into_iter()
            .map(|moved| (moved.key.clone(), words::transition(moved.transition.as_ref())))
            .collect();
        let heard = std::mem::take(&mut *self.moves.lock());
        let closed = moved.values().filter(|transition| !transition.is_null()).count();
        anyhow::ensure!(
            heard.len() == closed,
            "{} moves were heard, and {closed} were made",
            heard.len()
        );
        Ok(moved
            .into_iter()
            .map(|(key, transition)| json!({"key": &*key, "transition": transition}))
            .collect())
    }

    /// An operator's command, whose answer is the move too.
    fn commanded(&self, answered: Option<&tripwit::Transition>) -> Result<Value> {
        let answered = words::transition(answered);
        let heard = self.moved()?;
        anyhow::ensure!(
            answered == heard,
            "the answer is {answered}, and subscribers heard {heard}"
        );
        Ok(json!({"transition": heard}))
    }

    fn attach(&mut self, key: &str, settings: &Value) -> Result<Value> {
        match self.breakers.breaker_with(key, settings_text(settings)) {
            Ok(breaker) => {
                self.handles.insert(key.to_owned(), breaker);
                Ok(json!({"error": null}))
            }
            Err(AttachError::Key { .. }) => Ok(json!({"error": "key", "field": null})),
            Err(AttachError::Settings { field, problem, .. }) => {
                Ok(json!({"error": "settings", "field": field, "problem": problem}))
            }
            Err(AttachError::Conflict { .. }) => {
                Ok(json!({"error": "conflict", "field": null, "problem": null}))
            }
            Err(other) => Err(other.into()),
        }
    }
}

impl Player for Host {
    fn play(&mut self, step: &Step) -> Result<Value> {
        let _log = self.capture.log();
        let key = step.key.as_str();
        let wants_counted = step.expect.as_ref().is_some_and(|it| it.get("counted").is_some());
        match &step.verb {
            Verb::Acquire { value } => self.acquire(key, value),
            Verb::Settle(settle) => {
                self.settle(&settle.value, settle.outcome, settle.details(), wants_counted)
            }
            Verb::Call(call) => call.repeat(|end, details| self.call(key, end, details, wants_counted)),
            Verb::Trip { value } => {
                let breaker = self.breaker(key)?;
                let moved = match value.own() {
                    None => breaker.trip(),
                    Some(wait) => breaker.trip_for(Duration::from_nanos(wait)),
                };
                self.commanded(moved.as_ref())
            }
            Verb::Reset { .. } => {
                let moved = self.breaker(key)?.reset();
                self.commanded(moved.as_ref())
            }
            Verb::Mode { value } => self.set_mode(key, *value),
            Verb::CoolDown { .. } => self.cool_down(),
            Verb::Tripped { .. } => Ok(self.breakers.tripped().into()),
            Verb::Inspect { .. } => {
                let breaker = self.breaker(key)?;
                words::status(&breaker)
            }
            Verb::Available { .. } => Ok(json!({"available": self.breaker(key)?.is_available()})),
            Verb::Describe { .. } => words::description(&self.breakers.policy()),
            Verb::Attach { value } => self.attach(key, value),
            Verb::Restart(restart) => self.restart(*restart),
            Verb::Swap(swap) => self.swap(swap),
            Verb::Reconfigure { value } => self.reconfigure(value),
            Verb::Wait { .. }
            | Verb::Clock { .. }
            | Verb::Wall { .. }
            | Verb::SettleSuccesses { .. }
            | Verb::Lease { .. }
            | Verb::Configure { .. }
            | Verb::Detach { .. }
            | Verb::Prepare { .. }
            | Verb::Save { .. }
            | Verb::Restore(_) => bail!("beyond the host: the suite leaves such scenarios out"),
        }
    }

    fn take_told(&mut self) -> Result<Told> {
        anyhow::ensure!(self.breakers.faults() == 0, "the component was found at fault");
        let unasked = self.moves.lock().len();
        anyhow::ensure!(unasked == 0, "{unasked} moves were made that no answer tells");
        self.capture.take()
    }
}

fn listen(breakers: &Breakers, moves: &Arc<Mutex<Vec<Event>>>) -> Subscription {
    let moves = moves.clone();
    breakers.subscribe(move |event| moves.lock().push(event.clone()))
}

fn failure(details: Details) -> Failure {
    let mut failure = Failure::new();
    if let Some(wait) = details.retry_after {
        failure = failure.retry_after(Duration::from_nanos(wait));
    }
    match details.cause {
        Some(cause) => failure.cause(cause),
        None => failure,
    }
}

/// The label of a call that is over within its step.
const CALL: &str = "(call)";
