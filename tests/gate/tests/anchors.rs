//! No reader of the clock sees a torn anchor.

use tripwit_gate_tests::{Weakness, readers_see_whole_anchors};

#[test]
fn an_anchor_is_seen_whole() {
    let executions = readers_see_whole_anchors(3, 1, Weakness::None, 3);
    println!("{executions} executions");
}

#[test]
fn two_readers_of_the_clock_do_not_disturb_each_other() {
    let executions = readers_see_whole_anchors(2, 2, Weakness::None, 2);
    println!("{executions} executions");
}

#[test]
#[should_panic(expected = "a reader saw parts of two anchors")]
fn without_the_readers_fence_an_anchor_is_torn() {
    let _ = readers_see_whole_anchors(3, 1, Weakness::AcquireFence, 3);
}

#[test]
#[should_panic(expected = "a reader saw parts of two anchors")]
fn without_the_writers_fence_an_anchor_is_torn() {
    let _ = readers_see_whole_anchors(3, 1, Weakness::ReleaseFence, 3);
}

#[test]
#[should_panic(expected = "a reader saw parts of two anchors")]
fn without_an_acquiring_first_look_an_anchor_is_torn() {
    let _ = readers_see_whole_anchors(3, 1, Weakness::AcquireLoad, 3);
}

#[test]
#[should_panic(expected = "a reader saw parts of two anchors")]
fn without_a_releasing_last_mark_an_anchor_is_torn() {
    let _ = readers_see_whole_anchors(3, 1, Weakness::ReleaseStore, 3);
}
