//! Calls in the order in which they begin, although logs have them in the order in which they ended.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::timeline::Call;

/// As many calls wait at most.
const MOST_WAITING: usize = 1 << 20;

/// Holds calls back until no other can begin before them.
///
/// A line that comes later can be of a call that began earlier, but no more so than calls run at the longest: a call that begins that long before the
/// newest end goes on. So memory is bounded by the lines of such a time, and by a number.
#[derive(Debug)]
pub(super) struct Order {
    waiting: BinaryHeap<Reverse<ByBegin>>,
    longest: u64,
    newest: u64,
    last: u64,
    late: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ByBegin(Call);

impl Order {
    /// Calls run so long at most, in nanoseconds.
    pub(super) fn new(longest: u64) -> Self {
        Self {
            waiting: BinaryHeap::new(),
            longest,
            newest: 0,
            last: 0,
            late: 0,
        }
    }

    /// Adds a call. One that begins before another that has gone on counts as begun at that one's beginning.
    pub(super) fn push(&mut self, mut call: Call) {
        if call.begin < self.last {
            self.late += 1;
            call.begin = self.last;
            call.end = call.end.max(call.begin);
        }
        self.newest = self.newest.max(call.end);
        self.waiting.push(Reverse(ByBegin(call)));
    }

    /// The next call that no other can come before.
    pub(super) fn pop(&mut self) -> Option<Call> {
        let Reverse(ByBegin(next)) = self.waiting.peek()?;
        if next.begin.saturating_add(self.longest) <= self.newest || self.waiting.len() > MOST_WAITING {
            self.pop_any()
        } else {
            None
        }
    }

    /// The next call, once there are no more lines.
    pub(super) fn pop_any(&mut self) -> Option<Call> {
        let Reverse(ByBegin(call)) = self.waiting.pop()?;
        self.last = call.begin;
        Some(call)
    }

    /// How many calls came too late for their place, and were put behind it.
    pub(super) fn late(&self) -> u64 {
        self.late
    }

    /// The latest end of any call.
    pub(super) fn newest(&self) -> u64 {
        self.newest
    }
}

impl Ord for ByBegin {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0.begin, self.0.place).cmp(&(other.0.begin, other.0.place))
    }
}

impl PartialOrd for ByBegin {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::Ended;

    fn call(place: u64, begin: u64, end: u64) -> Call {
        Call {
            begin,
            end,
            place,
            circuit: 0,
            ended: Ended::Success,
            status: None,
            retry_after: None,
        }
    }

    fn popped(order: &mut Order) -> Vec<u64> {
        std::iter::from_fn(|| order.pop())
            .map(|call| call.place)
            .collect()
    }

    #[test]
    fn calls_come_in_the_order_of_their_beginnings() {
        let mut order = Order::new(10);
        order.push(call(0, 100, 101));
        order.push(call(1, 95, 102));
        order.push(call(2, 103, 103));
        assert_eq!(
            popped(&mut order),
            [] as [u64; 0],
            "one that began at 94 may still come"
        );
        order.push(call(3, 110, 111));
        assert_eq!(popped(&mut order), [1, 0]);
        let rest: Vec<_> = std::iter::from_fn(|| order.pop_any())
            .map(|call| call.place)
            .collect();
        assert_eq!(rest, [2, 3]);
        assert_eq!(order.late(), 0);
    }

    #[test]
    fn calls_that_begin_together_keep_the_order_of_their_lines() {
        let mut order = Order::new(0);
        order.push(call(0, 100, 100));
        order.push(call(1, 100, 100));
        assert_eq!(popped(&mut order), [0, 1]);
    }

    #[test]
    fn a_call_that_comes_too_late_is_put_behind_and_counted() {
        let mut order = Order::new(10);
        order.push(call(0, 100, 120));
        assert_eq!(popped(&mut order), [0]);
        order.push(call(1, 50, 121));
        order.push(call(2, 50, 60));
        let rest: Vec<_> = std::iter::from_fn(|| order.pop_any())
            .map(|call| (call.place, call.begin, call.end))
            .collect();
        assert_eq!(rest, [(1, 100, 121), (2, 100, 100)]);
        assert_eq!(order.late(), 2);
    }

    #[test]
    fn memory_is_bounded_also_where_all_lines_are_of_one_instant() {
        let mut order = Order::new(10);
        for place in 0..=MOST_WAITING as u64 {
            order.push(call(place, 100, 100));
        }
        assert_eq!(order.pop().map(|call| call.place), Some(0));
        assert_eq!(order.pop(), None);
    }
}
