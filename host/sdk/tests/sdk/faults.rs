//! A component that traps, never ends or hands out nonsense is contained.
//!
//! The component is `consecutive`, except for keys that ask for a fault: `{fault}:{export}`.

use std::time::Duration;

use tripwit::{
    Breaker, Breakers, BreakersBuilder, Failure, ManualClock, Mode, OnFault, Policy, RejectionReason, State,
};

use crate::support::{fine, refused, touchy};
use crate::telemetry::logged;

const WAIT: Duration = Duration::from_secs(5);

fn faulty() -> (BreakersBuilder, ManualClock) {
    static POLICY: std::sync::LazyLock<Policy> =
        std::sync::LazyLock::new(|| Policy::from_bytes(include_bytes!("../guests/faulty.wasm")).unwrap());
    let clock = ManualClock::new();
    (
        Breakers::builder(POLICY.clone())
            .settings(touchy())
            .clock(clock.clone())
            .shards(1),
        clock,
    )
}

/// Makes the component fail: `status` is a call that no lease answers.
fn provoke(breaker: &Breaker, times: usize) {
    for _ in 0..times {
        let _status = breaker.status();
    }
}

#[test]
fn a_trap_is_counted_and_logged_and_the_call_goes_on() {
    let (builder, _clock) = faulty();
    let breakers = builder.build().unwrap();
    let breaker = breakers.breaker("trap:settle").unwrap();
    let lines = logged(|| {
        breaker.call_blocking(refused).unwrap_err();
    });
    assert_eq!(breakers.faults(), 1);
    let faults: Vec<_> = lines.iter().filter(|line| line.level == "ERROR").collect();
    assert_eq!(faults.len(), 1);
    assert_eq!(
        (&*faults[0].target, &*faults[0].fields["topic"]),
        ("tripwit", "trap:settle")
    );
    assert_eq!(
        (&*faults[0].fields["call"], &*faults[0].fields["policy"]),
        ("settle", "faulty")
    );
    breaker.call_blocking(fine).unwrap();
}

#[test]
fn open_circuits_outlive_the_instance_with_the_wait_that_was_left() {
    let (builder, clock) = faulty();
    let breakers = builder.build().unwrap();
    let open = breakers.breaker("open").unwrap();
    open.trip();
    let forced = breakers.breaker("forced").unwrap();
    forced.set_mode(Mode::ForcedOpen);
    let shadow = breakers.breaker("shadow").unwrap();
    shadow.set_mode(Mode::Shadow);
    clock.advance(Duration::from_secs(2));
    provoke(&breakers.breaker("trap:inspect").unwrap(), 1);
    assert_eq!(breakers.faults(), 1);

    assert_eq!(
        open.acquire().unwrap_err().retry_after(),
        Some(Duration::from_secs(3))
    );
    assert_eq!(
        forced.acquire().unwrap_err().reason(),
        RejectionReason::ForcedOpen
    );
    assert_eq!((forced.mode(), shadow.mode()), (Mode::ForcedOpen, Mode::Shadow));
    clock.advance(Duration::from_secs(3));
    open.call_blocking(fine).unwrap();
    assert_eq!(open.state(), State::Closed);
}

#[test]
fn what_closed_circuits_had_counted_is_lost_and_older_permits_are_void() {
    let (builder, _clock) = faulty();
    let breakers = builder.build().unwrap();
    let breaker = breakers.breaker("good").unwrap();
    breaker.call_blocking(refused).unwrap_err();
    let permit = breaker.acquire().unwrap();
    provoke(&breakers.breaker("trap:inspect").unwrap(), 1);
    permit.failure(Failure::new());
    assert_eq!(breaker.status().stale_results, 1);
    breaker.call_blocking(refused).unwrap_err();
    assert_eq!(breaker.state(), State::Closed, "one failure since");
    breaker.call_blocking(refused).unwrap_err();
    assert_eq!(breaker.state(), State::Open);
}

#[test]
fn a_probe_under_way_is_void_and_another_may_go() {
    let (builder, clock) = faulty();
    let breakers = builder.build().unwrap();
    let breaker = breakers.breaker("good").unwrap();
    breaker.trip();
    clock.advance(WAIT);
    let probe = breaker.acquire().unwrap();
    provoke(&breakers.breaker("trap:inspect").unwrap(), 1);
    assert_eq!(breaker.state(), State::HalfOpen);
    let another = breaker.acquire().unwrap();
    probe.success();
    assert_eq!(breaker.state(), State::HalfOpen);
    another.success();
    assert_eq!(breaker.state(), State::Closed);
}

#[test]
fn three_faults_within_a_minute_and_a_circuit_is_not_asked_for_any_more() {
    let (builder, clock) = faulty();
    let breakers = builder.build().unwrap();
    let breaker = breakers.breaker("trap:settle").unwrap();
    let good = breakers.breaker("good").unwrap();
    breaker.call_blocking(refused).unwrap_err();
    clock.advance(Duration::from_secs(60));
    for _ in 0..5 {
        assert!(!breaker.status().at_fault);
        breaker.call_blocking(refused).unwrap_err();
        if breakers.faults() == 4 {
            break;
        }
    }
    assert!(breaker.status().at_fault, "the first was a minute before");
    for _ in 0..10 {
        breaker.call_blocking(refused).unwrap_err();
    }
    assert_eq!((breakers.faults(), breaker.state()), (4, State::Closed));
    for _ in 0..2 {
        good.call_blocking(refused).unwrap_err();
    }
    assert_eq!(good.state(), State::Open, "the others are decided on as ever");
}

#[test]
fn a_rejection_that_has_not_run_out_stays_and_then_on_fault_says() {
    for on_fault in [OnFault::Admit, OnFault::Reject] {
        let (builder, clock) = faulty();
        let breakers = builder.on_fault(on_fault).build().unwrap();
        let breaker = breakers.breaker("trap:inspect").unwrap();
        breaker.trip();
        provoke(&breaker, 5);
        assert_eq!(breakers.faults(), 3);
        let rejection = breaker.acquire().unwrap_err();
        assert_eq!(
            (rejection.reason(), rejection.retry_after()),
            (RejectionReason::Open, Some(WAIT))
        );
        clock.advance(WAIT);
        match (on_fault, breaker.acquire()) {
            (OnFault::Admit, Ok(permit)) => permit.failure(Failure::new()),
            (OnFault::Reject, Err(rejection)) => {
                assert_eq!(rejection.reason(), RejectionReason::Other);
                assert!(
                    rejection
                        .to_string()
                        .starts_with("the policy component of circuit \"trap:inspect\" failed")
                );
            }
            (_, other) => panic!("{on_fault:?}: {other:?}"),
        }
    }
}

#[test]
fn a_component_that_fails_when_asked_admits_or_rejects_as_on_fault_says() {
    for on_fault in [OnFault::Admit, OnFault::Reject] {
        let (builder, clock) = faulty();
        let breakers = builder.on_fault(on_fault).build().unwrap();
        let breaker = breakers.breaker("trap:acquire").unwrap();
        breaker.trip();
        clock.advance(WAIT);
        for _ in 0..4 {
            assert_eq!(breaker.acquire().is_ok(), on_fault == OnFault::Admit);
        }
        assert_eq!(breakers.faults(), 3);
    }
}

#[test]
fn a_component_that_fails_when_asked_rejects_nothing_in_shadow_mode() {
    let (builder, clock) = faulty();
    let breakers = builder.on_fault(OnFault::Reject).build().unwrap();
    let breaker = breakers.breaker("trap:acquire").unwrap();
    breaker.set_mode(Mode::Shadow);
    breaker.trip();
    clock.advance(WAIT);
    breaker.call_blocking(fine).unwrap();
    assert_eq!((breakers.faults(), breaker.status().would_have_rejected), (1, 1));
}

#[test]
fn an_operator_still_holds_a_struck_out_circuit_open() {
    let (builder, _clock) = faulty();
    let breakers = builder.build().unwrap();
    let breaker = breakers.breaker("trap:inspect").unwrap();
    provoke(&breaker, 3);
    breaker.set_mode(Mode::ForcedOpen);
    assert_eq!(
        breaker.acquire().unwrap_err().reason(),
        RejectionReason::ForcedOpen
    );
    breaker.set_mode(Mode::Automatic);
    breaker.call_blocking(fine).unwrap();
}

#[test]
fn leases_that_make_no_sense_are_faults() {
    for lie in ["past", "nothing", "older"] {
        for export in ["settle", "trip"] {
            let (builder, _clock) = faulty();
            let breakers = builder.build().unwrap();
            let breaker = breakers.breaker(&format!("{lie}:{export}")).unwrap();
            if export == "settle" {
                breaker.call_blocking(refused).unwrap_err();
            } else {
                assert_eq!(breaker.trip(), None);
            }
            assert_eq!(breakers.faults(), 1, "{lie}:{export}");
            breaker.call_blocking(fine).unwrap();
        }
    }
}

#[test]
fn a_circuit_that_cannot_be_attached_is_there_all_the_same() {
    let (builder, _clock) = faulty();
    let breakers = builder.build().unwrap();
    for key in ["trap:attach", "past:attach"] {
        let breaker = breakers.breaker(key).unwrap();
        for _ in 0..5 {
            breaker.call_blocking(refused).unwrap_err();
        }
        assert!(breaker.status().at_fault);
    }
    assert_eq!(breakers.faults(), 6);
}

#[test]
fn a_component_that_never_ends_is_interrupted() {
    let (builder, _clock) = faulty();
    let breakers = builder.build().unwrap();
    let breaker = breakers.breaker("loop:trip").unwrap();
    let lines = logged(|| assert_eq!(breaker.trip(), None));
    assert_eq!(breakers.faults(), 1);
    let problem = lines.iter().find_map(|line| line.fields.get("problem")).unwrap();
    assert_eq!(problem, "it did not answer within two seconds");
}

#[test]
fn a_component_that_takes_memory_without_end_is_stopped() {
    let (builder, _clock) = faulty();
    let breakers = builder.max_memory(4 << 20).build().unwrap();
    let breaker = breakers.breaker("bomb:trip").unwrap();
    assert_eq!(breaker.trip(), None);
    assert_eq!(breakers.faults(), 1);
    breaker.call_blocking(fine).unwrap();
}

#[test]
fn a_flood_of_log_lines_is_cut_counted_and_warned_of_once() {
    let (builder, _clock) = faulty();
    let breakers = builder.build().unwrap();
    let breaker = breakers.breaker("flood:trip").unwrap();
    let lines = logged(|| {
        breaker.trip();
        breaker.trip();
    });
    let count = |message: &str| {
        lines
            .iter()
            .filter(|line| line.fields["message"] == message)
            .count()
    };
    assert_eq!(count("flood"), 2 * 4_096);
    assert_eq!(
        count("More log lines, spans and moves than can be queued; some are dropped"),
        1
    );
    assert!(breakers.dropped_telemetry() > 2 * (10_000 - 4_096));
    assert_eq!(breaker.state(), State::Open);
}

#[test]
fn a_snapshot_that_cannot_be_taken_is_a_fault() {
    let (builder, _clock) = faulty();
    let breakers = builder.build().unwrap();
    let breaker = breakers.breaker("trap:save").unwrap();
    assert_eq!(breaker.trip(), None);
    assert_eq!((breakers.faults(), breaker.state()), (1, State::Closed));
}

#[test]
fn a_circuit_that_cannot_be_restored_does_not_take_the_others_with_it() {
    let (builder, clock) = faulty();
    let breakers = builder.build().unwrap();
    let lost = breakers.breaker("trap:restore").unwrap();
    lost.trip();
    let good = breakers.breaker("good").unwrap();
    good.trip();
    provoke(&breakers.breaker("trap:inspect").unwrap(), 1);
    assert_eq!(breakers.faults(), 4, "one, and three while it was restored");
    assert!(lost.status().at_fault);
    assert_eq!(
        lost.acquire().unwrap_err().reason(),
        RejectionReason::Open,
        "its rejection has not run out"
    );
    assert!(!good.status().at_fault);
    clock.advance(WAIT);
    lost.call_blocking(fine).unwrap();
    good.call_blocking(fine).unwrap();
    assert_eq!(good.state(), State::Closed);
}

#[test]
fn a_cool_down_that_fails_changes_nothing() {
    let (builder, _clock) = faulty();
    let breakers = builder.build().unwrap();
    let _fails = breakers.breaker("trap:cool-down").unwrap();
    let open = breakers.breaker("open").unwrap();
    open.trip();
    assert!(breakers.cool_down().is_empty());
    assert_eq!(
        (breakers.faults(), breakers.tripped()),
        (1, vec!["open".to_owned()])
    );
    assert!(
        breakers.cool_down().is_empty(),
        "the circuit that failed is not known to the new instance"
    );
    assert_eq!(breakers.faults(), 1);
}

#[test]
fn a_circuit_that_cannot_be_detached_goes_all_the_same() {
    let (builder, _clock) = faulty();
    let breakers = builder.max_circuits(1).build().unwrap();
    breakers.breaker("trap:detach").unwrap();
    let breaker = breakers.breaker("good").unwrap();
    assert_eq!((breakers.len(), breakers.faults()), (1, 1));
    for _ in 0..2 {
        breaker.call_blocking(refused).unwrap_err();
    }
    assert_eq!(breaker.state(), State::Open);
}

#[test]
fn ten_faults_within_a_minute_and_a_shard_is_not_asked_any_more() {
    let (builder, clock) = faulty();
    let breakers = builder.build().unwrap();
    let open = breakers.breaker("open").unwrap();
    open.trip();
    for number in 0..4 {
        provoke(&breakers.breaker(&format!("trap:inspect:{number}")).unwrap(), 3);
    }
    assert_eq!(breakers.faults(), 10);
    let late = breakers.breaker("late").unwrap();
    for _ in 0..5 {
        late.call_blocking(refused).unwrap_err();
    }
    assert_eq!((late.state(), late.status().at_fault), (State::Closed, true));
    assert!(open.acquire().is_err(), "its rejection has not run out");
    clock.advance(WAIT);
    open.call_blocking(fine).unwrap();
    assert_eq!(breakers.faults(), 10);
}

#[test]
fn the_other_shards_are_decided_on_as_ever() {
    let (builder, _clock) = faulty();
    let breakers = builder.shards(2).build().unwrap();
    let bad = breakers.breaker("trap:inspect").unwrap();
    let others: Vec<_> = (0..40)
        .map(|number| breakers.breaker(&number.to_string()).unwrap())
        .collect();
    for other in &others {
        other.call_blocking(refused).unwrap_err();
    }
    provoke(&bad, 1);
    for other in &others {
        other.call_blocking(refused).unwrap_err();
    }
    let tripped = breakers.tripped().len();
    assert!(
        0 < tripped && tripped < 40,
        "{tripped} of 40 had their count still"
    );
}

#[test]
fn ignoring_leases_asks_a_failing_component_no_more_often_than_three_times() {
    let (builder, _clock) = faulty();
    let breakers = builder.ignore_leases(true).build().unwrap();
    let breaker = breakers.breaker("trap:acquire").unwrap();
    for _ in 0..6 {
        breaker.call_blocking(fine).unwrap();
    }
    assert_eq!(breakers.faults(), 3);
}
