//! One policy, and calls that are led through it as fast as can be.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use tripwit::{
    Breaker, Breakers, Event, Failure, ManualClock, Mode, OwnedPermit, RejectionReason, State, Subscription,
};

use super::call::{Call, Ended};
use super::track::{Results, Track};
use crate::candidate::Candidate;

/// One policy with its circuits, under a clock that goes by the calls.
///
/// Calls are handed in in the order in which they begin. Of two things at one instant, that of the call with the lower place comes first.
#[derive(Debug)]
pub(crate) struct Lane {
    clock: ManualClock,
    breakers: Breakers,
    heard: Receiver<Event>,
    _subscription: Subscription,
    tracks: Vec<Track>,
    numbers: HashMap<Arc<str>, usize>,
    under_way: BinaryHeap<UnderWay>,
    cool_down: Option<CoolDown>,
    /// Circuits that are not closed.
    tripped: usize,
    now: u64,
}

/// What a policy says to a call that wants to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It is made.
    Admitted {
        /// When it ends: at its own end, or at the policy's time-out.
        end: u64,
        /// Whether it is the policy's time-out that ends it.
        timed_out: bool,
    },
    /// It is not made.
    Rejected {
        /// Why.
        reason: RejectionReason,
        /// How long until it is worth asking again.
        retry_after: Option<Duration>,
    },
}

/// The rhythm of cool-down cycles.
#[derive(Clone, Copy, Debug)]
struct CoolDown {
    every: u64,
    next: u64,
}

/// A call that was admitted and has not ended.
#[derive(Debug)]
struct UnderWay {
    end: u64,
    call: Call,
    timed_out: bool,
    permit: OwnedPermit,
}

impl Lane {
    /// Starts a policy at this time, in nanoseconds since the Unix epoch.
    ///
    /// # Errors
    ///
    /// When the settings do not fit, or the component does not start.
    pub(crate) fn start(candidate: &Candidate, seed: u64, circuits: usize, now: u64) -> Result<Self> {
        let clock = ManualClock::new();
        let breakers = Breakers::builder(candidate.policy.clone())
            .settings(&candidate.settings)
            .clock(clock.clone())
            .shards(1)
            .max_circuits(circuits)
            .seed(seed)
            .build()
            .map_err(|error| candidate.refused(error))?;
        let (tell, heard) = channel();
        let subscription = breakers.subscribe(move |event| {
            // The receiver lives as long as the subscription.
            let gone = tell.send(event.clone());
            drop(gone);
        });
        let mut lane = Self {
            clock,
            breakers,
            heard,
            _subscription: subscription,
            tracks: Vec::new(),
            numbers: HashMap::new(),
            under_way: BinaryHeap::new(),
            cool_down: None,
            tripped: 0,
            now,
        };
        lane.set_clock(now);
        Ok(lane)
    }

    /// Runs a cool-down cycle each time that so many nanoseconds have passed.
    pub(crate) fn cool_down_every(mut self, every: u64) -> Self {
        self.cool_down = Some(CoolDown {
            every: every.max(1),
            next: self.now.saturating_add(every.max(1)),
        });
        self
    }

    /// Adds a circuit. Its number is how many there were before.
    ///
    /// # Errors
    ///
    /// When the policy refuses it.
    pub(crate) fn add(&mut self, key: &str) -> Result<()> {
        let breaker = self.breakers.breaker(key).context("no circuit could be made")?;
        self.numbers.insert(key.into(), self.tracks.len());
        self.tracks.push(Track::new(breaker, self.now));
        Ok(())
    }

    /// The circuits, by their numbers.
    pub(crate) fn tracks(&self) -> &[Track] {
        &self.tracks
    }

    /// How often the policy's component failed.
    pub(crate) fn faults(&self) -> u64 {
        self.breakers.faults()
    }

    /// Asks for a call; what is admitted ends by itself when its time has come. None for a circuit that was not added.
    pub(crate) fn begin(&mut self, call: Call) -> Option<Answer> {
        self.settle_before(call.begin, call.place);
        self.move_to(call.begin);
        let asked = self.tracks.get(call.circuit)?.breaker.acquire_owned();
        self.listen();
        let track = self.tracks.get_mut(call.circuit)?;
        let permit = match asked {
            Ok(permit) => permit,
            Err(rejection) => {
                track.counts.rejected.add(call.ended);
                return Some(Answer::Rejected {
                    reason: rejection.reason(),
                    retry_after: rejection.retry_after(),
                });
            }
        };
        track.counts.made.add(call.ended);
        let limit = permit.call_timeout().map(nanoseconds);
        let timed_out = limit.is_some_and(|limit| call.end.saturating_sub(call.begin) > limit);
        let end = match limit {
            Some(limit) if timed_out => call.begin.saturating_add(limit),
            _ => call.end,
        };
        if timed_out {
            track.counts.timed_out.add(call.ended);
        }
        let under_way = UnderWay {
            end,
            call,
            timed_out,
            permit,
        };
        if end > call.begin {
            self.under_way.push(under_way);
        } else {
            self.settle(under_way);
        }
        Some(Answer::Admitted { end, timed_out })
    }

    /// Goes on to a time, and lets everything happen that happens until then, that instant included.
    pub(crate) fn go_to(&mut self, at: u64) {
        self.settle_before(at, u64::MAX);
        self.move_to(at);
    }

    /// Lets the calls end that are under way, however long that takes, and counts the time until then, or until `at` if that is later.
    pub(crate) fn finish(&mut self, at: u64) -> u64 {
        self.settle_before(u64::MAX, u64::MAX);
        self.move_to(at);
        for track in &mut self.tracks {
            track.until(self.now);
        }
        self.now
    }

    /// Opens a circuit, as an operator does.
    pub(crate) fn trip(&mut self, circuit: usize, wait: Option<Duration>) {
        self.operate(circuit, |breaker| {
            match wait {
                None => breaker.trip(),
                Some(wait) => breaker.trip_for(wait),
            };
        });
    }

    /// Closes a circuit, as an operator does.
    pub(crate) fn reset(&mut self, circuit: usize) {
        self.operate(circuit, |breaker| {
            breaker.reset();
        });
    }

    /// Sets a circuit's mode.
    pub(crate) fn set_mode(&mut self, circuit: usize, mode: Mode) {
        self.operate(circuit, |breaker| breaker.set_mode(mode));
    }

    /// Runs one cool-down cycle.
    pub(crate) fn cool_down(&mut self) {
        drop(self.breakers.cool_down());
        self.listen();
    }

    fn operate(&mut self, circuit: usize, command: impl FnOnce(&Breaker)) {
        if let Some(track) = self.tracks.get(circuit) {
            command(&track.breaker);
        }
        self.listen();
    }

    /// Lets the calls end whose end comes before what the call with this place does at this time.
    fn settle_before(&mut self, at: u64, place: u64) {
        while self
            .under_way
            .peek()
            .is_some_and(|next| (next.end, next.call.place) < (at, place))
        {
            if let Some(next) = self.under_way.pop() {
                self.move_to(next.end);
                self.settle(next);
            }
        }
    }

    fn settle(&mut self, ended: UnderWay) {
        let UnderWay {
            call,
            timed_out,
            permit,
            ..
        } = ended;
        match call.ended {
            _ if timed_out => permit.timeout(),
            Ended::Success => permit.success(),
            Ended::Failure => permit.failure(failure(&call)),
            Ended::Timeout => permit.timeout(),
            Ended::Ignored => permit.ignored(),
        }
        self.listen();
    }

    /// Runs the cool-down cycles that are due, and sets the clock.
    fn move_to(&mut self, at: u64) {
        while let Some(CoolDown { every, next }) = self.cool_down
            && next <= at
        {
            // Nothing is there to be cooled down: the rest of the wait is skipped.
            let cycles = if self.tripped == 0 { (at - next) / every } else { 0 };
            self.cool_down = Some(CoolDown {
                every,
                next: next.saturating_add(every.saturating_mul(cycles + 1)),
            });
            if self.tripped > 0 {
                self.set_clock(next);
                self.cool_down();
            }
        }
        self.set_clock(at);
    }

    fn set_clock(&mut self, at: u64) {
        self.now = self.now.max(at);
        self.clock.set_monotonic(self.now);
        self.clock
            .set_wall(SystemTime::UNIX_EPOCH + Duration::from_nanos(self.now));
    }

    /// Takes note of the moves that were made just now.
    fn listen(&mut self) {
        while let Ok(event) = self.heard.try_recv() {
            let number = self.numbers.get(&event.key).copied();
            let Some(track) = number.and_then(|number| self.tracks.get_mut(number)) else {
                continue;
            };
            let was_closed = track.state == State::Closed;
            track.note(&event.transition, self.now);
            match (was_closed, track.state == State::Closed) {
                (true, false) => self.tripped += 1,
                (false, true) => self.tripped = self.tripped.saturating_sub(1),
                (true, true) | (false, false) => {}
            }
        }
    }
}

impl Results {
    /// Counts one.
    pub(crate) fn add(&mut self, ended: Ended) {
        match ended {
            Ended::Success => self.good += 1,
            Ended::Failure | Ended::Timeout => self.failed += 1,
            Ended::Ignored => self.ignored += 1,
        }
    }

    /// All of them.
    pub(crate) fn sum(&self) -> u64 {
        self.good + self.failed + self.ignored
    }
}

/// The one that ends first is the greatest.
impl Ord for UnderWay {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.end, other.call.place).cmp(&(self.end, self.call.place))
    }
}

impl PartialOrd for UnderWay {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Eq for UnderWay {}

impl PartialEq for UnderWay {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

fn failure(call: &Call) -> Failure {
    let mut failure = Failure::new();
    if let Some(status) = call.status {
        failure = failure.cause(format!("status {status}"));
    }
    failure.retry_after = call.retry_after.map(Duration::from_nanos);
    failure
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
