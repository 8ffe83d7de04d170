//! Snapshots whose parts do not fit together are refused, and those that fit at the edge are not.

use tripwit_core::{Counts, Mode, Saved, SnapshotError, State};

fn saved(state: State) -> Saved {
    Saved {
        state,
        mode: Mode::Automatic,
        retry_after: None,
        cooldown_count: None,
        reopenings: 0,
        counts: Counts::default(),
    }
}

#[test]
fn only_an_open_circuit_waits_by_the_clock_or_by_cycles() {
    let waiting = |state| Saved {
        retry_after: Some(0),
        ..saved(state)
    };
    let cooling = |state| Saved {
        cooldown_count: Some(0),
        ..saved(state)
    };
    assert_eq!(waiting(State::Closed).check(), Err(SnapshotError::ClosedWithWait));
    assert_eq!(cooling(State::Closed).check(), Err(SnapshotError::ClosedWithWait));
    assert_eq!(
        cooling(State::HalfOpen).check(),
        Err(SnapshotError::HalfOpenWithCycles)
    );
    assert_eq!(waiting(State::Open).check(), Ok(()));
    assert_eq!(cooling(State::Open).check(), Ok(()));
}

#[test]
fn a_closed_circuit_has_not_opened() {
    let opened = |state| Saved {
        reopenings: 1,
        ..saved(state)
    };
    assert_eq!(
        opened(State::Closed).check(),
        Err(SnapshotError::ClosedWithReopenings)
    );
    assert_eq!(opened(State::Open).check(), Ok(()));
    assert_eq!(opened(State::HalfOpen).check(), Ok(()));
}

#[test]
fn each_timeout_is_one_of_the_failures() {
    for state in [State::Closed, State::Open, State::HalfOpen] {
        let ended = |failures, timeouts| Saved {
            counts: Counts {
                failures,
                timeouts,
                ..Counts::default()
            },
            ..saved(state)
        };
        assert_eq!(ended(1, 2).check(), Err(SnapshotError::MoreTimeoutsThanFailures));
        assert_eq!(ended(2, 2).check(), Ok(()));
        assert_eq!(ended(2, 1).check(), Ok(()));
    }
}

#[test]
fn a_refusal_says_what_does_not_fit() {
    for (error, parts) in [
        (SnapshotError::ClosedWithWait, ["closed", "wait"]),
        (SnapshotError::ClosedWithReopenings, ["closed", "re-openings"]),
        (SnapshotError::HalfOpenWithCycles, ["half-open", "cycles"]),
        (SnapshotError::MoreTimeoutsThanFailures, ["time-outs", "failures"]),
        (SnapshotError::Detail, ["detail", "damaged"]),
    ] {
        let text = error.to_string();
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    }
}
