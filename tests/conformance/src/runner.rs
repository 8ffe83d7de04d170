//! Plays one scenario on one subject.

use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Context, Result};
use serde::Serialize;
use serde_json::{Value, json};
use tripwit::ManualClock;

use crate::expect::{mismatch, mismatch_told};
use crate::scenario::{Scenario, Step};
use crate::told::Told;
use crate::verb::Verb;

/// A subject while it plays one scenario.
pub(crate) trait Player {
    /// Does what a step says, and answers in the words of README.md.
    fn play(&mut self, step: &Step) -> Result<Value>;
    /// What was told since this was last called.
    fn take_told(&mut self) -> Result<Told>;
}

/// What came of one step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Played {
    pub(crate) answer: Value,
    pub(crate) told: Told,
}

/// What came of a scenario: of each step until the first that did not end as it must.
pub(crate) struct Outcome {
    pub(crate) played: Vec<Played>,
    /// Which step went wrong, and how.
    pub(crate) failure: Option<String>,
}

/// The clock at the beginning of every scenario.
pub(crate) fn clock() -> ManualClock {
    let clock = ManualClock::new();
    clock.set_monotonic(MONOTONIC_START);
    clock.set_wall(UNIX_EPOCH + WALL_START);
    clock
}

/// Plays a scenario. `start` makes the subject, which reads the clock that it is given.
pub(crate) fn run(
    scenario: &Scenario,
    start: impl FnOnce(&ManualClock) -> Result<Box<dyn Player>>,
) -> Outcome {
    let mut played = Vec::with_capacity(scenario.steps.len());
    let failure = run_steps(scenario, start, &mut played).err();
    Outcome {
        failure: failure.map(|error| format!("{error:#}")),
        played,
    }
}

fn run_steps(
    scenario: &Scenario,
    start: impl FnOnce(&ManualClock) -> Result<Box<dyn Player>>,
    played: &mut Vec<Played>,
) -> Result<()> {
    let clock = clock();
    let mut player = start(&clock).context("it does not start")?;
    for (index, step) in scenario.steps.iter().enumerate() {
        let at = || format!("step {} {}", index + 1, step.text);
        let answer = if set_clock(&clock, &step.verb) {
            json!({})
        } else {
            player.play(step).with_context(at)?
        };
        let told = player.take_told().with_context(at)?;
        let wrong = wrong_answer(step, &answer).or_else(|| mismatch_told(&step.log, &step.spans, &told));
        played.push(Played { answer, told });
        if let Some(wrong) = wrong {
            return Err(anyhow::Error::msg(wrong)).with_context(at);
        }
    }
    Ok(())
}

/// Whether the answer is not what the step expects. A step that expects nothing goes well: its call is admitted, and
/// nothing is refused.
fn wrong_answer(step: &Step, answer: &Value) -> Option<String> {
    if let Some(expected) = &step.expect {
        let wrong = mismatch(expected, answer);
        if wrong.is_some() {
            return wrong;
        }
    }
    let expects = |field: &str| step.expect.as_ref().is_some_and(|it| it.get(field).is_some());
    let acquires = matches!(step.verb, Verb::Acquire { .. });
    let admitted = answer.get("decision").is_some_and(|it| it == "admit");
    if acquires && !admitted && !expects("decision") {
        return Some(format!("the call must be admitted, and the answer is {answer}"));
    }
    let refused = answer.get("error").is_some_and(|error| !error.is_null());
    (refused && !expects("error")).then(|| format!("nothing may be refused, and the answer is {answer}"))
}

fn set_clock(clock: &ManualClock, verb: &Verb) -> bool {
    if let Verb::Wait { value } = verb {
        clock.advance(Duration::from_nanos(value.0));
    } else if let Verb::Clock { value } = verb {
        clock.set_monotonic(value.0);
    } else if let Verb::Wall { value } = verb {
        clock.set_wall(UNIX_EPOCH + Duration::from_nanos(value.0));
    } else {
        return false;
    }
    true
}

/// One hour: there is room to step back.
const MONOTONIC_START: u64 = 3_600_000_000_000;
/// A thousand hours, so that the two clocks cannot be taken for each other.
const WALL_START: Duration = Duration::from_secs(3_600_000);
