//! What the tests share.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::cargo::cargo_bin_cmd;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;
use tempfile::TempDir;

/// A folder that goes when this is dropped, and files in it.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Writes a file and gives its path.
    pub(crate) fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn root(&self) -> &Path {
        self.0.path()
    }
}

/// Runs `tripwit replay`.
pub(crate) fn replay(arguments: &[&str]) -> Output {
    cargo_bin_cmd!("tripwit")
        .arg("replay")
        .args(arguments)
        .output()
        .unwrap()
}

/// Runs `tripwit replay` with this on its standard input.
pub(crate) fn replay_standard_input(bytes: impl Into<Vec<u8>>, arguments: &[&str]) -> Output {
    cargo_bin_cmd!("tripwit")
        .arg("replay")
        .args(arguments)
        .write_stdin(bytes)
        .output()
        .unwrap()
}

/// The report of a run that went well.
pub(crate) fn json(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// One circuit of a report under its first policy.
pub(crate) fn circuit<'a>(report: &'a Value, key: &str) -> &'a Value {
    let circuits = report["circuits"].as_array().unwrap();
    let found = circuits.iter().find(|circuit| circuit["circuit"] == key);
    found.unwrap_or_else(|| panic!("no circuit {key} in {report:#}"))
}

/// Each part compressed, one after the other.
pub(crate) fn gzip(parts: &[&str]) -> Vec<u8> {
    parts
        .iter()
        .flat_map(|part| {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(part.as_bytes()).unwrap();
            encoder.finish().unwrap()
        })
        .collect()
}
