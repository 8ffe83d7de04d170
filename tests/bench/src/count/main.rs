//! Counts the instructions of guarded calls with callgrind, and holds them against those that were counted before.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use crate::callgrind::instructions;
use crate::counts::{Counts, Verdict};
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
    #[arg(long, hide = true)]
    run: Option<Path>,
    /// How many of them
    #[arg(long, hide = true, default_value_t = 0)]
    calls: u64,
}

fn main() -> Result<ExitCode> {
    let options = Options::parse();
    if let Some(path) = options.run {
        path.run(options.calls)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut counted = Counts::default();
    for path in Path::ALL {
        counted.insert(path.name(), instructions(path)?);
    }
    if options.renew {
        counted.write(&options.counts)?;
        println!("{counted}");
        return Ok(ExitCode::SUCCESS);
    }
    let verdict = counted.against(&Counts::read(&options.counts)?);
    println!("{verdict}");
    Ok(match verdict {
        Verdict { failed: true, .. } => ExitCode::FAILURE,
        Verdict { failed: false, .. } => ExitCode::SUCCESS,
    })
}
