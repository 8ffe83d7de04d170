//! What `consecutive` does with calls, computed anew: no component, no host, nothing of the command.

use std::collections::BTreeMap;

use crate::night::Call;

/// The settings that matter here. Times are milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) failure_threshold: u32,
    pub(crate) success_threshold: u32,
    pub(crate) open_for: u64,
    pub(crate) call_timeout: u64,
}

/// The policy's defaults.
pub(crate) const DEFAULTS: Settings = Settings {
    failure_threshold: 5,
    success_threshold: 2,
    open_for: 30_000,
    call_timeout: 10_000,
};

/// What becomes of one circuit. Times are milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) made: [u64; 3],
    pub(crate) rejected: [u64; 3],
    pub(crate) timed_out: u64,
    pub(crate) open: u64,
    pub(crate) half_open: u64,
    pub(crate) transitions: Vec<(u64, &'static str)>,
    pub(crate) state: &'static str,
}

enum State {
    Closed { failures: u32 },
    Open { until: u64 },
    HalfOpen { probing: bool, successes: u32 },
}

/// How a call ends: 0 well, 1 badly, 2 saying nothing.
fn ended(status: u16) -> usize {
    match status {
        500..=599 => 1,
        499 => 2,
        _ => 0,
    }
}

struct Machine {
    settings: Settings,
    state: State,
    /// Calls admitted before the last move are not heard any more.
    moves: usize,
    since: u64,
    outcome: Outcome,
}

impl Machine {
    fn go(&mut self, at: u64, name: &'static str, state: State) {
        let lasted = at - self.since;
        match self.state {
            State::Closed { .. } => {}
            State::Open { .. } => self.outcome.open += lasted,
            State::HalfOpen { .. } => self.outcome.half_open += lasted,
        }
        if !name.is_empty() {
            self.outcome.transitions.push((at, name));
        }
        (self.state, self.since) = (state, at);
        self.moves += 1;
    }

    fn open(&mut self, at: u64, name: &'static str) {
        let until = at + self.settings.open_for;
        self.go(at, name, State::Open { until });
    }

    fn admits(&mut self, at: u64) -> bool {
        if matches!(self.state, State::Open { until } if at >= until) {
            self.go(
                at,
                "half-open",
                State::HalfOpen {
                    probing: false,
                    successes: 0,
                },
            );
        }
        match &mut self.state {
            State::Closed { .. } => true,
            State::Open { .. } => false,
            State::HalfOpen { probing, .. } => !std::mem::replace(probing, true),
        }
    }

    fn hear(&mut self, at: u64, how: usize) {
        match (&mut self.state, how) {
            (State::Closed { failures }, 0) => *failures = 0,
            (State::Closed { failures }, 1) => {
                *failures += 1;
                if *failures >= self.settings.failure_threshold {
                    self.open(at, "trip");
                }
            }
            (State::HalfOpen { probing, successes }, 0) => {
                *probing = false;
                *successes += 1;
                if *successes >= self.settings.success_threshold {
                    self.go(at, "reset", State::Closed { failures: 0 });
                }
            }
            (State::HalfOpen { .. }, 1) => self.open(at, "re-trip"),
            (State::HalfOpen { probing, .. }, _) => *probing = false,
            (State::Closed { .. } | State::Open { .. }, _) => {}
        }
    }
}

/// Leads the calls of one circuit, which are in the order of their lines, through `consecutive`; time goes on until `to`.
pub(crate) fn consecutive(calls: &[(usize, Call)], settings: Settings, to: u64) -> Outcome {
    let mut machine = Machine {
        settings,
        state: State::Closed { failures: 0 },
        moves: 0,
        since: 0,
        outcome: Outcome::default(),
    };
    // By time, then by line; of one call the beginning comes first. An end knows what it says and after how many moves it began.
    type Event<'a> = (&'a Call, Option<(usize, usize)>);
    let mut events: BTreeMap<(u64, usize, u8), Event<'_>> = calls
        .iter()
        .map(|(line, call)| ((call.begin, *line, 0), (call, None)))
        .collect();
    while let Some(((at, line, _), (call, ends))) = events.pop_first() {
        match ends {
            Some((how, moves)) => {
                if moves == machine.moves {
                    machine.hear(at, how);
                }
            }
            None if machine.admits(at) => {
                machine.outcome.made[ended(call.status)] += 1;
                let limit = at + settings.call_timeout;
                let (end, how) = if call.end > limit {
                    machine.outcome.timed_out += 1;
                    (limit, 1)
                } else {
                    (call.end, ended(call.status))
                };
                events.insert((end, line, 1), (call, Some((how, machine.moves))));
            }
            None => machine.outcome.rejected[ended(call.status)] += 1,
        }
    }
    machine.outcome.state = match machine.state {
        State::Closed { .. } => "closed",
        State::Open { .. } => "open",
        State::HalfOpen { .. } => "half-open",
    };
    machine.go(to, "", State::Closed { failures: 0 });
    machine.outcome
}
