//! What policies that wait by the clock share: open for a while, then half-open with a few probes.
//!
//! A [`Rule`] says when a closed circuit opens and what its probes prove; [`Timed`] is the machine around it, and
//! [`Recovery`](crate::Recovery) holds the settings of that machine.

use alloc::{boxed::Box, vec::Vec};

use crate::{
    Context, Counts, Decision, Field, Instant, Nanoseconds, Operation, Outcome, Policy, Rejection,
    RejectionReason, Report, Rule, Saved, Settings, SettingsError, SnapshotError, Standing, State, Successes,
    Terms, Ticket, Transition, Verdict,
    half_open::{HalfOpen, Probe},
};

/// The machine of a policy that waits by the clock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Timed<R> {
    phase: Phase<R>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Phase<R> {
    Closed(R),
    Open {
        until: Instant,
        reopenings: u32,
    },
    /// Boxed, since of many circuits few are in it.
    HalfOpen(Box<HalfOpen>),
}

impl<R: Rule> Timed<R> {
    fn enter(&mut self, phase: Phase<R>) {
        self.phase = phase;
    }

    fn reopenings_so_far(&self) -> u32 {
        match &self.phase {
            Phase::Closed(_) => 0,
            Phase::Open { reopenings, .. } => *reopenings,
            Phase::HalfOpen(half_open) => half_open.reopenings,
        }
    }

    fn open(&mut self, wait: Nanoseconds, cx: &Context<'_, R::Settings>) -> Option<Transition> {
        let before = self.state();
        let reopenings = self.reopenings_so_far().saturating_add(1);
        self.enter(Phase::Open {
            until: cx.now.saturating_add(wait),
            reopenings,
        });
        Some(Transition {
            operation: if before == State::Closed {
                Operation::Trip
            } else {
                Operation::ReTrip
            },
            cause: cx.cause,
            before,
            after: State::Open,
            wait: Some(wait),
            cooldown_count: None,
        })
    }

    fn open_after(&mut self, report: &Report, cx: &Context<'_, R::Settings>) -> Option<Transition> {
        let wait = R::recovery(cx.settings).wait(self.reopenings_so_far(), report.retry_after, cx);
        self.open(wait, cx)
    }

    fn close(&mut self, cx: &Context<'_, R::Settings>) -> Option<Transition> {
        let before = self.state();
        self.enter(Phase::Closed(R::fresh(cx.settings)));
        (before != State::Closed).then_some(Transition {
            operation: Operation::Reset,
            cause: cx.cause,
            before,
            after: State::Closed,
            wait: None,
            cooldown_count: None,
        })
    }

    fn probe(half_open: &mut HalfOpen, cx: &mut Context<'_, R::Settings>) -> Decision {
        half_open.give_up_lost(cx.now);
        if R::admits_probe(cx.settings, &half_open.counts, half_open.in_flight(cx.now)) {
            let ticket = cx.new_ticket();
            half_open.out.push(Probe {
                ticket,
                deadline: cx.now.saturating_add(R::recovery(cx.settings).probe_timeout),
            });
            return Decision::Admit(ticket);
        }
        let retry_after = half_open
            .first_deadline(cx.now)
            .map(|deadline| deadline.saturating_sub(cx.now));
        Decision::Reject(Rejection {
            reason: RejectionReason::ProbeLimit,
            retry_after,
        })
    }

    fn settle_probe(
        &mut self,
        ticket: Ticket,
        report: &Report,
        cx: &Context<'_, R::Settings>,
    ) -> (bool, Option<Transition>) {
        let Phase::HalfOpen(half_open) = &mut self.phase else {
            return (false, None);
        };
        half_open.give_up_lost(cx.now);
        let Some(place) = half_open.out.iter().position(|probe| probe.ticket == ticket) else {
            return (false, None);
        };
        half_open.out.swap_remove(place);
        half_open
            .counts
            .add(report.outcome, is_slow::<R>(cx.settings, report));
        let transition = match R::judge(cx.settings, &half_open.counts) {
            Verdict::Pending => None,
            Verdict::Close => self.close(cx),
            Verdict::Open => self.open_after(report, cx),
        };
        (true, transition)
    }
}

impl<R: Rule> Policy for Timed<R> {
    type Settings = R::Settings;

    const NAME: &'static str = R::NAME;
    const SUMMARY: &'static str = R::SUMMARY;
    const FIELDS: &'static [&'static dyn Field] = R::FIELDS;

    fn settings(settings: &Settings) -> Result<Self::Settings, SettingsError> {
        R::settings(settings)
    }

    fn closed(settings: &Self::Settings) -> Self {
        Self {
            phase: Phase::Closed(R::fresh(settings)),
        }
    }

    fn state(&self) -> State {
        match self.phase {
            Phase::Closed(_) => State::Closed,
            Phase::Open { .. } => State::Open,
            Phase::HalfOpen(_) => State::HalfOpen,
        }
    }

    fn acquire(&mut self, cx: &mut Context<'_, Self::Settings>) -> (Decision, Option<Transition>) {
        match &mut self.phase {
            Phase::Closed(rule) => {
                let decision = if rule.admit(cx) {
                    Decision::Admit(cx.generation)
                } else {
                    Decision::Reject(Rejection {
                        reason: RejectionReason::Throttled,
                        retry_after: None,
                    })
                };
                (decision, None)
            }
            Phase::Open { until, .. } if cx.now < *until => {
                let retry_after = Some(until.saturating_sub(cx.now));
                (
                    Decision::Reject(Rejection {
                        reason: RejectionReason::Open,
                        retry_after,
                    }),
                    None,
                )
            }
            Phase::Open { reopenings, .. } => {
                let mut half_open = HalfOpen {
                    reopenings: *reopenings,
                    ..HalfOpen::default()
                };
                let decision = Self::probe(&mut half_open, cx);
                self.enter(Phase::HalfOpen(Box::new(half_open)));
                let transition = Transition {
                    operation: Operation::HalfOpen,
                    cause: cx.cause,
                    before: State::Open,
                    after: State::HalfOpen,
                    wait: None,
                    cooldown_count: None,
                };
                (decision, Some(transition))
            }
            Phase::HalfOpen(half_open) => (Self::probe(half_open, cx), None),
        }
    }

    fn settle(
        &mut self,
        ticket: Ticket,
        report: &Report,
        cx: &mut Context<'_, Self::Settings>,
    ) -> (bool, Option<Transition>) {
        match &mut self.phase {
            Phase::Closed(rule) => {
                if ticket != cx.generation {
                    return (false, None);
                }
                let opens = report.outcome != Outcome::Ignored
                    && rule.record(cx.settings, report, is_slow::<R>(cx.settings, report), cx.now);
                (true, if opens { self.open_after(report, cx) } else { None })
            }
            Phase::Open { .. } => (false, None),
            Phase::HalfOpen(_) => self.settle_probe(ticket, report, cx),
        }
    }

    fn settle_successes(
        &mut self,
        ticket: Ticket,
        count: u32,
        cx: &mut Context<'_, Self::Settings>,
    ) -> Option<Transition> {
        match &mut self.phase {
            Phase::Closed(rule) => {
                let opens = ticket == cx.generation
                    && count > 0
                    && rule.record_successes(cx.settings, count, cx.previous);
                if opens {
                    self.open_after(&Report::of(Outcome::Success), cx)
                } else {
                    None
                }
            }
            Phase::Open { .. } => None,
            // No lease allows this, and a probe ends once.
            Phase::HalfOpen(_) if count > 0 => self.settle_probe(ticket, &Report::of(Outcome::Success), cx).1,
            Phase::HalfOpen(_) => None,
        }
    }

    fn terms(&self, settings: &Self::Settings, generation: u64, now: Instant) -> Terms {
        let (standing, until, successes) = match &self.phase {
            Phase::Closed(rule) => {
                let standing = if rule.admits_all(settings, now) {
                    Standing::Admit(generation)
                } else {
                    Standing::Ask
                };
                (standing, None, rule.successes(settings, now))
            }
            Phase::Open { until, .. } if now < *until => (
                Standing::Reject(RejectionReason::Open),
                Some(*until),
                Successes::Never,
            ),
            Phase::Open { .. } => (Standing::Ask, None, Successes::Never),
            Phase::HalfOpen(half_open) => {
                if R::admits_probe(settings, &half_open.counts, half_open.in_flight(now)) {
                    (Standing::Ask, None, Successes::Each)
                } else {
                    let until = half_open.first_deadline(now);
                    (
                        Standing::Reject(RejectionReason::ProbeLimit),
                        until,
                        Successes::Each,
                    )
                }
            }
        };
        Terms {
            standing,
            until,
            successes,
            slow_after: R::slow_after(settings),
            call_timeout: R::recovery(settings).call_timeout(),
        }
    }

    fn trip(
        &mut self,
        wait: Option<Nanoseconds>,
        cx: &mut Context<'_, Self::Settings>,
    ) -> Option<Transition> {
        let wait = wait.unwrap_or_else(|| R::recovery(cx.settings).wait(self.reopenings_so_far(), None, cx));
        if let Phase::Open { until, .. } = &mut self.phase {
            *until = (*until).max(cx.now.saturating_add(wait));
            return None;
        }
        self.open(wait, cx)
    }

    fn reset(&mut self, cx: &mut Context<'_, Self::Settings>) -> Option<Transition> {
        self.close(cx)
    }

    fn start_afresh(&mut self, settings: &Self::Settings) {
        match &mut self.phase {
            Phase::Closed(rule) => *rule = R::fresh(settings),
            Phase::Open { .. } => {}
            Phase::HalfOpen(half_open) => {
                **half_open = HalfOpen {
                    reopenings: half_open.reopenings,
                    ..HalfOpen::default()
                };
            }
        }
    }

    fn configure(&mut self, old: &Self::Settings, new: &Self::Settings, now: Instant) {
        match &mut self.phase {
            Phase::Closed(rule) => {
                // A window that is cut otherwise keeps its counts only; one that is not keeps every call.
                let kept = R::from_detail(new, &rule.detail(old, now), 0, now).ok().flatten();
                *rule = kept.unwrap_or_else(|| R::adopt(new, &rule.counts(old, now), now));
            }
            Phase::Open { .. } => {}
            Phase::HalfOpen(half_open) => {
                half_open.out.clear();
                half_open.counts = R::adopt_probes(new, &half_open.counts);
            }
        }
    }

    fn counts(&self, settings: &Self::Settings, now: Instant) -> Counts {
        match &self.phase {
            Phase::Closed(rule) => rule.counts(settings, now),
            Phase::Open { .. } => Counts::default(),
            Phase::HalfOpen(half_open) => Counts {
                probes_in_flight: half_open.in_flight(now),
                ..half_open.counts
            },
        }
    }

    fn retry_after(&self, now: Instant) -> Option<Nanoseconds> {
        match &self.phase {
            Phase::Open { until, .. } => Some(until.saturating_sub(now)),
            Phase::Closed(_) | Phase::HalfOpen(_) => None,
        }
    }

    fn reopenings(&self) -> u32 {
        self.reopenings_so_far()
    }

    const DETAIL_FORMAT: &'static str = R::DETAIL_FORMAT;

    fn detail(&self, settings: &Self::Settings, now: Instant) -> Vec<u8> {
        match &self.phase {
            Phase::Closed(rule) => rule.detail(settings, now),
            Phase::Open { .. } | Phase::HalfOpen(_) => Vec::new(),
        }
    }

    fn restore(
        saved: &Saved,
        detail: &[u8],
        age: Nanoseconds,
        cx: &mut Context<'_, Self::Settings>,
    ) -> Result<Self, SnapshotError> {
        let reopenings = saved.reopenings.max(1);
        let phase = match saved.state {
            State::Closed => {
                let kept = R::from_detail(cx.settings, detail, age, cx.now)?;
                Phase::Closed(kept.unwrap_or_else(|| R::adopt(cx.settings, &saved.counts, cx.now)))
            }
            State::Open => {
                let left = saved.retry_after.map(|left| left.saturating_sub(age));
                let wait = left
                    .unwrap_or_else(|| R::recovery(cx.settings).wait(reopenings.saturating_sub(1), None, cx));
                Phase::Open {
                    until: cx.now.saturating_add(wait),
                    reopenings,
                }
            }
            State::HalfOpen => {
                let counts = R::adopt_probes(cx.settings, &saved.counts);
                Phase::HalfOpen(Box::new(HalfOpen {
                    out: Vec::new(),
                    counts,
                    reopenings,
                }))
            }
        };
        Ok(Self { phase })
    }
}

fn is_slow<R: Rule>(settings: &R::Settings, report: &Report) -> bool {
    matches!((report.took, R::slow_after(settings)), (Some(took), Some(limit)) if took > limit)
}
