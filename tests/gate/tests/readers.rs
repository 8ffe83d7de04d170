//! No reader sees a torn lease.

use tripwit_gate_tests::{Publishing, Weakness, readers_see_whole_leases};

const ALL_WORDS: Publishing = Publishing {
    leases: 1,
    readers: 1,
    all_words: true,
    plain: false,
};

const TWO_LEASES: Publishing = Publishing {
    leases: 2,
    readers: 1,
    all_words: false,
    plain: false,
};

const TWO_READERS: Publishing = Publishing {
    leases: 1,
    readers: 2,
    all_words: false,
    plain: false,
};

const PLAIN: Publishing = Publishing {
    leases: 2,
    readers: 1,
    all_words: true,
    plain: true,
};

#[test]
fn a_lease_is_seen_whole_or_not_at_all() {
    let executions = readers_see_whole_leases(ALL_WORDS, Weakness::None, 3);
    println!("{executions} executions");
}

#[test]
fn two_leases_are_not_mixed() {
    let executions = readers_see_whole_leases(TWO_LEASES, Weakness::None, 3);
    println!("{executions} executions");
}

#[test]
fn two_readers_do_not_disturb_each_other() {
    let executions = readers_see_whole_leases(TWO_READERS, Weakness::None, 2);
    println!("{executions} executions");
}

#[test]
fn what_a_plain_lease_admits_is_all_of_that_lease() {
    let executions = readers_see_whole_leases(PLAIN, Weakness::None, 3);
    println!("{executions} executions");
}

#[test]
#[should_panic(expected = "a reader saw parts of two leases")]
fn without_the_readers_fence_a_lease_is_torn() {
    let _ = readers_see_whole_leases(ALL_WORDS, Weakness::AcquireFence, 3);
}

#[test]
#[should_panic(expected = "a reader saw parts of two leases")]
fn without_the_writers_fence_a_lease_is_torn() {
    let _ = readers_see_whole_leases(ALL_WORDS, Weakness::ReleaseFence, 3);
}

#[test]
#[should_panic(expected = "a reader saw parts of two leases")]
fn without_an_acquiring_first_look_a_lease_is_torn() {
    let _ = readers_see_whole_leases(ALL_WORDS, Weakness::AcquireLoad, 3);
}

#[test]
#[should_panic(expected = "a reader saw parts of two leases")]
fn without_a_releasing_last_mark_a_lease_is_torn() {
    let _ = readers_see_whole_leases(ALL_WORDS, Weakness::ReleaseStore, 3);
}

#[test]
#[should_panic(expected = "a reader saw parts of two leases")]
fn without_the_readers_fence_a_plain_lease_is_torn() {
    let _ = readers_see_whole_leases(PLAIN, Weakness::AcquireFence, 3);
}

#[test]
#[should_panic(expected = "a reader saw parts of two leases")]
fn without_the_writers_fence_a_plain_lease_is_torn() {
    let _ = readers_see_whole_leases(PLAIN, Weakness::ReleaseFence, 3);
}

#[test]
#[should_panic(expected = "a reader saw parts of two leases")]
fn without_an_acquiring_first_look_a_plain_lease_is_torn() {
    let _ = readers_see_whole_leases(PLAIN, Weakness::AcquireLoad, 3);
}

#[test]
#[should_panic(expected = "a reader saw parts of two leases")]
fn without_a_releasing_last_mark_a_plain_lease_is_torn() {
    let _ = readers_see_whole_leases(PLAIN, Weakness::ReleaseStore, 3);
}
