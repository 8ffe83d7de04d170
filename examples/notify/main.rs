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
mod webhook;
mod world;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser;
use tokio::runtime;
use tokio::time::{Instant, timeout_at};
use tripwit_examples::arguments;
use tripwit_examples::scale::Scale;
use tripwit_examples::terminal::{self, GOOD};

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

Exit code: 0 when every promise was kept, 1 when one was not, 2 for bad arguments."
)]
struct Arguments {
    #[command(flatten)]
    scale: Scale,
}

fn main() -> ExitCode {
    let scale = match arguments::parse::<Arguments>() {
        Ok(arguments) => arguments.scale,
        Err(code) => return code,
    };
    terminal::say(&format!("{scale}\n"));
    match run(scale) {
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
        Err(error) => {
            terminal::complain(&format!("notify failed: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Runs, reports, and answers with what did not come out as promised.
fn run(scale: Scale) -> anyhow::Result<Vec<String>> {
    let runtime = runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("no threads to run on")?;
    runtime.block_on(async {
        let deadline = Instant::now() + scale.deadline() - SPARE;
        let world = World::start(scale).await?;
        let in_time = timeout_at(deadline, world.run()).await;
        report::print(&world);
        let mut problems = check::problems(&world)?;
        match in_time {
            Ok(ended) => ended?,
            Err(_) => problems.insert(0, format!("not over within {:?}", scale.deadline())),
        }
        Ok(problems)
    })
}
