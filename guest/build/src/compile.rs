//! Compiles policy crates to core modules that hold nothing of the folder they were built in.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};

const TARGET: &str = "wasm32-unknown-unknown";
const PROFILE: &str = "component";

/// Components that are made alike.
pub(crate) struct Group {
    /// The folder with a crate for each, of the component's name.
    pub(crate) sources: &'static str,
    /// The folder where they are committed.
    pub(crate) built: &'static str,
    /// The most bytes one may have.
    pub(crate) max_size: usize,
}

/// Builds every crate of a group. Returns name and core module, in the order of names.
pub(crate) fn modules(root: &Path, group: &Group) -> Result<Vec<(String, Vec<u8>)>> {
    let crates = crates(&root.join(group.sources))?;
    if crates.is_empty() {
        return Ok(Vec::new());
    }
    let target = target_folder(root);
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .args([
            "build",
            "--quiet",
            "--locked",
            "--target",
            TARGET,
            "--profile",
            PROFILE,
            "--target-dir",
        ])
        .arg(&target);
    for (_, package) in &crates {
        cargo.args(["--package", package]);
    }
    let status = cargo
        .current_dir(root)
        .env_remove("RUSTFLAGS")
        .env("CARGO_ENCODED_RUSTFLAGS", remapped_paths(root)?.join("\u{1f}"))
        .status()
        .context("cannot run cargo")?;
    if !status.success() {
        bail!(
            "{} did not build; if it is for want of the target, run `rustup target add {TARGET}` in {}",
            group.sources,
            root.display()
        );
    }
    crates
        .into_iter()
        .map(|(name, package)| {
            let module = target
                .join(TARGET)
                .join(PROFILE)
                .join(format!("{}.wasm", package.replace('-', "_")));
            let bytes = fs::read(&module).with_context(|| format!("cannot read {}", module.display()))?;
            Ok((name, bytes))
        })
        .collect()
}

/// Folder name and package name of every crate below a folder.
fn crates(folder: &Path) -> Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        let Ok(manifest) = fs::read_to_string(path.join("Cargo.toml")) else {
            continue;
        };
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .context("a folder without a readable name")?;
        let package = manifest
            .lines()
            .find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'))
            .with_context(|| format!("no package name in {}/Cargo.toml", path.display()))?;
        found.push((name.to_owned(), package.to_owned()));
    }
    found.sort();
    Ok(found)
}

fn target_folder(root: &Path) -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

/// Compiler flags that write every path of this machine as the same everywhere.
fn remapped_paths(root: &Path) -> Result<Vec<String>> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo_home = home
        .or_else(|| env::home_dir().map(|home| home.join(".cargo")))
        .context("no home folder")?;
    let remap = |from: &Path, to: &str| -> Result<String> {
        let from = from.to_str().context("a folder whose name is not Unicode")?;
        ensure!(
            !from.contains('='),
            "the folder {from} has an equals sign in its name, which the compiler cannot remap"
        );
        Ok(format!("--remap-path-prefix={from}={to}"))
    };
    Ok(vec![remap(&cargo_home, "/cargo")?, remap(root, "/tripwit")?])
}
