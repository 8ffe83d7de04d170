//! The scenarios of `tests/conformance`, and `examples/node`, in Node.
//!
//! Both are copied below the target folder, beside the components, and get their packages there with `npm ci`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use anyhow::{Context, Error, Result, ensure};
use tripwit_runtimes::{Runner, copy, installed_once, repository, run, version_of};

const FOLDERS: [&str; 2] = ["examples/node", "tests/node"];

/// The folder of the copies, with their packages.
fn copies() -> Result<&'static Path> {
    static COPIES: LazyLock<Result<PathBuf, String>> =
        LazyLock::new(|| set_up().map_err(|error| format!("{error:#}")));
    COPIES.as_deref().map_err(Error::msg)
}

fn set_up() -> Result<PathBuf> {
    let remedy =
        "These tests need Node 20 or newer, with npm: https://nodejs.org, or `apt-get install nodejs npm`.";
    version_of("node", (20, 0), remedy)?;
    version_of("npm", (9, 0), remedy)?;
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("node");
    let locks = FOLDERS.map(|folder| repository().join(folder).join("package-lock.json"));
    let wanted = locks
        .iter()
        .map(fs::read_to_string)
        .collect::<Result<String, _>>()?;
    copy("host/sdk/components", &[".wasm"], &root)?;
    for folder in FOLDERS {
        copy(folder, &[".mjs", ".json"], &root)?;
    }
    installed_once(&root, &wanted, || {
        FOLDERS.iter().try_for_each(|folder| install(&root.join(folder)))
    })?;
    Ok(root)
}

fn install(folder: &Path) -> Result<()> {
    let mut command = Command::new("npm");
    command
        .args(["ci", "--no-audit", "--no-fund"])
        .current_dir(folder);
    run(&mut command).map(drop).with_context(|| {
        let folder = folder.display();
        format!("the packages cannot be installed. To see why, run: cd {folder} && npm ci")
    })
}

fn runner() -> Runner {
    Runner::new(|| {
        let mut command = Command::new("node");
        command.arg(copies()?.join("tests/node/runner.mjs"));
        Ok(command)
    })
}

#[test]
fn every_scenario_holds_in_node() -> Result<()> {
    runner().plays_every_scenario(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("transcript-node.jsonl"))
}

#[test]
fn the_runner_finds_what_is_wrong_and_says_where() -> Result<()> {
    runner().finds_what_is_wrong()
}

#[test]
fn the_runner_is_not_content_with_what_it_cannot_play() -> Result<()> {
    runner().refuses_what_it_cannot_play()
}

#[test]
fn the_example_opens_its_circuit_and_closes_it_again() -> Result<()> {
    let said = run(Command::new("npm")
        .arg("start")
        .current_dir(copies()?.join("examples/node")))?;
    ensure!(said.contains("rejected: open"), "{said}");
    ensure!(
        said.contains("The circuit is closed. The server saw 6 of "),
        "{said}"
    );
    Ok(())
}

#[test]
fn a_guarded_call_is_settled_as_it_ended() -> Result<()> {
    let mut command = Command::new("node");
    command.arg(copies()?.join("tests/node/guard.mjs"));
    run(command.arg(repository().join("host/sdk/components"))).map(drop)
}
