//! What may come of a scenario: all that comes of asking the component each time, in some order of the calls.

use std::collections::HashSet;

use crate::component::Component;
use crate::shard::{Op, Outcome, Said};

/// What came of a scenario: what each thread was told, and what the component holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Ending {
    pub(crate) said: Vec<Vec<Said>>,
    pub(crate) component: Component,
}

/// Every ending, of every order that keeps each thread's own.
pub(crate) fn endings(component: &Component, threads: &[Vec<Op>], held: bool) -> HashSet<Ending> {
    let mut found = HashSet::new();
    let mut component = component.clone();
    let ticket = held.then(|| component.acquire(0).ok()).flatten();
    let permit = ticket.map(|ticket| (ticket, component.incarnation()));
    let start = Moment {
        component,
        now: 0,
        said: vec![Vec::new(); threads.len()],
        permits: vec![permit; threads.len()],
    };
    go_on(&start, threads, &mut found);
    found
}

#[derive(Clone)]
struct Moment {
    component: Component,
    now: u64,
    said: Vec<Vec<Said>>,
    /// Each thread's ticket, and the incarnation that gave it.
    permits: Vec<Option<(u64, u64)>>,
}

fn go_on(moment: &Moment, threads: &[Vec<Op>], found: &mut HashSet<Ending>) {
    let mut at_end = true;
    for (thread, ops) in threads.iter().enumerate() {
        let done = moment.said.get(thread).map_or(0, Vec::len);
        if let Some(op) = ops.get(done) {
            at_end = false;
            let mut next = moment.clone();
            next.step(thread, *op);
            go_on(&next, threads, found);
        }
    }
    if at_end {
        found.insert(Ending {
            said: moment.said.clone(),
            component: moment.component.as_of(moment.now),
        });
    }
}

impl Moment {
    fn step(&mut self, thread: usize, op: Op) {
        let (Some(permit), Some(said)) = (self.permits.get_mut(thread), self.said.get_mut(thread)) else {
            return;
        };
        let now = self.now;
        said.push(match op {
            Op::Acquire => match self.component.acquire(now) {
                Ok(ticket) => {
                    *permit = Some((ticket, self.component.incarnation()));
                    Said::Admitted(ticket)
                }
                Err(reason) => Said::Rejected(reason),
            },
            Op::Settle(outcome) => {
                if let Some((ticket, incarnation)) = permit.take()
                    && incarnation == self.component.incarnation()
                {
                    self.component.settle(now, ticket, outcome == Outcome::Failure);
                }
                Said::Nothing
            }
            Op::Trip => {
                self.component.trip(now);
                Said::Nothing
            }
            Op::Reset => {
                self.component.reset(now);
                Said::Nothing
            }
            Op::Rebuild => {
                self.component.rebuild(now);
                Said::Nothing
            }
            Op::Inspect => Said::Counted(self.component.inspect(now)),
            Op::Tick => {
                self.now += 1;
                Said::Nothing
            }
        });
    }
}
