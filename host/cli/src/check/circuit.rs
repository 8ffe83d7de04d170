//! One circuit of a component that is asked about everything, and watched while it answers.

use std::time::{Duration, SystemTime};

use tripwit::raw::{Decision, Instance, Lease, Mode, Outcome, Report, Snapshot, Standing, State, Transition};
use tripwit::{Clock, ManualClock};

use super::answer::{Answer, Command, Did, differences, report, without_lost};
use super::case::Case;
use super::history::{Entry, What};
use super::problem::{Checked, Problem, ensure_of};
use super::step::Step;
use super::subject::Subject;
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
            Step::Back(by) => {
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
            Outcome::Success | Outcome::Failure | Outcome::Timeout | Outcome::Ignored => outcome,
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
        let void = if case == Case::Generations {
            "a ticket of an older generation"
        } else {
            "a ticket that is used up or unknown"
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

    pub(super) fn see_time(&mut self) -> u64 {
        self.latest = self.latest.max(self.now());
        self.latest
    }
}

fn wall(clock: &ManualClock) -> u64 {
    clock
        .wall()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| {
            since.as_secs() * SECOND + u64::from(since.subsec_nanos())
        })
}
