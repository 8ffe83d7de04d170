//! The moves of the circuit, and when it was open for certain.

use parking_lot::Mutex;
use tokio::sync::watch;
use tripwit::{Clock as _, Event, Operation, State};

use crate::clock::SteadyClock;

/// One move. Times are readings of the breaker's clock, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Move {
    pub(crate) operation: Operation,
    pub(crate) before: State,
    pub(crate) after: State,
    /// When the policy made it.
    pub(crate) at: u64,
    /// When it was told here; by then every caller could see it.
    pub(crate) told: u64,
}

/// All moves in order, and the state that the last one led to.
#[derive(Debug)]
pub(crate) struct History {
    clock: SteadyClock,
    moves: Mutex<Vec<Move>>,
    state: watch::Sender<State>,
}

impl History {
    pub(crate) fn new(clock: SteadyClock) -> Self {
        Self {
            clock,
            moves: Mutex::default(),
            state: watch::Sender::new(State::Closed),
        }
    }

    pub(crate) fn observe(&self, event: &Event) {
        let transition = &event.transition;
        self.moves.lock().push(Move {
            operation: transition.operation,
            before: transition.before,
            after: transition.after,
            at: self.clock.at(transition.at),
            told: self.clock.monotonic(),
        });
        self.state.send_replace(transition.after);
    }

    /// Waits until the circuit is in this state.
    pub(crate) async fn reach(&self, state: State) {
        // An error says that the sender is gone, and it is here.
        drop(self.state.subscribe().wait_for(|now| *now == state).await);
    }

    pub(crate) fn state(&self) -> State {
        *self.state.borrow()
    }

    pub(crate) fn moves(&self) -> Vec<Move> {
        self.moves.lock().clone()
    }
}

/// When the circuit was open for certain: from the moment when everybody could know it, until the policy moved it on.
pub(crate) fn open_spans(moves: &[Move]) -> Vec<[u64; 2]> {
    let ends = moves.iter().skip(1).map(|next| next.at).chain([u64::MAX]);
    let spans = moves.iter().zip(ends);
    spans
        .filter(|(one, _)| one.after == State::Open)
        .map(|(one, end)| [one.told, end])
        .collect()
}

/// The first move that does not begin where the one before it ended. A swap that closed an open circuit would show here.
pub(crate) fn gap(moves: &[Move]) -> Option<String> {
    let mut state = State::Closed;
    for (number, one) in moves.iter().enumerate() {
        if one.before != state {
            return Some(format!(
                "move {number}, a {}, begins {} where the one before it ended {state}",
                one.operation, one.before
            ));
        }
        state = one.after;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(operation: Operation, before: State, after: State, at: u64) -> Move {
        Move {
            operation,
            before,
            after,
            at,
            told: at + 2,
        }
    }

    fn moves() -> [Move; 4] {
        use State::{Closed, HalfOpen, Open};
        [
            one(Operation::Trip, Closed, Open, 10),
            one(Operation::HalfOpen, Open, HalfOpen, 20),
            one(Operation::ReTrip, HalfOpen, Open, 30),
            one(Operation::Reset, Open, Closed, 40),
        ]
    }

    #[test]
    fn a_circuit_is_open_for_certain_from_when_it_is_told_until_the_next_move_is_made() {
        assert_eq!(open_spans(&moves()), [[12, 20], [32, 40]]);
        assert_eq!(open_spans(&moves()[..1]), [[12, u64::MAX]]);
        assert!(open_spans(&[]).is_empty());
    }

    #[test]
    fn a_move_that_does_not_begin_where_the_last_one_ended_is_found() {
        let [trip, half_open, re_trip, reset] = moves();
        assert_eq!(gap(&[trip, half_open, re_trip, reset]), None);
        assert!(gap(&[trip, half_open, reset]).is_some_and(|text| text.starts_with("move 2, a reset")));
        assert!(gap(&[half_open]).is_some());
    }
}
