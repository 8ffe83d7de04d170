//! What became of one circuit under one policy.

use tripwit::{Breaker, Operation, State, Transition};

/// As many moves of a circuit are kept; the others are only counted.
const MOST_MOVES: usize = 1_000;

/// One circuit under one policy, and what has become of its calls.
#[derive(Debug)]
pub(crate) struct Track {
    pub(super) breaker: Breaker,
    /// What became of its calls.
    pub(crate) counts: Counts,
    /// Its first moves, in order of time.
    pub(crate) moves: Vec<Move>,
    /// How many moves came after those.
    pub(crate) moves_left_out: u64,
    /// How many trips there were.
    pub(crate) trips: u64,
    /// How many re-trips there were.
    pub(crate) re_trips: u64,
    /// How often it became half-open.
    pub(crate) half_opens: u64,
    /// How many resets there were.
    pub(crate) resets: u64,
    /// How long it was open, in nanoseconds.
    pub(crate) open: u64,
    /// How long it was half-open, in nanoseconds.
    pub(crate) half_open: u64,
    /// The state that it is in.
    pub(crate) state: State,
    /// Since when it is in that state.
    since: u64,
}

/// One move of a circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Move {
    /// When, in nanoseconds since the Unix epoch.
    pub(crate) at: u64,
    /// What it did.
    pub(crate) operation: Operation,
    /// The state that it came into.
    pub(crate) after: State,
    /// How long it stays open, in nanoseconds, where a clock decides.
    pub(crate) wait: Option<u64>,
    /// How many cool-down cycles it stays open, where those decide.
    pub(crate) cooldown_count: Option<u32>,
}

/// What became of calls, by how they ended in the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Calls that are made under the policy too.
    pub(crate) made: Results,
    /// Calls that the policy rejects.
    pub(crate) rejected: Results,
    /// Of those made, the ones that the policy's time-out ends earlier.
    pub(crate) timed_out: Results,
}

/// Calls by how they ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Results {
    /// Well.
    pub(crate) good: u64,
    /// Badly.
    pub(crate) failed: u64,
    /// Saying nothing.
    pub(crate) ignored: u64,
}

impl Track {
    pub(super) fn new(breaker: Breaker, now: u64) -> Self {
        Self {
            breaker,
            counts: Counts::default(),
            moves: Vec::new(),
            moves_left_out: 0,
            trips: 0,
            re_trips: 0,
            half_opens: 0,
            resets: 0,
            open: 0,
            half_open: 0,
            state: State::Closed,
            since: now,
        }
    }

    pub(super) fn note(&mut self, transition: &Transition, now: u64) {
        self.until(now);
        self.state = transition.after;
        match transition.operation {
            Operation::Trip => self.trips += 1,
            Operation::ReTrip => self.re_trips += 1,
            Operation::HalfOpen => self.half_opens += 1,
            Operation::Reset => self.resets += 1,
        }
        if self.moves.len() < MOST_MOVES {
            self.moves.push(Move {
                at: now,
                operation: transition.operation,
                after: transition.after,
                wait: transition
                    .wait
                    .map(|wait| u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX)),
                cooldown_count: transition.cooldown_count,
            });
        } else {
            self.moves_left_out += 1;
        }
    }

    /// Counts the time that it has been in its state.
    pub(super) fn until(&mut self, now: u64) {
        let lasted = now.saturating_sub(self.since);
        match self.state {
            State::Closed => {}
            State::Open => self.open += lasted,
            State::HalfOpen => self.half_open += lasted,
        }
        self.since = now;
    }
}
