//! A scenario: what a few threads do, in every schedule.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc as Plain;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use loom::sync::Arc;

use crate::component::Component;
use crate::orders::{Ending, endings};
use crate::shard::{Flaw, Op, Shard};
use crate::sync::{Weakness, weaken};

/// What a few threads do with one circuit.
#[derive(Clone, Debug)]
pub struct Scenario {
    component: Component,
    threads: Vec<Vec<Op>>,
    held: bool,
    weakness: Weakness,
    flaw: Flaw,
    preemptions: usize,
}

/// How much loom looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explored {
    /// Executions: schedules, with the values that were seen in them.
    pub executions: u64,
    /// The endings that there may be.
    pub endings: usize,
    /// The most calls about which the component was asked in one execution.
    pub most_asked: u32,
}

impl Scenario {
    /// Threads that begin with no permit.
    #[must_use]
    pub fn new(component: Component) -> Self {
        Self {
            component,
            threads: Vec::new(),
            held: false,
            weakness: Weakness::None,
            flaw: Flaw::None,
            preemptions: PREEMPTIONS,
        }
    }

    /// Each thread begins with the permit that calls share.
    #[must_use]
    pub fn with_permits(self) -> Self {
        Self { held: true, ..self }
    }

    /// One thread more, which does this. One of them is the thread that starts the others and waits for them.
    #[must_use]
    pub fn thread(mut self, ops: &[Op]) -> Self {
        self.threads.push(ops.to_vec());
        self
    }

    /// Memory has this weakness.
    #[must_use]
    pub fn weakened(self, weakness: Weakness) -> Self {
        Self { weakness, ..self }
    }

    /// The shard has this flaw.
    #[must_use]
    pub fn flawed(self, flaw: Flaw) -> Self {
        Self { flaw, ..self }
    }

    /// Checks that each execution ends as asking the component each time would have, in some order.
    ///
    /// # Panics
    ///
    /// In the first execution that does not.
    #[must_use]
    pub fn explore(self) -> Explored {
        let Self {
            component,
            threads,
            held,
            weakness,
            flaw,
            preemptions,
        } = self;
        let may_be = Plain::new(endings(&component, &threads, held));
        let explored = Explored {
            executions: 0,
            endings: may_be.len(),
            most_asked: 0,
        };
        let executions = Plain::new(AtomicU64::new(0));
        let most_asked = Plain::new(AtomicU32::new(0));
        let (counted, asked) = (executions.clone(), most_asked.clone());
        weaken(weakness);
        builder(preemptions).check(move || {
            counted.fetch_add(1, Relaxed);
            let shard = Arc::new(Shard::new(component.clone(), flaw));
            execute(&shard, &threads, held, &may_be);
            asked.fetch_max(shard.asked(), Relaxed);
        });
        weaken(Weakness::None);
        Explored {
            executions: executions.load(Relaxed),
            most_asked: most_asked.load(Relaxed),
            ..explored
        }
    }
}

impl fmt::Display for Explored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            executions, endings, ..
        } = self;
        write!(f, "{executions} executions, {endings} endings that may be")
    }
}

fn execute(shard: &Arc<Shard>, threads: &[Vec<Op>], held: bool, may_be: &HashSet<Ending>) {
    let run = |shard: Arc<Shard>, ops: Vec<Op>| {
        let mut caller = if held {
            shard.caller_with_permit()
        } else {
            Default::default()
        };
        move || -> Vec<_> { ops.into_iter().map(|op| shard.run(&mut caller, op)).collect() }
    };
    let mut all = threads.iter().map(|ops| run(shard.clone(), ops.clone()));
    let Some(own) = all.next() else { return };
    let others: Vec<_> = all.map(loom::thread::spawn).collect();
    let mut said = vec![own()];
    for other in others {
        match other.join() {
            Ok(heard) => said.push(heard),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
    let ending = Ending {
        said,
        component: shard.at_rest(),
    };
    assert!(
        may_be.contains(&ending),
        "no order of the calls ends so: {ending:?}"
    );
}

pub(crate) fn builder(preemptions: usize) -> loom::model::Builder {
    let mut builder = loom::model::Builder::new();
    if builder.preemption_bound.is_none() {
        builder.preemption_bound = Some(preemptions);
    }
    builder
}

/// A schedule takes the processor from a thread that could go on so often at most. `LOOM_MAX_PREEMPTIONS` says otherwise.
pub(crate) const PREEMPTIONS: usize = 2;
