//! What a breaker policy is.

use alloc::{string::String, vec::Vec};

use crate::{
    Cause, Counts, Decision, Field, Instant, Nanoseconds, Numbers, Report, Saved, Settings, SettingsError,
    SnapshotError, Standing, State, Successes, Ticket, Transition, settings,
};

/// What a policy is told with every event, and may draw on.
#[derive(Debug)]
pub struct Context<'a, S> {
    /// The circuit's settings.
    pub settings: &'a S,
    /// The time of the event. Never goes back.
    pub now: Instant,
    /// The generation under way: the ticket that calls in closed share.
    pub generation: u64,
    /// Who made the event.
    pub cause: Cause,
    /// The time of the event before: what is handed in late counts as of then.
    pub previous: Instant,
    pub(crate) key: &'a str,
    pub(crate) seed: u64,
    pub(crate) numbers: &'a mut Numbers,
}

impl<S> Context<'_, S> {
    /// A ticket that no other permit of this instance has.
    pub fn new_ticket(&mut self) -> Ticket {
        self.numbers.next()
    }

    /// A number from `low` to `high`, both included; the same for the same seed, key and generation.
    #[must_use]
    pub fn draw(&self, low: u64, high: u64) -> u64 {
        self.drawn(self.generation, low, high)
    }

    /// The lot of this number, from `low` to `high`, both included; the same for the same seed and key. A policy that draws
    /// more than once in a generation numbers its lots, and saves the number, so that whoever takes over draws on.
    #[must_use]
    pub fn lot(&self, number: u64, low: u64, high: u64) -> u64 {
        // Apart from what `draw` makes of generations, which are small numbers too.
        self.drawn(number.rotate_left(32), low, high)
    }

    fn drawn(&self, number: u64, low: u64, high: u64) -> u64 {
        let seed = self.key.bytes().fold(self.seed ^ number, |seed, byte| {
            fastrand::Rng::with_seed(seed ^ u64::from(byte)).u64(..)
        });
        fastrand::Rng::with_seed(seed).u64(low..=high.max(low))
    }
}

/// The policy's part of a lease; the circuit adds mode, generation and state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// What every `acquire` answers.
    pub standing: Standing,
    /// From this instant on `standing` no longer holds.
    pub until: Option<Instant>,
    /// Which successes must be reported.
    pub successes: Successes,
    /// A success that took strictly longer is slow. Nanoseconds.
    pub slow_after: Option<Nanoseconds>,
    /// A call that runs strictly longer is a time-out. Nanoseconds.
    pub call_timeout: Option<Nanoseconds>,
}

/// What a cool-down cycle did to a circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cooled {
    /// Nothing: it counts no cycles now.
    Untouched,
    /// It counted down, and closed where there is a transition.
    Counted(Option<Transition>),
}

/// The names under which a policy's spans and metrics go out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Telemetry {
    /// Prefix of the product's own attributes and metrics.
    pub namespace: &'static str,
    /// OpenTelemetry's instrumentation scope.
    pub scope: &'static str,
}

/// A state machine that decides when a circuit opens and closes.
///
/// One value is one circuit's state. The [`Circuit`](crate::Circuit) around it keeps generation, mode and clock, so a policy
/// meets valid times only, and its events only while it is the one that decides.
pub trait Policy: Clone + core::fmt::Debug {
    /// Checked settings.
    type Settings: Clone + PartialEq + core::fmt::Debug;

    /// The policy's name, in lower case.
    const NAME: &'static str;
    /// What it does, in a sentence.
    const SUMMARY: &'static str;
    /// Its settings.
    const FIELDS: &'static [&'static dyn Field];
    /// The names under which its spans and metrics go out.
    const TELEMETRY: Telemetry = Telemetry {
        namespace: "tripwit",
        scope: "tripwit",
    };
    /// Whether a result counts whenever it comes. Only an operator's reset, a change of mode and a take-over then start a new generation.
    const LATE_RESULTS_COUNT: bool = false;

    /// Checks settings that were read from JSON.
    ///
    /// # Errors
    ///
    /// Names the first field that does not fit, and what would.
    fn settings(settings: &Settings) -> Result<Self::Settings, SettingsError>;

    /// Reads settings from JSON.
    ///
    /// # Errors
    ///
    /// Names the first field that does not fit, and what would.
    fn parse(text: &str) -> Result<Self::Settings, SettingsError> {
        Self::settings(&Settings::parse(text, Self::FIELDS)?)
    }

    /// The JSON Schema of the settings.
    #[must_use]
    fn schema() -> String {
        settings::schema(Self::NAME, Self::SUMMARY, Self::FIELDS)
    }

    /// A closed circuit with nothing recorded.
    fn closed(settings: &Self::Settings) -> Self;

    /// Where the circuit is.
    fn state(&self) -> State;

    /// One call wants to be made.
    fn acquire(&mut self, cx: &mut Context<'_, Self::Settings>) -> (Decision, Option<Transition>);

    /// An admitted call ended. Answers whether the report counted.
    fn settle(
        &mut self,
        ticket: Ticket,
        report: &Report,
        cx: &mut Context<'_, Self::Settings>,
    ) -> (bool, Option<Transition>);

    /// Successes that were kept back under the lease with this ticket.
    fn settle_successes(
        &mut self,
        ticket: Ticket,
        count: u32,
        cx: &mut Context<'_, Self::Settings>,
    ) -> Option<Transition>;

    /// What a host may decide by itself from `now` on.
    fn terms(&self, settings: &Self::Settings, generation: u64, now: Instant) -> Terms;

    /// An operator opens the circuit, for `wait` where it is given.
    fn trip(&mut self, wait: Option<Nanoseconds>, cx: &mut Context<'_, Self::Settings>)
    -> Option<Transition>;

    /// An operator closes the circuit; what was recorded is forgotten.
    fn reset(&mut self, cx: &mut Context<'_, Self::Settings>) -> Option<Transition>;

    /// One cool-down cycle. Policies that count no cycles leave this out.
    fn cool_down(&mut self, _cx: &mut Context<'_, Self::Settings>) -> Cooled {
        Cooled::Untouched
    }

    /// Calls under way no longer count, and what was counted is forgotten; the state stays.
    fn start_afresh(&mut self, settings: &Self::Settings);

    /// Takes on new settings. State and remaining wait stay; calls under way no longer count; counts stay as far as they still mean something.
    fn configure(&mut self, old: &Self::Settings, new: &Self::Settings, now: Instant);

    /// What the policy decides on now.
    fn counts(&self, settings: &Self::Settings, now: Instant) -> Counts;

    /// How long the circuit stays open yet, where the clock decides. Nanoseconds.
    fn retry_after(&self, now: Instant) -> Option<Nanoseconds>;

    /// Cool-down cycles still to go, where cycles decide.
    fn cooldown_count(&self) -> Option<u32> {
        None
    }

    /// How many times in a row the circuit opened without closing in between.
    fn reopenings(&self) -> u32;

    /// Takes a circuit over that was saved `age` ago by this policy or another. An open circuit stays open; half-open goes on with no probe out.
    ///
    /// # Errors
    ///
    /// When the detail is damaged.
    fn restore(
        saved: &Saved,
        detail: &[u8],
        age: Nanoseconds,
        cx: &mut Context<'_, Self::Settings>,
    ) -> Result<Self, SnapshotError>;

    /// The format of [`detail`](Self::detail); empty where there is none.
    const DETAIL_FORMAT: &'static str = "";

    /// What only this policy understands of what it recorded, with times relative to `now`.
    fn detail(&self, _settings: &Self::Settings, _now: Instant) -> Vec<u8> {
        Vec::new()
    }
}
