//! Exchanges the policy of a circuit while calls go through it: a file dropped into a watched folder does it.
//!
//! Eight callers on several threads call an HTTP server on this machine that fails and recovers, behind a circuit of the policy
//! `consecutive`. While the circuit is open, the component `window.wasm` is dropped in, and decides from then on; then files that
//! are no good, which change nothing; then `consecutive.wasm` again. At the end the books of the callers, the server and the
//! breaker are held against each other: no call may be lost, and none may have gone through an open circuit.

mod clock;
mod dependency;
mod folder;
mod history;
mod load;
mod numbers;
mod report;
mod script;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser;
use tokio::runtime;
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::Instant;
use tripwit::{Breakers, Digest, Policy, Watch};
use tripwit_examples::arguments;
use tripwit_examples::scale::Scale;
use tripwit_examples::terminal::{self, GOOD};
use tripwit_examples::transitions::Transitions;

use crate::clock::SteadyClock;
use crate::dependency::Dependency;
use crate::folder::{Folder, look_again_and_again};
use crate::history::History;
use crate::load::Load;
use crate::numbers::Numbers;
use crate::report::Facts;
use crate::script::{CONSECUTIVE, Script, WINDOW};

/// The circuit's key.
const KEY: &str = "inventory";
/// How long the dependency thinks about a request, and a caller rests after one. Real time.
const THINKING: Duration = Duration::from_millis(150);
const RESTING: Duration = Duration::from_millis(150);
/// Real seconds between two looks at the folder.
const LOOK_SECS: u64 = 1;
/// By how much more than the usual deadline a run may take on a busy machine: policies are compiled in it.
const PATIENCE: u32 = 3;
/// How long the last calls may take.
const LAST_CALLS: Duration = Duration::from_secs(15);

/// Swaps the policy of a circuit under load, by dropping component files into a watched folder.
#[derive(Debug, Parser)]
#[command(
    name = "swap",
    after_help = "\
Examples:
  cargo run --example swap                 # some five seconds
  cargo run --example swap -- --scale 1    # the real waits: two minutes

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
            problems.iter().for_each(|problem| terminal::complain(problem));
            ExitCode::FAILURE
        }
        Err(error) => {
            terminal::complain(&format!("swap failed: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Runs on threads of its own, and answers with what did not come out as promised.
fn run(scale: Scale) -> anyhow::Result<Vec<String>> {
    let runtime = runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .enable_all()
        .build()
        .context("no threads to run on")?;
    runtime.block_on(swap_under_load(scale))
}

async fn swap_under_load(scale: Scale) -> anyhow::Result<Vec<String>> {
    let deadline = Instant::now() + PATIENCE * scale.deadline();
    let clock = SteadyClock::new();
    let numbers = Numbers::new();
    let breakers = Breakers::builder(Policy::consecutive()?)
        .settings(script::consecutive(scale))
        .clock(clock)
        .telemetry(numbers.telemetry())
        .build()?;
    let transitions = Transitions::install()?;
    transitions.follow(&breakers);
    let history = Arc::new(History::new(clock));
    let observer = Arc::clone(&history);
    let _observing = breakers.subscribe(move |event| observer.observe(event));

    let folder = Folder::new()?;
    let watch = Watch::new(&breakers, folder.watched()).allow([CONSECUTIVE, WINDOW].map(Digest::of));
    let (told, looks) = unbounded_channel();
    let looking = tokio::spawn(look_again_and_again(watch, scale.secs(LOOK_SECS), clock, told));

    let dependency = Dependency::start(scale.wait(THINKING)).await?;
    let breaker = breakers.breaker(KEY)?;
    let load = Load::start(breaker.clone(), clock, dependency.url(), scale.wait(RESTING))?;

    let script = Script {
        scale,
        folder: &folder,
        dependency: &dependency,
        breakers: &breakers,
        history: &history,
        transitions: &transitions,
        looks,
        swaps: Vec::new(),
        problems: Vec::new(),
    };
    let (swaps, mut problems) = script.play(deadline).await;
    let (begun, calls) = load.stop(Instant::now() + LAST_CALLS).await?;
    looking.await.context("the watching ended early")??;

    let status = breaker.status();
    let facts = Facts {
        begun,
        calls,
        moves: history.moves(),
        swaps,
        requests: dependency.requests(),
        numbers: numbers.totals()?,
        late: status.stale_results,
        probes: status.counts.probes_in_flight,
    };
    facts.print();
    problems.extend(facts.problems());
    problems.extend(
        transitions
            .incomplete()
            .iter()
            .map(|key| format!("{key}: a transition came without its log line or its span")),
    );
    Ok(problems)
}
