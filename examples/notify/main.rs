//! Guards the calls of a notification service: email, sms, push, whatsapp and webhooks, each behind circuits with settings of
//! their own, and Slack without.
//!
//! Everything runs for real on this machine: the providers are HTTP servers that fail, hang and recover by the time line in
//! `script.rs`. Each transition of a circuit is printed as it happens, with its log line and its span.

mod attempt;
mod channels;
mod check;
mod deliveries;
mod http;
mod ledger;
mod providers;
mod report;
mod script;
mod sender;
mod state;
mod webhook;
mod world;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser;
use tokio::runtime;
use tokio::time::{Instant, timeout_at};
use tripwit::Breakers;
use tripwit_examples::arguments;
use tripwit_examples::scale::Scale;
use tripwit_examples::terminal::{self, GOOD};

use crate::state::Kept;
use crate::world::World;

/// What the report and the end of the process may take of the time there is.
const SPARE: Duration = Duration::from_secs(1);

/// How many problems are printed, so that one cause of many does not fill the screen.
const MOST_PROBLEMS: usize = 12;

/// Delivers notifications over HTTP to providers that fail, hang and recover, through circuit breakers.
#[derive(Debug, Parser)]
#[command(
    name = "notify",
    after_help = "\
Examples:
  cargo run --example notify                 # seven seconds
  cargo run --example notify -- --scale 1    # the real waits and time-outs: four minutes
  cargo run --example notify -- --state notify.json
                                             # end it with Ctrl-C or kill -9: the next run goes on with what was open

Exit code: 0 when every promise was kept, 1 when one was not, 2 for bad arguments or a state file that cannot be used."
)]
struct Arguments {
    #[command(flatten)]
    scale: Scale,
    /// Keeps the circuits in this file: restored at the start, if it is there, and saved after every transition
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
}

fn main() -> ExitCode {
    let arguments = match arguments::parse::<Arguments>() {
        Ok(arguments) => arguments,
        Err(code) => return code,
    };
    terminal::say(&format!("{}\n", arguments.scale));
    // First of all: it compiles the policy, and the time line should not wait for that.
    let breakers = match channels::breakers(arguments.scale) {
        Ok(breakers) => breakers,
        Err(error) => return failed(&error),
    };
    let kept = match keep(&arguments, &breakers) {
        Ok(kept) => kept,
        Err(error) => {
            terminal::complain(&format!("{error:#}"));
            return ExitCode::from(2);
        }
    };
    match run(arguments.scale, breakers, kept.as_ref()) {
        Ok(problems) if problems.is_empty() => {
            terminal::say(&terminal::paint(GOOD, "All as promised."));
            ExitCode::SUCCESS
        }
        Ok(problems) => {
            problems
                .iter()
                .take(MOST_PROBLEMS)
                .for_each(|problem| terminal::complain(problem));
            if let Some(more) = problems.len().checked_sub(MOST_PROBLEMS).filter(|more| *more > 0) {
                terminal::complain(&format!("and {more} more"));
            }
            ExitCode::FAILURE
        }
        Err(error) => failed(&error),
    }
}

fn failed(error: &anyhow::Error) -> ExitCode {
    terminal::complain(&format!("notify failed: {error:#}"));
    ExitCode::FAILURE
}

/// Restores the circuits, and says so, where there is a file for them.
fn keep(arguments: &Arguments, breakers: &Breakers) -> anyhow::Result<Option<Kept>> {
    let Some(path) = &arguments.state else {
        return Ok(None);
    };
    let kept = Kept::start(path, breakers, channels::longest_wait(arguments.scale))?;
    terminal::say(&format!("{kept}\n"));
    Ok(Some(kept))
}

/// Runs, reports, and answers with what did not come out as promised.
fn run(scale: Scale, breakers: Breakers, kept: Option<&Kept>) -> anyhow::Result<Vec<String>> {
    let runtime = runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("no threads to run on")?;
    runtime.block_on(async {
        let deadline = Instant::now() + scale.deadline() - SPARE;
        let left_open = kept.iter().flat_map(|kept| kept.open_circuits());
        let world = World::start(scale, breakers, left_open).await?;
        let in_time = timeout_at(deadline, world.run()).await;
        report::print(&world);
        let mut problems = check::problems(&world)?;
        problems.extend(kept.and_then(Kept::failure));
        match in_time {
            Ok(ended) => ended?,
            Err(_) => problems.insert(0, format!("not over within {:?}", scale.deadline())),
        }
        Ok(problems)
    })
}
