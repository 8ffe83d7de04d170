//! `cargo components`: builds every component reproducibly and checks it.

mod compile;
mod component;
mod readme;

use std::{fs, path::Path, process::ExitCode};

use anyhow::{Context, Result, bail};
use clap::Parser;

use compile::Group;

/// Builds the components from their crates and writes them, with their digests, to where they are committed.
///
/// Every component is checked: what it imports, and its size. The settings tables of README.md are written anew too.
#[derive(Parser)]
#[command(
    name = "cargo components",
    after_help = "Examples:\n  cargo components          build, check and write\n  cargo components --check  fail where the committed files differ from a fresh build"
)]
struct Arguments {
    /// Write nothing; fail where what is committed differs from a fresh build.
    #[arg(long)]
    check: bool,
}

/// Every place where components are made.
const GROUPS: [Group; 2] = [
    Group {
        sources: "guest/policies",
        built: "host/sdk/components",
        max_size: 160 * 1024,
    },
    Group {
        sources: "tests/guests",
        built: "tests/guests/built",
        max_size: 256 * 1024,
    },
];

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .context("no workspace above guest/build")?;
    let mut stale = Vec::new();
    for group in &GROUPS {
        let mut digests = String::new();
        for (name, module) in compile::modules(root, group)? {
            let bytes = component::encode(&module).with_context(|| format!("component {name}"))?;
            component::check(&bytes, group.max_size).with_context(|| format!("component {name}"))?;
            let digest = component::digest(&bytes);
            println!(
                "{name:<16} {:>7} bytes of {}  sha256:{digest}",
                bytes.len(),
                group.max_size
            );
            digests += &format!("{digest}  {name}.wasm\n");
            keep(
                root,
                &format!("{}/{name}.wasm", group.built),
                &bytes,
                arguments.check,
                &mut stale,
            )?;
        }
        keep(
            root,
            &format!("{}/SHA256SUMS", group.built),
            digests.as_bytes(),
            arguments.check,
            &mut stale,
        )?;
    }
    let readme = fs::read_to_string(root.join("README.md")).context("README.md")?;
    keep(
        root,
        "README.md",
        readme::with_settings(&readme)?.as_bytes(),
        arguments.check,
        &mut stale,
    )?;
    if !stale.is_empty() {
        bail!(
            "not as a fresh build makes them: {}; run `cargo components` and commit what it writes",
            stale.join(", ")
        );
    }
    Ok(())
}

/// Writes a file, or notes that it differs.
fn keep(root: &Path, file: &str, bytes: &[u8], check: bool, stale: &mut Vec<String>) -> Result<()> {
    let path = root.join(file);
    if fs::read(&path).is_ok_and(|committed| committed == bytes) {
        return Ok(());
    }
    if check {
        stale.push(file.to_owned());
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))
}
