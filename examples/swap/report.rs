//! What is shown and checked at the end.

use std::collections::BTreeMap;
use std::time::Duration;

use tripwit_examples::terminal;

use crate::history::{self, Move};
use crate::load::{Call, Ending};
use crate::script::Swap;

/// What the run came to, as everyone who took part has it.
#[derive(Debug)]
pub(crate) struct Facts {
    /// How many calls were begun.
    pub(crate) begun: u64,
    /// Those that ended.
    pub(crate) calls: Vec<Call>,
    pub(crate) moves: Vec<Move>,
    pub(crate) swaps: Vec<Swap>,
    /// What the dependency counted: requests, and those that it answered with 503.
    pub(crate) requests: [u64; 2],
    /// What the breaker counted.
    pub(crate) numbers: BTreeMap<String, u64>,
    /// Results that came too late to count.
    pub(crate) late: u64,
    /// Probes that were admitted and never ended.
    pub(crate) probes: u32,
}

impl Facts {
    fn count(&self, of: impl Fn(&Call) -> bool) -> u64 {
        self.calls.iter().filter(|call| of(call)).count() as u64
    }

    fn ended(&self, ending: Ending) -> u64 {
        self.count(|call| call.ending == ending)
    }

    fn number(&self, name: &str) -> u64 {
        self.numbers.get(name).copied().unwrap_or(0)
    }

    /// Calls that were begun and did not end.
    fn lost(&self) -> u64 {
        self.begun.saturating_sub(self.calls.len() as u64)
    }

    /// Calls that asked an open circuit, and those of them that it let through.
    fn asked_while_open(&self) -> [u64; 2] {
        let spans = history::open_spans(&self.moves);
        let in_one = |call: &Call| {
            spans
                .iter()
                .any(|[begin, end]| *begin <= call.asked && call.answered < *end)
        };
        [
            self.count(in_one),
            self.count(|call| call.is_admitted() && in_one(call)),
        ]
    }

    pub(crate) fn print(&self) {
        let [open, leaked] = self.asked_while_open();
        let rejected = self.ended(Ending::Rejected);
        terminal::say(&format!(
            "\n{} calls: {} admitted ({} of them good), {rejected} rejected, {} lost.\n\
             {open} of them asked while the circuit was open; {leaked} of those were let through.\n\
             {} results counted for nothing: of calls that were under way when the circuit moved or the policy was swapped.",
            self.begun,
            self.count(Call::is_admitted),
            self.ended(Ending::Good),
            self.lost(),
            self.late,
        ));
        for swap in &self.swaps {
            let meanwhile = |call: &Call| call.asked <= swap.end && swap.begin <= call.done;
            terminal::say(&format!(
                "Swap to {}: {:.1?} from file to decision, {} calls meanwhile; the breaker kept none of them for more than {:.1?}.",
                swap.to,
                Duration::from_nanos(swap.end - swap.begin),
                self.count(meanwhile),
                self.longest_wait(meanwhile),
            ));
        }
        let around = |call: &Call| {
            self.swaps
                .iter()
                .any(|swap| call.asked <= swap.end && swap.begin <= call.done)
        };
        terminal::say(&format!(
            "All other calls: for no more than {:.1?}.",
            self.longest_wait(|call| !around(call))
        ));
    }

    fn longest_wait(&self, of: impl Fn(&Call) -> bool) -> Duration {
        let waits = self.calls.iter().filter(|call| of(call)).map(Call::wait);
        waits.max().unwrap_or_default()
    }

    /// What did not come out as promised, a line each.
    pub(crate) fn problems(&self) -> Vec<String> {
        let mut problems: Vec<_> = history::gap(&self.moves).into_iter().collect();
        let [open, leaked] = self.asked_while_open();
        if open == 0 {
            problems.push("no call asked while the circuit was open: the run shows nothing".to_owned());
        }
        let [requests, refused] = self.requests;
        let failed = self.ended(Ending::Bad) + self.ended(Ending::Unanswered);
        let answered = self.count(|call| matches!(call.ending, Ending::Good | Ending::Bad));
        for (what, found, wanted) in [
            ("calls that were lost", self.lost(), 0),
            ("calls that an open circuit let through", leaked, 0),
            ("probes that never ended", u64::from(self.probes), 0),
            (
                "successes by the breaker",
                self.number("calls success"),
                self.ended(Ending::Good),
            ),
            ("failures by the breaker", self.number("calls failure"), failed),
            (
                "time-outs by the breaker",
                self.number("calls timeout"),
                self.ended(Ending::TimedOut),
            ),
            ("ignored calls by the breaker", self.number("calls ignored"), 0),
            (
                "rejections by the breaker",
                self.number("calls rejected"),
                self.ended(Ending::Rejected),
            ),
            (
                "late results by the breaker",
                self.number("stale_results"),
                self.late,
            ),
            (
                "swaps by the breaker",
                self.number("swaps"),
                self.swaps.len() as u64,
            ),
            ("faults of a policy", self.number("component_faults"), 0),
            (
                "dropped log lines, spans and moves",
                self.number("dropped_entries"),
                0,
            ),
            ("503 by the dependency", refused, self.ended(Ending::Bad)),
            ("requests at the dependency", requests, answered),
        ] {
            if found != wanted {
                problems.push(format!("{what}: {found} were counted; {wanted} is right"));
            }
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use tripwit::{Operation, State};

    use super::*;

    /// A call of one nanosecond that asked at 100 ns and was through 3 ns later.
    fn call(ending: Ending) -> Call {
        Call {
            asked: 100,
            answered: 101,
            ended: 102,
            done: 103,
            ending,
        }
    }

    /// One good call and one that an open circuit rejected.
    fn facts() -> Facts {
        let opened = Move {
            operation: Operation::Trip,
            before: State::Closed,
            after: State::Open,
            at: 90,
            told: 101,
        };
        let rejected = Call {
            asked: 101,
            ..call(Ending::Rejected)
        };
        Facts {
            begun: 2,
            calls: vec![call(Ending::Good), rejected],
            moves: vec![opened],
            swaps: Vec::new(),
            requests: [1, 0],
            numbers: [("calls success", 1), ("calls rejected", 1)]
                .map(|(name, count)| (name.to_owned(), count))
                .into(),
            late: 0,
            probes: 0,
        }
    }

    fn problem(change: impl FnOnce(&mut Facts)) -> String {
        let mut facts = facts();
        change(&mut facts);
        facts.problems().join("; ")
    }

    #[test]
    fn books_that_agree_are_no_problem() {
        assert_eq!(facts().problems(), [""; 0]);
    }

    #[test]
    fn a_call_that_an_open_circuit_let_through_is_found() {
        let found = problem(|facts| facts.moves[0].told = 100);
        assert_eq!(
            found,
            "calls that an open circuit let through: 1 were counted; 0 is right"
        );
    }

    #[test]
    fn a_lost_call_is_found_and_so_is_one_that_only_one_side_counted() {
        assert!(problem(|facts| facts.begun = 3).contains("calls that were lost: 1 were"));
        let twice = problem(|facts| *facts.numbers.entry("calls success".to_owned()).or_default() = 2);
        assert_eq!(twice, "successes by the breaker: 2 were counted; 1 is right");
        assert!(problem(|facts| facts.requests = [2, 0]).starts_with("requests at the dependency: 2"));
    }

    #[test]
    fn a_circuit_that_closed_without_a_move_is_found() {
        let found = problem(|facts| facts.moves.push(facts.moves[0]));
        assert!(found.starts_with("move 1, a trip, begins closed"), "{found}");
    }

    #[test]
    fn a_wait_is_what_the_breaker_took_and_not_the_call() {
        assert_eq!(facts().longest_wait(|_| true), Duration::from_nanos(2));
    }
}
