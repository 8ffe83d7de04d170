//! When two circuits are the same but for the time of day and the numbers that were handed out.

use tripwit_core::{Instant, Nanoseconds};

use crate::timed::ENOUGH_OPENINGS;

/// How a number that `Debug` writes is to be read, by what stands before it.
const MEANINGS: [(&str, Meaning); 10] = [
    ("generation: ", Meaning::HandedOut),
    ("ticket: ", Meaning::HandedOut),
    ("until: ", Meaning::Ahead),
    ("deadline: ", Meaning::Ahead),
    ("latest: ", Meaning::Nothing),
    ("previous: ", Meaning::Nothing),
    ("reopenings: ", Meaning::UpTo(ENOUGH_OPENINGS as u64)),
    // Of failures in a row only as many show as the window holds.
    ("streak: ", Meaning::UpTo(MOST_RECORDED)),
    ("start: ", Meaning::Bucket),
    ("", Meaning::Itself),
];

/// More calls than an exploration's window holds.
const MOST_RECORDED: u64 = 8;

/// How a window of time is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Buckets {
    /// How long a bucket is. Nanoseconds.
    pub width: Nanoseconds,
    /// How many there are.
    pub buckets: u64,
}

#[derive(Clone, Copy)]
enum Meaning {
    /// A generation or a ticket: only which are the same matters.
    HandedOut,
    /// An instant: how far ahead it is matters.
    Ahead,
    /// When a bucket began: how many ago it was matters.
    Bucket,
    /// It matters up to here.
    UpTo(u64),
    /// When the event before was does not matter to the next.
    Nothing,
    Itself,
}

/// Writes a circuit such that circuits which will always do the same are written the same.
pub(crate) fn shape(debug: &str, now: Instant, window: Option<Buckets>) -> String {
    let mut shape = String::with_capacity(debug.len());
    let mut handed_out = Vec::new();
    let mut rest = debug;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let (text, tail) = rest.split_at(start);
        let end = tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len());
        let (digits, after) = tail.split_at(end);
        let number = digits.parse().unwrap_or(u64::MAX);
        let meaning = MEANINGS.iter().find(|(before, _)| text.ends_with(before));
        shape.push_str(text);
        let read = match meaning.map_or(Meaning::Itself, |(_, meaning)| *meaning) {
            Meaning::HandedOut => place(&mut handed_out, number),
            Meaning::Ahead => number.saturating_sub(now),
            // Those that are no longer in the window are all alike.
            Meaning::Bucket => window.map_or(0, |window| {
                let ago = (now / window.width).saturating_sub(number / window.width);
                ago.min(window.buckets)
            }),
            Meaning::UpTo(most) => number.min(most),
            Meaning::Nothing => 0,
            Meaning::Itself => number,
        };
        shape.push_str(&read.to_string());
        rest = after;
    }
    shape.push_str(rest);
    shape
}

/// The place of a number among those that were met, in the order in which they were.
fn place(met: &mut Vec<u64>, number: u64) -> u64 {
    let place = met.iter().position(|known| *known == number).unwrap_or_else(|| {
        met.push(number);
        met.len() - 1
    });
    place as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_were_handed_out_are_told_apart_and_no_more() {
        let one = shape("generation: 7, out: [Probe { ticket: 9 }], ticket: 7", 0, None);
        assert_eq!(
            one,
            shape("generation: 4, out: [Probe { ticket: 5 }], ticket: 4", 0, None)
        );
        assert_ne!(
            one,
            shape("generation: 4, out: [Probe { ticket: 5 }], ticket: 5", 0, None)
        );
    }

    #[test]
    fn instants_are_relative_and_counts_are_not() {
        assert_eq!(
            shape("until: 12, failures: 2", 10, None),
            shape("until: 5, failures: 2", 3, None)
        );
        assert_ne!(shape("until: 12", 10, None), shape("until: 12", 11, None));
        assert_ne!(shape("failures: 2", 0, None), shape("failures: 3", 0, None));
        assert_eq!(shape("latest: 12", 12, None), shape("latest: 13", 13, None));
    }

    #[test]
    fn buckets_are_so_many_ago() {
        let window = Some(Buckets {
            width: 10,
            buckets: 5,
        });
        let written = |start| format!("Buckets([Bucket {{ start: {start}, tally: Tally {{ total: 1 }} }}])");
        assert_eq!(shape(&written(30), 70, window), shape(&written(40), 80, window));
        assert_ne!(shape(&written(30), 70, window), shape(&written(30), 60, window));
        assert_eq!(shape(&written(30), 80, window), shape(&written(30), 900, window));
    }
}
