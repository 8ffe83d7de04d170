//! Where it was measured, and with which versions.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};
use serde::Serialize;

/// The machine, the tools and the date.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Machine {
    pub(crate) processor: String,
    pub(crate) threads: usize,
    pub(crate) kernel: String,
    pub(crate) rust: String,
    pub(crate) date: String,
    /// Crates and their versions.
    pub(crate) versions: Vec<(String, String)>,
}

impl Machine {
    /// This one, today.
    pub(crate) fn here() -> Result<Self> {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = cpuinfo
            .lines()
            .find_map(|line| line.strip_prefix("model name")?.split_once(':'));
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let rust = Command::new("rustc").arg("--version").output();
        let rust = rust.map(|run| String::from_utf8_lossy(&run.stdout).trim().to_owned());
        Ok(Self {
            processor: model.map_or("unknown", |(_, model)| model.trim()).to_owned(),
            threads: std::thread::available_parallelism()?.get(),
            // What comes after its version says who built it.
            kernel: kernel.trim().split('-').next().unwrap_or_default().to_owned(),
            rust: rust.unwrap_or_else(|_| "unknown".to_owned()),
            date: jiff::Timestamp::now().strftime("%Y-%m-%d").to_string(),
            versions: SHOWN
                .iter()
                .map(|name| ((*name).to_owned(), version(LOCK, name)))
                .collect(),
        })
    }
}

/// The bytes of memory that this process has in use.
///
/// # Errors
///
/// On systems that do not say.
pub(crate) fn resident() -> Result<usize> {
    let status =
        fs::read_to_string("/proc/self/status").context("only Linux says what a process has in use")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next());
    Ok(kib.context("no VmRSS in /proc/self/status")?.parse::<usize>()? * 1024)
}

/// Whose versions matter.
const SHOWN: [&str; 7] = [
    "tripwit",
    "wasmtime",
    "recloser",
    "failsafe",
    "tower-resilience-circuitbreaker",
    "tokio",
    "tower",
];

/// What this program was built with.
const LOCK: &str = include_str!("../../../../Cargo.lock");

fn version(lock: &str, name: &str) -> String {
    let mut lines = lock
        .lines()
        .skip_while(|line| *line != format!("name = \"{name}\""));
    let version = lines.nth(1).and_then(|line| line.strip_prefix("version = "));
    version.unwrap_or("unknown").trim_matches('"').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_is_found() {
        for name in SHOWN {
            let found = version(LOCK, name);
            assert!(
                found.starts_with(|first: char| first.is_ascii_digit()),
                "{name} {found}"
            );
        }
        assert_eq!(version(LOCK, "no-such-crate"), "unknown");
    }
}
