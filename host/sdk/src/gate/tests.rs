use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;

use crate::gate::{
    Admission, Answer, Authority, Ended, Gate, Held, Keeping, MAX_COUNT, Outcome, View, Weight,
};
use crate::lease::{Lease, Standing, Successes};
use crate::words::{Mode, RejectionReason, State};

const TICKET: u64 = 7;

fn lease() -> Lease {
    Lease {
        mode: Mode::Automatic,
        state: State::Closed,
        generation: 1,
        standing: Standing::Admit(TICKET),
        until: None,
        successes: Successes::Never,
        slow_after: None,
        call_timeout: None,
    }
}

fn gate(lease: Lease) -> Gate {
    Gate::new(&lease, 1)
}

fn permit() -> Admission {
    Admission {
        ticket: TICKET,
        generation: 1,
        incarnation: 1,
    }
}

/// A crossing that leaves this lease.
fn cross(gate: &Gate, lease: Lease) -> u32 {
    let kept = gate.close_locked();
    gate.publish_locked(&lease, 1, Authority::Lease);
    gate.open_locked();
    kept
}

fn weigh(lease: Lease, outcome: Outcome, took: Option<u64>, at: Option<u64>) -> Weight {
    gate(lease)
        .read()
        .unwrap()
        .weigh(&permit(), Ended { outcome, took, at })
}

fn up_to(count: u32, before: Option<u64>) -> Lease {
    Lease {
        successes: Successes::UpTo { count, before },
        ..lease()
    }
}

#[test]
fn a_lease_without_an_end_admits_without_reading_the_clock() {
    let answer = gate(lease())
        .read()
        .unwrap()
        .answer(|| panic!("the clock was read"));
    assert_eq!(answer, Answer::Admit(permit()));
}

#[test]
fn a_rejection_tells_how_long_it_lasts_and_ends_at_its_end() {
    let gate = gate(Lease {
        standing: Standing::Reject(RejectionReason::Open),
        until: Some(10),
        ..lease()
    });
    let view = gate.read().unwrap();
    let rejection = |left| Answer::Reject {
        reason: RejectionReason::Open,
        retry_after: Some(left),
    };
    assert_eq!(
        [view.answer(|| 0), view.answer(|| 9)],
        [rejection(10), rejection(1)]
    );
    assert_eq!(
        [view.answer(|| 10), view.answer(|| 11)],
        [Answer::Ask, Answer::Ask]
    );
}

#[test]
fn a_permit_of_another_generation_or_instance_is_void() {
    let view = gate(lease()).read().unwrap();
    let older = Admission {
        generation: 0,
        ..permit()
    };
    let elsewhere = Admission {
        incarnation: 2,
        ..permit()
    };
    let ended = Ended {
        outcome: Outcome::Failure,
        took: None,
        at: None,
    };
    for permit in [older, elsewhere] {
        assert_eq!(view.weigh(&permit, ended), Weight::Void);
    }
    assert_eq!(view.weigh(&permit(), ended), Weight::Tell);
}

#[test]
fn an_ignored_call_is_told_of_only_where_it_holds_a_ticket_of_its_own() {
    assert_eq!(weigh(lease(), Outcome::Ignored, None, None), Weight::Nothing);
    let probing = Lease {
        standing: Standing::Ask,
        ..lease()
    };
    assert_eq!(weigh(probing, Outcome::Ignored, None, None), Weight::Tell);
}

#[test]
fn a_success_is_slow_strictly_above_the_limit() {
    let limited = Lease {
        slow_after: Some(5),
        ..lease()
    };
    assert_eq!(weigh(limited, Outcome::Success, Some(5), None), Weight::Nothing);
    assert_eq!(weigh(limited, Outcome::Success, Some(6), None), Weight::Tell);
    assert_eq!(weigh(limited, Outcome::Success, None, None), Weight::Nothing);
}

#[test]
fn a_success_is_kept_back_only_before_its_instant() {
    let kept = Weight::Keep { allowed: 2 };
    assert_eq!(weigh(up_to(2, None), Outcome::Success, None, None), kept);
    assert_eq!(weigh(up_to(2, Some(10)), Outcome::Success, None, Some(9)), kept);
    assert_eq!(
        weigh(up_to(2, Some(10)), Outcome::Success, None, Some(10)),
        Weight::Tell
    );
    assert_eq!(
        weigh(up_to(2, Some(10)), Outcome::Success, None, None),
        Weight::Tell
    );
}

#[test]
fn a_success_with_a_ticket_of_its_own_is_not_kept_back() {
    let asks = Lease {
        standing: Standing::Ask,
        ..up_to(2, None)
    };
    assert_eq!(weigh(asks, Outcome::Success, None, None), Weight::Tell);
}

#[test]
fn only_as_many_are_kept_back_as_the_lease_allows() {
    let gate = gate(up_to(2, None));
    let view = gate.read().unwrap();
    assert_eq!(
        [(); 3].map(|()| gate.keep(view.epoch, 2)),
        [Keeping::Kept, Keeping::Kept, Keeping::Closed]
    );
    assert_eq!(cross(&gate, up_to(2, None)), 2);
    assert_eq!(gate.kept(), 0);
}

#[test]
fn nothing_lands_under_a_lease_that_it_was_not_kept_back_under() {
    let gate = gate(up_to(2, None));
    let before = gate.read().unwrap();
    cross(&gate, up_to(2, None));
    assert_eq!(
        gate.keep(before.epoch, 2),
        Keeping::Changed,
        "an equal lease is still another one"
    );
    assert_eq!(gate.keep(gate.read().unwrap().epoch, 2), Keeping::Kept);
}

#[test]
fn the_counter_is_closed_during_a_crossing() {
    let gate = gate(up_to(2, None));
    let view = gate.read().unwrap();
    gate.close_locked();
    assert_eq!(gate.keep(view.epoch, 2), Keeping::Closed);
    gate.open_locked();
    assert_eq!(
        gate.keep(view.epoch, 2),
        Keeping::Kept,
        "nothing was published, so the lease is the same"
    );
}

#[test]
fn an_endless_allowance_still_fits() {
    let gate = gate(up_to(u32::MAX, None));
    let Successes::UpTo { count, .. } = gate.read().unwrap().lease.successes else {
        panic!("another lease")
    };
    assert_eq!(u64::from(count), MAX_COUNT);
}

#[test]
fn readers_never_see_parts_of_two_leases() {
    let of = |number: u64| Lease {
        generation: number,
        standing: Standing::Admit(number),
        until: Some(number),
        slow_after: Some(number),
        call_timeout: Some(number),
        ..up_to(1, Some(number))
    };
    let gate = gate(of(1));
    let done = AtomicBool::new(false);
    std::thread::scope(|threads| {
        let readers: Vec<_> = (0..2)
            .map(|_| {
                threads.spawn(|| {
                    let mut seen = 0_u64;
                    while !done.load(Ordering::Relaxed) || seen == 0 {
                        if let Some(view) = gate.read() {
                            assert_eq!(view.lease, of(view.lease.generation));
                            assert_eq!(view.epoch, view.lease.generation);
                            seen += 1;
                        }
                    }
                    seen
                })
            })
            .collect();
        for number in 2..200_000 {
            cross(&gate, of(number));
        }
        done.store(true, Ordering::Relaxed);
        for reader in readers {
            assert!(reader.join().unwrap() > 0);
        }
    });
}

#[test]
fn successes_kept_back_by_many_threads_are_all_handed_in_once() {
    const EACH: u64 = 20_000;
    let gate = gate(up_to(50, None));
    // What the shard's lock is in real life.
    let lock = std::sync::Mutex::new(0_u64);
    let settle = || loop {
        let view = gate.read();
        match view.map(|view| gate.keep(view.epoch, 50)) {
            Some(Keeping::Kept) => return,
            Some(Keeping::Changed) => {}
            Some(Keeping::Closed) | None => {
                let mut told = lock.lock().unwrap();
                *told += u64::from(cross(&gate, up_to(50, None))) + 1;
                return;
            }
        }
    };
    std::thread::scope(|threads| {
        for _ in 0..3 {
            threads.spawn(|| (0..EACH).for_each(|_| settle()));
        }
    });
    assert_eq!(*lock.lock().unwrap() + u64::from(gate.kept()), 3 * EACH);
}

fn leases() -> impl Strategy<Value = Lease> {
    let reason = prop_oneof![
        Just(RejectionReason::Open),
        Just(RejectionReason::ProbeLimit),
        Just(RejectionReason::ForcedOpen),
        Just(RejectionReason::Throttled),
        Just(RejectionReason::Other),
    ];
    let standing = prop_oneof![
        any::<u64>().prop_map(Standing::Admit),
        Just(Standing::Pass),
        reason.prop_map(Standing::Reject),
        Just(Standing::Ask),
    ];
    let time = || prop::option::of(0..u64::MAX);
    let count = 1..u32::try_from(MAX_COUNT).unwrap();
    let successes = prop_oneof![
        Just(Successes::Each),
        (count, time()).prop_map(|(count, before)| Successes::UpTo { count, before }),
        Just(Successes::Never),
    ];
    let mode = prop_oneof![
        Just(Mode::Automatic),
        Just(Mode::ForcedOpen),
        Just(Mode::Disabled),
        Just(Mode::Shadow)
    ];
    let state = prop_oneof![Just(State::Closed), Just(State::Open), Just(State::HalfOpen)];
    (
        mode,
        state,
        any::<u64>(),
        standing,
        time(),
        successes,
        time(),
        time(),
    )
        .prop_map(
            |(mode, state, generation, standing, until, successes, slow_after, call_timeout)| Lease {
                mode,
                state,
                generation,
                standing,
                until,
                successes,
                slow_after,
                call_timeout,
            },
        )
}

fn authorities() -> impl Strategy<Value = Authority> {
    prop_oneof![
        Just(Authority::Lease),
        Just(Authority::Component),
        Just(Authority::Host)
    ]
}

/// Leases that calls are mostly admitted by, with limits that are next to what they are held against.
fn leases_of_now() -> impl Strategy<Value = Lease> {
    let small = || prop::option::of(0..5_u64);
    let plain = prop::bool::weighted(0.7);
    (leases(), plain, small(), small(), small(), small()).prop_map(
        |(lease, plain, until, before, slow_after, call_timeout)| Lease {
            standing: if plain {
                Standing::Admit(TICKET)
            } else {
                lease.standing
            },
            until: until.filter(|_| !plain),
            successes: match lease.successes {
                Successes::UpTo { count, .. } => Successes::UpTo {
                    count: count % 3,
                    before,
                },
                Successes::Each | Successes::Never => lease.successes,
            },
            slow_after,
            call_timeout,
            ..lease
        },
    )
}

proptest! {
    /// The short ways decide as the whole lease does, where they decide at all.
    #[test]
    fn the_short_ways_say_what_the_lease_says(
        lease in leases_of_now(), begun in 0..4_u64, took in 0..4_u64
    ) {
        let gate = gate(lease);
        let view = gate.read().unwrap();
        if let Some((reason, left)) = gate.reject_plainly(|| begun) {
            let rejection = Answer::Reject { reason, retry_after: Some(left) };
            prop_assert_eq!(view.answer(|| begun), rejection);
            prop_assert!(lease.mode != Mode::Shadow);
        }
        let simply = gate.admit_simply();
        let Some(held) = gate.admit_plainly(|| begun) else {
            prop_assert!(simply.is_none());
            return Ok(());
        };
        prop_assert!(simply.is_none_or(|simply| simply == held));
        let admission = held.admission().unwrap();
        prop_assert_eq!(view.answer(|| begun), Answer::Admit(admission));
        prop_assert_eq!(held.started(), lease.measures().then_some(begun));
        prop_assert_eq!(held.call_timeout(), lease.call_timeout);
        let now = begun + took;
        let overran = lease.call_timeout.is_some_and(|limit| took > limit);
        let ended = Ended {
            outcome: if overran { Outcome::Timeout } else { Outcome::Success },
            took: lease.measures().then_some(took),
            at: Some(now),
        };
        let weight = view.weigh(&admission, ended);
        if gate.succeed_plainly(held, |_| now) {
            let kept = match weight {
                Weight::Nothing => 0,
                Weight::Keep { allowed } if allowed > 0 => 1,
                other @ (Weight::Void | Weight::Keep { .. } | Weight::Tell) => {
                    return Err(TestCaseError::fail(format!("{other:?}")));
                }
            };
            prop_assert_eq!(gate.kept(), kept);
        } else {
            prop_assert!(!matches!(weight, Weight::Nothing | Weight::Keep { allowed: 1.. }), "{weight:?}");
        }
        cross(&gate, lease);
        prop_assert!(!gate.succeed_plainly(held, |_| now), "under another lease");
    }

    #[test]
    fn there_is_no_short_way_past_a_component_that_is_asked_or_has_failed(lease in leases(), failed: bool) {
        let gate = gate(lease);
        gate.close_locked();
        let authority = if failed { Authority::Host } else { Authority::Component };
        gate.publish_locked(&lease, 1, authority);
        gate.open_locked();
        prop_assert_eq!(gate.admit_plainly(|| 0), None);
        prop_assert_eq!(gate.reject_plainly(|| 0), None);
    }

    #[test]
    fn what_was_asked_for_or_is_not_recorded_ends_by_the_whole_lease(lease in leases()) {
        let gate = gate(lease);
        for held in [Held::not_plainly(permit(), None, None), Held::unrecorded(None)] {
            prop_assert!(!gate.succeed_plainly(held, |_| 0));
        }
    }

    #[test]
    fn a_lease_is_read_as_it_was_written(lease in leases(), incarnation: u64, authority in authorities()) {
        let gate = gate(up_to(1, None));
        gate.close_locked();
        gate.publish_locked(&lease, incarnation, authority);
        gate.open_locked();
        let view = gate.read().unwrap();
        let at_fault = authority == Authority::Host;
        prop_assert_eq!(view, View { epoch: 2, lease, incarnation, at_fault });
        if authority != Authority::Lease {
            prop_assert!(gate.admit_plainly(|| 0).is_none() && gate.reject_plainly(|| 0).is_none());
        }
        prop_assert_eq!(view, gate.read_locked());
    }

    /// However threads' steps interleave, here in one thread, no more is handed in than was kept back.
    #[test]
    fn what_is_kept_back_is_what_is_handed_in(steps in prop::collection::vec(0..3_u8, 0..200), allowed in 1..5_u32) {
        let gate = gate(up_to(allowed, None));
        let mut view = gate.read().unwrap();
        let (mut kept, mut handed_in) = (0, 0);
        for step in steps {
            match step {
                0 => view = gate.read().unwrap(),
                1 => kept += u32::from(gate.keep(view.epoch, allowed) == Keeping::Kept),
                _ => {
                    let held = cross(&gate, up_to(allowed, None));
                    prop_assert!(held <= allowed);
                    handed_in += held;
                }
            }
        }
        prop_assert_eq!(kept, handed_in + gate.kept());
    }
}
