//! From nothing to the first admitted call, in a process of its own.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use tripwit::{Breakers, Clock, Policy, SystemClock};
use tripwit_bench::{metrics, work};

use crate::results::{Results, Row, Spread};
use crate::runner::Effort;
use crate::subject::Subject;

/// The option with which this program is that process.
pub(crate) const OPTION: &str = "--cold-start";

/// Several processes, one after the other. The first one compiles, and fills the cache for the others.
pub(crate) fn measure(results: &mut Results, effort: Effort) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let cache = folder.path().join("cache");
    results.figure(
        "cold start, component compiled",
        once(&cache)? / MILLISECOND,
        "ms",
    );
    let starts = (0..effort.of(40, 10)).map(|_| once(&cache));
    results.rows.push(Row {
        name: NAME.to_owned(),
        subject: Subject::Tripwit,
        threads: 1,
        policy: "consecutive".to_owned(),
        time: Spread::of(starts.collect::<Result<_>>()?),
        ratio: None,
    });
    Ok(())
}

/// The name of the row.
pub(crate) const NAME: &str = "cold start, component in the cache";

/// Nanoseconds in a millisecond.
pub(crate) const MILLISECOND: f64 = 1e6;

/// One process, which prints its nanoseconds.
fn once(cache: &Path) -> Result<f64> {
    let program = std::env::current_exe()?;
    let run = Command::new(program).arg(OPTION).arg(cache).output()?;
    ensure!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let printed = String::from_utf8(run.stdout)?;
    printed
        .trim()
        .parse()
        .with_context(|| format!("{printed:?} is no number"))
}

/// What that process does, from its first line on. Gives the nanoseconds that it took.
///
/// # Errors
///
/// When the call is not admitted.
pub(crate) fn start(cache: &Path) -> Result<u64> {
    let start = SystemClock.monotonic();
    let policy = Policy::loader().cache(cache)?.consecutive()?;
    let breakers = Breakers::builder(policy).telemetry(metrics()).build()?;
    breakers.breaker("orders")?.call_blocking(|| work(1))?;
    Ok(SystemClock.monotonic() - start)
}
