//! Plays a script through a policy.

use anyhow::Result;

use super::script::{Action, Step};
use crate::timeline::{Answer, Call, Ended, Lane, Move};

/// When scripts begin: a moment far from the epoch, for policies that look at the time of day.
pub(super) const START: u64 = 1_893_456_000_000_000_000;

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Happened {
    /// The number of its step.
    pub(super) step: usize,
    /// When, in nanoseconds since the script began.
    pub(super) at: u64,
    /// What the policy answered, where a call was wanted.
    pub(super) answer: Option<Answer>,
    /// How the call would end.
    pub(super) ended: Option<Ended>,
    /// The moves that were made since what happened before, this included.
    pub(super) moves: Vec<Move>,
}

/// Plays a script: each thing that happens, and moves that come after the last of them.
pub(super) fn play(lane: &mut Lane, steps: &[Step]) -> Result<(Vec<Happened>, u64)> {
    lane.add("simulated")?;
    let mut player = Player {
        lane,
        now: START,
        calls: 0,
        told: 0,
        happened: Vec::new(),
    };
    for (number, step) in steps.iter().enumerate() {
        for _ in 0..step.times {
            player.act(number, &step.action);
        }
    }
    let Player {
        lane,
        now,
        told,
        mut happened,
        ..
    } = player;
    let end = lane.finish(now);
    let moves = moves(lane, told);
    if !moves.is_empty() {
        happened.push(Happened {
            step: steps.len(),
            at: end - START,
            answer: None,
            ended: None,
            moves,
        });
    }
    Ok((happened, end))
}

struct Player<'a> {
    lane: &'a mut Lane,
    now: u64,
    calls: u64,
    /// How many moves have been told of.
    told: usize,
    happened: Vec<Happened>,
}

impl Player<'_> {
    fn act(&mut self, step: usize, action: &Action) {
        let at = self.now;
        // What was to happen until now has happened before.
        self.lane.go_to(at);
        let mut answer = None;
        let mut ended = None;
        match action {
            Action::Call {
                ended: end,
                took,
                every,
                retry_after,
            } => {
                ended = Some(*end);
                answer = self.call(*end, *took, *every, *retry_after);
            }
            Action::Wait(length) => {
                self.now = self.now.saturating_add(*length);
                self.lane.go_to(self.now);
            }
            Action::Trip(wait) => self.lane.trip(0, *wait),
            Action::Reset => self.lane.reset(0),
            Action::Mode(mode) => self.lane.set_mode(0, *mode),
            Action::CoolDown => self.lane.cool_down(),
        }
        let moves = moves(self.lane, self.told);
        self.told += moves.len();
        self.happened.push(Happened {
            step,
            at: at - START,
            answer,
            ended,
            moves,
        });
    }

    fn call(
        &mut self,
        ended: Ended,
        took: u64,
        every: Option<u64>,
        retry_after: Option<u64>,
    ) -> Option<Answer> {
        let answer = self.lane.begin(Call {
            begin: self.now,
            end: self.now.saturating_add(took),
            place: self.calls,
            circuit: 0,
            ended,
            status: None,
            retry_after,
        });
        self.calls += 1;
        self.now = match (every, answer) {
            (Some(every), _) => self.now.saturating_add(every),
            (None, Some(Answer::Admitted { end, .. })) => end,
            (None, Some(Answer::Rejected { .. }) | None) => self.now,
        };
        if every.is_none() {
            self.lane.go_to(self.now);
        }
        answer
    }
}

fn moves(lane: &Lane, told: usize) -> Vec<Move> {
    let track = lane.tracks().first();
    track
        .and_then(|track| track.moves.get(told..))
        .unwrap_or_default()
        .to_vec()
}
