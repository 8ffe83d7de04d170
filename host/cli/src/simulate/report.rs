//! What came of a simulation: a timeline for people, JSON for programs, a plot.

use serde_json::{Value, json};
use tripwit::{Operation, State};

use super::play::{Happened, START};
use super::script::Step;
use crate::candidate::Candidate;
use crate::replay::{operation, seconds, settings, told};
use crate::terminal::{BAD, FAINT, GOOD, NOTICE, STRONG, paint};
use crate::time;
use crate::timeline::{Answer, Band, Ended, Lane, Mark, Move, Panel, Plot};

/// What was simulated, and what came of it.
#[derive(Debug)]
pub(super) struct Simulated<'a> {
    pub(super) candidate: &'a Candidate,
    pub(super) steps: &'a [Step],
    pub(super) happened: &'a [Happened],
    pub(super) lane: &'a Lane,
    pub(super) end: u64,
}

impl Simulated<'_> {
    /// For people: a line for each run of things that went alike.
    pub(super) fn text(&self) -> String {
        let said = self.candidate.policy.description();
        let mut text = format!(
            "{} {} {}\n",
            paint(STRONG, &said.name),
            said.version,
            paint(FAINT, self.candidate.settings.as_str().trim())
        );
        let width = self
            .steps
            .iter()
            .map(|step| step.text.chars().count())
            .max()
            .unwrap_or(0);
        let mut rest = self.happened;
        let mut step = None;
        while let Some(first) = rest.first() {
            let alike = alike(rest);
            let (run, after) = rest.split_at(alike);
            let mut label = self.steps.get(first.step).map_or("", |step| &step.text);
            if step.replace(first.step) == Some(first.step) {
                label = "";
            }
            for (at, what) in self.lines(first, run) {
                text += format!("{:>10}  {label:<width$}  {what}", time::lasting(at)).trim_end();
                text += "\n";
                label = "";
            }
            rest = after;
        }
        text + &self.summary()
    }

    /// What is told of things that went alike, in order: moves from before, how they went, the moves that came of it.
    fn lines(&self, first: &Happened, run: &[Happened]) -> Vec<(u64, String)> {
        let moves = || run.iter().flat_map(|happened| &happened.moves);
        let is_before = |step: &&Move| step.at - START < first.at || step.operation == Operation::HalfOpen;
        let told = |step: &Move| (step.at - START, moved(step));
        let mut lines: Vec<_> = moves().filter(is_before).map(told).collect();
        if first.step < self.steps.len() {
            lines.push((first.at, self.outcome(first, run.len())));
        }
        lines.extend(moves().filter(|step| !is_before(step)).map(told));
        lines
    }

    fn outcome(&self, happened: &Happened, times: usize) -> String {
        let times = if times > 1 {
            format!("{times} × ")
        } else {
            String::new()
        };
        match happened.answer {
            None => String::new(),
            Some(Answer::Admitted { timed_out: true, .. }) => {
                format!("{times}{}", paint(BAD, "ended by the policy's time-out"))
            }
            Some(Answer::Admitted { .. }) => {
                let (style, word) = match happened.ended {
                    Some(Ended::Success) => (GOOD, "ok"),
                    Some(Ended::Failure) => (BAD, "failed"),
                    Some(Ended::Timeout) => (BAD, "timed out"),
                    Some(Ended::Ignored) | None => (FAINT, "ignored"),
                };
                format!("{times}{}", paint(style, word))
            }
            Some(Answer::Rejected {
                reason, retry_after, ..
            }) => {
                let wait = retry_after.map_or_else(String::new, |wait| {
                    format!(
                        ", try again in {}",
                        time::lasting(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX))
                    )
                });
                format!("{times}{}{wait}", paint(NOTICE, &format!("rejected ({reason})")))
            }
        }
    }

    fn summary(&self) -> String {
        let Some(track) = self.lane.tracks().first() else {
            return String::new();
        };
        format!(
            "{} in all: {} made, {} rejected; open for {}, half-open for {}; {} in the end",
            time::lasting(self.end - START),
            track.counts.made.sum(),
            track.counts.rejected.sum(),
            time::lasting(track.open),
            time::lasting(track.half_open),
            track.state
        )
    }

    /// For programs. Times are seconds since the script began.
    pub(super) fn json(&self) -> Value {
        let timeline: Vec<Value> = self
            .happened
            .iter()
            .map(|happened| {
                json!({
                    "at_seconds": seconds(happened.at),
                    "step": self.steps.get(happened.step).map(|step| &step.text),
                    "answer": happened.answer.map(answer),
                    "transitions": happened.moves.iter().map(transition).collect::<Vec<_>>(),
                })
            })
            .collect();
        let said = self.candidate.policy.description();
        let track = self.lane.tracks().first();
        json!({
            "policy": self.candidate.text,
            "name": said.name,
            "version": said.version,
            "digest": self.candidate.policy.digest().to_string(),
            "settings": settings(self.candidate),
            "seconds": seconds(self.end - START),
            "made": track.map(|track| track.counts.made.sum()),
            "rejected": track.map(|track| track.counts.rejected.sum()),
            "open_seconds": track.map(|track| seconds(track.open)),
            "half_open_seconds": track.map(|track| seconds(track.half_open)),
            "state": track.map(|track| track.state.to_string()),
            "component_faults": self.lane.faults(),
            "timeline": timeline,
        })
    }

    /// As a plot: each call above the state.
    pub(super) fn plot(&self) -> Plot {
        let track = self.lane.tracks().first();
        let marks = self.happened.iter().filter_map(mark).collect();
        Plot {
            title: "A policy and a script".into(),
            from: START,
            to: self.end.max(START + 1),
            elapsed: true,
            panels: vec![Panel {
                title: String::new(),
                bins: None,
                bands: vec![Band {
                    label: self.candidate.text.clone(),
                    moves: track.map(|track| track.moves.clone()).unwrap_or_default(),
                    cut_off: track.is_some_and(|track| track.moves_left_out > 0),
                    marks,
                }],
            }],
        }
    }
}

/// How many of the things that happened, from the first on, can be told of together: only the first may have made the circuit half-open, and only the
/// last have moved it otherwise.
fn alike(happened: &[Happened]) -> usize {
    let next = happened.iter().skip(1);
    let is_half_open = |step: &Move| step.operation == Operation::HalfOpen;
    happened
        .iter()
        .zip(next)
        .take_while(|(one, next)| {
            one.step == next.step
                && one.moves.iter().all(is_half_open)
                && !next.moves.iter().any(is_half_open)
                && went_alike(one.answer, next.answer)
        })
        .count()
        + 1
}

fn went_alike(one: Option<Answer>, next: Option<Answer>) -> bool {
    match (one, next) {
        (Some(Answer::Admitted { timed_out: one, .. }), Some(Answer::Admitted { timed_out: next, .. })) => {
            one == next
        }
        (Some(Answer::Rejected { reason: one, .. }), Some(Answer::Rejected { reason: next, .. })) => {
            one == next
        }
        (None, None) => true,
        (Some(_) | None, _) => false,
    }
}

fn moved(step: &Move) -> String {
    let style = match step.after {
        State::Closed => GOOD,
        State::Open => BAD,
        State::HalfOpen => NOTICE,
    };
    paint(style, &told(step))
}

fn answer(answer: Answer) -> Value {
    match answer {
        Answer::Admitted { end, timed_out } => json!({
            "admitted": true,
            "end_seconds": seconds(end - START),
            "timed_out": timed_out,
        }),
        Answer::Rejected { reason, retry_after } => json!({
            "admitted": false,
            "reason": reason.to_string(),
            "retry_after_seconds": retry_after.map(|wait| wait.as_secs_f64()),
        }),
    }
}

fn transition(step: &Move) -> Value {
    json!({
        "at_seconds": seconds(step.at - START),
        "operation": operation(step.operation),
        "state": step.after.to_string(),
        "wait_seconds": step.wait.map(seconds),
        "cooldown_count": step.cooldown_count,
    })
}

fn mark(happened: &Happened) -> Option<(u64, Mark, String)> {
    let at = time::lasting(happened.at);
    let (mark, what) = match (happened.answer?, happened.ended?) {
        (Answer::Rejected { reason, .. }, _) => (Mark::Rejected, format!("rejected ({reason})")),
        (Answer::Admitted { timed_out: true, .. }, _) | (_, Ended::Timeout) => {
            (Mark::Bad, "timed out".into())
        }
        (_, Ended::Failure) => (Mark::Bad, "failed".into()),
        (_, Ended::Success) => (Mark::Good, "ok".into()),
        (_, Ended::Ignored) => (Mark::Neutral, "ignored".into()),
    };
    Some((START + happened.at, mark, format!("{what}, at {at}")))
}
