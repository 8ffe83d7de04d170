//! The same walk twice in the real host: asking the component about each call, and deciding by leases.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tripwit::raw::{Mode, Outcome};
use tripwit::{Breaker, Breakers, Event, Failure, ManualClock, OwnedPermit, Status, Subscription};

use super::circuit::KEY;
use super::problem::{Checked, Problem, ensure};
use super::step::Step;
use super::subject::Subject;

/// As many steps are taken between two looks: a look hands in what was kept back.
const LOOKS: usize = 16;

pub(super) fn take(subject: &Subject, settings: &str, steps: &[Step]) -> Checked {
    subject.begin(settings);
    let (mut asking, mut leased) = (
        Host::new(subject, settings, true)?,
        Host::new(subject, settings, false)?,
    );
    for (place, step) in (1..).zip(steps) {
        let (expected, got) = (asking.step(*step), leased.step(*step));
        subject.did(format!("{step} -> {got}"));
        ensure!(expected == got, format!("as when asked: {expected}"), || {
            format!("by leases: {got}")
        })?;
        let (expected, got) = (asking.moves(), leased.moves());
        ensure!(expected == got, format!("the moves {expected:?}"), || {
            format!("by leases {got:?}")
        })?;
        if place % LOOKS == 0 || place == steps.len() {
            let (expected, got) = (asking.breaker.status(), leased.breaker.status());
            subject.did("status");
            ensure!(
                expected == got,
                format!("as when asked: {}", shown(&expected)),
                || format!("by leases: {}", shown(&got)),
            )?;
        }
        for host in [&asking, &leased] {
            ensure!(host.breakers.faults() == 0, "no fault of the component", || {
                "the host put one down: it trapped, or handed out what makes no sense".into()
            })?;
        }
    }
    Ok(())
}

/// One circuit in the real host.
struct Host {
    breakers: Breakers,
    breaker: Breaker,
    clock: ManualClock,
    permits: Vec<OwnedPermit>,
    heard: Arc<Mutex<Vec<Event>>>,
    _subscription: Subscription,
}

impl Host {
    fn new(subject: &Subject, settings: &str, ignore_leases: bool) -> Checked<Self> {
        let clock = ManualClock::new();
        clock.advance(Duration::from_secs(3600));
        let breakers = Breakers::builder(subject.policy.clone())
            .settings(settings)
            .clock(clock.clone())
            .shards(1)
            .seed(subject.seed)
            .ignore_leases(ignore_leases)
            .build()
            .map_err(|error| Problem::new("circuits", error.to_string()))?;
        let breaker = breakers
            .breaker(KEY)
            .map_err(|error| Problem::new("a circuit", error.to_string()))?;
        let heard = Arc::<Mutex<Vec<Event>>>::default();
        let list = heard.clone();
        let subscription = breakers.subscribe(move |event| {
            list.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(event.clone());
        });
        Ok(Self {
            breakers,
            breaker,
            clock,
            permits: Vec::new(),
            heard,
            _subscription: subscription,
        })
    }

    fn step(&mut self, step: Step) -> String {
        match step {
            Step::Advance(by) => {
                self.clock.advance(Duration::from_nanos(by));
                "done".into()
            }
            // The host shows its components the largest reading so far.
            Step::Back(_) => "done".into(),
            Step::Acquire => match self.breaker.acquire_owned() {
                Ok(permit) => {
                    let limit = permit.call_timeout();
                    self.permits.push(permit);
                    format!("admitted, time-out {limit:?}")
                }
                Err(rejection) => format!(
                    "rejected ({:?}, retry after {:?})",
                    rejection.reason(),
                    rejection.retry_after()
                ),
            },
            Step::End(call, outcome) => self.end(call, outcome),
            Step::Trip(wait) => {
                let moved = match wait {
                    Some(wait) => self.breaker.trip_for(Duration::from_nanos(wait)),
                    None => self.breaker.trip(),
                };
                format!("{moved:?}")
            }
            Step::Reset => format!("{:?}", self.breaker.reset()),
            Step::SetMode(mode) => {
                self.breaker.set_mode(match mode {
                    Mode::Automatic => tripwit::Mode::Automatic,
                    Mode::ForcedOpen => tripwit::Mode::ForcedOpen,
                    Mode::Disabled => tripwit::Mode::Disabled,
                    Mode::Shadow => tripwit::Mode::Shadow,
                });
                "done".into()
            }
            Step::CoolDown => format!("{} changed", self.breakers.cool_down().len()),
        }
    }

    fn end(&mut self, call: usize, outcome: Outcome) -> String {
        let Some(place) = call.checked_rem(self.permits.len()) else {
            return "no call is under way".into();
        };
        let permit = self.permits.remove(place);
        match outcome {
            Outcome::Success => permit.success(),
            Outcome::Failure => permit.failure(Failure::new().cause("refused")),
            Outcome::Timeout => permit.timeout(),
            Outcome::Ignored => permit.ignored(),
        }
        "done".into()
    }

    /// The moves that were heard of since this was last asked for.
    fn moves(&self) -> Vec<Event> {
        std::mem::take(&mut *self.heard.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn shown(status: &Status) -> String {
    format!(
        "{:?}, {:?}, retry after {:?}, cycles {:?}, {:?}",
        status.state, status.mode, status.retry_after, status.cooldown_count, status.counts
    )
}
