//! What must hold after every single answer, whatever the policy.

use tripwit::raw::{
    Admission, Cause, Decision, Lease, Mode, Operation, Outcome, RejectionReason, Snapshot, Standing, State,
    Status, SuccessReporting, Told, Transition,
};

use super::case::Case;
use super::circuit::{Circuit, Did, KEY, differences, keeps};
use super::problem::{Checked, Problem, ensure_of};
use super::step::Step;
use super::subject::Voice;
use super::words;

/// What a circuit was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Acquire,
    Settle(Outcome),
    Trip(Option<u64>),
    Reset,
    SetMode(Mode),
    CoolDown,
    Configure,
}

impl Command {
    pub(crate) fn text(self) -> String {
        match self {
            Self::Acquire => "acquire".into(),
            Self::Settle(outcome) => format!("settle {}", words::outcome(outcome)),
            Self::Trip(wait) => Step::Trip(wait).to_string(),
            Self::Reset => "reset".into(),
            Self::SetMode(mode) => Step::SetMode(mode).to_string(),
            Self::CoolDown => "cool-down".into(),
            Self::Configure => "configure".into(),
        }
    }

    /// Who makes the moves that it makes; `None`: it makes none.
    fn cause(self) -> Option<Cause> {
        match self {
            Self::Acquire | Self::Settle(_) => Some(Cause::Policy),
            Self::Trip(_) | Self::Reset => Some(Cause::Operator),
            Self::CoolDown => Some(Cause::CoolDown),
            Self::SetMode(_) | Self::Configure => None,
        }
    }
}

impl Circuit<'_> {
    /// Takes an answer, and holds it against everything that is always so.
    pub(crate) fn after(
        &mut self,
        command: Command,
        did: &Did,
        lease: Lease,
        transition: Option<Transition>,
    ) -> Checked {
        let before = std::mem::replace(&mut self.lease, lease);
        self.answered(command, self.answer(*did, transition));
        let subject = self.subject;
        subject.mind(self.judge_move(command, before.state, transition.as_ref()))?;
        let told = self.judge_told(command, transition.as_ref());
        subject.mind(told)?;
        subject.mind(self.judge_lease(before.generation))?;
        if before.state != lease.state {
            self.since = self.wall();
        }
        if let Some(transition) = &transition {
            subject.mind(judge_edge(command, transition))?;
            subject.mind(self.judge_frozen(command, transition))?;
        }
        Ok(())
    }

    /// Looks at the circuit by `inspect`, and holds what it shows against what is known.
    pub(crate) fn look(&mut self) -> Checked<Status> {
        let status = self.instance.inspect(self.number)?;
        let judged = self.judge_status(&status);
        self.subject.mind(judged)?;
        Ok(status)
    }

    fn judge_status(&mut self, status: &Status) -> Checked {
        let told = self.instance.heard().told.len();
        ensure_of!(Case::Moves, told == 0, "inspect tells nothing", || {
            format!("{told} log lines or spans")
        })?;
        ensure_of!(Case::Keys, status.key == KEY, format!("key {KEY:?}"), || {
            format!("key {:?}", status.key)
        })?;
        ensure_of!(
            Case::Modes,
            status.mode == self.mode,
            format!("mode {}", words::mode(self.mode)),
            || format!("inspect shows {}", words::mode(status.mode)),
        )?;
        ensure_of!(
            Case::Queries,
            status.state == self.lease.state,
            format!(
                "inspect shows {}, as the lease has it",
                words::state(self.lease.state)
            ),
            || words::state(status.state).into(),
        )?;
        ensure_of!(
            Case::Queries,
            status.retry_after.is_none() || status.state == State::Open,
            "retry-after only while open",
            || {
                format!(
                    "{} and retry-after {}",
                    words::state(status.state),
                    words::optional_time(status.retry_after)
                )
            },
        )?;
        ensure_of!(
            Case::Moves,
            status.since == self.since,
            format!("since the last change of state, at {}", self.since),
            || format!("since {}", status.since),
        )?;
        let counts = &status.counts;
        ensure_of!(
            Case::Queries,
            counts.timeouts <= counts.failures,
            "time-outs are among the failures",
            || format!("{counts:?}"),
        )?;
        let out = self
            .permits
            .iter()
            .filter(|permit| permit.probe && permit.generation == self.lease.generation);
        let most = if status.state == State::HalfOpen {
            out.count()
        } else {
            0
        };
        ensure_of!(
            Case::Permits,
            counts.probes_in_flight as usize <= most,
            format!("at most {most} probes in flight"),
            || format!("{} are counted", counts.probes_in_flight),
        )
    }

    /// Looks in every way that there is, and sees that looking changes nothing.
    pub(crate) fn look_around(&mut self) -> Checked<Status> {
        let before = self.look()?;
        let lease = self.instance.lease_of(self.number)?;
        let tripped = self.instance.tripped()?;
        let snapshot = self.instance.save(self.number)?;
        let again = self.instance.describe()?;
        let after = self.look()?;
        let changed = differences(&before, &after);
        self.subject.mind(ensure_of!(
            Case::Queries,
            changed.is_none(),
            "looking changes nothing",
            || changed.unwrap_or_default(),
        ))?;
        self.subject.mind(ensure_of!(
            Case::Description,
            again.name == self.subject.policy.description().name,
            "the same description",
            || format!("now the name is {:?}", again.name),
        ))?;
        let judged = self.judge_looks(&before, &lease, &tripped, &snapshot);
        self.subject.mind(judged)?;
        self.lease = lease;
        Ok(before)
    }

    fn judge_looks(
        &self,
        before: &Status,
        lease: &Lease,
        tripped: &[String],
        snapshot: &Snapshot,
    ) -> Checked {
        let named: &[&str] = if before.state == State::Closed {
            &[]
        } else {
            &[KEY]
        };
        ensure_of!(
            Case::Queries,
            tripped == named,
            format!("tripped names {named:?}"),
            || format!("{tripped:?}"),
        )?;
        let same = (
            snapshot.state,
            snapshot.mode,
            snapshot.retry_after,
            snapshot.cooldown_count,
            snapshot.since,
        ) == (
            before.state,
            before.mode,
            before.retry_after,
            before.cooldown_count,
            before.since,
        );
        ensure_of!(
            Case::Snapshots,
            same && snapshot.key == KEY,
            "the snapshot says what inspect shows: key, state, mode, wait, cycles, since",
            || {
                format!(
                    "{} with wait {}, cycles {:?}, mode {}",
                    words::state(snapshot.state),
                    words::optional_time(snapshot.retry_after),
                    snapshot.cooldown_count,
                    words::mode(snapshot.mode)
                )
            },
        )?;
        let (held, now) = (&self.lease, (lease.generation, lease.state, lease.mode));
        ensure_of!(
            Case::Queries,
            now == (held.generation, held.state, held.mode),
            format!(
                "the lease of generation {}: {}",
                held.generation,
                words::lease(held)
            ),
            || {
                format!(
                    "lease-of answers one of generation {}: {}",
                    lease.generation,
                    words::lease(&lease)
                )
            },
        )?;
        let holds = held.until.is_none_or(|until| self.latest.max(self.now()) < until);
        ensure_of!(
            Case::Leases,
            !holds || held.standing == Standing::Ask || held.standing == lease.standing,
            words::lease(held),
            || format!("lease-of answers {}", words::lease(&lease)),
        )?;
        Ok(())
    }

    /// Holds a decision against what the lease before it promised, and against the mode.
    pub(crate) fn judge_decision(&self, before: &Lease, admission: &Admission, now: u64) -> Checked {
        let got = || format!("{:?}", admission.decision);
        let by_mode = match self.mode {
            Mode::ForcedOpen => {
                matches!(&admission.decision, Decision::Reject(r) if r.reason == RejectionReason::ForcedOpen)
            }
            Mode::Disabled => matches!(admission.decision, Decision::Pass),
            Mode::Automatic | Mode::Shadow => {
                !matches!(&admission.decision, Decision::Reject(r) if r.reason == RejectionReason::ForcedOpen)
            }
        };
        ensure_of!(
            Case::Modes,
            by_mode,
            format!("the decision that {} asks for", words::mode(self.mode)),
            got,
        )?;
        let holds = before.until.is_none_or(|until| now < until);
        let case = if self.stepped_back {
            Case::Clock
        } else {
            Case::Leases
        };
        ensure_of!(
            case,
            !holds || keeps(before, admission),
            format!("what the lease promised: {}", words::lease(before)),
            got,
        )?;
        if let (Decision::Reject(rejection), Standing::Reject(_)) = (&admission.decision, self.lease.standing)
        {
            let left = self.lease.until.map(|until| until.saturating_sub(now));
            ensure_of!(
                Case::Leases,
                self.now() < now || rejection.retry_after == left,
                format!(
                    "retry after {}, the lease's `until` less now",
                    words::optional_time(left)
                ),
                || format!("retry after {}", words::optional_time(rejection.retry_after)),
            )?;
        }
        Ok(())
    }

    fn judge_move(&self, command: Command, before: State, transition: Option<&Transition>) -> Checked {
        let after = self.lease.state;
        let Some(transition) = transition else {
            return ensure_of!(
                Case::Moves,
                before == after,
                "a move in the answer: the state changed",
                || {
                    format!(
                        "no move, and the lease went from {} to {}",
                        words::state(before),
                        words::state(after)
                    )
                },
            );
        };
        let told = (transition.before, transition.after);
        ensure_of!(
            Case::Moves,
            told == (before, after),
            format!("a move from {} to {}", words::state(before), words::state(after)),
            || words::moved(Some(transition)),
        )?;
        ensure_of!(
            Case::Moves,
            transition.at == self.wall(),
            format!("a move at {} by the wall clock", self.wall()),
            || format!("one at {}", transition.at),
        )?;
        ensure_of!(
            Case::Modes,
            command.cause().is_some(),
            format!("{} makes no move", command.text()),
            || words::moved(Some(transition)),
        )
    }

    /// One span and one log line for each move, where the policy tells anything at all.
    fn judge_told(&mut self, command: Command, transition: Option<&Transition>) -> Checked {
        let heard = self.instance.heard();
        let (mut spans, mut lines) = (Vec::new(), Vec::new());
        for told in heard.told {
            match told {
                Told::Span { name, start, end, .. } => spans.push((name, start, end)),
                Told::Line {
                    level,
                    message,
                    fields,
                } => lines.push((level, message, fields)),
            }
        }
        let Some(voice) = self.subject.voice.get() else {
            let told = Voice {
                spans: !spans.is_empty(),
                lines: !lines.is_empty(),
            };
            self.subject.hears(told);
            return Ok(());
        };
        let moves = usize::from(transition.is_some());
        ensure_of!(
            Case::Moves,
            spans.len() == moves || (!voice.spans && spans.is_empty()),
            format!("{moves} spans for {moves} moves"),
            || {
                format!(
                    "{} spans: {:?}",
                    spans.len(),
                    spans.iter().map(|(name, ..)| name).collect::<Vec<_>>()
                )
            },
        )?;
        if let (Some((name, start, end)), Some(transition)) = (spans.first(), transition) {
            let operation = words::operation(transition.operation);
            let named = name.replace('_', "-");
            let fits = named.starts_with(KEY) && named.contains(operation) && start <= end;
            let span = ensure_of!(
                Case::Moves,
                fits,
                format!(
                    "a span named after key and operation, such as \"{KEY} {operation}\", that ends after it began"
                ),
                || format!("{name:?} from {start} to {end}")
            );
            span?;
        }
        let messages = || {
            lines
                .iter()
                .map(|(_, message, _)| message.clone())
                .collect::<Vec<_>>()
        };
        let twice = lines
            .iter()
            .enumerate()
            .any(|(place, line)| lines.iter().skip(place + 1).any(|other| other == line));
        ensure_of!(Case::Moves, !twice, "a log line once", || {
            format!("twice: {:?}", messages())
        })?;
        if moves == 1 {
            ensure_of!(
                Case::Moves,
                !voice.lines || !lines.is_empty(),
                "a log line for the move",
                || "none".into(),
            )?;
            messages()
                .iter()
                .for_each(|message| self.subject.learn_line(message));
        } else if let Some(message) = messages()
            .iter()
            .find(|message| self.subject.tells_a_move(message))
        {
            return Err(Problem::of(
                Case::Moves,
                "no log line of a move where there was none",
                message.clone(),
            ));
        }
        if lines.len() > 1 || (lines.len() > moves && !matches!(command, Command::SetMode(_))) {
            self.subject.note(format!(
                "writes further log lines, such as {:?}",
                messages().first()
            ));
        }
        Ok(())
    }

    fn judge_lease(&self, generation: u64) -> Checked {
        let lease = &self.lease;
        let got = || words::lease(lease);
        ensure_of!(
            Case::Generations,
            lease.generation >= generation,
            format!("generation {generation} or a later one"),
            || format!("generation {}", lease.generation),
        )?;
        ensure_of!(
            Case::Modes,
            lease.mode == self.mode,
            format!("mode {}", words::mode(self.mode)),
            got,
        )?;
        let by_mode = match self.mode {
            Mode::ForcedOpen => matches!(
                lease.standing,
                Standing::Reject(RejectionReason::ForcedOpen) | Standing::Ask
            ),
            Mode::Disabled => matches!(lease.standing, Standing::Pass | Standing::Ask),
            Mode::Automatic | Mode::Shadow => true,
        };
        ensure_of!(
            Case::Modes,
            by_mode,
            format!("a lease as {} asks for", words::mode(self.mode)),
            got,
        )?;
        let ended = lease.standing != Standing::Ask && lease.until.is_some_and(|until| until <= self.now());
        ensure_of!(
            Case::Leases,
            !ended,
            format!("a lease that holds beyond {}", words::time(self.now())),
            got,
        )?;
        let nothing =
            matches!(lease.successes, SuccessReporting::UpTo(allowance) if allowance.successes == 0);
        ensure_of!(Case::Leases, !nothing, "an allowance of at least 1", got)
    }

    fn judge_frozen(&self, command: Command, transition: &Transition) -> Checked {
        let frozen = matches!(self.mode, Mode::ForcedOpen | Mode::Disabled);
        let commanded = matches!(command, Command::Trip(_) | Command::Reset);
        ensure_of!(
            Case::Modes,
            !frozen || commanded,
            format!("the state stands still in {}", words::mode(self.mode)),
            || words::moved(Some(transition)),
        )
    }
}

/// Whether a move keeps to the edges that there are.
fn judge_edge(command: Command, transition: &Transition) -> Checked {
    let declared = match (transition.operation, transition.before, transition.after) {
        (Operation::Trip, State::Closed, State::Open)
        | (Operation::ReTrip, State::Open | State::HalfOpen, State::Open)
        | (Operation::HalfOpen, State::Open, State::HalfOpen)
        | (Operation::Reset, State::Open | State::HalfOpen, State::Closed) => true,
        (Operation::Trip | Operation::ReTrip | Operation::HalfOpen | Operation::Reset, _, _) => false,
    };
    ensure_of!(
        Case::Edges,
        declared,
        "trip: closed to open; half-open: open to half-open; re-trip: open or half-open to open; reset: to closed",
        || words::moved(Some(transition)),
    )?;
    let cause = command.cause();
    ensure_of!(
        Case::Edges,
        cause.is_none_or(|cause| cause == transition.cause),
        format!("a move by {}", cause.map_or("nobody", words::cause)),
        || words::moved(Some(transition)),
    )
}
