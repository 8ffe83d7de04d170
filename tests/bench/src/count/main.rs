//! Counts the instructions of guarded calls with callgrind, and holds them against those that were counted before.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use tripwit::Policy;

use crate::callgrind::instructions;
use crate::counts::Counts;
use crate::path::Path;

mod callgrind;
mod counts;
mod path;

/// Counts the instructions that a call takes on each path, with valgrind's callgrind, and fails where there are a tenth more
/// of them than are written down.
#[derive(Debug, Parser)]
struct Options {
    /// Write the counts down instead
    #[arg(long)]
    renew: bool,
    /// Where they are written down
    #[arg(long, value_name = "FILE", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/instructions.json"))]
    counts: PathBuf,
    /// Be the program that is counted, and make calls on this path
    #[arg(long, hide = true, requires = "cache")]
    run: Option<Path>,
    /// How many of them
    #[arg(long, hide = true, default_value_t = 0)]
    calls: u64,
    /// Where the component is, compiled
    #[arg(long, hide = true)]
    cache: Option<PathBuf>,
}

fn main() -> Result<ExitCode> {
    let options = Options::parse();
    if let (Some(path), Some(cache)) = (options.run, options.cache) {
        path.run(Policy::loader().cache(cache)?.consecutive()?, options.calls)?;
        return Ok(ExitCode::SUCCESS);
    }
    let folder = tempfile::tempdir()?;
    let cache = folder.path().join("cache");
    Policy::loader().cache(&cache)?.consecutive()?;
    let mut counted = Counts::default();
    for path in Path::ALL {
        counted.insert(path.name(), instructions(path, &cache)?);
    }
    if options.renew {
        counted.write(&options.counts)?;
        println!("{counted}");
        return Ok(ExitCode::SUCCESS);
    }
    let verdict = counted.against(&Counts::read(&options.counts)?);
    println!("{verdict}");
    Ok(if verdict.failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}
