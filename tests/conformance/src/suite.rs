//! The files of this folder.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;

use crate::expect::is_part;
use crate::report::Report;
use crate::runner::{Outcome, run};
use crate::scenario::{File, GuestName, Scenario};
use crate::subject::Subject;
use crate::verb::Verb;

/// Every scenario of this folder.
pub struct Suite {
    files: Vec<(String, File)>,
}

impl Suite {
    /// Reads every `*.json` file of this folder.
    ///
    /// # Errors
    ///
    /// When a file cannot be read, is not in the format of README.md, or is not named after its policy; and when there
    /// are two scenarios of one name in a file.
    pub fn load() -> Result<Self> {
        Self::read(Path::new(env!("CARGO_MANIFEST_DIR")))
    }

    fn read(folder: &Path) -> Result<Self> {
        let mut paths = Vec::new();
        for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "json") {
                paths.push(path);
            }
        }
        paths.sort();
        ensure!(!paths.is_empty(), "{} holds no scenarios", folder.display());
        let files = paths.iter().map(read_file).collect::<Result<_>>()?;
        Ok(Self { files })
    }

    /// Plays every scenario that the subject can play.
    ///
    /// The answers of a subject other than the native core are held against the native core's too: the component's must
    /// be the same to the last byte, and so must the host's as far as it gives them.
    ///
    /// # Errors
    ///
    /// None that a scenario could bring about: what does not hold is in the report.
    pub fn run(&self, subject: Subject) -> Result<Report> {
        let mut report = Report::new(subject, self.files.len());
        for (file, contents) in &self.files {
            for scenario in &contents.scenarios {
                if subject.is_host() && scenario.subjects.is_some() {
                    report.left_out();
                    continue;
                }
                let play =
                    |subject: Subject| run(scenario, |clock| subject.start(contents.policy, scenario, clock));
                let outcome = play(subject);
                let failure = outcome.failure.clone().or_else(|| match subject {
                    Subject::Native => None,
                    Subject::Component | Subject::Host | Subject::HostAskingEachTime => {
                        difference(scenario, subject, &outcome, &play(Subject::Native))
                    }
                });
                report.ran(file, &scenario.name, scenario.steps.len(), failure);
            }
        }
        Ok(report)
    }

    /// Everything that the native core answers and tells: a line of JSON for each scenario, in order, with the fields
    /// `file`, `played` (of each step `answer` and `told`) and `scenario`. Names are in the order of their bytes, and there
    /// is no white space, so that equal transcripts have equal bytes.
    ///
    /// # Errors
    ///
    /// When something that was played cannot be written as JSON, which nothing is known to be.
    pub fn transcript(&self) -> Result<String> {
        let mut lines = String::new();
        for (file, contents) in &self.files {
            for scenario in &contents.scenarios {
                let start = |clock: &_| Subject::Native.start(contents.policy, scenario, clock);
                let played = serde_json::to_value(run(scenario, start).played)?;
                let line = json!({"file": file, "scenario": scenario.name, "played": played});
                lines += &format!("{line}\n");
            }
        }
        Ok(lines)
    }

    /// The names of the files, in order.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|(name, _)| name.as_str())
    }

    /// The source and the name of each scenario, with the file that it is in.
    pub fn sources(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        self.files.iter().flat_map(|(file, contents)| {
            contents
                .scenarios
                .iter()
                .map(|it| (file.as_str(), it.source.as_str(), it.name.as_str()))
        })
    }
}

impl std::fmt::Debug for Suite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.files()).finish()
    }
}

/// Where a subject's answers are not those of the native core.
fn difference(scenario: &Scenario, subject: Subject, own: &Outcome, native: &Outcome) -> Option<String> {
    let same = |(own, native): (&crate::runner::Played, &crate::runner::Played)| {
        own.told == native.told
            && if subject.is_host() {
                is_part(&own.answer, &native.answer)
            } else {
                own.answer == native.answer
            }
    };
    let index = own
        .played
        .iter()
        .zip(&native.played)
        .position(|pair| !same(pair))?;
    let (step, own, native) = (
        scenario.steps.get(index)?,
        own.played.get(index)?,
        native.played.get(index)?,
    );
    let (own, native) = (
        serde_json::to_string(own).ok()?,
        serde_json::to_string(native).ok()?,
    );
    Some(format!(
        "step {} {}: it answers {own}, and the native core {native}",
        index + 1,
        step.text
    ))
}

fn read_file(path: &PathBuf) -> Result<(String, File)> {
    let name = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let text = std::fs::read_to_string(path).with_context(|| name.clone())?;
    let file: File = serde_json::from_str(&text).with_context(|| name.clone())?;
    check(&name, &file).with_context(|| name.clone())?;
    Ok((name, file))
}

fn check(name: &str, file: &File) -> Result<()> {
    let policy = file.policy.text();
    ensure!(
        name.starts_with(&format!("{policy}-")),
        "a file is named after its policy: {policy}-something.json"
    );
    ensure!(!file.about.is_empty(), "`about` is empty");
    ensure!(!file.scenarios.is_empty(), "it holds no scenarios");
    let mut names = BTreeSet::new();
    for scenario in &file.scenarios {
        ensure!(names.insert(&scenario.name), "{:?} is there twice", scenario.name);
        check_scenario(scenario).with_context(|| format!("{:?}", scenario.name))?;
    }
    Ok(())
}

/// A scenario says that it is for guests only exactly when one of its steps is.
fn check_scenario(scenario: &Scenario) -> Result<()> {
    ensure!(!scenario.steps.is_empty(), "it has no steps");
    let mut settled = BTreeSet::new();
    let reason = scenario.steps.iter().find_map(|step| {
        if let Verb::Acquire { value } = &step.verb {
            settled.remove(value);
        }
        let again = matches!(&step.verb, Verb::Settle(settle) if !settled.insert(&settle.value));
        let why = step.verb.beyond_the_host();
        why.or_else(|| again.then_some("it settles a permit once"))
            .map(|why| (why, &step.text))
    });
    match (reason, scenario.subjects) {
        (None, None) => Ok(()),
        (Some(_), Some([GuestName::Native, GuestName::Component])) => Ok(()),
        (Some((why, step)), None) => {
            bail!("the host cannot play {step}: {why}; write \"subjects\": [\"native\", \"component\"]")
        }
        (None, Some(_)) => bail!("every subject can play this: leave `subjects` out"),
        (Some(_), Some(_)) => bail!("write \"subjects\": [\"native\", \"component\"]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(fields: serde_json::Value) -> Scenario {
        let mut whole = json!({"name": "It trips.", "source": "none"});
        for (name, value) in fields.as_object().unwrap() {
            whole[name] = value.clone();
        }
        serde_json::from_value(whole).unwrap()
    }

    fn native(scenario: &Scenario) -> Option<String> {
        run(scenario, |clock| {
            Subject::Native.start(crate::verb::PolicyName::Outbox, scenario, clock)
        })
        .failure
    }

    #[test]
    fn subjects_are_named_exactly_when_a_step_is_beyond_the_host() {
        let guests = json!(["native", "component"]);
        let steps = json!([{"lease": true}]);
        assert!(check_scenario(&scenario(json!({"steps": steps, "subjects": guests}))).is_ok());
        assert!(check_scenario(&scenario(json!({"steps": steps}))).is_err());
        let steps = json!([{"tripped": true}]);
        assert!(check_scenario(&scenario(json!({"steps": steps, "subjects": guests}))).is_err());
        assert!(check_scenario(&scenario(json!({"steps": steps}))).is_ok());
    }

    #[test]
    fn a_permit_that_is_settled_twice_is_beyond_the_host() {
        let twice = json!([
            {"acquire": "a"},
            {"settle": "a", "outcome": "ignored"},
            {"settle": "a", "outcome": "ignored"}
        ]);
        let error = check_scenario(&scenario(json!({"steps": twice}))).unwrap_err();
        assert!(error.to_string().contains("settles a permit once"), "{error}");
    }

    #[test]
    fn a_scenario_that_expects_too_little_or_too_much_fails() {
        let line =
            "WARN Circuit breaker tripped for topic orders; suppressing publish for 10 cooldown cycle(s)";
        let right = json!({"steps": [{"trip": true, "log": [line], "spans": ["orders trip"]}]});
        assert_eq!(native(&scenario(right)), None);
        for wrong in [
            json!({"trip": true}),
            json!({"trip": true, "log": [line]}),
            json!({"trip": true, "log": [line, line], "spans": ["orders trip"]}),
            json!({"trip": true, "log": [line], "spans": ["orders re_trip"]}),
            json!({"trip": true, "log": [line], "spans": ["orders trip"], "expect": {"transition": null}}),
            json!({"trip": true, "log": [{"line": line, "fields": {}}], "spans": ["orders trip"]}),
            json!({"trip": true, "log": [line], "spans": [{"name": "orders trip", "at": "1s"}]}),
        ] {
            assert!(native(&scenario(json!({"steps": [wrong]}))).is_some(), "{wrong}");
        }
    }

    #[test]
    fn a_call_that_is_rejected_and_settings_that_are_refused_must_be_expected() {
        let line =
            "WARN Circuit breaker tripped for topic orders; suppressing publish for 10 cooldown cycle(s)";
        let trip = json!({"trip": true, "log": [line], "spans": ["orders trip"]});
        assert!(native(&scenario(json!({"steps": [trip, {"acquire": "a"}]}))).is_some());
        assert!(native(&scenario(json!({"steps": [{"attach": {"size": 1}}]}))).is_some());
    }
}
