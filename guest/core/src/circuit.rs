//! One circuit: a policy with its settings, its mode, its generation and a clock that never goes back.

use alloc::{sync::Arc, vec::Vec};

use crate::{
    Cause, Context, Cooled, Counts, Decision, Instant, Lease, Mode, Nanoseconds, Policy, Rejection,
    RejectionReason, Report, Saved, SnapshotError, Standing, State, Successes, Terms, Ticket, Transition,
};

/// Hands out numbers that never repeat: generations and tickets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Numbers(u64);

impl Numbers {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.saturating_add(1);
        self.0
    }
}

/// What comes with every event from outside the circuit.
#[derive(Debug)]
pub struct Env<'a> {
    /// The reading of the clock. One that is below an earlier one counts as that one.
    pub now: Instant,
    /// The circuit's key.
    pub key: &'a str,
    /// The instance's seed.
    pub seed: u64,
    /// The instance's numbers.
    pub numbers: &'a mut Numbers,
}

/// The answer to [`Circuit::acquire`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admission {
    /// Whether the call may be made.
    pub decision: Decision,
    /// The move that the question made.
    pub transition: Option<Transition>,
}

/// The answer to [`Circuit::settle`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settlement {
    /// Whether the report counted: not when its ticket is of an older generation, or of a probe that was given up.
    pub counted: bool,
    /// The move that the report made.
    pub transition: Option<Transition>,
}

/// One guarded dependency.
#[derive(Clone, Debug)]
pub struct Circuit<P: Policy> {
    settings: Arc<P::Settings>,
    policy: P,
    mode: Mode,
    generation: u64,
    latest: Instant,
    previous: Instant,
}

impl<P: Policy> Circuit<P> {
    /// A closed circuit.
    #[must_use]
    pub fn new(settings: Arc<P::Settings>, env: &mut Env<'_>) -> Self {
        let policy = P::closed(&settings);
        Self {
            settings,
            policy,
            mode: Mode::Automatic,
            generation: env.numbers.next(),
            latest: env.now,
            previous: env.now,
        }
    }

    /// Takes a circuit over that was saved `age` ago. Permits from before are void.
    ///
    /// # Errors
    ///
    /// When the parts of the snapshot do not fit together.
    pub fn restore(
        saved: &Saved,
        detail: &[u8],
        age: Nanoseconds,
        settings: Arc<P::Settings>,
        env: &mut Env<'_>,
    ) -> Result<Self, SnapshotError> {
        saved.check()?;
        let generation = env.numbers.next();
        let latest = env.now;
        let mut cx = context(&*settings, (latest, latest), generation, Cause::Operator, env);
        let policy = P::restore(saved, detail, age, &mut cx)?;
        Ok(Self {
            settings,
            policy,
            mode: saved.mode,
            generation,
            latest,
            previous: latest,
        })
    }

    /// Asks to make one call.
    pub fn acquire(&mut self, env: &mut Env<'_>) -> Admission {
        self.touch(env);
        match self.mode {
            Mode::ForcedOpen => Admission {
                decision: Decision::Reject(Rejection {
                    reason: RejectionReason::ForcedOpen,
                    retry_after: None,
                }),
                transition: None,
            },
            Mode::Disabled => Admission {
                decision: Decision::Pass,
                transition: None,
            },
            Mode::Automatic | Mode::Shadow => {
                let (decision, transition) = self.event(Cause::Policy, env, P::acquire);
                self.moved(transition, env);
                Admission { decision, transition }
            }
        }
    }

    /// Says how an admitted call ended.
    pub fn settle(&mut self, ticket: Ticket, report: &Report, env: &mut Env<'_>) -> Settlement {
        self.touch(env);
        if self.stands_still() {
            return Settlement {
                counted: false,
                transition: None,
            };
        }
        let (counted, transition) =
            self.event(Cause::Policy, env, |policy, cx| policy.settle(ticket, report, cx));
        self.moved(transition, env);
        Settlement { counted, transition }
    }

    /// Hands in successes that were kept back under the lease with this ticket.
    pub fn settle_successes(&mut self, ticket: Ticket, count: u32, env: &mut Env<'_>) -> Option<Transition> {
        self.touch(env);
        if self.stands_still() {
            return None;
        }
        let transition = self.event(Cause::Policy, env, |policy, cx| {
            policy.settle_successes(ticket, count, cx)
        });
        self.moved(transition, env)
    }

    /// Opens the circuit, for `wait` where it is given. On an open circuit the later end counts.
    pub fn trip(&mut self, wait: Option<Nanoseconds>, env: &mut Env<'_>) -> Option<Transition> {
        self.touch(env);
        let transition = self.event(Cause::Operator, env, |policy, cx| policy.trip(wait, cx));
        self.moved(transition, env)
    }

    /// Closes the circuit and forgets what was recorded. The mode stays.
    pub fn reset(&mut self, env: &mut Env<'_>) -> Option<Transition> {
        self.touch(env);
        let transition = self.event(Cause::Operator, env, P::reset);
        self.new_generation(env);
        transition
    }

    /// Changes who decides. Answers whether that is a change; each change starts with fresh counts.
    pub fn set_mode(&mut self, mode: Mode, env: &mut Env<'_>) -> bool {
        self.touch(env);
        if mode == self.mode {
            return false;
        }
        self.mode = mode;
        self.policy.start_afresh(&self.settings);
        self.new_generation(env);
        true
    }

    /// One cool-down cycle.
    pub fn cool_down(&mut self, env: &mut Env<'_>) -> Cooled {
        self.touch(env);
        if self.stands_still() {
            return Cooled::Untouched;
        }
        let cooled = self.event(Cause::CoolDown, env, P::cool_down);
        if let Cooled::Counted(transition) = cooled {
            self.moved(transition, env);
        }
        cooled
    }

    /// Changes the settings. State, mode and remaining wait stay.
    pub fn configure(&mut self, settings: Arc<P::Settings>, env: &mut Env<'_>) {
        self.touch(env);
        self.policy.configure(&self.settings, &settings, self.latest);
        self.settings = settings;
        self.new_generation(env);
    }

    /// The lease as it stands at `now`.
    #[must_use]
    pub fn lease(&self, now: Instant) -> Lease {
        let terms = match self.mode {
            Mode::ForcedOpen => Terms {
                standing: Standing::Reject(RejectionReason::ForcedOpen),
                until: None,
                successes: Successes::Never,
                slow_after: None,
                call_timeout: None,
            },
            Mode::Disabled => Terms {
                standing: Standing::Pass,
                until: None,
                successes: Successes::Never,
                slow_after: None,
                call_timeout: None,
            },
            Mode::Automatic | Mode::Shadow => {
                self.policy
                    .terms(&self.settings, self.generation, now.max(self.latest))
            }
        };
        Lease {
            mode: self.mode,
            generation: self.generation,
            state: self.policy.state(),
            standing: terms.standing,
            until: terms.until,
            successes: terms.successes,
            slow_after: terms.slow_after,
            call_timeout: terms.call_timeout,
        }
    }

    /// What goes over to another instance.
    #[must_use]
    pub fn save(&self, now: Instant) -> Saved {
        Saved {
            state: self.state(),
            mode: self.mode,
            retry_after: self.retry_after(now),
            cooldown_count: self.cooldown_count(),
            reopenings: self.policy.reopenings(),
            counts: Counts {
                probes_in_flight: 0,
                ..self.counts(now)
            },
        }
    }

    /// What only the same policy understands; its format is [`Policy::DETAIL_FORMAT`].
    #[must_use]
    pub fn detail(&self, now: Instant) -> Vec<u8> {
        self.policy.detail(&self.settings, now.max(self.latest))
    }

    /// The settings.
    #[must_use]
    pub fn settings(&self) -> &Arc<P::Settings> {
        &self.settings
    }

    /// The state, whatever the mode.
    #[must_use]
    pub fn state(&self) -> State {
        self.policy.state()
    }

    /// Who decides.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// What the policy decides on now.
    #[must_use]
    pub fn counts(&self, now: Instant) -> Counts {
        self.policy.counts(&self.settings, now.max(self.latest))
    }

    /// How long the circuit stays open yet, where the clock decides. Nanoseconds; 0 when the wait is over and no call has come since.
    #[must_use]
    pub fn retry_after(&self, now: Instant) -> Option<Nanoseconds> {
        self.policy.retry_after(now.max(self.latest))
    }

    /// Cool-down cycles still to go, where cycles decide.
    #[must_use]
    pub fn cooldown_count(&self) -> Option<u32> {
        self.policy.cooldown_count()
    }

    /// Shows the circuit the time, so that the lease that is handed out next is as of then.
    /// A clock that steps back shows its largest reading.
    pub fn touch(&mut self, env: &Env<'_>) {
        self.previous = self.latest;
        self.latest = self.latest.max(env.now);
    }

    fn stands_still(&self) -> bool {
        match self.mode {
            Mode::ForcedOpen | Mode::Disabled => true,
            Mode::Automatic | Mode::Shadow => false,
        }
    }

    fn event<R>(
        &mut self,
        cause: Cause,
        env: &mut Env<'_>,
        event: impl FnOnce(&mut P, &mut Context<'_, P::Settings>) -> R,
    ) -> R {
        let mut cx = context(
            &*self.settings,
            (self.previous, self.latest),
            self.generation,
            cause,
            env,
        );
        event(&mut self.policy, &mut cx)
    }

    fn moved(&mut self, transition: Option<Transition>, env: &mut Env<'_>) -> Option<Transition> {
        if transition.is_some() && !P::LATE_RESULTS_COUNT {
            self.new_generation(env);
        }
        transition
    }

    fn new_generation(&mut self, env: &mut Env<'_>) {
        self.generation = env.numbers.next();
    }
}

fn context<'a, S>(
    settings: &'a S,
    (previous, now): (Instant, Instant),
    generation: u64,
    cause: Cause,
    env: &'a mut Env<'_>,
) -> Context<'a, S> {
    Context {
        settings,
        now,
        previous,
        generation,
        cause,
        key: env.key,
        seed: env.seed,
        numbers: env.numbers,
    }
}
