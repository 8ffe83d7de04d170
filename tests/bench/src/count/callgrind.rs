//! Runs this program under callgrind.

use std::path::Path as File;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use tripwit_bench::Inputs;

use crate::path::{COUNTED, Path};

/// So many calls are counted.
const CALLS: u64 = 50 * Inputs::PERIOD;

/// How many instructions a call on this path takes. The component is taken from the cache: under callgrind it would be compiled for
/// minutes.
///
/// # Errors
///
/// When valgrind is not there, or does not count.
pub(crate) fn instructions(path: Path, cache: &File) -> Result<u64> {
    let folder = tempfile::tempdir()?;
    let counted = folder.path().join("callgrind.out");
    let run = Command::new("valgrind")
        .arg("--tool=callgrind")
        .arg(format!("--callgrind-out-file={}", counted.display()))
        .arg(format!("--toggle-collect={COUNTED}"))
        .arg(std::env::current_exe()?)
        .args(["--run", path.name(), "--calls", &CALLS.to_string(), "--cache"])
        .arg(cache)
        .output()
        .context("valgrind does not start: install it, or run .ci/run counts, which does")?;
    ensure!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let counted = std::fs::read_to_string(counted)?;
    let total = total_of(&counted)
        .with_context(|| format!("no total in what callgrind wrote about {}", path.name()))?;
    ensure!(total > 0, "callgrind saw nothing of {COUNTED}");
    Ok(total / CALLS)
}

/// The sum in callgrind's file.
fn total_of(counted: &str) -> Option<u64> {
    let line = |name| counted.lines().find_map(|line| line.strip_prefix(name));
    line("totals:").or_else(|| line("summary:"))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_found() {
        assert_eq!(
            total_of("version: 1\nsummary: 12\nfn=(1) main\n+1 3\ntotals: 34\n"),
            Some(34)
        );
        assert_eq!(total_of("version: 1\nsummary: 12\n"), Some(12));
        assert_eq!(total_of("version: 1\n"), None);
    }
}
