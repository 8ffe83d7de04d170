//! The results as JSON.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::json;

use crate::machine::Machine;
use crate::results::Results;
use crate::targets::Target;

/// Writes one object: `machine`, `rows`, `figures`, `targets`.
///
/// # Errors
///
/// When the file cannot be written.
pub(crate) fn write(path: &Path, machine: &Machine, results: &Results, targets: &[Target]) -> Result<()> {
    let targets: Vec<_> = targets
        .iter()
        .map(|target| {
            json!({
                "target": target.what, "at_most": target.limit, "measured": target.measured,
                "unit": target.unit, "met": target.is_met(),
            })
        })
        .collect();
    let all = json!({
        "machine": machine, "rows": results.rows, "figures": results.figures, "targets": targets,
    });
    let text = serde_json::to_string_pretty(&all)? + "\n";
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
