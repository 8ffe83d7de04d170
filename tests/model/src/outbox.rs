//! Brighter's outbox breaker, as its decision record has it.

use tripwit_core::{Counts, Instant, Mode, Nanoseconds, Operation, RejectionReason, State};

use crate::event::End;
use crate::reference::{Reference, Said, Verdict};

/// The counter of one topic.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OutboxReference {
    cooldown_count: i64,
    mode: Mode,
    /// As in Brighter: no entry while the topic is healthy.
    counter: Option<i64>,
    /// Permits that an operator's reset, a change of mode or a take-over has not made void.
    permits: Vec<usize>,
}

impl OutboxReference {
    /// A healthy topic.
    #[must_use]
    pub fn new(cooldown_count: u32) -> Self {
        Self {
            cooldown_count: i64::from(cooldown_count),
            mode: Mode::Automatic,
            counter: None,
            permits: Vec::new(),
        }
    }

    fn fail(&mut self) -> Option<Operation> {
        let moved = if self.counter.is_some() {
            Operation::ReTrip
        } else {
            Operation::Trip
        };
        self.counter = Some(self.cooldown_count);
        Some(moved)
    }

    fn stands_still(&self) -> bool {
        self.mode == Mode::ForcedOpen || self.mode == Mode::Disabled
    }
}

impl Reference for OutboxReference {
    fn acquire(&mut self, _now: Instant, permit: usize) -> Said {
        let verdict = match (self.mode, self.counter) {
            (Mode::ForcedOpen, _) => Verdict::Rejected(RejectionReason::ForcedOpen, None),
            (Mode::Disabled, _) => Verdict::Passed,
            (Mode::Automatic | Mode::Shadow, Some(_)) => Verdict::Rejected(RejectionReason::Open, None),
            (Mode::Automatic | Mode::Shadow, None) => {
                self.permits.push(permit);
                self.permits.sort_unstable();
                Verdict::Admitted
            }
        };
        Said {
            verdict: Some(verdict),
            ..Said::default()
        }
    }

    fn settle(&mut self, _now: Instant, permit: usize, end: End) -> Said {
        let counted = self.permits.contains(&permit) && !self.stands_still();
        self.permits.retain(|known| *known != permit);
        let failed = match end {
            End::Failure | End::SlowFailure | End::Refusal | End::Timeout => true,
            End::Success | End::SlowSuccess | End::Ignored => false,
        };
        Said {
            counted: Some(counted),
            moved: if counted && failed { self.fail() } else { None },
            ..Said::default()
        }
    }

    fn trip(&mut self, _now: Instant, _wait: Option<Nanoseconds>) -> Said {
        Said {
            moved: self.fail(),
            ..Said::default()
        }
    }

    fn reset(&mut self, _now: Instant) -> Said {
        self.permits.clear();
        Said {
            moved: self.counter.take().map(|_| Operation::Reset),
            ..Said::default()
        }
    }

    fn set_mode(&mut self, _now: Instant, mode: Mode) -> Said {
        if mode != self.mode {
            self.mode = mode;
            self.permits.clear();
        }
        Said::default()
    }

    fn cool_down(&mut self, _now: Instant) -> Said {
        if self.stands_still() {
            return Said::default();
        }
        let cooled = self.counter.map(|counter| counter - 1);
        self.counter = cooled.filter(|counter| *counter >= 0);
        let gone = cooled.is_some() && self.counter.is_none();
        Said {
            moved: gone.then_some(Operation::Reset),
            ..Said::default()
        }
    }

    fn take_over(&mut self, _now: Instant, _age: Nanoseconds) -> Said {
        self.permits.clear();
        Said::default()
    }

    fn state(&self) -> State {
        match self.counter {
            Some(_) => State::Open,
            None => State::Closed,
        }
    }

    fn mode(&self) -> Mode {
        self.mode
    }

    fn counts(&self, _now: Instant) -> Counts {
        Counts::default()
    }

    fn retry_after(&self, _now: Instant) -> Option<Nanoseconds> {
        None
    }

    fn cooldown_count(&self) -> Option<u32> {
        self.counter.and_then(|counter| u32::try_from(counter).ok())
    }

    fn reopenings(&self) -> u32 {
        u32::from(self.counter.is_some())
    }

    fn essence(&self, _now: Instant) -> Self {
        self.clone()
    }

    fn probes(&self) -> u32 {
        0
    }
}
