//! Runs this program under callgrind.

use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::path::Path;

/// So many calls, and twice as many: the difference is what they take, and what comes before them cancels out.
const CALLS: u64 = 50_000;

/// How many instructions a call on this path takes.
///
/// # Errors
///
/// When valgrind is not there, or does not count.
pub(crate) fn instructions(path: Path) -> Result<f64> {
    let once = total(path, CALLS)?;
    let twice = total(path, 2 * CALLS)?;
    ensure!(
        twice > once,
        "{}: more calls take no more instructions",
        path.name()
    );
    Ok((twice - once) as f64 / CALLS as f64)
}

/// All instructions of a process that makes so many calls.
fn total(path: Path, calls: u64) -> Result<u64> {
    let folder = tempfile::tempdir()?;
    let counted = folder.path().join("callgrind.out");
    let run = Command::new("valgrind")
        .arg("--tool=callgrind")
        .arg(format!("--callgrind-out-file={}", counted.display()))
        .arg(std::env::current_exe()?)
        .args(["--run", path.name(), "--calls", &calls.to_string()])
        .output()
        .context("valgrind does not start: install it, or run .ci/run counts, which does")?;
    ensure!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let counted = std::fs::read_to_string(counted)?;
    total_of(&counted).with_context(|| format!("no total in what callgrind wrote about {}", path.name()))
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
