//! The detail of a window, byte by byte: what is read is what is counted, and what could not have been written is refused.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use tripwit_core::{
    Circuit, Counts, Env, Mode, Numbers, Outcome, Policy, Report, Saved, SnapshotError, State, Window,
};

const MS: u64 = 1_000_000;
const NOW: u64 = 1_000 * MS;

const BY_CALLS: &str = r#"{"window_calls":8,"minimum_calls":8,"slow_after":"1ms"}"#;
/// Four buckets of ten milliseconds.
const BY_TIME: &str = r#"{"window_time":"40ms","buckets":4,"minimum_calls":1000,"slow_after":"1ms"}"#;

const FAILED: u8 = 1;
const TIMED_OUT: u8 = 2;
const SLOW: u8 = 4;

fn restored(settings: &str, detail: &[u8], age: u64) -> Result<Circuit<Window>, SnapshotError> {
    let saved = Saved {
        state: State::Closed,
        mode: Mode::Automatic,
        retry_after: None,
        cooldown_count: None,
        reopenings: 0,
        // Not what the details say, so that it shows which of the two was read.
        counts: Counts {
            successes: 5,
            ..Counts::default()
        },
    };
    let settings = Arc::new(Window::parse(settings).unwrap());
    Circuit::restore(&saved, detail, age, settings, &mut env(&mut Numbers::default()))
}

fn env(numbers: &mut Numbers) -> Env<'_> {
    Env {
        now: NOW,
        key: "k",
        seed: 0,
        numbers,
    }
}

fn counts(settings: &str, detail: &[u8]) -> Result<Counts, SnapshotError> {
    restored(settings, detail, 0).map(|circuit| circuit.counts(NOW))
}

/// A window of calls, from the oldest.
fn of_calls(streak: u32, calls: &[u8]) -> Vec<u8> {
    let mut detail = vec![0];
    detail.extend(streak.to_le_bytes());
    detail.extend(calls);
    detail
}

/// When a bucket began, so long ago; then its calls, failures, time-outs and slow calls.
type Bucket = (u64, [u32; 4]);

/// A window of time with buckets of this width, from the oldest.
fn of_time(width: u64, buckets: &[Bucket]) -> Vec<u8> {
    let mut detail = vec![1, 0, 0, 0, 0];
    detail.extend(width.to_le_bytes());
    for (ago, tally) in buckets {
        detail.extend(ago.to_le_bytes());
        detail.extend(tally.iter().flat_map(|count| count.to_le_bytes()));
    }
    detail
}

#[test]
fn each_byte_of_a_call_says_how_it_ended() {
    for (call, [failures, timeouts, slow]) in [
        (0, [0, 0, 0]),
        (FAILED, [1, 0, 0]),
        (FAILED | TIMED_OUT, [1, 1, 0]),
        (SLOW, [0, 0, 1]),
        (FAILED | SLOW, [1, 0, 1]),
        (FAILED | TIMED_OUT | SLOW, [1, 1, 1]),
    ] {
        let expected = Counts {
            successes: 1 - failures,
            failures,
            timeouts,
            slow,
            ..Counts::default()
        };
        assert_eq!(counts(BY_CALLS, &of_calls(0, &[call])), Ok(expected), "{call}");
    }
}

#[test]
fn a_call_that_cannot_have_been_is_refused() {
    // Flags that there are not, and time-outs that are no failures.
    for call in [8, 16, 128, 9, 255, TIMED_OUT, TIMED_OUT | SLOW] {
        assert_eq!(
            counts(BY_CALLS, &of_calls(0, &[0, call])),
            Err(SnapshotError::Detail),
            "{call}"
        );
    }
}

#[test]
fn failures_in_a_row_go_over() {
    let detail = of_calls(2, &[0, FAILED, FAILED]);
    assert_eq!(counts(BY_CALLS, &detail).unwrap().consecutive_failures, 2);
}

#[test]
fn a_bucket_whose_counts_cannot_have_been_is_refused() {
    let read = |tally| counts(BY_TIME, &of_time(10 * MS, &[(0, tally)]));
    for tally in [[2, 2, 2, 2], [2, 1, 1, 0], [2, 0, 0, 2], [0, 0, 0, 0]] {
        let [total, failures, timeouts, slow] = tally;
        let expected = Counts {
            successes: total - failures,
            failures,
            timeouts,
            slow,
            ..Counts::default()
        };
        assert_eq!(read(tally), Ok(expected));
    }
    for tally in [
        [2, 3, 0, 0],
        [2, 0, 0, 3],
        [2, 1, 2, 0],
        [0, 1, 0, 0],
        [0, 0, 0, 1],
        [1, 0, 1, 0],
    ] {
        assert_eq!(read(tally), Err(SnapshotError::Detail), "{tally:?}");
    }
}

#[test]
fn buckets_out_of_order_are_refused() {
    let one = [1, 0, 0, 0];
    let total = |agos: &[u64]| {
        let buckets: Vec<Bucket> = agos.iter().map(|ago| (*ago, one)).collect();
        counts(BY_TIME, &of_time(10 * MS, &buckets)).map(|counts| counts.successes)
    };
    assert_eq!(total(&[20 * MS, 10 * MS, 0]), Ok(3));
    assert_eq!(total(&[10 * MS, 10 * MS]), Err(SnapshotError::Detail));
    assert_eq!(total(&[0, 10 * MS]), Err(SnapshotError::Detail));
}

#[test]
fn buckets_that_lie_too_far_back_are_left_out() {
    let buckets = [(30 * MS, [1, 0, 0, 0]), (20 * MS, [2, 0, 0, 0])];
    for (age, left) in [(0, 3), (1, 2), (10 * MS, 2), (10 * MS + 1, 0), (u64::MAX, 0)] {
        let circuit = restored(BY_TIME, &of_time(10 * MS, &buckets), age).unwrap();
        assert_eq!(circuit.counts(NOW).successes, left, "{age}");
    }
}

#[test]
fn a_window_that_was_cut_otherwise_counts_what_the_snapshot_counts() {
    for (settings, detail) in [
        (BY_CALLS, of_time(10 * MS, &[(0, [1, 0, 0, 0])])),
        (BY_TIME, of_calls(0, &[0])),
        (BY_TIME, of_time(11 * MS, &[(0, [1, 0, 0, 0])])),
        (BY_TIME, Vec::new()),
    ] {
        assert_eq!(counts(settings, &detail).unwrap().successes, 5, "{detail:?}");
    }
}

#[test]
fn what_is_cut_short_or_of_another_kind_is_refused() {
    let whole = of_time(10 * MS, &[(0, [1, 0, 0, 0])]);
    for length in 1..whole.len() {
        // Without any bucket it is whole too.
        let expected = if length == 13 {
            Ok(Counts::default())
        } else {
            Err(SnapshotError::Detail)
        };
        assert_eq!(counts(BY_TIME, whole.split_at(length).0), expected, "{length}");
    }
    for kind in [2, 255] {
        let detail = [&[kind], of_calls(0, &[0]).split_at(1).1].concat();
        assert_eq!(counts(BY_CALLS, &detail), Err(SnapshotError::Detail));
    }
}

/// Three buckets, of which the sums are past the end of the counters.
#[test]
fn counters_at_their_end_make_a_window_that_can_be_saved_for_as_long_as_it_lives() {
    let most = u32::MAX;
    let buckets = [
        (30 * MS, [most, most, 0, 0]),
        (20 * MS, [most, most, most, most]),
        (10 * MS, [most, 0, 0, most]),
    ];
    let circuit = restored(BY_TIME, &of_time(10 * MS, &buckets), 0).unwrap();
    for later in 0..5 {
        let saved = circuit.save(NOW + later * 10 * MS);
        assert_eq!(saved.check(), Ok(()), "{later}: {saved:?}");
    }
}

#[test]
fn a_bucket_that_went_past_the_end_of_the_counters_is_gone_when_its_time_is_over() {
    let buckets = [(30 * MS, [u32::MAX, 0, 0, 0]), (20 * MS, [10, 9, 0, 0])];
    let mut circuit = restored(BY_TIME, &of_time(10 * MS, &buckets), 0).unwrap();
    let now = NOW + 10 * MS;
    let seen = |circuit: &Circuit<Window>| {
        let counts = circuit.counts(now);
        (counts.successes, counts.failures)
    };
    assert_eq!(seen(&circuit), (1, 9));
    let ticket = circuit.lease(now).generation;
    let mut numbers = Numbers::default();
    let mut env = Env {
        now,
        ..env(&mut numbers)
    };
    let settlement = circuit.settle(ticket, &Report::of(Outcome::Success), &mut env);
    assert!(settlement.counted);
    assert_eq!(seen(&circuit), (2, 9));
}
