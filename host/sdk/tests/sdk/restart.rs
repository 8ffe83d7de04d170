//! Circuits of one process in the next.

use std::fs;
use std::time::{Duration, SystemTime};

use tripwit::settings::{Consecutive, Outbox};
use tripwit::{
    Breaker, Breakers, Failure, ManualClock, Mode, Policy, RejectionReason, RestoreError, State, StateError,
};

use crate::support::{circuits, fine, refused, touchy, touchy_circuits};

const WAIT: Duration = Duration::from_secs(5);

fn left(breaker: &Breaker) -> Option<Duration> {
    breaker.acquire().unwrap_err().retry_after()
}

/// Circuits in every state and mode, saved two seconds after the open ones opened.
fn saved() -> String {
    let (breakers, clock) = touchy_circuits();
    let at = |key: &str| breakers.breaker(key).unwrap();
    let probing = at("probing");
    probing.trip();
    clock.advance(WAIT);
    let _probe = probing.acquire().unwrap();
    at("open").trip();
    at("forced").set_mode(Mode::ForcedOpen);
    at("counted")
        .acquire()
        .unwrap()
        .failure(Failure::new().cause("\"odd\" \u{1F980}\n"));
    at("untouched").call_blocking(fine).unwrap();
    breakers
        .breaker_with("own", Consecutive::default().failure_threshold(9))
        .unwrap()
        .trip();
    clock.advance(Duration::from_secs(2));
    breakers.save().unwrap()
}

#[test]
fn a_restart_takes_over_what_was_recorded_and_time_stopped_does_not_count() {
    let json = saved();
    let (breakers, clock) = touchy_circuits();
    clock.set_monotonic(123_456_789_000);
    clock.set_wall(SystemTime::UNIX_EPOCH);
    assert_eq!(breakers.restore(&json).unwrap(), 5);

    let at = |key: &str| breakers.breaker(key).unwrap();
    assert_eq!(left(&at("open")), Some(Duration::from_secs(3)));
    assert_eq!(left(&at("own")), Some(Duration::from_secs(28)));
    breakers
        .breaker_with("own", Consecutive::default().failure_threshold(9))
        .unwrap();
    assert_eq!(
        at("forced").acquire().unwrap_err().reason(),
        RejectionReason::ForcedOpen
    );
    let probing = at("probing");
    assert_eq!(probing.state(), State::HalfOpen);
    probing.acquire().unwrap().success();
    assert_eq!(probing.state(), State::Closed, "its probe's place was free");
    let counted = at("counted");
    assert_eq!(
        counted.status().last_cause.as_deref(),
        Some("\"odd\" \u{1F980}\n")
    );
    counted.call_blocking(refused).unwrap_err();
    assert_eq!(counted.state(), State::Open, "the second failure of two");
    clock.advance(Duration::from_secs(3));
    at("open").call_blocking(fine).unwrap();
    assert_eq!(breakers.faults(), 0);
}

#[test]
fn what_is_saved_again_at_once_is_the_same_text() {
    let json = saved();
    let (breakers, _clock) = touchy_circuits();
    breakers.restore(&json).unwrap();
    assert_eq!(breakers.save().unwrap(), json);
}

#[test]
fn no_clock_step_frees_or_traps_a_circuit() {
    let json = saved();
    for wall in [0, 4_000_000_000] {
        for monotonic in [0, u64::MAX / 2] {
            let (breakers, clock) = touchy_circuits();
            clock.set_monotonic(monotonic);
            clock.set_wall(SystemTime::UNIX_EPOCH + Duration::from_secs(wall));
            breakers.restore(&json).unwrap();
            let open = breakers.breaker("open").unwrap();
            assert_eq!(left(&open), Some(Duration::from_secs(3)));
            clock.advance(Duration::from_secs(3) - Duration::from_nanos(1));
            assert_eq!(left(&open), Some(Duration::from_nanos(1)));
            clock.advance(Duration::from_nanos(1));
            open.call_blocking(fine).unwrap();
        }
    }
}

#[test]
fn another_policy_takes_saved_circuits_over_by_the_rules_of_a_swap() {
    let breakers = Breakers::builder(Policy::outbox().unwrap())
        .settings(Outbox::default().cooldown_count(3))
        .clock(ManualClock::new())
        .build()
        .unwrap();
    assert_eq!(breakers.restore(&saved()).unwrap(), 5);
    assert_eq!(breakers.tripped(), ["open", "own", "probing"]);
    let own = breakers.breaker("own").unwrap();
    assert_eq!(own.status().cooldown_count, Some(3));
    assert_eq!(breakers.breaker("forced").unwrap().mode(), Mode::ForcedOpen);
}

#[test]
fn a_circuit_that_is_there_already_is_replaced_and_its_calls_no_longer_count() {
    let json = saved();
    let (breakers, _clock) = touchy_circuits();
    let (open, counted) = (
        breakers.breaker("open").unwrap(),
        breakers.breaker("counted").unwrap(),
    );
    let (late, other) = (open.acquire().unwrap(), counted.acquire().unwrap());
    counted.call_blocking(refused).unwrap_err();
    breakers.restore(&json).unwrap();
    late.success();
    other.failure(Failure::new());
    assert_eq!(left(&open), Some(Duration::from_secs(3)));
    assert_eq!(
        (counted.status().counts.failures, counted.status().stale_results),
        (1, 1)
    );
    assert_eq!(breakers.restore(&json).unwrap(), 5, "as often as one likes");
    assert_eq!(breakers.faults(), 0);
}

#[test]
fn damaged_and_unknown_texts_are_refused_and_change_nothing() {
    let json = saved();
    let (breakers, _clock) = touchy_circuits();
    let before = breakers.len();
    let refuse = |text: &str| {
        let error = breakers.restore(text).unwrap_err();
        assert_eq!(breakers.len(), before, "{error}");
        error
    };
    for version in ["0", "2", "99999999999"] {
        let other = json.replacen("\"version\": 1", &format!("\"version\": {version}"), 1);
        let error = refuse(&other);
        assert!(
            matches!(error, RestoreError::State(StateError::Version { .. })),
            "{error}"
        );
        assert!(error.to_string().contains(version) && error.to_string().contains("reads version 1"));
    }
    for (text, word) in [
        ("", "no saved state"),
        ("{}", "no saved state"),
        ("[1]", "no saved state"),
        (r#"{"format":"other","version":1}"#, "\"other\""),
        (
            &json.replacen("\"retry_after_ns\": 3", "\"retry_after_ns\": 9", 1),
            "checksum",
        ),
        (
            &json.replacen("\"state\": \"open\"", "\"state\": \"ajar\"", 1),
            "ajar",
        ),
        (
            &json.replacen("\"reopenings\"", "\"more\": 1, \"reopenings\"", 1),
            "more",
        ),
    ] {
        let said = refuse(text).to_string();
        assert!(said.contains(word), "{said:?} lacks {word:?}");
    }
    for end in (0..json.len())
        .step_by(97)
        .filter(|end| json.is_char_boundary(*end))
    {
        refuse(&json[..end]);
    }
    breakers.restore(&json).unwrap();
}

#[test]
fn a_byte_that_changes_anywhere_is_found() {
    let json = saved();
    let (breakers, _clock) = touchy_circuits();
    let mut bytes = json.clone().into_bytes();
    for place in 0..bytes.len() {
        let old = bytes[place];
        bytes[place] = if old == b'0' { b'1' } else { b'0' };
        if let Ok(text) = std::str::from_utf8(&bytes) {
            let same = serde_json::from_str::<serde_json::Value>(text).ok()
                == serde_json::from_str::<serde_json::Value>(&json).ok();
            assert!(
                same || breakers.restore(text).is_err(),
                "byte {place} of {}",
                &text[place.saturating_sub(20)..]
            );
        }
        bytes[place] = old;
    }
    assert!(breakers.is_empty());
}

#[test]
fn a_policy_that_refuses_a_circuit_on_trial_gets_none() {
    let (breakers, _clock) = touchy_circuits();
    breakers.breaker("a").unwrap().trip();
    breakers.breaker("trap:restore").unwrap().trip();
    let json = breakers.save().unwrap();
    let faulty = Policy::from_bytes(include_bytes!("../guests/faulty.wasm")).unwrap();
    let breakers = Breakers::new(faulty).unwrap();
    let error = breakers.restore(&json).unwrap_err().to_string();
    assert!(error.contains("trap:restore"), "{error}");
    assert!(breakers.is_empty());
    assert_eq!(breakers.faults(), 0);
}

#[test]
fn a_file_is_replaced_whole_and_what_is_not_there_is_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("circuits.json");
    let (breakers, _clock) = touchy_circuits();
    let error = breakers.restore_from(&path).unwrap_err();
    assert!(
        matches!(&error, RestoreError::File { source, .. } if source.kind() == std::io::ErrorKind::NotFound),
        "{error}"
    );
    breakers.breaker("a").unwrap().trip();
    breakers.save_to(&path).unwrap();
    let first = fs::read_to_string(&path).unwrap();
    breakers.breaker("b").unwrap().trip();
    breakers.save_to(&path).unwrap();
    assert_ne!(fs::read_to_string(&path).unwrap(), first);
    assert_eq!(
        fs::read_dir(folder.path()).unwrap().count(),
        1,
        "nothing is left beside it"
    );

    let nowhere = folder.path().join("gone").join("circuits.json");
    let error = breakers.save_to(&nowhere).unwrap_err().to_string();
    assert!(error.contains(&nowhere.display().to_string()), "{error}");

    let (again, _clock) = touchy_circuits();
    assert_eq!(again.restore_from(&path).unwrap(), 2);
    assert_eq!(again.tripped(), ["a", "b"]);
}

#[test]
fn no_more_circuits_come_back_than_may_be() {
    let (breakers, _clock) = touchy_circuits();
    for key in ["a", "b", "c"] {
        breakers.breaker(key).unwrap().trip();
    }
    let json = breakers.save().unwrap();
    let (builder, _clock) = circuits(touchy());
    let small = builder.max_circuits(2).build().unwrap();
    let error = small.restore(&json).unwrap_err().to_string();
    assert!(error.contains("max_circuits"), "{error}");
    assert_eq!(small.tripped().len(), 2);
}
