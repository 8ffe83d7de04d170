//! The subcommand.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, anyhow, bail};
use clap::{Args, ValueEnum};

use super::entry::{By, Reading, by};
use super::format::{Format, Kind};
use super::role::{Mapping, Names, mapping};
use super::run::{Plan, Replayed, replay};
use super::source::Lines;
use super::status::{Statuses, statuses};
use super::{json, picture, report};
use crate::candidate::Candidate;
use crate::load::Loading;
use crate::terminal;
use crate::time::argument;
use crate::timeline::Lane;

/// Shows what circuit breakers would have done, given an access log.
///
/// Reads the log once, makes each call of it again under a clock that goes by the log, and counts: failures that would have been spared, good calls
/// that would have been rejected, time open. Several policies are compared over the same calls.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tripwit replay --log access.log
  tripwit replay --log access.log.2.gz --log access.log.1 --by path:2 --failures 5xx,429
  zcat *.gz | tripwit replay consecutive 'consecutive@{\"failure_threshold\": 3}' mine.wasm@mine.json --log - --plot night.svg
  tripwit replay --log calls.csv --format csv --map time=ended --map took=millis:ms --map upstream=target
  tripwit replay --log access.log --layout '$remote_addr [$time_local] $upstream_addr $upstream_status $upstream_response_time'
  tripwit replay --log access.log --json | jq '.circuits[].policies[].transitions'

A policy is the name of a shipped one (consecutive, outbox, window) or a file, and then, if need be, `@` and its settings: a file, or JSON in braces.

Exit codes: 0 the log was replayed; 2 the log or a policy cannot be read, or settings do not fit.")]
pub(crate) struct Arguments {
    /// The policies to compare
    #[arg(value_name = "POLICY", default_value = "consecutive")]
    policies: Vec<String>,
    /// The log; `-` is standard input. Several are read one after the other; gzip is recognised
    #[arg(long, value_name = "FILE", required = true)]
    log: Vec<PathBuf>,
    /// How the log is written
    #[arg(long, value_enum, default_value_t = Kind::Auto)]
    format: Kind,
    /// The layout of a line, as nginx's log_format or Apache's LogFormat has it
    #[arg(long, conflicts_with_all = ["format", "map"])]
    layout: Option<String>,
    /// Which field is what: time, status, took, upstream, upstream-status, upstream-took, host, path, error or retry-after; for JSON a name or a
    /// JSON Pointer, for CSV a name or a number. Others go by well-known names
    #[arg(long, value_name = "ROLE=FIELD[:UNIT]", value_parser = mapping)]
    map: Vec<Mapping>,
    /// What separates the values of CSV
    #[arg(long, value_name = "CHARACTER", default_value = ",", value_parser = delimiter)]
    delimiter: u8,
    /// What makes a circuit: upstream, host, path, path:2 (its first two parts) or all. Default: the first of these three that the log has
    #[arg(long, value_parser = by)]
    by: Option<By>,
    /// Replay this circuit only; may be given several times
    #[arg(long, value_name = "KEY")]
    circuit: Vec<String>,
    /// The most circuits; calls of further ones are counted and left out
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    max_circuits: u32,
    /// Statuses that are failures, such as 503, 500-504, 5xx, and none where there was no answer. A call with an error is a failure too
    #[arg(long, value_name = "STATUSES", default_value = "5xx,none", value_parser = statuses)]
    failures: Statuses,
    /// Statuses that say nothing about what was called. nginx writes 499 where the client went away
    #[arg(long, value_name = "STATUSES", default_value = "499", value_parser = statuses)]
    ignored: Statuses,
    /// Whether a line's time is that of the call's end or of its beginning. Default: the end, but with Apache's %t the beginning
    #[arg(long, value_enum)]
    time_is: Option<TimeIs>,
    /// No call takes longer than this. Lines wait so long for others whose calls began earlier
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = argument)]
    longest: u64,
    /// How often policies that count in cool-down cycles get one. The default is the interval of Brighter's sweeper
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = argument)]
    cool_down_every: u64,
    /// What jitter is drawn from
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Draw error rate and state over time, as SVG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    /// How many circuits are shown and drawn, those with the most failures first. JSON has all
    #[arg(long, value_name = "N", default_value_t = 8)]
    top: usize,
    #[command(flatten)]
    loading: Loading,
}

/// Whose time a line has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TimeIs {
    Begin,
    End,
}

/// What the report is made of, beside what came of the replay.
#[derive(Debug)]
pub(super) struct Made<'a> {
    pub(super) logs: String,
    pub(super) candidates: &'a [Candidate],
    pub(super) failures: &'a Statuses,
    pub(super) ignored: &'a Statuses,
    pub(super) top: usize,
}

/// Replays a log and prints what came of it.
///
/// # Errors
///
/// When the log or a policy cannot be read, settings do not fit, or the plot cannot be written.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let candidates = arguments
        .policies
        .iter()
        .map(|policy| Candidate::find(policy, &arguments.loading))
        .collect::<Result<Vec<_>>>()?;
    let lanes = candidates
        .iter()
        .map(|candidate| {
            let circuits = usize::try_from(arguments.max_circuits).unwrap_or(usize::MAX);
            let lane = Lane::start(candidate, arguments.seed, circuits, 0)?;
            Ok(lane.cool_down_every(arguments.cool_down_every))
        })
        .collect::<Result<Vec<_>>>()?;
    let plan = plan(arguments)?;
    let standard_input = arguments
        .log
        .iter()
        .filter(|path| path.as_os_str() == "-")
        .count();
    if standard_input > 1 {
        bail!("--log - is given {standard_input} times; standard input can be read once");
    }
    let replayed = replay(Lines::open(&arguments.log)?, plan, lanes)?;
    show(arguments, &candidates, &replayed)?;
    Ok(ExitCode::SUCCESS)
}

fn plan(arguments: &Arguments) -> Result<Plan> {
    let names = Names::new(arguments.map.clone());
    let format = match &arguments.layout {
        Some(layout) => Some(Format::described(layout).map_err(|problem| anyhow!("--layout: {problem}"))?),
        None => Format::new(arguments.format, names.clone(), arguments.delimiter)
            .map_err(|problem| anyhow!(problem))?,
    };
    Ok(Plan {
        format,
        names,
        reading: Reading::new(
            arguments.by.unwrap_or(By::All),
            arguments.failures.clone(),
            arguments.ignored.clone(),
            arguments.time_is.map(|time_is| time_is == TimeIs::Begin),
        ),
        find_by: arguments.by.is_none(),
        only: arguments.circuit.iter().cloned().collect(),
        max_circuits: usize::try_from(arguments.max_circuits).unwrap_or(usize::MAX),
        longest: arguments.longest,
    })
}

fn show(arguments: &Arguments, candidates: &[Candidate], replayed: &Replayed) -> Result<()> {
    let made = Made {
        logs: names(&arguments.log),
        candidates,
        failures: &arguments.failures,
        ignored: &arguments.ignored,
        top: arguments.top,
    };
    if let Some(path) = &arguments.plot {
        picture::of(&made, replayed).write(path)?;
    }
    if arguments.json {
        terminal::say(&format!("{:#}", json::of(&made, replayed)));
    } else {
        terminal::say(&report::of(&made, replayed));
        if let Some(path) = &arguments.plot {
            terminal::say(&format!("plot: {}", path.display()));
        }
    }
    Ok(())
}

fn names(logs: &[PathBuf]) -> String {
    match logs {
        [one] if one.as_os_str() == "-" => "standard input".into(),
        [one] => one.display().to_string(),
        several => format!("{} logs", several.len()),
    }
}

fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        [byte] if byte.is_ascii() && *byte != b'"' => Ok(*byte),
        b"\\t" => Ok(b'\t'),
        _ => Err("one character of ASCII, no quote; \\t is a tab".into()),
    }
}
