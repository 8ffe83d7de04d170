//! A runner, and what it must have played.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tripwit_conformance::Suite;

use crate::doctored;
use crate::program::{outcome, repository, run};

/// A program that plays scenarios, without its arguments.
pub struct Runner(fn() -> Result<Command>);

impl Runner {
    /// Made by `command`, which sets up what it needs first.
    #[must_use]
    pub fn new(command: fn() -> Result<Command>) -> Self {
        Self(command)
    }

    /// Plays every scenario of `tests/conformance` and writes the transcript, which must be the native core's to the byte. What was played
    /// is counted here too, in the files and in the transcript: nothing may be left out.
    ///
    /// # Errors
    ///
    /// When a scenario does not hold, was not played to its end, or something was answered or told otherwise than by the native core.
    pub fn plays_every_scenario(&self, transcript: &Path) -> Result<()> {
        let folder = repository().join("tests/conformance");
        let files = scenario_files(&folder)?;
        let all: Vec<&Value> = files.iter().flat_map(scenarios).collect();
        let steps: usize = all.iter().map(|scenario| elements(scenario, "steps")).sum();
        let said = run(self.command(&folder)?.arg(transcript))?;
        let told = format!(
            "{scenarios} scenarios of {files} files played ({steps} steps); {scenarios} held, 0 did not",
            scenarios = all.len(),
            files = files.len()
        );
        ensure!(said.contains(&told), "it must say {told:?}, and says:\n{said}");
        let written = fs::read_to_string(transcript).with_context(|| transcript.display().to_string())?;
        let played = written.lines().map(serde_json::from_str::<Value>);
        let played = played.collect::<Result<Vec<_>, _>>()?;
        ensure!(
            played.len() == all.len(),
            "the transcript has {} scenarios",
            played.len()
        );
        for (own, native) in written.lines().zip(Suite::load()?.transcript()?.lines()) {
            ensure!(own == native, "{}", difference(own, native)?);
        }
        for (scenario, played) in all.iter().zip(&played) {
            ensure!(
                scenario.get("name") == played.get("scenario")
                    && elements(scenario, "steps") == elements(played, "played"),
                "{} was not played to its end",
                scenario.get("name").unwrap_or_default()
            );
        }
        // `eprintln` would be caught: nothing may be left out in silence.
        std::io::stderr().write_all(said.as_bytes())?;
        Ok(())
    }

    /// Plays scenarios that are wrong in one thing each, beside one that is right: it must find the wrong ones, and say where.
    ///
    /// # Errors
    ///
    /// When it lets one pass, or says too little.
    pub fn finds_what_is_wrong(&self) -> Result<()> {
        let folder = tempfile::tempdir()?;
        let wrong = doctored::scenarios();
        let file = doctored::file(&wrong);
        fs::write(folder.path().join(doctored::NAME), file.to_string())?;
        let (content, said) = outcome(&mut self.command(folder.path())?)?;
        ensure!(!content, "it is content with what is wrong:\n{said}");
        let count = format!("; 1 held, {} did not", wrong.len());
        ensure!(said.contains(&count), "it must say {count:?}, and says:\n{said}");
        for case in &wrong {
            let start = format!("{}: {}\n", doctored::NAME, case.name);
            let (_, after) = said
                .split_once(&start)
                .with_context(|| format!("{start:?} is not in:\n{said}"))?;
            let report = after.split(doctored::NAME).next().unwrap_or_default();
            for part in case.report {
                ensure!(
                    report.contains(part),
                    "{:?}: {part:?} must be in:\n{report}",
                    case.name
                );
            }
        }
        Ok(())
    }

    /// Plays what is no file of scenarios, and a folder without files. It must be content with neither.
    ///
    /// # Errors
    ///
    /// When it is, or does not say which file it is.
    pub fn refuses_what_it_cannot_play(&self) -> Result<()> {
        let folder = tempfile::tempdir()?;
        let (content, said) = outcome(&mut self.command(folder.path())?)?;
        ensure!(!content, "it is content with an empty folder:\n{said}");
        for text in [
            "{",
            "{}",
            r#"{"policy": "outbox", "scenarios": [{"name": "No steps."}]}"#,
        ] {
            fs::write(folder.path().join(doctored::NAME), text)?;
            let (content, said) = outcome(&mut self.command(folder.path())?)?;
            ensure!(
                !content && said.contains(doctored::NAME),
                "{text}: it says\n{said}"
            );
        }
        Ok(())
    }

    fn command(&self, scenarios: &Path) -> Result<Command> {
        let mut command = (self.0)()?;
        command
            .arg(scenarios)
            .arg(repository().join("host/sdk/components"));
        Ok(command)
    }
}

impl std::fmt::Debug for Runner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Runner")
    }
}

/// The contents of the folder's files, in the order of their names.
fn scenario_files(folder: &Path) -> Result<Vec<Value>> {
    let mut paths = Vec::<PathBuf>::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        paths.push(entry?.path());
    }
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    let read = |path: &PathBuf| {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        serde_json::from_str(&text).with_context(|| path.display().to_string())
    };
    paths.iter().map(read).collect()
}

/// Where two lines of transcripts part.
fn difference(own: &str, native: &str) -> Result<String> {
    let (own, native): (Value, Value) = (serde_json::from_str(own)?, serde_json::from_str(native)?);
    let text = |of: &Value, field: &str| of.get(field).map(Value::to_string).unwrap_or_default();
    let (file, scenario) = (text(&native, "file"), text(&native, "scenario"));
    let step = |of: &Value, index: usize| of.get("played").and_then(|all| all.get(index)).cloned();
    let parts = (0..elements(&own, "played").max(elements(&native, "played")))
        .map(|index| (index, step(&own, index), step(&native, index)))
        .find(|(_, own, native)| own != native);
    Ok(match parts {
        Some((index, own, native)) => {
            let [own, native] = [own, native].map(|step| step.unwrap_or_default());
            format!(
                "{file}: {scenario}\n    step {}: it answers {own}, and the native core {native}",
                index + 1
            )
        }
        None => format!("{file}: {scenario} is written otherwise:\n{own}\n{native}"),
    })
}

fn scenarios(file: &Value) -> &[Value] {
    file.get("scenarios")
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

fn elements(of: &Value, list: &str) -> usize {
    of.get(list).and_then(Value::as_array).map_or(0, Vec::len)
}
