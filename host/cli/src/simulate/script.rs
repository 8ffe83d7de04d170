//! Scripts: how calls end, one after the other.
//!
//! Steps are separated by semicolons or line ends; `#` begins a comment. A step is a verb, and what goes with it in any order.

use std::time::Duration;

use tripwit::Mode;

use crate::time;
use crate::timeline::Ended;

/// As many things happen at most, all steps together.
const MOST: u64 = 100_000;

/// One step.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Step {
    /// As it was written.
    pub(super) text: String,
    /// What happens.
    pub(super) action: Action,
    /// How many times.
    pub(super) times: u64,
}

/// What happens in a step.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Action {
    /// A call is wanted.
    Call {
        /// How it ends.
        ended: Ended,
        /// How long it takes, in nanoseconds.
        took: u64,
        /// How long after its beginning the next one is wanted; none for at its end.
        every: Option<u64>,
        /// How long the other side asks to be left alone.
        retry_after: Option<u64>,
    },
    /// Time passes, in nanoseconds.
    Wait(u64),
    /// An operator opens the circuit, perhaps for a given time.
    Trip(Option<Duration>),
    /// An operator closes the circuit.
    Reset,
    /// An operator sets the mode.
    Mode(Mode),
    /// A cool-down cycle runs.
    CoolDown,
}

/// Reads a script.
///
/// # Errors
///
/// When a step makes no sense: which, and why.
pub(super) fn script(text: &str) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        for text in line.split(';').map(str::trim).filter(|text| !text.is_empty()) {
            let step = step(text).map_err(|problem| format!("line {}, {text:?}: {problem}", number + 1))?;
            steps.push(step);
        }
    }
    let all = steps.iter().map(|step| step.times).fold(0, u64::saturating_add);
    match all {
        0 => Err("it has no steps; write ok x3; fail x5; wait 30s; ok".into()),
        1..=MOST => Ok(steps),
        _ => Err(format!("{all} things are to happen; at most {MOST} may")),
    }
}

/// The words of a step that are not its verb.
struct Words<'a>(Vec<&'a str>);

impl<'a> Words<'a> {
    /// Takes `name LENGTH` out, where it is there.
    fn named(&mut self, name: &str) -> Result<Option<u64>, String> {
        let Some(place) = self.0.iter().position(|word| *word == name) else {
            return Ok(None);
        };
        let length = self.0.get(place + 1).and_then(|word| time::duration(word, None));
        let length = length.ok_or_else(|| format!("{name} needs a length of time, such as 30s"))?;
        self.0.drain(place..place + 2);
        Ok(Some(length))
    }

    /// Takes `x20` out.
    fn times(&mut self) -> Result<u64, String> {
        let is_times = |word: &&&str| {
            word.strip_prefix('x')
                .is_some_and(|rest| rest.parse::<u64>().is_ok())
        };
        let Some(word) = self.0.iter().find(is_times).copied() else {
            return Ok(1);
        };
        self.0.retain(|other| *other != word);
        match word.get(1..).unwrap_or_default().parse() {
            Ok(times @ 1..) => Ok(times),
            _ => Err(format!("{word} is no number of times")),
        }
    }

    /// Takes a length of time out.
    fn length(&mut self) -> Option<u64> {
        let place = self
            .0
            .iter()
            .position(|word| time::duration(word, None).is_some())?;
        time::duration(self.0.remove(place), None)
    }

    /// Takes the next word out.
    fn next(&mut self) -> Option<&'a str> {
        (!self.0.is_empty()).then(|| self.0.remove(0))
    }
}

fn step(text: &str) -> Result<Step, String> {
    let mut words = Words(text.split_whitespace().collect());
    let verb = words.next().unwrap_or_default();
    let times = words.times()?;
    let action = match verb {
        "ok" => call(Ended::Success, &mut words)?,
        "fail" => call(Ended::Failure, &mut words)?,
        "timeout" => call(Ended::Timeout, &mut words)?,
        "ignored" => call(Ended::Ignored, &mut words)?,
        "wait" => Action::Wait(words.length().ok_or("say how long: wait 30s")?),
        "trip" => Action::Trip(words.length().map(Duration::from_nanos)),
        "reset" => Action::Reset,
        "cool-down" => Action::CoolDown,
        "mode" => {
            let mode = words.next().unwrap_or_default();
            Action::Mode(
                mode.parse()
                    .map_err(|error: tripwit::UnknownMode| error.to_string())?,
            )
        }
        _ => {
            return Err(format!(
                "{verb:?} is no verb; the verbs are ok, fail, timeout, ignored, wait, trip, reset, mode and cool-down"
            ));
        }
    };
    match words.next() {
        None => Ok(Step {
            text: text.to_owned(),
            action,
            times,
        }),
        Some(word) => Err(format!("{word:?} does not belong there")),
    }
}

fn call(ended: Ended, words: &mut Words<'_>) -> Result<Action, String> {
    let every = words.named("every")?;
    let retry_after = words.named("retry-after")?;
    Ok(Action::Call {
        ended,
        took: words.length().unwrap_or(0),
        every,
        retry_after,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::SECOND;

    #[test]
    fn a_script_is_read_step_by_step() {
        let steps = script(
            "# a night\nok x20; fail 2s x5 every 100ms retry-after 1m # five\nwait 30s\n;trip 1m30s; mode forced-open; cool-down x3",
        )
        .unwrap();
        let brief: Vec<_> = steps.iter().map(|step| (&step.action, step.times)).collect();
        let ok = Action::Call {
            ended: Ended::Success,
            took: 0,
            every: None,
            retry_after: None,
        };
        let fail = Action::Call {
            ended: Ended::Failure,
            took: 2 * SECOND,
            every: Some(SECOND / 10),
            retry_after: Some(60 * SECOND),
        };
        assert_eq!(
            brief,
            [
                (&ok, 20),
                (&fail, 5),
                (&Action::Wait(30 * SECOND), 1),
                (&Action::Trip(Some(Duration::from_secs(90))), 1),
                (&Action::Mode(Mode::ForcedOpen), 1),
                (&Action::CoolDown, 3),
            ]
        );
    }

    #[test]
    fn what_makes_no_sense_is_named_with_its_line() {
        for (text, problem) in [
            ("ok\nexplode", "line 2, \"explode\": \"explode\" is no verb"),
            ("wait", "say how long"),
            ("ok x0", "x0 is no number of times"),
            ("ok twice", "\"twice\" does not belong there"),
            ("ok every now", "every needs a length of time"),
            ("ok every", "every needs a length of time"),
            ("mode open", "is no mode"),
            ("# nothing", "it has no steps"),
            ("ok x100001", "at most 100000 may"),
        ] {
            let error = script(text).unwrap_err();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }
}
