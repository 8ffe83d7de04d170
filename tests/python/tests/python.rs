//! The scenarios of `tests/conformance`, and `examples/python`, in Python.
//!
//! The package that they need is installed below the target folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use tripwit_runtimes::{Runner, installed_once, repository, run, version_of};

/// Python, with the package within reach: in a virtual environment, or, where there can be none, in a folder beside it.
fn python() -> Result<Command> {
    let remedy = "These tests need Python 3.10 or newer: https://python.org, or `apt-get install python3 python3-venv`.";
    let version = version_of("python3", (3, 10), remedy)?;
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python");
    let requirements = repository().join("examples/python/requirements.txt");
    let wanted = version + "\n" + &fs::read_to_string(&requirements)?;
    let (environment, packages) = (root.join("environment"), root.join("packages"));
    installed_once(&root, &wanted, || install(&environment, &packages, &requirements))?;
    let own = environment.join("bin/python");
    let mut command = Command::new(if own.is_file() { own } else { "python3".into() });
    // No compiled files beside the sources.
    command
        .arg("-B")
        .env("PYTHONPATH", packages)
        .current_dir(repository());
    Ok(command)
}

fn install(environment: &Path, packages: &Path, requirements: &Path) -> Result<()> {
    for folder in [environment, packages] {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
    }
    let pip = |python: PathBuf| {
        let mut command = Command::new(python);
        command.args([
            "-m",
            "pip",
            "install",
            "--disable-pip-version-check",
            "--only-binary=:all:",
            "-r",
        ]);
        command.arg(requirements);
        command
    };
    let made = run(Command::new("python3").args(["-m", "venv"]).arg(environment))
        .and_then(|_| run(&mut pip(environment.join("bin/python"))));
    let Err(no_environment) = made else {
        return Ok(());
    };
    if environment.exists() {
        fs::remove_dir_all(environment)?;
    }
    run(pip("python3".into()).arg("--target").arg(packages)).map(drop).with_context(|| {
        let (packages, requirements) = (packages.display(), requirements.display());
        format!(
            "{no_environment:#}\nneither a virtual environment nor pip will do. Run `apt-get install python3-venv`, or, to see why: \
             python3 -m pip install --target {packages} -r {requirements}"
        )
    })
}

fn runner() -> Runner {
    Runner::new(|| {
        let mut command = python()?;
        command.arg(repository().join("tests/python/runner.py"));
        Ok(command)
    })
}

#[test]
fn every_scenario_holds_in_python() -> Result<()> {
    runner().plays_every_scenario(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("transcript-python.jsonl"))
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
    let said = run(python()?.arg(repository().join("examples/python/main.py")))?;
    ensure!(said.contains("rejected: open"), "{said}");
    ensure!(
        said.contains("The circuit is closed. The server saw 6 of "),
        "{said}"
    );
    Ok(())
}

#[test]
fn a_guarded_call_is_settled_as_it_ended() -> Result<()> {
    let mut command = python()?;
    command.arg(repository().join("tests/python/guard.py"));
    run(command.arg(repository().join("host/sdk/components"))).map(drop)
}
