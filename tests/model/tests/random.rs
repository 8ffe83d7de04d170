//! Long random runs under larger settings. What they once found is kept as a run of its own.

use proptest::prelude::*;
use tripwit_core::{Consecutive, Mode, Outbox, Policy, Window};
use tripwit_model::{
    Buckets, End, Event, MILLISECOND, OutboxReference, Reach, Reference, Rule, Run, TimedReference, Waits,
    WindowRule,
};

fn events() -> impl Strategy<Value = Vec<Event>> {
    let end = prop_oneof![
        4 => Just(End::Failure),
        4 => Just(End::Success),
        1 => Just(End::SlowSuccess),
        1 => Just(End::SlowFailure),
        1 => Just(End::Refusal),
        1 => Just(End::Timeout),
        1 => Just(End::Ignored),
    ];
    let mode = prop_oneof![
        3 => Just(Mode::Automatic),
        1 => Just(Mode::ForcedOpen),
        1 => Just(Mode::Disabled),
        1 => Just(Mode::Shadow),
    ];
    let event = prop_oneof![
        20 => Just(Event::Acquire),
        24 => (0_usize..12, end).prop_map(|(permit, end)| Event::Settle(permit, end)),
        10 => (0_u64..8).prop_map(Event::Advance),
        1 => (20_u64..400).prop_map(Event::Advance),
        1 => (1_u64..20).prop_map(Event::StepBack),
        1 => prop::option::of(0_u64..12).prop_map(Event::Trip),
        1 => Just(Event::Reset),
        1 => mode.prop_map(Event::SetMode),
        3 => Just(Event::CoolDown),
        1 => (0_u64..8).prop_map(Event::TakeOver),
    ];
    prop::collection::vec(event, 1..400)
}

/// Milliseconds, as settings write them.
fn waits() -> impl Strategy<Value = (String, Waits)> {
    (
        1_u64..20,
        1_u64..4,
        0_u64..100,
        prop::option::of(1_u64..30),
        1_usize..6,
        1_u64..20,
    )
        .prop_map(|(open_for, factor, more, retry_after, probes, probe_timeout)| {
            let open_for_max = open_for + more;
            let retry_after_max =
                retry_after.map_or_else(|| "null".to_owned(), |most| format!(r#""{most}ms""#));
            let text = format!(
                r#""open_for":"{open_for}ms","backoff_factor":{factor},"open_for_max":"{open_for_max}ms","retry_after_max":{retry_after_max},"probes":{probes},"probe_timeout":"{probe_timeout}ms","call_timeout":null"#
            );
            let waits = Waits {
                open_for: open_for * MILLISECOND,
                backoff_factor: factor,
                open_for_max: open_for_max * MILLISECOND,
                retry_after_max: retry_after.unwrap_or(0) * MILLISECOND,
                probes,
                probe_timeout: probe_timeout * MILLISECOND,
            };
            (text, waits)
        })
}

fn windows() -> impl Strategy<Value = (String, WindowRule, Option<Buckets>)> {
    let reach = prop_oneof![
        (1_usize..20).prop_map(Reach::Calls),
        (10_u64..60, 1_u64..6).prop_map(|(width, buckets)| {
            Reach::Time(Buckets {
                width: width * MILLISECOND,
                buckets,
            })
        }),
    ];
    // Those that a share of few calls can hit, and any.
    let rate = || {
        prop_oneof![
            Just(25_000),
            Just(50_000),
            Just(60_000),
            Just(100_000),
            1_u64..=100_000
        ]
    };
    let rates = (rate(), rate());
    (reach, 1_usize..15, rates, 1_usize..8).prop_map(|(reach, minimum, (failure_rate, slow_rate), probe_calls)| {
        let (size, minimum_calls, buckets) = match reach {
            Reach::Calls(size) => (format!(r#""window_calls":{size}"#), minimum.min(size), None),
            Reach::Time(buckets) => {
                let time = buckets.width / MILLISECOND * buckets.buckets;
                let text = format!(r#""window_time":"{time}ms","buckets":{}"#, buckets.buckets);
                (text, minimum, Some(buckets))
            }
        };
        let text = format!(
            r#"{size},"minimum_calls":{minimum_calls},"failure_rate":{},"slow_after":"5ms","slow_rate":{},"probe_calls":{probe_calls}"#,
            percent(failure_rate),
            percent(slow_rate),
        );
        let rule = WindowRule { reach, minimum_calls, failure_rate, slow_rate, probe_calls };
        (text, rule, buckets)
    })
}

/// Thousandths of a per cent, as settings write them.
fn percent(rate: u64) -> String {
    format!("{}.{:03}", rate / 1_000, rate % 1_000)
}

fn agrees<P: Policy>(
    settings: &str,
    reference: impl Reference,
    window: Option<Buckets>,
    events: &[Event],
) -> Result<(), String> {
    let mut run = Run::<P, _>::new(settings, reference, window)?;
    for (place, event) in events.iter().enumerate() {
        run.step(*event)
            .map_err(|problem| format!("{settings}, event {place}, {event}: {problem}"))?;
    }
    run.recovers(CALLS_TO_CLOSE).map(drop)
}

/// A thousand runs of each policy, or as many as `PROPTEST_CASES` says.
fn config() -> ProptestConfig {
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig::default(),
        None => ProptestConfig::with_cases(1_000),
    }
}

/// Enough for probes one after another, with a wait before each.
const CALLS_TO_CLOSE: usize = 40;

proptest! {
    #![proptest_config(config())]

    #[test]
    fn consecutive_is_its_reference(
        (text, waits) in waits(), failure_threshold in 1_u32..8, success_threshold in 1_u32..6, events in events(),
    ) {
        let settings =
            format!(r#"{{"failure_threshold":{failure_threshold},"success_threshold":{success_threshold},{text}}}"#);
        let rule = Rule::Consecutive { failure_threshold, success_threshold };
        let agreed = agrees::<Consecutive>(&settings, TimedReference::new(rule, waits), None, &events);
        prop_assert_eq!(agreed, Ok(()));
    }

    #[test]
    fn window_is_its_reference((text, waits) in waits(), (window, rule, buckets) in windows(), events in events()) {
        let reference = TimedReference::new(Rule::Window(rule), waits);
        let agreed = agrees::<Window>(&format!("{{{window},{text}}}"), reference, buckets, &events);
        prop_assert_eq!(agreed, Ok(()));
    }

    #[test]
    fn outbox_is_its_reference(cooldown_count in 0_u32..20, events in events()) {
        let settings = format!(r#"{{"cooldown_count":{cooldown_count}}}"#);
        let agreed = agrees::<Outbox>(&settings, OutboxReference::new(cooldown_count), None, &events);
        prop_assert_eq!(agreed, Ok(()));
    }
}

#[test]
fn a_wait_begins_at_the_latest_reading_of_a_clock_that_stepped_back() {
    let settings = r#"{"failure_threshold":1,"success_threshold":1,"open_for":"1ms","probe_timeout":"1ms","call_timeout":null}"#;
    let rule = Rule::Consecutive {
        failure_threshold: 1,
        success_threshold: 1,
    };
    let waits = Waits {
        open_for: MILLISECOND,
        backoff_factor: 1,
        open_for_max: 1_000 * MILLISECOND,
        retry_after_max: 0,
        probes: 1,
        probe_timeout: MILLISECOND,
    };
    let events = [
        Event::Acquire,
        Event::Settle(0, End::Failure),
        Event::Advance(1),
        Event::SetMode(Mode::Automatic),
        Event::StepBack(1),
        Event::Acquire,
    ];
    let agreed = agrees::<Consecutive>(settings, TimedReference::new(rule, waits), None, &events);
    assert_eq!(agreed, Ok(()));
}
