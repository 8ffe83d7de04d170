//! Brighter's outbox breaker: a topic that fails is left out of so many cool-down cycles.

use crate::{
    Context, Cooled, Counts, Decision, Field, Instant, Integer, Nanoseconds, Operation, Outcome, Policy,
    Rejection, RejectionReason, Report, Saved, Settings, SettingsError, SnapshotError, Standing, State,
    Successes, Telemetry, Terms, Ticket, Transition,
};

/// The policy `outbox`.
///
/// The first failure trips; each further one, whenever it comes, is a re-trip that restores the full count. With a count
/// of N the topic stays tripped for N cool-downs and is reset by the one after. No clock, no probes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Outbox {
    phase: Phase,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Phase {
    Closed,
    Tripped { cycles_left: u32 },
}

/// The settings of [`Outbox`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OutboxSettings {
    cooldown_count: u32,
}

/// How many cool-downs a tripped topic outlasts. The default is Brighter's.
const COOLDOWN_COUNT: Integer = Integer {
    name: "cooldown_count",
    min: 0,
    max: 1_000_000,
    default: 10,
    about: "How many cool-down cycles a tripped topic outlasts; the next one resets it. 0: the first one does.",
};

impl Outbox {
    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
    }

    fn open(&mut self, cx: &Context<'_, OutboxSettings>) -> Option<Transition> {
        let before = self.state();
        let cycles_left = cx.settings.cooldown_count;
        self.enter(Phase::Tripped { cycles_left });
        Some(Transition {
            operation: if before == State::Closed {
                Operation::Trip
            } else {
                Operation::ReTrip
            },
            cause: cx.cause,
            before,
            after: State::Open,
            wait: None,
            cooldown_count: Some(cycles_left),
        })
    }

    fn close(&mut self, cx: &Context<'_, OutboxSettings>) -> Option<Transition> {
        let before = self.state();
        self.enter(Phase::Closed);
        (before != State::Closed).then_some(Transition {
            operation: Operation::Reset,
            cause: cx.cause,
            before,
            after: State::Closed,
            wait: None,
            cooldown_count: Some(0),
        })
    }
}

impl Policy for Outbox {
    type Settings = OutboxSettings;

    const NAME: &'static str = "outbox";
    const SUMMARY: &'static str = "Trips a topic at its first failure and leaves it out for so many cool-down cycles, as Brighter's outbox does.";
    const FIELDS: &'static [&'static dyn Field] = &[&COOLDOWN_COUNT];
    const TELEMETRY: Telemetry = Telemetry {
        namespace: "paramore.brighter",
        scope: "Paramore.Brighter",
    };
    const LATE_RESULTS_COUNT: bool = true;

    fn settings(settings: &Settings) -> Result<Self::Settings, SettingsError> {
        Ok(OutboxSettings {
            cooldown_count: COOLDOWN_COUNT.read(settings)?,
        })
    }

    fn closed(_settings: &Self::Settings) -> Self {
        Self { phase: Phase::Closed }
    }

    fn state(&self) -> State {
        match self.phase {
            Phase::Closed => State::Closed,
            Phase::Tripped { .. } => State::Open,
        }
    }

    fn acquire(&mut self, cx: &mut Context<'_, Self::Settings>) -> (Decision, Option<Transition>) {
        let decision = match self.phase {
            Phase::Closed => Decision::Admit(cx.generation),
            Phase::Tripped { .. } => Decision::Reject(Rejection {
                reason: RejectionReason::Open,
                retry_after: None,
            }),
        };
        (decision, None)
    }

    fn settle(
        &mut self,
        ticket: Ticket,
        report: &Report,
        cx: &mut Context<'_, Self::Settings>,
    ) -> (bool, Option<Transition>) {
        if ticket != cx.generation {
            return (false, None);
        }
        match report.outcome {
            Outcome::Success | Outcome::Ignored => (true, None),
            Outcome::Failure | Outcome::Timeout => (true, self.open(cx)),
        }
    }

    fn settle_successes(
        &mut self,
        _ticket: Ticket,
        _count: u32,
        _cx: &mut Context<'_, Self::Settings>,
    ) -> Option<Transition> {
        None
    }

    fn terms(&self, _settings: &Self::Settings, generation: u64, _now: Instant) -> Terms {
        let standing = match self.phase {
            Phase::Closed => Standing::Admit(generation),
            Phase::Tripped { .. } => Standing::Reject(RejectionReason::Open),
        };
        Terms {
            standing,
            until: None,
            successes: Successes::Never,
            slow_after: None,
            call_timeout: None,
        }
    }

    fn trip(
        &mut self,
        _wait: Option<Nanoseconds>,
        cx: &mut Context<'_, Self::Settings>,
    ) -> Option<Transition> {
        self.open(cx)
    }

    fn reset(&mut self, cx: &mut Context<'_, Self::Settings>) -> Option<Transition> {
        self.close(cx)
    }

    fn cool_down(&mut self, cx: &mut Context<'_, Self::Settings>) -> Cooled {
        match &mut self.phase {
            Phase::Closed => Cooled::Untouched,
            Phase::Tripped { cycles_left: 0 } => Cooled::Counted(self.close(cx)),
            Phase::Tripped { cycles_left } => {
                *cycles_left = cycles_left.saturating_sub(1);
                Cooled::Counted(None)
            }
        }
    }

    fn start_afresh(&mut self, _settings: &Self::Settings) {}

    fn configure(&mut self, _old: &Self::Settings, _new: &Self::Settings, _now: Instant) {}

    fn counts(&self, _settings: &Self::Settings, _now: Instant) -> Counts {
        Counts::default()
    }

    fn retry_after(&self, _now: Instant) -> Option<Nanoseconds> {
        None
    }

    fn cooldown_count(&self) -> Option<u32> {
        match self.phase {
            Phase::Closed => None,
            Phase::Tripped { cycles_left } => Some(cycles_left),
        }
    }

    fn reopenings(&self) -> u32 {
        match self.phase {
            Phase::Closed => 0,
            Phase::Tripped { .. } => 1,
        }
    }

    fn restore(
        saved: &Saved,
        _detail: &[u8],
        _age: Nanoseconds,
        cx: &mut Context<'_, Self::Settings>,
    ) -> Result<Self, SnapshotError> {
        let phase = match saved.state {
            State::Closed => Phase::Closed,
            State::Open | State::HalfOpen => {
                let full = cx.settings.cooldown_count;
                Phase::Tripped {
                    cycles_left: saved.cooldown_count.unwrap_or(full).min(COOLDOWN_COUNT.max),
                }
            }
        };
        Ok(Self { phase })
    }
}
