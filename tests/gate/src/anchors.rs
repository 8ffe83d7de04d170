//! Readers of the clock beside the thread that renews its anchor: each sees an anchor as it was made, and never one that is
//! older than what it saw before.

use std::sync::Arc as Plain;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use loom::sync::Arc;

use crate::anchor::{Anchor, Newest, Rate};
use crate::scenario::builder;
use crate::sync::{Weakness, weaken};

/// Checks that no reader sees parts of two anchors, nor goes back, while the anchor is replaced so often. Answers the number of
/// executions.
///
/// # Panics
///
/// In the first execution where one does.
#[must_use]
pub fn readers_see_whole_anchors(
    replacements: u64,
    readers: usize,
    weakness: Weakness,
    preemptions: usize,
) -> u64 {
    let executions = Plain::new(AtomicU64::new(0));
    let counted = executions.clone();
    weaken(weakness);
    builder(preemptions).check(move || {
        counted.fetch_add(1, Relaxed);
        let newest = Arc::new(Newest::new(anchor(1)));
        let readers: Vec<_> = (0..readers)
            .map(|_| {
                let newest = newest.clone();
                loom::thread::spawn(move || {
                    let first = look(&newest);
                    assert!(look(&newest) >= first, "a reader went back");
                })
            })
            .collect();
        for number in 2..2 + replacements {
            newest.replace_locked(anchor(number));
        }
        for reader in readers {
            if let Err(panic) = reader.join() {
                std::panic::resume_unwind(panic);
            }
        }
    });
    weaken(Weakness::None);
    executions.load(Relaxed)
}

fn look(newest: &Newest) -> u64 {
    let seen = newest.read();
    assert_eq!(seen, anchor(seen.ticks), "a reader saw parts of two anchors");
    seen.ticks
}

fn anchor(number: u64) -> Anchor {
    Anchor {
        ticks: number,
        time: 10 * number,
        rate: Rate::of(number, 1).unwrap_or(Rate::UNKNOWN),
    }
}
