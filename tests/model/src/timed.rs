//! A breaker that waits by the clock: open for a while, then half-open with a few probes.

use tripwit_core::{Counts, Instant, Mode, Nanoseconds, Operation, RejectionReason, State};

use crate::call::{Call, failures_in_a_row, tally, untimed};
use crate::event::End;
use crate::reference::{Reference, Said, Verdict};
use crate::window::WindowRule;

/// When a closed circuit opens, and what probes prove.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// So many failures in a row open it; so many successful probes close it, and one that failed opens it again.
    Consecutive {
        /// Failures to open.
        failure_threshold: u32,
        /// Probes to close.
        success_threshold: u32,
    },
    /// A share of the last calls opens it.
    Window(WindowRule),
}

/// How long it waits, and how it probes. Nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Waits {
    /// The first wait.
    pub open_for: Nanoseconds,
    /// What it is multiplied by each time.
    pub backoff_factor: u64,
    /// Where that ends.
    pub open_for_max: Nanoseconds,
    /// How long a failure may ask for; 0: it is not heeded.
    pub retry_after_max: Nanoseconds,
    /// How many probes at once.
    pub probes: usize,
    /// When a probe is lost.
    pub probe_timeout: Nanoseconds,
}

/// A probe that is out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Probe {
    permit: usize,
    lost_at: Instant,
}

/// A circuit under such a breaker.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TimedReference {
    rule: Rule,
    waits: Waits,
    mode: Mode,
    state: State,
    /// Permits of calls that were admitted in this stay in closed.
    permits: Vec<usize>,
    /// The calls that ended in this stay in closed, or the probes that did in this stay in half-open; oldest first.
    calls: Vec<Call>,
    open_until: Instant,
    /// How often it opened without closing in between.
    openings: u32,
    out: Vec<Probe>,
}

impl TimedReference {
    /// A closed circuit.
    #[must_use]
    pub fn new(rule: Rule, waits: Waits) -> Self {
        Self {
            rule,
            waits,
            mode: Mode::Automatic,
            state: State::Closed,
            permits: Vec::new(),
            calls: Vec::new(),
            open_until: 0,
            openings: 0,
            out: Vec::new(),
        }
    }

    fn enter(&mut self, state: State) {
        self.state = state;
        self.permits.clear();
        self.calls.clear();
        self.out.clear();
    }

    fn open(&mut self, now: Instant, wait: Nanoseconds) -> Option<Operation> {
        let operation = if self.state == State::Closed {
            Operation::Trip
        } else {
            Operation::ReTrip
        };
        self.enter(State::Open);
        self.openings += 1;
        self.open_until = now + wait;
        Some(operation)
    }

    fn close(&mut self) -> Option<Operation> {
        let moved = (self.state != State::Closed).then_some(Operation::Reset);
        self.enter(State::Closed);
        self.openings = 0;
        moved
    }

    /// The wait of the next opening.
    fn wait(&self, retry_after: Option<Nanoseconds>) -> Nanoseconds {
        let factor = self.waits.backoff_factor.saturating_pow(self.openings);
        let backed_off = self.waits.open_for.saturating_mul(factor);
        let asked = retry_after.unwrap_or(0).min(self.waits.retry_after_max);
        backed_off.min(self.waits.open_for_max).max(asked)
    }

    fn decides(&self) -> bool {
        self.mode == Mode::Automatic || self.mode == Mode::Shadow
    }

    fn live(&self, now: Instant) -> impl Iterator<Item = &Probe> {
        self.out.iter().filter(move |probe| now < probe.lost_at)
    }

    fn may_probe(&self, now: Instant) -> bool {
        let under_way = self.live(now).count();
        let room = match self.rule {
            Rule::Consecutive { .. } => true,
            // No more probes than are judged.
            Rule::Window(window) => self.calls.len() + under_way < window.probe_calls,
        };
        under_way < self.waits.probes && room
    }

    fn opens(&self, now: Instant) -> bool {
        match self.rule {
            Rule::Consecutive {
                failure_threshold, ..
            } => failures_in_a_row(&self.calls) >= failure_threshold as usize,
            Rule::Window(window) => window.opens(&self.calls, now),
        }
    }

    /// What the probes have proved: that the dependency is well, or that it is not, or nothing yet.
    fn verdict(&self) -> Option<bool> {
        match self.rule {
            Rule::Consecutive {
                success_threshold, ..
            } => {
                if self.calls.iter().any(Call::failed) {
                    return Some(false);
                }
                (self.calls.len() >= success_threshold as usize).then_some(true)
            }
            Rule::Window(window) => window.verdict(&self.calls),
        }
    }

    fn settle_call(&mut self, now: Instant, permit: usize, end: End) -> Said {
        self.permits.retain(|known| *known != permit);
        let mut moved = None;
        if end != End::Ignored {
            self.calls.push(Call::new(now, end));
            if self.opens(now) {
                moved = self.open(now, self.wait(end.retry_after()));
            }
        }
        Said {
            counted: Some(true),
            moved,
            ..Said::default()
        }
    }

    fn settle_probe(&mut self, now: Instant, permit: usize, end: End) -> Said {
        self.out.retain(|probe| probe.permit != permit);
        if end != End::Ignored {
            self.calls.push(Call::new(now, end));
        }
        let moved = match self.verdict() {
            None => None,
            Some(true) => self.close(),
            Some(false) => self.open(now, self.wait(end.retry_after())),
        };
        Said {
            counted: Some(true),
            moved,
            ..Said::default()
        }
    }
}

impl Reference for TimedReference {
    fn acquire(&mut self, now: Instant, permit: usize) -> Said {
        let said = |verdict, moved| Said {
            verdict: Some(verdict),
            moved,
            ..Said::default()
        };
        if self.mode == Mode::Disabled {
            return said(Verdict::Passed, None);
        }
        if self.mode == Mode::ForcedOpen {
            return said(Verdict::Rejected(RejectionReason::ForcedOpen, None), None);
        }
        if self.state == State::Closed {
            self.permits.push(permit);
            self.permits.sort_unstable();
            return said(Verdict::Admitted, None);
        }
        let mut moved = None;
        if self.state == State::Open {
            if now < self.open_until {
                let left = self.open_until - now;
                return said(Verdict::Rejected(RejectionReason::Open, Some(left)), None);
            }
            self.enter(State::HalfOpen);
            moved = Some(Operation::HalfOpen);
        }
        if self.may_probe(now) {
            let lost_at = now + self.waits.probe_timeout;
            self.out.retain(|probe| now < probe.lost_at);
            self.out.push(Probe { permit, lost_at });
            return said(Verdict::Admitted, moved);
        }
        let next = self.live(now).map(|probe| probe.lost_at - now).min();
        said(Verdict::Rejected(RejectionReason::ProbeLimit, next), moved)
    }

    fn settle(&mut self, now: Instant, permit: usize, end: End) -> Said {
        let is_probe = self.live(now).any(|probe| probe.permit == permit);
        if self.decides() && self.state == State::Closed && self.permits.contains(&permit) {
            self.settle_call(now, permit, end)
        } else if self.decides() && self.state == State::HalfOpen && is_probe {
            self.settle_probe(now, permit, end)
        } else {
            self.out.retain(|probe| probe.permit != permit);
            Said {
                counted: Some(false),
                ..Said::default()
            }
        }
    }

    fn trip(&mut self, now: Instant, wait: Option<Nanoseconds>) -> Said {
        let wait = wait.unwrap_or_else(|| self.wait(None));
        if self.state == State::Open {
            self.open_until = self.open_until.max(now + wait);
            return Said::default();
        }
        Said {
            moved: self.open(now, wait),
            ..Said::default()
        }
    }

    fn reset(&mut self, _now: Instant) -> Said {
        Said {
            moved: self.close(),
            ..Said::default()
        }
    }

    fn set_mode(&mut self, _now: Instant, mode: Mode) -> Said {
        if mode != self.mode {
            self.mode = mode;
            // Fresh counts, and permits from before are void; an open circuit goes on waiting.
            self.enter(self.state);
        }
        Said::default()
    }

    fn cool_down(&mut self, _now: Instant) -> Said {
        Said::default()
    }

    fn take_over(&mut self, now: Instant, age: Nanoseconds) -> Said {
        self.permits.clear();
        self.out.clear();
        self.open_until = now + self.open_until.saturating_sub(now).saturating_sub(age);
        if let (State::Closed, Rule::Window(window)) = (self.state, self.rule) {
            self.calls = self.calls.iter().map(|call| window.aged(call, age)).collect();
        }
        Said::default()
    }

    fn state(&self) -> State {
        self.state
    }

    fn mode(&self) -> Mode {
        self.mode
    }

    fn counts(&self, now: Instant) -> Counts {
        let kept = match self.rule {
            Rule::Window(window) if self.state == State::Closed => window.kept(&self.calls, now),
            Rule::Window(_) | Rule::Consecutive { .. } => &self.calls,
        };
        let row = u32::try_from(failures_in_a_row(kept)).unwrap_or(u32::MAX);
        let counts = match (self.state, self.rule) {
            (State::Open, _) => Counts::default(),
            (State::Closed, Rule::Window(_)) => tally(kept, true),
            // Only failures in a row matter, so nothing else is counted.
            (State::Closed, Rule::Consecutive { .. }) => Counts {
                successes: 0,
                ..tally(kept.split_at(kept.len() - row as usize).1, false)
            },
            (State::HalfOpen, rule) => {
                let successes = kept.iter().rev().take_while(|call| !call.failed()).count();
                Counts {
                    consecutive_successes: u32::try_from(successes).unwrap_or(u32::MAX),
                    ..tally(kept, matches!(rule, Rule::Window(_)))
                }
            }
        };
        Counts {
            consecutive_failures: row,
            probes_in_flight: u32::try_from(self.live(now).count()).unwrap_or(u32::MAX),
            ..counts
        }
    }

    fn retry_after(&self, now: Instant) -> Option<Nanoseconds> {
        (self.state == State::Open).then(|| self.open_until.saturating_sub(now))
    }

    fn cooldown_count(&self) -> Option<u32> {
        None
    }

    fn reopenings(&self) -> u32 {
        self.openings
    }

    fn essence(&self, now: Instant) -> Self {
        let mut essence = self.clone();
        essence.open_until = match self.state {
            State::Open => self.open_until.saturating_sub(now),
            State::Closed | State::HalfOpen => 0,
        };
        // The wait has reached its end by then, whatever the factor.
        essence.openings = self.openings.min(ENOUGH_OPENINGS);
        essence.out.retain(|probe| now < probe.lost_at);
        for probe in &mut essence.out {
            probe.lost_at -= now;
        }
        essence.out.sort_unstable();
        essence.calls = match (self.state, self.rule) {
            (State::Closed, Rule::Window(window)) => window.essence(&self.calls, now),
            (State::Closed, Rule::Consecutive { .. }) => {
                let row = failures_in_a_row(&self.calls);
                untimed(self.calls.split_at(self.calls.len() - row).1)
            }
            (State::Open | State::HalfOpen, _) => untimed(&self.calls),
        };
        essence
    }

    fn phase(&self, now: Instant) -> Nanoseconds {
        match self.rule {
            Rule::Consecutive { .. } => 0,
            Rule::Window(window) => window.phase(now),
        }
    }

    fn recorded(&self, now: Instant) -> usize {
        self.essence(now).calls.len()
    }

    fn probes(&self) -> u32 {
        u32::try_from(self.waits.probes).unwrap_or(u32::MAX)
    }
}

/// The most openings in a row after which an exploration's wait can still grow.
pub(crate) const ENOUGH_OPENINGS: u32 = 3;
