//! Puts a policy of your own in charge, while calls go on: the second half of a run goes under a component from a file.
//!
//! Callers want a call every ten milliseconds, of a dependency that has room for every fourth. `consecutive` sees a success
//! often enough to let all of them through. Then the component is swapped in. No time passes and nothing is called: the clock is
//! stepped, so that a run comes out alike each time.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser;
use tripwit::{Breakers, CallError, ManualClock, Policy};
use tripwit_examples::{arguments, terminal};

/// How many calls are wanted under each of the two policies.
const CALLS: u32 = 2_000;
/// How long after one the next is wanted.
const APART: Duration = Duration::from_millis(10);
/// The dependency has room for one call in so many that are wanted.
const ROOM: u32 = 4;

/// Swaps a policy of your own in for `consecutive`, under calls, and counts what both let through.
#[derive(Debug, Parser)]
#[command(
    name = "own",
    after_help = "\
Examples:
  cargo run --example own -- throttle.wasm
  cargo run --example own -- throttle.wasm --settings '{\"multiplier\": 1.5}'
  cargo run --example own -- policy.wasm --interpreter

Exit code: 0 when the policy took over, 1 when it did not, 2 for bad arguments."
)]
struct Arguments {
    /// The component
    component: PathBuf,
    /// Its settings, as JSON
    #[arg(long, value_name = "JSON", default_value = "{}")]
    settings: String,
    /// The component brings an interpreter along: it gets a sandbox of WASI, and may have 16 MiB of code
    #[arg(long)]
    interpreter: bool,
}

fn main() -> ExitCode {
    arguments::run(run)
}

fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let clock = ManualClock::new();
    let breakers = Breakers::builder(Policy::consecutive()?)
        .clock(clock.clone())
        .seed(1)
        .build()?;
    let mut dependency = Dependency::default();
    Tally::of(&breakers, &clock, &mut dependency)?.print(&breakers);

    let policy = load(&arguments.component, arguments.interpreter)
        .with_context(|| arguments.component.display().to_string())?;
    breakers.swap(policy, arguments.settings.as_str())?;
    Tally::of(&breakers, &clock, &mut dependency)?.print(&breakers);
    Ok(())
}

fn load(component: &Path, interpreter: bool) -> anyhow::Result<Policy> {
    let mut loader = Policy::loader();
    if interpreter {
        loader = loader
            .wasi(true)
            .max_code_size(16 << 20)
            .max_function_size(256 << 10)
            .max_compile_time(Duration::from_secs(600));
    }
    Ok(loader.file(component)?)
}

/// What became of calls.
#[derive(Debug, Default)]
struct Tally {
    well: u32,
    badly: u32,
    rejected: BTreeMap<String, u32>,
}

impl Tally {
    /// Makes calls, as far as the policy that decides now lets them through.
    fn of(breakers: &Breakers, clock: &ManualClock, dependency: &mut Dependency) -> anyhow::Result<Self> {
        let breaker = breakers.breaker("search")?;
        let mut tally = Self::default();
        for _ in 0..CALLS {
            clock.advance(APART);
            dependency.wanted();
            match breaker.call_blocking(|| dependency.call()) {
                Ok(()) => tally.well += 1,
                Err(CallError::Rejected(rejection)) => {
                    *tally.rejected.entry(rejection.reason().to_string()).or_default() += 1;
                }
                Err(_failed) => tally.badly += 1,
            }
        }
        Ok(tally)
    }

    fn print(&self, breakers: &Breakers) {
        let (name, Self { well, badly, .. }) = (&breakers.policy().description().name.clone(), self);
        let made = well + badly;
        let rejected = if self.rejected.is_empty() {
            "none rejected".to_owned()
        } else {
            let by_reason = self
                .rejected
                .iter()
                .map(|(reason, calls)| format!("{calls} rejected ({reason})"));
            by_reason.collect::<Vec<_>>().join(", ")
        };
        terminal::say(&format!(
            "{name}: of {CALLS} calls {made} made, {well} of them well; {rejected}"
        ));
    }
}

/// Something that has room for some of the calls.
#[derive(Debug, Default)]
struct Dependency {
    wanted: u32,
    has_room: bool,
}

/// It had no room.
#[derive(Debug)]
struct Refused;

impl Dependency {
    fn wanted(&mut self) {
        self.wanted += 1;
        self.has_room |= self.wanted.is_multiple_of(ROOM);
    }

    fn call(&mut self) -> Result<(), Refused> {
        if std::mem::take(&mut self.has_room) {
            Ok(())
        } else {
            Err(Refused)
        }
    }
}
