//! The subcommand.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow};
use clap::Args;

use super::play::{START, play};
use super::report::Simulated;
use super::script::script;
use crate::candidate::Candidate;
use crate::load::Loading;
use crate::terminal;
use crate::timeline::Lane;

/// The longest script, in bytes.
const LONGEST: u64 = 1 << 20;

/// Shows what a policy does, given a script of how calls end.
///
/// Nothing is called and no time passes: the clock goes by the script. One circuit is simulated.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tripwit simulate consecutive 'ok x20; fail x5; wait 30s; ok x2'
  tripwit simulate 'consecutive@{\"retry_after_max\": \"5m\"}' 'fail x4; fail retry-after 2m; wait 1m; ok; wait 1m; ok x2'
  tripwit simulate mine.wasm@mine.json --file night.txt --plot night.svg
  tripwit simulate outbox 'fail; cool-down x11' --json | jq '.timeline[].transitions[]'

Steps, separated by semicolons or line ends (# begins a comment):
  ok, fail, timeout, ignored   a call is wanted, and how it ends. With it go, in any order: 120ms, how long it takes (default: no time);
                               x20, how many of them; every 1s, so long after one's beginning the next is wanted (default: at its end);
                               retry-after 30s, how long the other side asks to be left alone
  wait 30s                     time passes
  trip, trip 1m; reset         an operator opens or closes the circuit
  mode disabled                an operator sets the mode: automatic, forced-open, disabled or shadow
  cool-down x3                 cool-down cycles run, for policies that count in them

A policy is the name of a shipped one (consecutive, outbox, window) or a file, and then, if need be, `@` and its settings: a file, or JSON in braces.

Exit codes: 0 the script was played; 2 the policy or the script cannot be read, or settings do not fit.")]
pub(crate) struct Arguments {
    /// The policy
    policy: String,
    /// The script
    #[arg(required_unless_present = "file", conflicts_with = "file")]
    script: Option<String>,
    /// Read the script from a file; `-` is standard input
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// What jitter is drawn from
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Draw calls and state over time, as SVG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Print the timeline as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    loading: Loading,
}

/// Plays a script and prints what came of it.
///
/// # Errors
///
/// When the policy or the script cannot be read, settings do not fit, or the plot cannot be written.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let candidate = Candidate::find(&arguments.policy, &arguments.loading)?;
    let (name, text) = match (&arguments.file, &arguments.script) {
        (Some(path), _) => (path.display().to_string(), read(path)?),
        (None, script) => ("script".to_owned(), script.clone().unwrap_or_default()),
    };
    let steps = script(&text).map_err(|problem| anyhow!("{name}: {problem}"))?;
    let mut lane = Lane::start(&candidate, arguments.seed, 1, START)?;
    let (happened, end) = play(&mut lane, &steps)?;
    let simulated = Simulated {
        candidate: &candidate,
        steps: &steps,
        happened: &happened,
        lane: &lane,
        end,
    };
    if let Some(path) = &arguments.plot {
        simulated.plot().write(path)?;
    }
    if arguments.json {
        terminal::say(&format!("{:#}", simulated.json()));
    } else {
        terminal::say(&simulated.text());
    }
    if lane.faults() > 0 {
        terminal::complain(&format!(
            "the policy's component failed {} times: what is shown is not what it decides",
            lane.faults()
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path) -> Result<String> {
    let what = || format!("cannot read the script {}", path.display());
    let mut text = String::new();
    let reader: Box<dyn Read> = if path == Path::new("-") {
        Box::new(io::stdin())
    } else {
        Box::new(std::fs::File::open(path).with_context(what)?)
    };
    reader
        .take(LONGEST + 1)
        .read_to_string(&mut text)
        .with_context(what)?;
    if text.len() as u64 > LONGEST {
        return Err(anyhow!("it is longer than {LONGEST} bytes").context(what()));
    }
    Ok(text)
}
