//! The results as a page of the repository.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::{reasons, table};
use crate::machine::Machine;
use crate::results::Results;
use crate::targets::Target;

/// Writes the page. The plot is beside it, where there is one.
///
/// # Errors
///
/// When the file cannot be written.
pub(crate) fn write(
    path: &Path,
    plot: Option<&Path>,
    machine: &Machine,
    results: &Results,
    targets: &[Target],
) -> Result<()> {
    let mut page = String::new();
    page += INTRODUCTION;
    writeln!(page, "\n{}", about(machine))?;
    if let Some(plot) = plot.and_then(|plot| plot.file_name()) {
        writeln!(page, "\n![Nanoseconds a call, by subject]({})", plot.display())?;
    }
    let met = targets.iter().filter(|target| target.is_met()).count();
    writeln!(page, "\n## Targets\n\n{met} of {} are met.\n", targets.len())?;
    writeln!(page, "{}\n", table::targets(targets))?;
    for (what, why) in reasons::of(targets) {
        writeln!(page, "- {what}...: {why}")?;
    }
    for (name, rows) in results.by_name() {
        writeln!(page, "\n## {}\n\n{}", capitalised(name), table::rows(rows))?;
    }
    writeln!(page, "\n## Other figures\n\n{}", table::figures(&results.figures))?;
    fs::write(path, page).with_context(|| format!("cannot write {}", path.display()))
}

fn about(machine: &Machine) -> String {
    let versions: Vec<_> = machine
        .versions
        .iter()
        .map(|(name, version)| format!("{name} {version}"))
        .collect();
    format!(
        "Measured on {} ({}, {} threads, Linux {}) with {}: {}.",
        machine.date,
        machine.processor,
        machine.threads,
        machine.kernel,
        machine.rust,
        versions.join(", ")
    )
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

const INTRODUCTION: &str = "\
# Benchmarks

What a guarded call costs, beside other breakers for Rust. This page and its plot are written by a program:

```sh
cargo run --release -p tripwit-bench -- --markdown BENCHMARKS.md --plot BENCHMARKS.svg
```

It builds the WebAssembly runtime for release, which takes four to twelve minutes once, and then measures for two minutes; the machine should have nothing else
to do. `--quick` is over in ten seconds and coarser, `--only TEXT` measures some of it, `--json FILE` is for programs.

How it measures: all subjects of a table run in turns, in one process, for some milliseconds each, again and again, so what slows the machine down
slows all of them down. Shown are the median of the nanoseconds a call and the quartiles about it; on two threads the slower one counts. The bare call
is a function of a few nanoseconds that is never inlined, and every other row makes it too, unless it is rejected. A round whose last call
ends as it should not ends the measurement. Tripwit runs with metrics on. A window by time is 10 ms long: tower-resilience goes through every call of its window at each call, so the shorter the window, the better it does.
A reading of the clock is one of the operating system's (`std::time::Instant`), which is what the others read where they read one; Tripwit's own, by the processor's
counter where Linux goes by it too, is shown beside it.
Memory: the host's part is what it asks its allocator for, the component's part is by how much the memory of instances grows that hold as many circuits.
Cold start: a process of its own for each sample, from the first line of its `main` to the end of the first call. Swap: two threads call circuits at random every hundred
microseconds or so, one call of ten fails; calls that a wait kept from being made count as having waited too.
";
