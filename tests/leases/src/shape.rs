//! When two states are the same but for the time of day and the numbers that were handed out.

use tripwit_core::Instant;

/// The names of fields that hold a number that was handed out, as `Debug` writes them.
const NUMBERS: [&str; 3] = ["generation: ", "ticket: ", "Admit("];

/// The names of fields that hold an instant ahead: what matters is how far ahead.
const AHEAD: [&str; 4] = ["until: ", "until: Some(", "deadline: ", "before: Some("];

/// The names of fields that hold an instant past: what matters is how long ago, up to a limit.
const PAST: [&str; 2] = ["started: Some(", "start: "];

/// The names of fields that hold the time of the last event, which no later event looks at.
const LATEST: [&str; 2] = ["latest: ", "previous: "];

/// Writes what `Debug` shows of a state with numbers renamed in their order of appearance and instants relative to now.
pub(crate) fn shape(debug: &str, now: Instant, oldest: Instant) -> String {
    let mut into = String::with_capacity(debug.len());
    let mut names = Vec::new();
    let mut rest = debug;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let (text, tail) = rest.split_at(start);
        let end = tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len());
        let (digits, after) = tail.split_at(end);
        into.push_str(text);
        let ends_with = |names: &[&str]| names.iter().any(|name| text.ends_with(name));
        let number: u64 = digits.parse().unwrap_or(u64::MAX);
        if ends_with(&NUMBERS) {
            let place = names.iter().position(|name| *name == number).unwrap_or_else(|| {
                names.push(number);
                names.len() - 1
            });
            into.push_str(&format!("#{place}"));
        } else if ends_with(&AHEAD) {
            into.push_str(&format!("+{}", number.saturating_sub(now)));
        } else if ends_with(&PAST) {
            into.push_str(&format!("-{}", now.saturating_sub(number).min(oldest)));
        } else if !ends_with(&LATEST) {
            into.push_str(digits);
        }
        rest = after;
    }
    into.push_str(rest);
    into
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shaped(debug: &str, now: Instant) -> String {
        shape(debug, now, 3)
    }

    #[test]
    fn numbers_are_renamed_in_their_order_of_appearance() {
        let one = "generation: 7, out: [Probe { ticket: 9 }], standing: Admit(7)";
        let other = "generation: 4, out: [Probe { ticket: 5 }], standing: Admit(4)";
        assert_eq!(shaped(one, 0), shaped(other, 0));
        let unlike = "generation: 4, out: [Probe { ticket: 5 }], standing: Admit(5)";
        assert_ne!(shaped(one, 0), shaped(unlike, 0));
    }

    #[test]
    fn instants_are_relative_to_now_and_counts_are_not() {
        assert_eq!(
            shaped("until: 12, failures: 2", 10),
            shaped("until: 5, failures: 2", 3)
        );
        assert_ne!(shaped("until: 12", 10), shaped("until: 12", 11));
        assert_eq!(shaped("until: Some(12)", 12), shaped("until: Some(12)", 20));
        assert_ne!(shaped("failures: 2", 0), shaped("failures: 3", 0));
        assert_eq!(shaped("started: Some(12)", 15), shaped("started: Some(12)", 16));
        assert_eq!(shaped("latest: 12, x", 15), shaped("latest: 13, x", 16));
    }
}
