//! One circuit of a component that is asked about everything, and watched while it answers.

use std::fmt;
use std::time::{Duration, SystemTime};

use tripwit::raw::{
    Admission, AttachError, Decision, Instance, Lease, Mode, Moved, Outcome, RejectionReason, Report,
    Snapshot, Standing, State, Status, Transition,
};
use tripwit::{Clock, ManualClock};

use super::case::Case;
use super::history::{Entry, What};
use super::problem::{Checked, Problem, ensure_of};
use super::step::Step;
use super::subject::Subject;
use super::watch::Command;
use super::words;

/// The key of every circuit that is alone in its instance.
pub(crate) const KEY: &str = "orders";
const SECOND: u64 = 1_000_000_000;
/// Where clocks begin: late enough that they can step back.
const START: Duration = Duration::from_secs(3600);

/// A circuit, alone in an instance of its own.
#[derive(Debug)]
pub(crate) struct Circuit<'s> {
    pub(crate) subject: &'s Subject,
    pub(crate) instance: Instance,
    pub(crate) clock: ManualClock,
    pub(crate) number: u32,
    /// The lease as it was last handed out.
    pub(crate) lease: Lease,
    /// The mode that was set last.
    pub(crate) mode: Mode,
    /// The calls under way.
    pub(crate) permits: Vec<Permit>,
    /// Tickets that can count no more.
    pub(crate) void: Vec<u64>,
    /// When it came into its state, by the wall clock.
    pub(crate) since: u64,
    /// The largest reading of the clock that the component can have seen.
    pub(crate) latest: u64,
    /// Who it is in the list of steps, where there are two.
    pub(crate) name: &'static str,
    /// Its clock has stepped back at some time.
    pub(crate) stepped_back: bool,
    /// Leaves no trace in the list of steps.
    pub(crate) quiet: bool,
}

/// The permit of a call under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Permit {
    pub(crate) ticket: u64,
    pub(crate) generation: u64,
    /// Given out in half-open, and not shared with other calls.
    pub(crate) probe: bool,
    started: u64,
    call_timeout: Option<u64>,
    measured: bool,
}

/// What came of a step, as far as two circuits can be compared by it: without tickets and generations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) did: Did,
    pub(crate) transition: Option<Transition>,
    /// The lease that came with it, if one did.
    pub(crate) lease: Option<Lease>,
}

/// What was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Did {
    Nothing,
    Admitted,
    Passed,
    Rejected(RejectionReason, Option<u64>),
    Settled(bool),
    Cooled(bool),
}

impl<'s> Circuit<'s> {
    /// A new circuit in a new instance. A new list of steps begins.
    pub(crate) fn new(subject: &'s Subject, settings: &str) -> Checked<Self> {
        subject.begin(settings);
        let clock = ManualClock::new();
        clock.advance(START);
        Self::beside(subject, settings, clock, "")
    }

    /// A new circuit in a new instance on this clock; the list of steps goes on.
    pub(crate) fn beside(
        subject: &'s Subject,
        settings: &str,
        clock: ManualClock,
        name: &'static str,
    ) -> Checked<Self> {
        let instance = subject.start(&clock)?;
        Self::of(subject, instance, settings, clock, name)
    }

    /// A new circuit in this instance, which has none.
    pub(crate) fn of(
        subject: &'s Subject,
        mut instance: Instance,
        settings: &str,
        clock: ManualClock,
        name: &'static str,
    ) -> Checked<Self> {
        let attached = instance
            .attach(KEY, settings)?
            .map_err(|error| Problem::refused(&error))?;
        Ok(Self::with(
            subject,
            instance,
            attached.circuit,
            attached.lease,
            clock,
            name,
        ))
    }

    fn with(
        subject: &'s Subject,
        instance: Instance,
        number: u32,
        lease: Lease,
        clock: ManualClock,
        name: &'static str,
    ) -> Self {
        Self {
            subject,
            instance,
            number,
            mode: lease.mode,
            lease,
            permits: Vec::new(),
            void: Vec::new(),
            since: wall(&clock),
            latest: clock.monotonic(),
            clock,
            name,
            stepped_back: false,
            quiet: false,
        }
    }

    /// A circuit in a new instance, taken over from a snapshot. Its clock shows the same time.
    pub(crate) fn restored(&self, snapshot: &Snapshot, settings: &str, age: u64) -> Checked<Self> {
        let clock = self.same_time();
        let mut instance = self.subject.start(&clock)?;
        self.did(
            &format!("restore in a new instance, {} old", words::time(age)),
            "",
        );
        let attached = instance.restore(snapshot, settings, age)?.map_err(|error| {
            Problem::of(
                Case::Snapshots,
                "the snapshot accepted",
                super::problem::refusal(&error),
            )
        })?;
        let mut circuit = Self::with(
            self.subject,
            instance,
            attached.circuit,
            attached.lease,
            clock,
            "restored",
        );
        circuit.since = snapshot.since;
        Ok(circuit)
    }

    /// The circuit in a new instance, by way of a snapshot. The calls under way are over for both.
    pub(crate) fn over(&mut self, settings: &str) -> Checked<Self> {
        let snapshot = self.save()?;
        self.permits.clear();
        self.restored(&snapshot, settings, 0)
    }

    /// Another clock that shows what this circuit's clock shows.
    pub(crate) fn same_time(&self) -> ManualClock {
        let clock = ManualClock::new();
        clock.set_monotonic(self.clock.monotonic());
        clock.set_wall(self.clock.wall());
        clock
    }

    /// The time by the monotonic clock.
    pub(crate) fn now(&self) -> u64 {
        self.clock.monotonic()
    }

    /// The time by the wall clock.
    pub(crate) fn wall(&self) -> u64 {
        wall(&self.clock)
    }

    /// Does what a step says.
    pub(crate) fn step(&mut self, step: Step) -> Checked<Answer> {
        match step {
            Step::Advance(by) => {
                self.advance(by);
                Ok(Answer::NOTHING)
            }
            Step::StepBack(by) => {
                self.stepped(step);
                self.stepped_back = true;
                self.clock.set_monotonic(self.now().saturating_sub(by));
                Ok(Answer::NOTHING)
            }
            Step::Acquire => self.acquire(),
            Step::End(call, outcome) => self.end(call, outcome),
            Step::Trip(wait) => self.trip(wait),
            Step::Reset => self.reset(),
            Step::SetMode(mode) => self.set_mode(mode),
            Step::CoolDown => self.cool_down(),
        }
    }

    /// Lets time pass. Nanoseconds.
    pub(crate) fn advance(&mut self, by: u64) {
        self.stepped(Step::Advance(by));
        self.clock.advance(Duration::from_nanos(by));
    }

    /// Asks to make a call.
    pub(crate) fn acquire(&mut self) -> Checked<Answer> {
        let now = self.see_time();
        let before = self.lease;
        let admission = self.instance.acquire(self.number)?;
        let did = match admission.decision {
            Decision::Admit(_) => Did::Admitted,
            Decision::Pass => Did::Passed,
            Decision::Reject(rejection) => Did::Rejected(rejection.reason, rejection.retry_after),
        };
        self.after(Command::Acquire, &did, admission.lease, admission.transition)?;
        self.subject.mind(self.judge_decision(&before, &admission, now))?;
        if let Decision::Admit(ticket) = admission.decision {
            let lease = &self.lease;
            self.permits.push(Permit {
                ticket,
                generation: lease.generation,
                probe: lease.state == State::HalfOpen && lease.standing != Standing::Admit(ticket),
                started: now,
                call_timeout: lease.call_timeout,
                measured: lease.call_timeout.is_some() || lease.slow_after.is_some(),
            });
        }
        Ok(self.answer(did, admission.transition))
    }

    /// Ends a call under way, as a host does: one that ran too long is a time-out.
    pub(crate) fn end(&mut self, call: usize, outcome: Outcome) -> Checked<Answer> {
        let Some(place) = call.checked_rem(self.permits.len()) else {
            return Ok(Answer::NOTHING);
        };
        let permit = self.permits.remove(place);
        let took = self.now().saturating_sub(permit.started);
        let late = permit.call_timeout.is_some_and(|limit| took > limit);
        let outcome = match outcome {
            Outcome::Success | Outcome::Failure if late => Outcome::Timeout,
            outcome => outcome,
        };
        if permit.probe {
            self.void.push(permit.ticket);
        }
        let mut report = report(outcome);
        report.took = permit.measured.then_some(took);
        if permit.generation < self.lease.generation {
            return self.settle_void(permit.ticket, &report, Case::Generations);
        }
        let shared = self.lease.standing == Standing::Admit(permit.ticket);
        let answer = self.settle(permit.ticket, &report)?;
        let frozen = matches!(self.mode, Mode::ForcedOpen | Mode::Disabled);
        self.subject.mind(ensure_of!(
            Case::Permits,
            !shared || frozen || answer.did == Did::Settled(true),
            "the report counts: its ticket is that of the lease",
            || "it did not count".into(),
        ))?;
        Ok(answer)
    }

    /// Settles a ticket.
    pub(crate) fn settle(&mut self, ticket: u64, report: &Report) -> Checked<Answer> {
        self.see_time();
        let settlement = self.instance.settle(self.number, ticket, report)?;
        let did = Did::Settled(settlement.counted);
        self.after(
            Command::Settle(report.outcome),
            &did,
            settlement.lease,
            settlement.transition,
        )?;
        Ok(self.answer(did, settlement.transition))
    }

    /// Settles a ticket that must not count, and sees that nothing changes.
    pub(crate) fn settle_void(&mut self, ticket: u64, report: &Report, case: Case) -> Checked<Answer> {
        let (before, lease) = (self.look()?, self.lease);
        let answer = self.settle(ticket, report)?;
        let void = match case {
            Case::Generations => "a ticket of an older generation",
            _ => "a ticket that is used up or unknown",
        };
        self.subject.mind(ensure_of!(
            case,
            answer.did == Did::Settled(false) && answer.transition.is_none(),
            format!("{void} does not count and moves nothing"),
            || answer.to_string(),
        ))?;
        let after = self.look()?;
        let same = without_lost(&before) == without_lost(&after)
            && (lease.generation, lease.state) == (self.lease.generation, self.lease.state);
        self.subject
            .mind(ensure_of!(case, same, format!("{void} changes nothing"), || {
                differences(&before, &after).unwrap_or_else(|| {
                    format!("generation {} became {}", lease.generation, self.lease.generation)
                })
            }))?;
        Ok(answer)
    }

    /// An operator opens the circuit.
    pub(crate) fn trip(&mut self, wait: Option<u64>) -> Checked<Answer> {
        self.see_time();
        let moved = self.instance.trip(self.number, wait)?;
        self.moved(Command::Trip(wait), &moved)
    }

    /// An operator closes the circuit.
    pub(crate) fn reset(&mut self) -> Checked<Answer> {
        self.see_time();
        let before = self.lease.generation;
        let moved = self.instance.reset(self.number)?;
        let answer = self.moved(Command::Reset, &moved)?;
        self.starts_generation("a reset", before)?;
        Ok(answer)
    }

    /// An operator says who decides.
    pub(crate) fn set_mode(&mut self, mode: Mode) -> Checked<Answer> {
        self.see_time();
        let (before, changes) = (self.lease, self.mode != mode);
        self.mode = mode;
        let moved = self.instance.set_mode(self.number, mode)?;
        let answer = self.moved(Command::SetMode(mode), &moved)?;
        if changes {
            self.starts_generation("a change of mode", before.generation)?;
        } else {
            self.subject.mind(ensure_of!(
                Case::Modes,
                before.generation == self.lease.generation,
                "a mode that is set already changes nothing",
                || "a new generation".into(),
            ))?;
        }
        Ok(answer)
    }

    /// Changes the settings.
    pub(crate) fn configure(&mut self, settings: &str) -> Checked<Result<Answer, AttachError>> {
        self.see_time();
        match self.instance.configure(self.number, settings)? {
            Ok(moved) => Ok(Ok(self.moved(Command::Configure, &moved)?)),
            Err(error) => {
                self.did("configure", &super::problem::refusal(&error));
                Ok(Err(error))
            }
        }
    }

    /// One cool-down cycle.
    pub(crate) fn cool_down(&mut self) -> Checked<Answer> {
        self.see_time();
        let (before, lease) = (self.look()?, self.lease);
        let all = self.instance.cool_down()?;
        self.subject.mind(ensure_of!(
            Case::CoolDown,
            all.iter().all(|(circuit, _)| *circuit == self.number) && all.len() <= 1,
            "at most the one circuit that there is, once",
            || {
                format!(
                    "circuits {:?}",
                    all.iter().map(|(circuit, _)| circuit).collect::<Vec<_>>()
                )
            },
        ))?;
        let Some((_, moved)) = all.first() else {
            self.did("cool-down", "no circuit changed");
            let (after, now) = (self.look()?, self.instance.lease_of(self.number)?);
            let same = before == after && (lease.state, lease.generation) == (now.state, now.generation);
            self.subject.mind(ensure_of!(
                Case::CoolDown,
                same,
                "a circuit that is not returned has not changed",
                || differences(&before, &after).unwrap_or_else(|| words::lease(&now)),
            ))?;
            return Ok(Answer {
                did: Did::Cooled(false),
                ..Answer::NOTHING
            });
        };
        let did = Did::Cooled(true);
        self.after(Command::CoolDown, &did, moved.lease, moved.transition)?;
        let after = self.look()?;
        self.subject.mind(ensure_of!(
            Case::CoolDown,
            before.cooldown_count.is_some() && before != after,
            "only circuits that count cycles, and whose count or lease changed, are returned",
            || {
                format!(
                    "a {} circuit was, with cool-down count {:?}, then {:?}",
                    words::state(before.state),
                    before.cooldown_count,
                    after.cooldown_count
                )
            },
        ))?;
        Ok(self.answer(did, moved.transition))
    }

    /// Copies the circuit.
    pub(crate) fn save(&mut self) -> Checked<Snapshot> {
        self.see_time();
        let snapshot = self.instance.save(self.number)?;
        self.did("save", "");
        Ok(snapshot)
    }

    /// Opens the circuit.
    pub(crate) fn open(&mut self) -> Checked {
        self.trip(None)?;
        ensure_of!(
            Case::Operator,
            self.lease.state == State::Open,
            "trip opens the circuit",
            || format!("it is {}", words::state(self.lease.state)),
        )
    }

    /// Opens the circuit and waits until it is half-open, with one probe under way. `false`: no clock decides.
    pub(crate) fn half_open(&mut self) -> Checked<bool> {
        self.open()?;
        for _ in 0..8 {
            let Some(left) = self.look()?.retry_after else {
                return Ok(false);
            };
            self.advance(left);
            self.acquire()?;
            if self.lease.state == State::HalfOpen {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Writes down what was done, and what came of it.
    pub(crate) fn did(&self, what: &str, answer: &str) {
        let arrow = if answer.is_empty() { "" } else { " -> " };
        self.write(What::Other(format!("{what}{arrow}{answer}")));
    }

    /// Writes down a step that brings no answer.
    fn stepped(&self, step: Step) {
        self.write(What::Step(step));
    }

    /// Writes down a command and its answer.
    pub(crate) fn answered(&self, command: Command, answer: Answer) {
        self.write(What::Answered(command, answer));
    }

    fn write(&self, what: What) {
        if !self.quiet {
            let name = self.name;
            self.subject.did(Entry { name, what });
        }
    }

    /// What came of a step.
    pub(crate) fn answer(&self, did: Did, transition: Option<Transition>) -> Answer {
        let mut lease = self.lease;
        lease.generation = 0;
        if let Standing::Admit(ticket) = &mut lease.standing {
            *ticket = 0;
        }
        Answer {
            did,
            transition,
            lease: Some(lease),
        }
    }

    fn moved(&mut self, command: Command, moved: &Moved) -> Checked<Answer> {
        self.after(command, &Did::Nothing, moved.lease, moved.transition)?;
        Ok(self.answer(Did::Nothing, moved.transition))
    }

    fn see_time(&mut self) -> u64 {
        self.latest = self.latest.max(self.now());
        self.latest
    }

    /// Sees that a new generation has begun.
    pub(crate) fn starts_generation(&self, what: &str, before: u64) -> Checked {
        self.subject.mind(ensure_of!(
            Case::Generations,
            self.lease.generation > before,
            format!("{what} starts a new generation, above {before}"),
            || format!("generation {}", self.lease.generation),
        ))
    }
}

impl Answer {
    const NOTHING: Self = Self {
        did: Did::Nothing,
        transition: None,
        lease: None,
    };
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.did {
            Did::Nothing => {}
            Did::Admitted => f.write_str("admitted, ")?,
            Did::Passed => f.write_str("passed, ")?,
            Did::Rejected(reason, retry_after) => write!(
                f,
                "rejected ({}, retry after {}), ",
                words::reason(reason),
                words::optional_time(retry_after)
            )?,
            Did::Settled(true) => f.write_str("counted, ")?,
            Did::Settled(false) => f.write_str("not counted, ")?,
            Did::Cooled(true) => f.write_str("returned, ")?,
            Did::Cooled(false) => f.write_str("not returned, ")?,
        }
        f.write_str(&words::moved(self.transition.as_ref()))?;
        match &self.lease {
            Some(lease) => write!(f, "; {}", words::lease(lease)),
            None => Ok(()),
        }
    }
}

/// A report of this outcome and nothing else.
pub(crate) fn report(outcome: Outcome) -> Report {
    Report {
        outcome,
        took: None,
        retry_after: None,
        cause: matches!(outcome, Outcome::Failure | Outcome::Timeout).then(|| "refused".into()),
    }
}

/// How a status differs from another, if it does.
pub(crate) fn differences(before: &Status, after: &Status) -> Option<String> {
    let mut found = Vec::new();
    let mut note = |what: &str, before: String, after: String| {
        if before != after {
            found.push(format!("{what} was {before} and became {after}"));
        }
    };
    note(
        "state",
        words::state(before.state).into(),
        words::state(after.state).into(),
    );
    note(
        "mode",
        words::mode(before.mode).into(),
        words::mode(after.mode).into(),
    );
    note(
        "retry-after",
        words::optional_time(before.retry_after),
        words::optional_time(after.retry_after),
    );
    note(
        "cooldown-count",
        format!("{:?}", before.cooldown_count),
        format!("{:?}", after.cooldown_count),
    );
    note("since", before.since.to_string(), after.since.to_string());
    note(
        "counts",
        format!("{:?}", before.counts),
        format!("{:?}", after.counts),
    );
    note(
        "last-failure",
        format!("{:?}", before.last_failure),
        format!("{:?}", after.last_failure),
    );
    note(
        "last-cause",
        format!("{:?}", before.last_cause),
        format!("{:?}", after.last_cause),
    );
    note("key", before.key.clone(), after.key.clone());
    note(
        "extra",
        format!("{:?}", before.extra),
        format!("{:?}", after.extra),
    );
    (!found.is_empty()).then(|| found.join("; "))
}

/// A status without what the next call to come finds lost.
fn without_lost(status: &Status) -> Status {
    let mut status = status.clone();
    status.counts.probes_in_flight = 0;
    status
}

fn wall(clock: &ManualClock) -> u64 {
    clock
        .wall()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| {
            since.as_secs() * SECOND + u64::from(since.subsec_nanos())
        })
}

/// Whether this lease promised this decision.
pub(crate) fn keeps(before: &Lease, admission: &Admission) -> bool {
    match (before.standing, &admission.decision) {
        (Standing::Ask, _) | (Standing::Pass, Decision::Pass) => true,
        (Standing::Admit(promised), Decision::Admit(ticket)) => promised == *ticket,
        (Standing::Reject(reason), Decision::Reject(rejection)) => reason == rejection.reason,
        (Standing::Admit(_) | Standing::Pass | Standing::Reject(_), _) => false,
    }
}
