//! Runs a group in interleaved rounds.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, bail, ensure};
use tripwit::{Clock, SystemClock};
use tripwit_bench::Inputs;

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
                let time = round
                    .map(|round| timed(group, turn.entry, round, calls))
                    .transpose();
                times.push(time);
            } else {
                arrived += turn.threads;
                times.push(Ok(None));
            }
        }
        rounds.and_then(|_| times.into_iter().collect::<Result<Vec<_>>>())
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
    rows(group, &turns, &times)
}

/// One thread's part of a turn, in nanoseconds since the clock began.
#[derive(Clone, Copy, Debug)]
struct Time {
    start: u64,
    end: u64,
    calls: u64,
}

impl Time {
    fn each(self) -> f64 {
        (self.end - self.start) as f64 / self.calls as f64
    }
}

/// Nanoseconds a call in a turn; of several threads those of the slowest. None where the quickest was hardly ever beside
/// the others: so it is where there are fewer processors than threads, or other programs are busy.
fn together(times: &[Time]) -> Option<f64> {
    let first_end = times.iter().map(|time| time.end).min()?;
    let last_start = times.iter().map(|time| time.start).max()?;
    let quickest = times.iter().map(|time| time.end - time.start).min()?;
    let shared = first_end.saturating_sub(last_start);
    (shared as f64 >= 0.7 * quickest as f64).then(|| times.iter().map(|time| time.each()).fold(0.0, f64::max))
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

/// How many calls of each entry a round takes: all of them end with their patterns.
fn calibrate(group: &Group, effort: Effort) -> Result<Vec<u64>> {
    let calls = |entry: (usize, &Entry)| {
        let mut round = prepared(entry.1)?;
        let mut calls = Inputs::PERIOD;
        loop {
            let each = timed(group, entry.0, &mut round, calls)?.each();
            let fit = (effort.round as f64 / each.max(0.1)) as u64 / Inputs::PERIOD * Inputs::PERIOD;
            // Warmed up once it runs for a third of a round.
            if fit / 3 < calls {
                return Ok(fit.max(Inputs::PERIOD));
            }
            calls *= 4;
        }
    };
    group.entries.iter().enumerate().map(calls).collect()
}

fn timed(group: &Group, entry: usize, round: &mut Round, calls: u64) -> Result<Time> {
    let start = SystemClock.monotonic();
    let ending = round(calls);
    let end = SystemClock.monotonic();
    if let Some(entry) = group.entries.get(entry).filter(|entry| entry.ends != ending) {
        let (name, subject) = (group.name, entry.subject.name());
        bail!(
            "{name}: a call of {subject} under {} ended as {ending:?}",
            entry.policy
        );
    }
    Ok(Time { start, end, calls })
}

fn rows(group: &Group, turns: &[Turn], times: &[Vec<Option<Time>>]) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for &threads in group.threads {
        for (index, entry) in group.entries.iter().enumerate() {
            let turns = turns
                .iter()
                .enumerate()
                .filter(|(_, turn)| turn.entry == index && turn.threads == threads);
            let lanes = |at: usize| times.iter().filter_map(|lane| *lane.get(at)?).collect::<Vec<_>>();
            let samples: Vec<_> = turns.filter_map(|(at, _)| together(&lanes(at))).collect();
            ensure!(
                !samples.is_empty(),
                "{}: {threads} threads never ran at the same time; others are too busy on this machine",
                group.name
            );
            rows.push(Row {
                name: entry.name.clone().unwrap_or_else(|| group.name.to_owned()),
                subject: entry.subject,
                threads,
                policy: entry.policy.clone(),
                time: Spread::of(samples),
                ratio: None,
            });
        }
    }
    Row::fill_ratios(&mut rows);
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::Bare;
    use crate::subject::Subject;

    #[test]
    fn of_threads_that_run_together_the_slower_one_counts() {
        let time = |start, end| Time {
            start,
            end,
            calls: 10,
        };
        assert_eq!(together(&[time(0, 100)]), Some(10.0));
        assert_eq!(together(&[time(0, 100), time(10, 130)]), Some(12.0));
        assert_eq!(together(&[time(0, 100), time(0, 900)]), Some(90.0));
        assert_eq!(together(&[time(0, 100), time(90, 190)]), None);
        assert_eq!(together(&[]), None);
    }

    #[test]
    fn each_round_has_every_turn_once_and_begins_with_another_one() {
        let mut group = Group::new("group", &[1, 2]);
        for _ in 0..3 {
            group.add(
                Subject::Bare,
                "",
                crate::group::blocking(Bare, &Inputs::healthy()),
            );
        }
        let effort = Effort {
            rounds: 6,
            ..Effort::QUICK
        };
        let turns: Vec<_> = turns(&group, effort)
            .iter()
            .map(|turn| (turn.entry, turn.threads))
            .collect();
        let rounds: Vec<_> = turns.chunks(6).collect();
        assert_eq!(rounds.len(), 6);
        for (number, round) in rounds.iter().enumerate() {
            assert_eq!(round[0], rounds[0][number]);
            let mut sorted = round.to_vec();
            sorted.sort_unstable();
            assert_eq!(sorted, [(0, 1), (0, 2), (1, 1), (1, 2), (2, 1), (2, 2)]);
        }
    }

    #[test]
    fn a_call_that_ends_as_it_should_not_is_an_error() {
        let mut group = Group::new("group", &[1]);
        group.add_rejecting(
            Subject::Bare,
            "",
            crate::group::blocking(Bare, &Inputs::healthy()),
        );
        let error = measure(&group, Effort::QUICK).unwrap_err();
        assert!(
            error.to_string().contains("a call of bare under  ended as Made"),
            "{error}"
        );
    }
}
