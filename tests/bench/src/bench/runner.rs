//! Runs a group in interleaved rounds.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, bail};
use tripwit::{Clock, SystemClock};

use crate::group::{Entry, Group, Round};
use crate::results::{Row, Spread};

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// How many rounds each entry has.
    pub(crate) rounds: usize,
    /// How long a round is, about, in nanoseconds.
    pub(crate) round: u64,
    /// Whether the sizes of the other measurements are reduced too.
    pub(crate) quick: bool,
}

impl Effort {
    pub(crate) const FULL: Self = Self {
        rounds: 80,
        round: 5_000_000,
        quick: false,
    };
    pub(crate) const QUICK: Self = Self {
        rounds: 12,
        round: 1_500_000,
        quick: true,
    };

    /// One of two sizes.
    pub(crate) fn of<T>(self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }
}

/// Measures a group. Each round runs every entry once on each number of threads, from another one on each time.
///
/// # Errors
///
/// When an entry cannot be prepared, or a call ends as it should not.
pub(crate) fn measure(group: &Group, effort: Effort) -> Result<Vec<Row>> {
    let lanes = group.threads.iter().copied().max().unwrap_or(1);
    let calls = calibrate(group, effort)?;
    let turns = turns(group, effort);
    let meeting = Meeting {
        barrier: Barrier::new(lanes),
        arrived: AtomicUsize::new(0),
    };
    let lane = |lane| {
        // Every lane goes through every turn, whatever happens in it: the others wait for it.
        let mut rounds = group.entries.iter().map(prepared).collect::<Result<Vec<_>>>();
        let mut times = Vec::with_capacity(turns.len());
        let mut arrived = 0;
        for turn in &turns {
            meeting.barrier.wait();
            if lane < turn.threads {
                arrived += turn.threads;
                meeting.meet(arrived);
                let round = rounds.as_mut().ok().and_then(|rounds| rounds.get_mut(turn.entry));
                let calls = calls.get(turn.entry).copied().unwrap_or(1);
                times.push(round.map_or(Ok(0.0), |round| timed(group, turn.entry, round, calls)));
            } else {
                times.push(Ok(0.0));
                arrived += turn.threads;
            }
        }
        rounds.and_then(|_| times.into_iter().collect::<Result<Vec<f64>>>())
    };
    let times = std::thread::scope(|threads| {
        let others: Vec<_> = (1..lanes)
            .map(|number| threads.spawn(move || lane(number)))
            .collect();
        let mut times = vec![lane(0)];
        for other in others {
            times.push(other.join().unwrap_or_else(|_| bail!("a thread panicked")));
        }
        times.into_iter().collect::<Result<Vec<_>>>()
    })?;
    Ok(rows(group, &turns, &times))
}

/// One entry's round on so many threads.
#[derive(Clone, Copy, Debug)]
struct Turn {
    entry: usize,
    threads: usize,
}

fn turns(group: &Group, effort: Effort) -> Vec<Turn> {
    let once: Vec<_> = (0..group.entries.len())
        .flat_map(|entry| group.threads.iter().map(move |&threads| Turn { entry, threads }))
        .collect();
    let from = |round: usize| round % once.len().max(1);
    (0..effort.rounds)
        .flat_map(|round| once.iter().cycle().skip(from(round)).take(once.len()).copied())
        .collect()
}

/// Where the threads of a turn come together, so that all of it is run by all of them.
struct Meeting {
    barrier: Barrier,
    arrived: AtomicUsize,
}

impl Meeting {
    /// Waits without sleeping: all are awake, and waking up takes as long as many calls.
    fn meet(&self, all: usize) {
        self.arrived.fetch_add(1, Ordering::AcqRel);
        while self.arrived.load(Ordering::Acquire) < all {
            std::hint::spin_loop();
        }
    }
}

fn prepared(entry: &Entry) -> Result<Round> {
    (entry.start)().with_context(|| format!("cannot prepare {}", entry.subject.name()))
}

/// How many calls of each entry a round takes.
fn calibrate(group: &Group, effort: Effort) -> Result<Vec<u64>> {
    let calls = |entry: (usize, &Entry)| {
        let mut round = prepared(entry.1)?;
        let mut calls = 100;
        loop {
            let each = timed(group, entry.0, &mut round, calls)?;
            let fit = (effort.round as f64 / each.max(0.1)) as u64;
            // Well warmed up once it runs for a third of a round.
            if fit / 3 < calls {
                return Ok(fit.max(1));
            }
            calls *= 4;
        }
    };
    group.entries.iter().enumerate().map(calls).collect()
}

/// Nanoseconds a call.
fn timed(group: &Group, entry: usize, round: &mut Round, calls: u64) -> Result<f64> {
    let start = SystemClock.monotonic();
    let ending = round(calls);
    let time = SystemClock.monotonic() - start;
    if let Some(entry) = group.entries.get(entry).filter(|entry| entry.ends != ending) {
        let (name, subject) = (group.name, entry.subject.name());
        bail!(
            "{name}: a call of {subject} under {} ended as {ending:?}",
            entry.policy
        );
    }
    Ok(time as f64 / calls as f64)
}

/// Of several threads the slowest counts.
fn rows(group: &Group, turns: &[Turn], times: &[Vec<f64>]) -> Vec<Row> {
    let samples = |entry: usize, threads: usize| -> Vec<f64> {
        let slowest = |at: usize| {
            times
                .iter()
                .filter_map(|lane| lane.get(at))
                .copied()
                .fold(0.0, f64::max)
        };
        let of_entry = turns
            .iter()
            .enumerate()
            .filter(|(_, turn)| turn.entry == entry && turn.threads == threads);
        of_entry.map(|(at, _)| slowest(at)).collect()
    };
    let mut rows = Vec::new();
    for &threads in group.threads {
        for (index, entry) in group.entries.iter().enumerate() {
            rows.push(Row {
                name: entry.name.clone().unwrap_or_else(|| group.name.to_owned()),
                subject: entry.subject,
                threads,
                policy: entry.policy.clone(),
                time: Spread::of(samples(index, threads)),
                ratio: None,
            });
        }
    }
    Row::fill_ratios(&mut rows);
    rows
}
