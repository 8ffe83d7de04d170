//! The replay itself: every call of the log, through every policy.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use anyhow::{Result, anyhow, bail};

use super::entry::{By, Reading, Told};
use super::format::Format;
use super::order::Order;
use super::role::Names;
use super::source::{Line, Lines};
use crate::time::SECOND;
use crate::timeline::{Bins, Call, Ended, Lane, Results};

/// As many lines are looked at to find the format out.
const FIRST_LINES: usize = 20;
/// As many bad lines are shown.
const BAD_LINES_SHOWN: usize = 5;
/// The longest key of a circuit, in bytes, as the host has it.
const LONGEST_KEY: usize = 512;

/// What is to be replayed, and how.
#[derive(Debug)]
pub(super) struct Plan {
    /// None until the first lines have shown it.
    pub(super) format: Option<Format>,
    pub(super) names: Names,
    pub(super) reading: Reading,
    /// Whether the first line shows what to group by.
    pub(super) find_by: bool,
    /// The only circuits to replay; all where it is empty.
    pub(super) only: HashSet<String>,
    pub(super) max_circuits: usize,
    pub(super) longest: u64,
}

/// What has come of it.
#[derive(Debug)]
pub(super) struct Replayed {
    pub(super) format: String,
    pub(super) by: By,
    /// The policies, each with the same circuits under the same numbers.
    pub(super) lanes: Vec<Lane>,
    /// The circuits of the log, by their numbers.
    pub(super) circuits: Vec<Circuit>,
    pub(super) lines: u64,
    pub(super) calls: u64,
    pub(super) bad: Bad,
    /// Lines that have nothing to group by.
    pub(super) ungrouped: u64,
    /// Calls of circuits beyond the most that there may be.
    pub(super) beyond: u64,
    /// Calls out of order by more than the longest time that a call may take.
    pub(super) late: u64,
    /// When the first call began and the last one ended.
    pub(super) from: u64,
    pub(super) to: u64,
}

/// What the log says about one circuit.
#[derive(Debug)]
pub(super) struct Circuit {
    pub(super) key: String,
    pub(super) results: Results,
    /// None until the first of its calls is made.
    pub(super) bins: Option<Bins>,
}

/// Lines that could not be read.
#[derive(Debug, Default)]
pub(super) struct Bad {
    pub(super) count: u64,
    /// The first ones: where, and what is wrong.
    pub(super) shown: Vec<(String, u64, String)>,
}

impl Bad {
    fn note(&mut self, log: &str, line: u64, problem: String) {
        self.count += 1;
        if self.shown.len() < BAD_LINES_SHOWN {
            self.shown.push((log.to_owned(), line, problem));
        }
    }
}

/// Replays a log.
///
/// # Errors
///
/// When the log cannot be read, no line of it can be understood, or a policy refuses a circuit.
pub(super) fn replay(mut lines: Lines, plan: Plan, lanes: Vec<Lane>) -> Result<Replayed> {
    let mut first = Vec::new();
    while first.len() < FIRST_LINES
        && let Some(line) = lines.next()?
    {
        first.push((line.log.to_owned(), line.number, line.text.map(Cow::into_owned)));
    }
    let format = match plan.format {
        Some(format) => format,
        None => {
            let texts = first.iter().filter_map(|(_, _, text)| text.as_deref().ok());
            Format::detect(texts, &plan.names).ok_or_else(|| unknown(first.first()))?
        }
    };
    let mut run = Run {
        format,
        find_by: plan.find_by,
        reading: plan.reading,
        calls: Calls {
            only: plan.only,
            max_circuits: plan.max_circuits,
            numbers: HashMap::new(),
            order: Order::new(plan.longest),
            replayed: Replayed::new(lanes),
        },
    };
    for (log, number, text) in first {
        run.line(Line {
            log: &log,
            number,
            text: text.map(Cow::Owned),
        })?;
    }
    while let Some(line) = lines.next()? {
        run.line(line)?;
    }
    run.finish()
}

fn unknown(first: Option<&(String, u64, Result<String, String>)>) -> anyhow::Error {
    match first {
        None => anyhow!("the log has no lines"),
        Some((log, number, _)) => anyhow!(
            "{log}, from line {number}: neither JSON nor the combined layout of nginx and Apache; say what it is by --format csv or --layout"
        ),
    }
}

/// From lines to calls.
struct Run {
    format: Format,
    find_by: bool,
    reading: Reading,
    calls: Calls,
}

impl Run {
    fn line(&mut self, line: Line<'_>) -> Result<()> {
        let problem = match line.text {
            Ok(text) => self.entry(&text)?,
            Err(problem) => Some(problem),
        };
        if let Some(problem) = problem {
            self.calls.replayed.lines += 1;
            self.calls.replayed.bad.note(line.log, line.number, problem);
        }
        Ok(())
    }

    /// Takes what a line tells of; gives what is wrong with it.
    fn entry(&mut self, text: &str) -> Result<Option<String>> {
        let fields = match self.format.read(text) {
            Ok(Some(fields)) => fields,
            Ok(None) => return Ok(None),
            Err(problem) => return Ok(Some(problem)),
        };
        if self.find_by {
            self.reading.by = By::found(&fields);
        }
        let told = match self.reading.calls(&fields) {
            Ok(told) => told,
            Err(problem) => return Ok(Some(problem)),
        };
        self.find_by = false;
        if let Some(long) = told.iter().find(|told| told.key.len() > LONGEST_KEY) {
            return Ok(Some(format!(
                "its group has {} bytes, and a circuit's key at most {LONGEST_KEY}",
                long.key.len()
            )));
        }
        self.calls.replayed.lines += 1;
        if told.is_empty() {
            self.calls.replayed.ungrouped += 1;
        }
        for told in told {
            self.calls.take(&told)?;
        }
        Ok(None)
    }

    fn finish(self) -> Result<Replayed> {
        let mut calls = self.calls;
        while let Some(call) = calls.order.pop_any() {
            calls.replayed.make(call);
        }
        let mut replayed = calls.replayed;
        replayed.format = self.format.to_string();
        replayed.by = self.reading.by;
        replayed.late = calls.order.late();
        if replayed.calls == 0 {
            bail!("{}", replayed.nothing());
        }
        replayed.to = calls.order.newest();
        for lane in &mut replayed.lanes {
            lane.finish(replayed.to);
        }
        Ok(replayed)
    }
}

/// From calls as the log tells of them to calls in their order.
struct Calls {
    only: HashSet<String>,
    max_circuits: usize,
    numbers: HashMap<String, usize>,
    order: Order,
    replayed: Replayed,
}

impl Calls {
    fn take(&mut self, told: &Told<'_>) -> Result<()> {
        let known = self.numbers.get(told.key.as_ref()).copied();
        let circuit = match known {
            Some(circuit) => circuit,
            None if !self.only.is_empty() && !self.only.contains(told.key.as_ref()) => return Ok(()),
            None if self.numbers.len() >= self.max_circuits => {
                self.replayed.beyond += 1;
                return Ok(());
            }
            None => self.add(&told.key)?,
        };
        self.order.push(Call {
            begin: told.begin,
            end: told.end,
            place: self.replayed.calls,
            circuit,
            ended: told.ended,
            status: told.status,
            retry_after: told.retry_after,
        });
        self.replayed.calls += 1;
        while let Some(call) = self.order.pop() {
            self.replayed.make(call);
        }
        Ok(())
    }

    fn add(&mut self, key: &str) -> Result<usize> {
        for lane in &mut self.replayed.lanes {
            lane.add(key)?;
        }
        let number = self.numbers.len();
        self.numbers.insert(key.to_owned(), number);
        self.replayed.circuits.push(Circuit {
            key: key.to_owned(),
            results: Results::default(),
            bins: None,
        });
        Ok(number)
    }
}

impl Replayed {
    fn new(lanes: Vec<Lane>) -> Self {
        Self {
            format: String::new(),
            by: By::All,
            lanes,
            circuits: Vec::new(),
            lines: 0,
            calls: 0,
            bad: Bad::default(),
            ungrouped: 0,
            beyond: 0,
            late: 0,
            from: u64::MAX,
            to: 0,
        }
    }

    /// Leads a call through every policy.
    fn make(&mut self, call: Call) {
        // Calls come in the order of their beginnings, so this is the first one's.
        self.from = self.from.min(call.begin);
        if let Some(circuit) = self.circuits.get_mut(call.circuit) {
            circuit.results.add(call.ended);
            if call.ended != Ended::Ignored {
                let from = self.from;
                circuit
                    .bins
                    .get_or_insert_with(|| Bins::new(from, SECOND))
                    .add(call.end, call.ended != Ended::Success);
            }
        }
        for lane in &mut self.lanes {
            lane.begin(call);
        }
    }

    /// Why there is nothing to show.
    fn nothing(&self) -> String {
        let Self {
            lines, format, by, ..
        } = self;
        match self.bad.shown.first() {
            Some((log, number, problem)) => {
                format!("no line of {lines} can be used as {format}; {log}, line {number}: {problem}")
            }
            None if *lines == 0 => "the log has no lines".into(),
            None => format!(
                "no line of {lines} tells of a call: grouped by {by}, {} have no group, and no other is of a circuit that was asked for",
                self.ungrouped
            ),
        }
    }
}
