//! What the run comes to: the table, and whether anything was lost.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, SystemTime};

use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{CellAlignment, Table};
use tripwit::Operation;

use crate::broker::{Arrival, Treatment};
use crate::store::Message;

/// The moves of one topic's circuit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Moves {
    pub(crate) trips: u32,
    pub(crate) re_trips: u32,
    pub(crate) resets: u32,
    tripped_since: Option<SystemTime>,
    tripped_before: Duration,
}

impl Moves {
    pub(crate) fn record(&mut self, operation: Operation, at: SystemTime) {
        match operation {
            Operation::Trip => {
                self.trips += 1;
                self.tripped_since = Some(at);
            }
            Operation::ReTrip => self.re_trips += 1,
            Operation::Reset => {
                self.resets += 1;
                self.tripped_before = self.tripped(at);
                self.tripped_since = None;
            }
            // The outbox policy does not probe.
            Operation::HalfOpen => {}
        }
    }

    /// How long the topic was tripped, up to now.
    pub(crate) fn tripped(&self, now: SystemTime) -> Duration {
        let running = self
            .tripped_since
            .and_then(|since| now.duration_since(since).ok());
        self.tripped_before + running.unwrap_or_default()
    }
}

/// What everybody knows when the run is over, each from its own books.
#[derive(Debug)]
pub(crate) struct Facts {
    /// The application: what it left in the outbox.
    pub(crate) deposited: Vec<Message>,
    /// The outbox: what is still in it.
    pub(crate) undispatched: BTreeSet<i64>,
    /// The broker: what it keeps, and how many publishes it refused.
    pub(crate) arrivals: HashMap<i64, Arrival>,
    pub(crate) refusals: BTreeMap<(String, Treatment), u32>,
    /// The circuits: how they moved.
    pub(crate) moves: BTreeMap<String, Moves>,
    /// The sweeper: how many sweeps left a topic out.
    pub(crate) skipped: BTreeMap<String, u32>,
    pub(crate) now: SystemTime,
}

impl Facts {
    /// One row a topic.
    pub(crate) fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_style(UTF8_HORIZONTAL_ONLY).set_header(HEADER);
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        for topic in self.topics() {
            let arrivals: Vec<_> = self
                .deposited(topic)
                .filter_map(|message| self.arrivals.get(&message.id))
                .collect();
            let moves = self.moves(topic);
            table.add_row([
                topic.to_owned(),
                self.deposited(topic).count().to_string(),
                arrivals.len().to_string(),
                arrivals
                    .iter()
                    .map(|arrival| arrival.times - 1)
                    .sum::<u32>()
                    .to_string(),
                moves.trips.to_string(),
                moves.re_trips.to_string(),
                moves.resets.to_string(),
                self.skipped.get(topic).copied().unwrap_or(0).to_string(),
                format!("{:.2} s", moves.tripped(self.now).as_secs_f64()),
            ]);
        }
        table
    }

    /// What the broker refused, in words.
    pub(crate) fn refusals(&self) -> Vec<String> {
        let line = |topic: &str| {
            let ways = self.refused(topic).map(|(way, count)| format!("{count} x {way}"));
            let ways: Vec<_> = ways.collect();
            (!ways.is_empty()).then(|| format!("refused by the broker: {topic}: {}", ways.join(", ")))
        };
        self.topics().into_iter().filter_map(line).collect()
    }

    /// What is wrong; empty when nothing is lost and every failure was heard.
    pub(crate) fn problems(&self) -> Vec<String> {
        let mut problems: Vec<_> = self
            .deposited
            .iter()
            .filter_map(|message| self.lost(message))
            .collect();
        // A refusal of what is still on its way may be heard later.
        if self.undispatched.is_empty() {
            problems.extend(self.topics().into_iter().filter_map(|topic| self.unheard(topic)));
        }
        problems
    }

    fn lost(&self, message: &Message) -> Option<String> {
        let Message { id, topic, body } = message;
        match self.arrivals.get(id) {
            Some(arrival) if arrival.body != *body => {
                Some(format!("message {id} of {topic} arrived changed"))
            }
            None if !self.undispatched.contains(id) => Some(format!(
                "message {id} of {topic} is lost: it left the outbox and never arrived"
            )),
            Some(_) | None => None,
        }
    }

    fn unheard(&self, topic: &str) -> Option<String> {
        let refused: u32 = self.refused(topic).map(|(_, count)| count).sum();
        let moves = self.moves(topic);
        let heard = moves.trips + moves.re_trips;
        (heard < refused).then(|| {
            format!("the broker refused {refused} publishes of {topic}, and its circuit heard of {heard}")
        })
    }

    fn topics(&self) -> BTreeSet<&str> {
        self.deposited
            .iter()
            .map(|message| message.topic.as_str())
            .collect()
    }

    fn deposited(&self, topic: &str) -> impl Iterator<Item = &Message> {
        self.deposited
            .iter()
            .filter(move |message| message.topic == topic)
    }

    fn refused(&self, topic: &str) -> impl Iterator<Item = (Treatment, u32)> {
        let of_topic = self
            .refusals
            .iter()
            .filter(move |((refused, _), _)| refused == topic);
        of_topic.map(|((_, way), count)| (*way, *count))
    }

    fn moves(&self, topic: &str) -> Moves {
        self.moves.get(topic).copied().unwrap_or_default()
    }
}

const HEADER: [&str; 9] = [
    "topic",
    "messages",
    "delivered",
    "duplicates",
    "trips",
    "re-trips",
    "resets",
    "sweeps skipped",
    "time tripped",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        let message = |id| Message {
            id,
            topic: "orders".to_owned(),
            body: format!("body {id}"),
        };
        let arrival = |id, times| {
            (
                id,
                Arrival {
                    body: format!("body {id}"),
                    times,
                },
            )
        };
        Facts {
            deposited: (1..=3).map(message).collect(),
            undispatched: BTreeSet::new(),
            arrivals: HashMap::from([arrival(1, 1), arrival(2, 3), arrival(3, 1)]),
            refusals: BTreeMap::new(),
            moves: BTreeMap::new(),
            skipped: BTreeMap::new(),
            now: SystemTime::UNIX_EPOCH,
        }
    }

    #[test]
    fn messages_that_arrived_are_not_lost_and_further_arrivals_are_duplicates() {
        let facts = facts();
        assert_eq!(facts.problems(), [""; 0]);
        let table = facts.table();
        let row = table
            .lines()
            .find(|line| line.contains("orders"))
            .expect("the topic has a row");
        let cells: Vec<_> = row.split_whitespace().take(4).collect();
        assert_eq!(cells, ["orders", "3", "3", "2"]);
    }

    #[test]
    fn a_message_that_is_nowhere_is_lost_and_one_still_in_the_outbox_is_not() {
        let mut facts = facts();
        facts.arrivals.remove(&2);
        assert_eq!(
            facts.problems(),
            ["message 2 of orders is lost: it left the outbox and never arrived"]
        );
        facts.undispatched.insert(2);
        assert_eq!(facts.problems(), [""; 0]);
    }

    #[test]
    fn a_message_that_arrived_with_another_body_is_a_problem() {
        let mut facts = facts();
        facts.arrivals.insert(
            3,
            Arrival {
                body: "something else".to_owned(),
                times: 1,
            },
        );
        assert_eq!(facts.problems(), ["message 3 of orders arrived changed"]);
    }

    #[test]
    fn every_refusal_must_be_a_trip_or_a_re_trip() {
        let mut facts = facts();
        facts.refusals.insert(("orders".to_owned(), Treatment::Error), 1);
        facts
            .refusals
            .insert(("orders".to_owned(), Treatment::NegativeConfirmation), 2);
        facts.moves.insert(
            "orders".to_owned(),
            Moves {
                trips: 1,
                re_trips: 1,
                ..Moves::default()
            },
        );
        assert_eq!(
            facts.problems(),
            ["the broker refused 3 publishes of orders, and its circuit heard of 2"]
        );
        facts.moves.insert(
            "orders".to_owned(),
            Moves {
                trips: 1,
                re_trips: 2,
                ..Moves::default()
            },
        );
        assert_eq!(facts.problems(), [""; 0]);
    }

    #[test]
    fn the_time_tripped_runs_from_each_trip_to_its_reset_and_on_while_tripped() {
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let mut moves = Moves::default();
        moves.record(Operation::Trip, at(10));
        moves.record(Operation::ReTrip, at(12));
        moves.record(Operation::Reset, at(15));
        assert_eq!(moves.tripped(at(100)), Duration::from_secs(5));
        moves.record(Operation::Trip, at(110));
        assert_eq!(moves.tripped(at(113)), Duration::from_secs(8));
    }
}
