//! Settings, snapshots and keys that nobody would write: each is taken or refused with an error that says where, and what was
//! taken works. Runs 64 cases each, or for as many seconds as `TRIPWIT_FUZZ_SECONDS` says.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, TestRunner};
use tripwit_core::{
    Consecutive, Counts, Decision, Mode, Outbox, Outcome, Policy, Report, Saved, State, Window,
};
use tripwit_policy::{AttachError, Circuits, Host, Line, Snapshot, Span, Timestamp};

/// Puts cases to a test, until the time is up where there is one.
#[expect(
    clippy::disallowed_methods,
    reason = "only how long to go on is up to the clock"
)]
fn fuzz<S: Strategy>(strategy: S, test: impl Fn(S::Value)) {
    let seconds = std::env::var("TRIPWIT_FUZZ_SECONDS").ok();
    let limit = seconds
        .map(|seconds| Duration::from_secs(seconds.parse().expect("TRIPWIT_FUZZ_SECONDS is a number")));
    let began = std::time::Instant::now();
    let mut rounds = 0;
    while rounds == 0 || limit.is_some_and(|limit| began.elapsed() < limit) {
        let config = Config {
            cases: 64,
            failure_persistence: None,
            ..Config::default()
        };
        let ran = TestRunner::new(config).run(&strategy, |value| {
            test(value);
            Ok(())
        });
        if let Err(failure) = ran {
            panic!("{failure}");
        }
        rounds += 1;
    }
    println!("{} cases", 64 * rounds);
}

#[derive(Default)]
struct Surroundings {
    now: u64,
}

impl Host for Surroundings {
    fn monotonic(&mut self) -> u64 {
        self.now
    }

    fn wall(&mut self) -> Timestamp {
        self.now
    }

    fn log(&mut self, line: Line) {
        assert!(!line.message.is_empty());
    }

    fn export_span(&mut self, span: Span) {
        assert!(!span.name.is_empty());
    }
}

type All<P> = Circuits<P, Surroundings>;

fn none<P: Policy>() -> All<P> {
    Circuits::new(Surroundings::default())
}

/// What happens to a circuit.
#[derive(Clone, Debug)]
enum Event {
    Acquire,
    Settle(Index, Outcome, Option<u64>, Option<u64>),
    Unknown(u64, u32),
    Trip(Option<u64>),
    Reset,
    SetMode(Mode),
    CoolDown,
    At(u64),
}

/// Small, large, and anything between.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        0..5_u64,
        any::<u64>(),
        select(vec![u64::MAX, 1_000_000_000, 60_000_000_000])
    ]
}

fn mode() -> impl Strategy<Value = Mode> {
    select(vec![
        Mode::Automatic,
        Mode::ForcedOpen,
        Mode::Disabled,
        Mode::Shadow,
    ])
}

fn outcome() -> impl Strategy<Value = Outcome> {
    select(vec![
        Outcome::Success,
        Outcome::Failure,
        Outcome::Timeout,
        Outcome::Ignored,
    ])
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let settle = (
        any::<Index>(),
        outcome(),
        proptest::option::of(number()),
        proptest::option::of(number()),
    );
    let event = prop_oneof![
        4 => Just(Event::Acquire),
        4 => settle.prop_map(|(which, outcome, took, wait)| Event::Settle(which, outcome, took, wait)),
        1 => (number(), any::<u32>()).prop_map(|(ticket, count)| Event::Unknown(ticket, count)),
        1 => proptest::option::of(number()).prop_map(Event::Trip),
        1 => Just(Event::Reset),
        1 => mode().prop_map(Event::SetMode),
        1 => Just(Event::CoolDown),
        2 => number().prop_map(Event::At),
    ];
    proptest::collection::vec(event, 0..40)
}

/// Puts events to a circuit: its generation only grows, and what it saves another instance takes over as it is.
fn works<P: Policy>(circuits: &mut All<P>, circuit: u32, events: &[Event]) {
    let mut tickets = Vec::new();
    let mut generation = 0;
    for event in events {
        match event {
            Event::Acquire => {
                if let Decision::Admit(ticket) = circuits.acquire(circuit).unwrap().decision {
                    tickets.push(ticket);
                }
            }
            Event::Settle(which, outcome, took, retry_after) if !tickets.is_empty() => {
                let report = Report {
                    took: *took,
                    retry_after: *retry_after,
                    ..Report::of(*outcome)
                };
                let ticket = tickets.swap_remove(which.index(tickets.len()));
                circuits.settle(circuit, ticket, &report).unwrap();
            }
            Event::Settle(..) => {}
            Event::Unknown(ticket, count) => {
                circuits.settle_successes(circuit, *ticket, *count).unwrap();
            }
            Event::Trip(wait) => {
                circuits.trip(circuit, *wait).unwrap();
            }
            Event::Reset => {
                circuits.reset(circuit).unwrap();
            }
            Event::SetMode(mode) => {
                circuits.set_mode(circuit, *mode).unwrap();
            }
            Event::CoolDown => {
                circuits.cool_down();
            }
            Event::At(now) => circuits.host().now = *now,
        }
        let lease = circuits.lease_of(circuit).unwrap();
        assert!(lease.generation >= generation, "the generation went back");
        generation = lease.generation;
    }
    let saved = circuits.save(circuit).unwrap();
    let mut other = none::<P>();
    let taken = other
        .restore(&saved, &saved.settings, 0)
        .expect("its own snapshot");
    assert_eq!(
        (taken.lease.state, taken.lease.mode),
        (saved.saved.state, saved.saved.mode)
    );
    let again = other.save(taken.circuit).unwrap();
    assert_eq!(again.saved.retry_after, saved.saved.retry_after);
}

/// A JSON value for a setting, right or wrong.
fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<i64>().prop_map(|number| number.to_string()),
        (0..200_u32).prop_map(|number| number.to_string()),
        any::<f64>().prop_map(|number| format!("{number:e}")),
        (
            number(),
            select(vec!["h", "m", "s", "ms", "us", "ns", "", "S", "d"])
        )
            .prop_map(|(number, unit)| format!("\"{number}{unit}\"")),
        (1..100_u32, select(vec!["s", "ms"])).prop_map(|(number, unit)| format!("\"{number}{unit}\"")),
        select(vec![
            "null",
            "true",
            "[]",
            "{}",
            "\"\"",
            "\"\\u0000\"",
            "1e999",
            "-0"
        ])
        .prop_map(str::to_owned),
        any::<String>().prop_map(|text| format!("{text:?}")),
    ]
}

/// Settings with some of a policy's fields, and now and then a byte that is not what it was.
fn settings<P: Policy>() -> impl Strategy<Value = String> {
    let mut names: Vec<String> = P::FIELDS.iter().map(|field| field.name().to_owned()).collect();
    names.push("unknown".into());
    let fields = proptest::collection::vec((select(names), value()), 0..4);
    let damage = proptest::option::weighted(0.2, (any::<Index>(), any::<char>()));
    (fields, damage).prop_map(|(fields, damage)| {
        let fields: Vec<_> = fields
            .iter()
            .map(|(name, value)| format!("\"{name}\":{value}"))
            .collect();
        let mut text: Vec<char> = format!("{{{}}}", fields.join(",")).chars().collect();
        if let Some((place, other)) = damage {
            let place = place.index(text.len());
            text[place] = other;
        }
        text.into_iter().collect()
    })
}

fn any_settings_are_taken_or_refused<P: Policy>() {
    fuzz((settings::<P>(), events()), |(settings, events)| {
        let mut circuits = none::<P>();
        match circuits.attach("key", &settings) {
            Ok(attached) => works(&mut circuits, attached.circuit, &events),
            Err(AttachError::Settings(error)) => {
                let text = error.to_string();
                assert!(!text.is_empty());
                circuits
                    .attach("key", "{}")
                    .expect("nothing of the refused one is left");
            }
            Err(error) => panic!("{error:?}"),
        }
    });
}

#[test]
fn any_settings_of_consecutive_are_taken_or_refused() {
    any_settings_are_taken_or_refused::<Consecutive>();
}

#[test]
fn any_settings_of_window_are_taken_or_refused() {
    any_settings_are_taken_or_refused::<Window>();
}

#[test]
fn any_settings_of_outbox_are_taken_or_refused() {
    any_settings_are_taken_or_refused::<Outbox>();
}

fn counts() -> impl Strategy<Value = Counts> {
    proptest::array::uniform7(prop_oneof![0..20_u32, any::<u32>()]).prop_map(
        |[
            successes,
            failures,
            timeouts,
            slow,
            consecutive_successes,
            consecutive_failures,
            probes_in_flight,
        ]| Counts {
            successes,
            failures,
            timeouts,
            slow,
            consecutive_successes,
            consecutive_failures,
            probes_in_flight,
        },
    )
}

fn saved() -> impl Strategy<Value = Saved> {
    (
        select(vec![State::Closed, State::Open, State::HalfOpen]),
        mode(),
        proptest::option::of(number()),
        proptest::option::of(any::<u32>()),
        prop_oneof![Just(0), any::<u32>()],
        counts(),
    )
        .prop_map(
            |(state, mode, retry_after, cooldown_count, reopenings, counts)| Saved {
                state,
                mode,
                retry_after,
                cooldown_count,
                reopenings,
                counts,
            },
        )
}

/// How a detail is bent.
#[derive(Clone, Debug)]
enum Damage {
    None,
    Replace(Vec<u8>),
    Cut(Index),
    Flip(Index, u8),
    Add(Vec<u8>),
}

fn damage() -> impl Strategy<Value = Damage> {
    let bytes = || proptest::collection::vec(any::<u8>(), 0..80);
    prop_oneof![
        Just(Damage::None),
        bytes().prop_map(Damage::Replace),
        any::<Index>().prop_map(Damage::Cut),
        (any::<Index>(), 1..=u8::MAX).prop_map(|(place, bits)| Damage::Flip(place, bits)),
        bytes().prop_map(Damage::Add),
    ]
}

fn bend(detail: &mut Vec<u8>, damage: Damage) {
    match damage {
        Damage::None => {}
        Damage::Replace(bytes) => *detail = bytes,
        Damage::Cut(place) => detail.truncate(place.index(detail.len() + 1)),
        Damage::Flip(place, bits) => {
            if !detail.is_empty() {
                let place = place.index(detail.len());
                detail[place] ^= bits;
            }
        }
        Damage::Add(bytes) => detail.extend(bytes),
    }
}

/// The policies' own snapshots, bent, and others that nobody saved.
fn any_snapshot_is_taken_over_or_refused<P: Policy>(settings: &'static [&'static str]) {
    let from = (
        select(settings),
        events(),
        proptest::option::of(saved()),
        damage(),
    );
    let to = (select(settings), number(), number(), events());
    fuzz(
        (from, to),
        |((before, past, other, damage), (settings, age, now, future))| {
            let mut circuits = none::<P>();
            let circuit = circuits.attach("key", before).unwrap().circuit;
            works(&mut circuits, circuit, &past);
            let mut snapshot: Snapshot = circuits.save(circuit).unwrap();
            if let Some(other) = other {
                snapshot.saved = other;
            }
            bend(&mut snapshot.detail, damage);
            let mut circuits = none::<P>();
            circuits.host().now = now;
            match circuits.restore(&snapshot, settings, age) {
                Ok(taken) => {
                    let was_closed = snapshot.saved.state == State::Closed;
                    assert_eq!(taken.lease.state == State::Closed, was_closed);
                    assert_eq!(taken.lease.mode, snapshot.saved.mode);
                    works(&mut circuits, taken.circuit, &future);
                }
                Err(AttachError::Snapshot(problem)) => {
                    assert!(!problem.is_empty());
                    assert!(circuits.tripped().is_empty(), "nothing of it is left");
                }
                Err(error) => panic!("{error:?}"),
            }
        },
    );
}

#[test]
fn any_snapshot_of_consecutive_is_taken_over_or_refused() {
    any_snapshot_is_taken_over_or_refused::<Consecutive>(&[
        "{}",
        r#"{"failure_threshold":1,"open_for":"1ms","backoff_factor":100,"open_for_max":"24h","jitter":1}"#,
    ]);
}

#[test]
fn any_snapshot_of_window_is_taken_over_or_refused() {
    any_snapshot_is_taken_over_or_refused::<Window>(&[
        "{}",
        r#"{"window_calls":3,"minimum_calls":1,"slow_after":"1ms"}"#,
        r#"{"window_time":"10s","buckets":5,"minimum_calls":1}"#,
    ]);
}

#[test]
fn any_snapshot_of_outbox_is_taken_over_or_refused() {
    any_snapshot_is_taken_over_or_refused::<Outbox>(&["{}", r#"{"cooldown_count":0}"#]);
}

#[test]
fn keys_of_any_text_are_kept_apart() {
    let key = || prop_oneof!["[ab:]{0,3}", any::<String>(), "a{510,514}"];
    fuzz(proptest::collection::vec((key(), any::<bool>()), 1..20), |keys| {
        let mut circuits = none::<Consecutive>();
        let mut known = BTreeMap::new();
        for (key, trips) in keys {
            match circuits.attach(&key, "{}") {
                Ok(attached) => {
                    assert!((1..=512).contains(&key.len()));
                    let number = *known.entry(key).or_insert((attached.circuit, false));
                    assert_eq!(number.0, attached.circuit);
                }
                Err(AttachError::Key(problem)) => {
                    assert!(!(1..=512).contains(&key.len()), "{problem}");
                    continue;
                }
                Err(error) => panic!("{error:?}"),
            }
            let last = known.values_mut().next_back().unwrap();
            if trips {
                circuits.trip(last.0, None).unwrap();
                last.1 = true;
            }
        }
        let numbers: std::collections::BTreeSet<_> = known.values().map(|(number, _)| number).collect();
        assert_eq!(numbers.len(), known.len(), "a number for each key");
        let tripped: Vec<_> = known
            .iter()
            .filter(|(_, (_, open))| *open)
            .map(|(key, _)| key.clone())
            .collect();
        let mut told = circuits.tripped();
        told.sort();
        assert_eq!(told, tripped);
    });
}
