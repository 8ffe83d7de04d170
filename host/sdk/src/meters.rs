//! The instruments that are looked at when someone asks for metrics.
//!
//! An SDK keeps one value for each instrument and set of attributes, whichever callback gave it last. So sets of circuits
//! that share provider, scope and namespace share one group of instruments, which adds their numbers up.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use opentelemetry::metrics::{Meter, MeterProvider};
use opentelemetry::{InstrumentationScope, KeyValue, global};
use parking_lot::Mutex;

use crate::circuit::Key;
use crate::clock::Clock;
use crate::ledger::{Figures, Ledger};
use crate::names::{self, Instrument};
use crate::status::State;
use crate::tally::{ENDINGS, Ending};

pub(crate) type Provider = Arc<dyn MeterProvider + Send + Sync>;

/// How one set of circuits comes to its instruments.
pub(crate) struct Meters {
    /// None: the global provider, as it is when it is looked for.
    given: Option<Provider>,
    scope: InstrumentationScope,
    namespace: String,
    /// How many circuits have a series of their own while they are not closed.
    state_series: usize,
    /// Whether someone can ask.
    listening: AtomicBool,
    /// The provider that was found last, which does nothing.
    tried: Mutex<Option<Weak<dyn MeterProvider + Send + Sync>>>,
}

impl Meters {
    pub(crate) fn new(
        given: Option<Provider>,
        scope: InstrumentationScope,
        namespace: String,
        state_series: usize,
    ) -> Self {
        Self {
            given,
            scope,
            namespace,
            state_series,
            listening: AtomicBool::new(false),
            tried: Mutex::new(None),
        }
    }

    #[inline(always)]
    pub(crate) fn are_listened_to(&self) -> bool {
        self.listening.load(Ordering::Relaxed)
    }

    /// Looks for a provider that asks, until there is one. No lock of a breaker may be held, since providers are code
    /// of others.
    pub(crate) fn connect(&self, ledger: &Arc<Ledger>) {
        if self.are_listened_to() {
            return;
        }
        // Whoever finds it locked is not needed: another thread is at it, or the provider itself called a breaker.
        let Some(mut tried) = self.tried.try_lock() else {
            return;
        };
        let provider = self.given.clone().unwrap_or_else(global::meter_provider);
        if tried.as_ref().is_some_and(|last| is_same(last, &provider)) {
            return;
        }
        *tried = Some(Arc::downgrade(&provider));
        let group = Group::of(&provider, &self.scope, &self.namespace);
        if group.is_asked_by(&provider) {
            group.book.lock().add(ledger, self.state_series);
            self.listening.store(true, Ordering::Relaxed);
        }
    }
}

/// Whether both are one provider: a weak reference keeps the place, so that no other one can be there.
fn is_same(one: &Weak<dyn MeterProvider + Send + Sync>, other: &Provider) -> bool {
    std::ptr::addr_eq(one.as_ptr(), Arc::as_ptr(other))
}

/// One group of instruments.
struct Group {
    provider: Weak<dyn MeterProvider + Send + Sync>,
    scope: InstrumentationScope,
    namespace: String,
    /// Alive as long as someone holds the callbacks of the instruments; none before those are made.
    callbacks: Mutex<Option<Weak<()>>>,
    book: Mutex<Book>,
}

/// What a group adds up.
#[derive(Default)]
struct Book {
    ledgers: Vec<Arc<Ledger>>,
    state_series: usize,
    /// The totals of sets that are gone, so that no counter steps back.
    gone: Figures,
    /// The states that were told last, of circuits that were not closed, and the clock that each goes by.
    told: BTreeMap<Series, Arc<dyn Clock>>,
    /// The states that circuits have left, told as 0 for a time.
    left: BTreeMap<Series, Left>,
}

/// One series of the gauge of states.
type Series = (Key, State);

/// Since when a series is told as 0.
struct Left {
    clock: Arc<dyn Clock>,
    since: u64,
}

impl Left {
    fn new(clock: Arc<dyn Clock>) -> Self {
        let since = clock.monotonic();
        Self { clock, since }
    }

    /// How long ago that was.
    fn age(&self) -> u64 {
        self.clock.monotonic().saturating_sub(self.since)
    }
}

/// How long a series is told as 0 before it is gone, in nanoseconds: so long that every reader comes by, since nobody
/// knows how many there are.
const TOLD_AS_0: u64 = 5 * 60 * 1_000_000_000;
/// The most series that are told as 0, as a multiple of those that may be told as 1: each circuit can have left two.
const LEFT_A_SERIES: usize = 2;

/// One of the figures.
type Figure = fn(&Figures) -> u64;

/// Every group there is.
static GROUPS: Mutex<Vec<Weak<Group>>> = Mutex::new(Vec::new());

impl Group {
    fn of(provider: &Provider, scope: &InstrumentationScope, namespace: &str) -> Arc<Self> {
        let mut groups = GROUPS.lock();
        groups.retain(|group| group.strong_count() > 0);
        let there = groups.iter().filter_map(Weak::upgrade).find(|group| {
            is_same(&group.provider, provider) && group.scope == *scope && group.namespace == namespace
        });
        there.unwrap_or_else(|| {
            let group = Arc::new(Self {
                provider: Arc::downgrade(provider),
                scope: scope.clone(),
                namespace: namespace.to_owned(),
                callbacks: Mutex::new(None),
                book: Mutex::default(),
            });
            groups.push(Arc::downgrade(&group));
            group
        })
    }

    /// Makes the instruments, once, and says whether anybody will ask them: a provider that does nothing throws the
    /// callbacks away.
    fn is_asked_by(self: &Arc<Self>, provider: &Provider) -> bool {
        let mut callbacks = self.callbacks.lock();
        let callbacks = callbacks.get_or_insert_with(|| {
            let alive = Arc::new(());
            let meter = provider.meter_with_scope(self.scope.clone());
            self.make_totals(&meter, &alive);
            self.make_states(&meter, &alive);
            Arc::downgrade(&alive)
        });
        callbacks.strong_count() > 0
    }

    fn make_totals(self: &Arc<Self>, meter: &Meter, alive: &Arc<()>) {
        let counters: [(Instrument, Figure); 5] = [
            (names::STALE_RESULTS, |figures| figures.stale_results),
            (names::SHADOW_REJECTIONS, |figures| figures.shadow_rejections),
            (names::COMPONENT_FAULTS, |figures| figures.faults),
            (names::SWAPS, |figures| figures.swaps),
            (names::DROPPED_ENTRIES, |figures| figures.dropped),
        ];
        for (instrument, figure) in counters {
            let (group, alive) = (self.clone(), alive.clone());
            let _ = meter
                .u64_observable_counter(instrument.full_name(&self.namespace))
                .with_unit(instrument.unit)
                .with_description(instrument.description)
                .with_callback(move |observer| {
                    let _ = &alive;
                    observer.observe(figure(&group.figures()), &[]);
                })
                .build();
        }
        let (group, held) = (self.clone(), alive.clone());
        let attributes = ENDINGS.map(attributes_of);
        let _ = meter
            .u64_observable_counter(names::CALLS.full_name(&self.namespace))
            .with_unit(names::CALLS.unit)
            .with_description(names::CALLS.description)
            .with_callback(move |observer| {
                let _ = &held;
                for (count, attributes) in group.figures().calls.iter().zip(&attributes) {
                    observer.observe(*count, attributes);
                }
            })
            .build();
        let (group, held) = (self.clone(), alive.clone());
        let _ = meter
            .f64_observable_counter(names::OPEN_TIME.full_name(&self.namespace))
            .with_unit(names::OPEN_TIME.unit)
            .with_description(names::OPEN_TIME.description)
            .with_callback(move |observer| {
                let _ = &held;
                observer.observe(Duration::from_nanos(group.figures().open_time).as_secs_f64(), &[]);
            })
            .build();
    }

    fn make_states(self: &Arc<Self>, meter: &Meter, alive: &Arc<()>) {
        let (group, held) = (self.clone(), alive.clone());
        let states = [State::Closed, State::Open, State::HalfOpen].map(state_attribute);
        let _ = meter
            .i64_observable_up_down_counter(names::CIRCUITS.full_name(&self.namespace))
            .with_unit(names::CIRCUITS.unit)
            .with_description(names::CIRCUITS.description)
            .with_callback(move |observer| {
                let _ = &held;
                for (count, state) in group.book.lock().circuits().into_iter().zip(&states) {
                    observer.observe(
                        i64::try_from(count).unwrap_or(i64::MAX),
                        std::slice::from_ref(state),
                    );
                }
            })
            .build();
        let (group, held) = (self.clone(), alive.clone());
        let _ = meter
            .u64_observable_gauge(names::STATES.full_name(&self.namespace))
            .with_unit(names::STATES.unit)
            .with_description(names::STATES.description)
            .with_callback(move |observer| {
                let _ = &held;
                for (topic, state, is_now) in group.book.lock().states() {
                    let topic = KeyValue::new(names::TOPIC, topic.to_string());
                    observer.observe(u64::from(is_now), &[topic, state_attribute(state)]);
                }
            })
            .build();
    }

    fn figures(&self) -> Figures {
        self.book.lock().figures()
    }
}

impl Book {
    fn add(&mut self, ledger: &Arc<Ledger>, state_series: usize) {
        self.fold();
        self.ledgers.push(ledger.clone());
        self.state_series = self.state_series.max(state_series);
    }

    /// Keeps the totals of sets that are gone, and nothing else of them.
    fn fold(&mut self) {
        let gone = &mut self.gone;
        self.ledgers.retain(|ledger| {
            let ended = ledger.has_ended();
            if ended {
                gone.add(&ledger.figures());
            }
            !ended
        });
    }

    fn figures(&mut self) -> Figures {
        self.fold();
        let mut all = self.gone;
        for ledger in &self.ledgers {
            all.add(&ledger.figures());
        }
        all
    }

    /// How many circuits there are in each state: closed, open, half-open.
    fn circuits(&mut self) -> [u64; 3] {
        self.fold();
        let mut all = [0; 3];
        for ledger in &self.ledgers {
            for (total, more) in all.iter_mut().zip(ledger.circuits()) {
                *total += more;
            }
        }
        all
    }

    /// What there is to tell of circuits that are not closed: the states that they are in, and for a time those that they
    /// were in before. A circuit that has a series keeps it while it is not closed; others get one while there is room.
    fn states(&mut self) -> Vec<(Key, State, bool)> {
        self.fold();
        let mut not_closed = BTreeMap::new();
        for ledger in &self.ledgers {
            let mut all = Vec::new();
            ledger.not_closed(&mut all);
            not_closed.extend(all.into_iter().map(|series| (series, ledger.clock.clone())));
        }
        let has_one: BTreeSet<_> = self.told.keys().map(|(topic, _)| topic.clone()).collect();
        let (kept, new): (Vec<_>, Vec<_>) = not_closed
            .into_iter()
            .partition(|((topic, _), _)| has_one.contains(topic));
        let now = kept.into_iter().chain(new).take(self.state_series).collect();
        let told = std::mem::replace(&mut self.told, now);
        self.left
            .extend(told.into_iter().map(|(series, clock)| (series, Left::new(clock))));
        self.forget_left();
        let left = self.left.keys().map(|it| (it, false));
        let all = left.chain(self.told.keys().map(|it| (it, true)));
        all.map(|((topic, state), is_now)| (topic.clone(), *state, is_now))
            .collect()
    }

    /// Of the states that were left, keeps those that are not back and not too old, and not more than may be.
    fn forget_left(&mut self) {
        let told = &self.told;
        self.left
            .retain(|series, left| !told.contains_key(series) && left.age() < TOLD_AS_0);
        let too_many = self.left.len().saturating_sub(self.state_series * LEFT_A_SERIES);
        if too_many > 0 {
            let mut by_age: Vec<_> = self
                .left
                .iter()
                .map(|(series, left)| (left.age(), series.clone()))
                .collect();
            by_age.sort_unstable_by(|(one, _), (other, _)| other.cmp(one));
            for (_, series) in by_age.into_iter().take(too_many) {
                self.left.remove(&series);
            }
        }
    }
}

fn attributes_of(ending: Ending) -> Vec<KeyValue> {
    let outcome = KeyValue::new(names::OUTCOME, names::outcome(ending));
    let reason = match ending {
        Ending::Rejected(reason) => Some(KeyValue::new(
            names::REJECTION_REASON,
            names::rejection_reason(reason),
        )),
        Ending::Ended(_) => None,
    };
    std::iter::once(outcome).chain(reason).collect()
}

fn state_attribute(state: State) -> KeyValue {
    KeyValue::new(names::STATE, names::state(state))
}
