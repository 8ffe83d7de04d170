//! Measures what a guarded call costs, beside other breakers.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use tripwit::{Clock, SystemClock};
use tripwit_bench::Counting;

use crate::machine::Machine;
use crate::report::{json, markdown, plot, table};
use crate::results::Results;
use crate::runner::Effort;

mod cases;
mod group;
mod guard;
mod machine;
mod peers;
mod report;
mod results;
mod runner;
mod subject;
mod targets;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Measures what a guarded call costs, beside other breakers for Rust, and holds it against its targets.
#[derive(Debug, Parser)]
struct Options {
    /// Measure for a shorter time, and with fewer circuits
    #[arg(long)]
    quick: bool,
    /// Measure only the cases whose name contains this
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Write the results as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write a plot as SVG
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    /// Write the results as a page, which shows the plot where there is one
    #[arg(long, value_name = "FILE.md")]
    markdown: Option<PathBuf>,
    /// Be the process whose cold start is measured, with this folder as cache
    #[arg(long, value_name = "FOLDER", hide = true)]
    cold_start: Option<PathBuf>,
}

fn main() -> Result<ExitCode> {
    let options = Options::parse();
    if let Some(cache) = options.cold_start {
        println!("{}", cases::cold_start::start(&cache)?);
        return Ok(ExitCode::SUCCESS);
    }
    let machine = Machine::here()?;
    let results = measure(&options)?;
    let mut targets = targets::targets(&results);
    if options.only.is_some() {
        targets.retain(|target| target.measured.is_some());
    }
    for (name, rows) in results.by_name() {
        println!("{name}\n{}\n", table::rows(rows));
    }
    println!(
        "{}\n\n{}",
        table::figures(&results.figures),
        table::targets(&targets)
    );
    if let Some(path) = &options.json {
        json::write(path, &machine, &results, &targets)?;
    }
    if let Some(path) = &options.plot {
        plot::write(path, &results)?;
    }
    if let Some(path) = &options.markdown {
        markdown::write(path, options.plot.as_deref(), &machine, &results, &targets)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Measures one case after the other, and says on the terminal which one.
fn measure(options: &Options) -> Result<Results> {
    let effort = if options.quick {
        Effort::QUICK
    } else {
        Effort::FULL
    };
    let is_wanted = |name: &str| {
        options
            .only
            .as_ref()
            .is_none_or(|text| name.contains(text.as_str()))
    };
    let mut results = Results::default();
    let began = SystemClock.monotonic();
    let all = cases::GROUPS.len() + cases::OWN.len();
    let say = |number: usize, name: &str| {
        let seconds = (SystemClock.monotonic() - began) / 1_000_000_000;
        eprintln!("[{number:>2} of {all}, {seconds:>3} s] {name}");
    };
    for (number, group) in (1..).zip(cases::GROUPS) {
        let group = group()?;
        if is_wanted(group.name) {
            say(number, group.name);
            let rows = runner::measure(&group, effort).with_context(|| group.name)?;
            results.rows.extend(rows);
        }
    }
    for (number, (name, measure)) in (cases::GROUPS.len() + 1..).zip(cases::OWN) {
        if is_wanted(name) {
            say(number, name);
            measure(&mut results, effort).context(name)?;
        }
    }
    Ok(results)
}
