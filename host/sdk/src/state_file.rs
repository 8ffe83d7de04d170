//! The circuits as a text that outlives the process.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};

use crate::bindings::exports::tripwit::breaker::policy as wit;
use crate::bindings::tripwit::breaker::types;
use crate::digest::Digest;
use crate::policy::Policy;

/// What the text says that it is.
const FORMAT: &str = "tripwit-circuits";
/// The one version of it that there is.
const VERSION: u32 = 1;

/// Why a text is not one of circuits, or not as it was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// It is something else.
    #[error("this is no saved state: {problem}")]
    Format {
        /// How it can be seen.
        problem: String,
    },
    /// It is of a version that this one does not read.
    #[error("the saved state has version {found}; this version of tripwit reads version {VERSION}")]
    Version {
        /// Its version.
        found: u64,
    },
    /// It is cut short, changed or has more than it may have.
    #[error("the saved state is damaged: {problem}; restore a copy of it, or start without it")]
    Damaged {
        /// What is wrong, and where.
        problem: String,
    },
}

/// What every version has.
#[derive(Deserialize)]
struct Head {
    format: String,
    version: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: String,
    version: u32,
    /// The digest of `state` as this module writes it without white space.
    checksum: String,
    state: State,
}

/// Everything that is kept.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct State {
    policy: SavedBy,
    pub(crate) circuits: Vec<SavedCircuit>,
}

/// For people: what was saved can be taken over by any policy.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedBy {
    name: String,
    version: String,
    digest: String,
}

/// One circuit. Every time is in nanoseconds; what is counted from 1970 is for people and decides nothing.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SavedCircuit {
    pub(crate) key: String,
    /// Those that it was asked for with, where they were its own.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) own_settings: Option<String>,
    settings: String,
    #[serde(with = "StateName")]
    state: types::State,
    #[serde(with = "ModeName")]
    mode: types::Mode,
    since_ns: u64,
    retry_after_ns: Option<u64>,
    cooldown_count: Option<u32>,
    reopenings: u32,
    #[serde(with = "CountsFields")]
    counts: wit::Counts,
    last_failure_ns: Option<u64>,
    last_cause: Option<String>,
    detail_format: String,
    /// Base64.
    detail: String,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::State", rename_all = "kebab-case")]
enum StateName {
    Closed,
    Open,
    HalfOpen,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::Mode", rename_all = "kebab-case")]
enum ModeName {
    Automatic,
    ForcedOpen,
    Disabled,
    Shadow,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "wit::Counts", deny_unknown_fields)]
struct CountsFields {
    successes: u32,
    failures: u32,
    timeouts: u32,
    slow: u32,
    consecutive_successes: u32,
    consecutive_failures: u32,
    probes_in_flight: u32,
}

impl State {
    pub(crate) fn new(policy: &Policy, circuits: Vec<SavedCircuit>) -> Self {
        let said = policy.description();
        Self {
            policy: SavedBy {
                name: said.name.clone(),
                version: said.version.clone(),
                digest: policy.digest().to_string(),
            },
            circuits,
        }
    }

    /// Whether it was saved under this policy, in whichever version.
    pub(crate) fn is_of(&self, policy: &Policy) -> bool {
        self.policy.name == policy.description().name
    }

    pub(crate) fn write(self) -> Result<String, serde_json::Error> {
        let file = File {
            format: FORMAT.into(),
            version: VERSION,
            checksum: checksum(&self)?,
            state: self,
        };
        serde_json::to_string_pretty(&file)
    }

    pub(crate) fn read(json: &str) -> Result<Self, StateError> {
        let damaged = |error: serde_json::Error| StateError::Damaged {
            problem: error.to_string(),
        };
        let head: Head = serde_json::from_str(json).map_err(|error| {
            // A text that ends too early began as one of these.
            if error.is_eof() && json.contains(FORMAT) {
                damaged(error)
            } else {
                StateError::Format {
                    problem: error.to_string(),
                }
            }
        })?;
        if head.format != FORMAT {
            return Err(StateError::Format {
                problem: format!("its format is {:?}, not {FORMAT:?}", head.format),
            });
        }
        if head.version != u64::from(VERSION) {
            return Err(StateError::Version { found: head.version });
        }
        let file: File = serde_json::from_str(json).map_err(damaged)?;
        if checksum(&file.state).map_err(damaged)? != file.checksum {
            return Err(StateError::Damaged {
                problem: "its checksum is not that of its content".into(),
            });
        }
        Ok(file.state)
    }
}

fn checksum(state: &State) -> Result<String, serde_json::Error> {
    Ok(Digest::of(&serde_json::to_vec(state)?).to_string())
}

impl SavedCircuit {
    /// `age`: how long ago the snapshot was taken, in nanoseconds.
    pub(crate) fn new(snapshot: wit::Snapshot, age: u64, own_settings: Option<String>) -> Self {
        Self {
            key: snapshot.key,
            own_settings,
            settings: snapshot.settings,
            state: snapshot.state,
            mode: snapshot.mode,
            since_ns: snapshot.since,
            retry_after_ns: snapshot.retry_after.map(|left| left.saturating_sub(age)),
            cooldown_count: snapshot.cooldown_count,
            reopenings: snapshot.reopenings,
            counts: snapshot.counts,
            last_failure_ns: snapshot.last_failure,
            last_cause: snapshot.last_cause,
            detail_format: snapshot.detail_format,
            detail: BASE64.encode(snapshot.detail),
        }
    }

    pub(crate) fn snapshot(&self) -> Result<wit::Snapshot, StateError> {
        let detail = BASE64.decode(&self.detail).map_err(|error| StateError::Damaged {
            problem: format!("the detail of key {:?}: {error}", self.key),
        })?;
        Ok(wit::Snapshot {
            key: self.key.clone(),
            settings: self.settings.clone(),
            state: self.state,
            mode: self.mode,
            since: self.since_ns,
            retry_after: self.retry_after_ns,
            cooldown_count: self.cooldown_count,
            reopenings: self.reopenings,
            counts: self.counts,
            last_failure: self.last_failure_ns,
            last_cause: self.last_cause.clone(),
            detail,
            detail_format: self.detail_format.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn names(value: &Value, all: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    all.push(name.clone());
                    names(value, all);
                }
            }
            Value::Array(values) => values.iter().for_each(|value| names(value, all)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    #[test]
    fn the_docs_have_every_field_and_no_other() {
        let policy = Policy::consecutive().unwrap();
        let breakers = crate::Breakers::new(policy).unwrap();
        breakers.breaker_with("a", "{}").unwrap().trip();
        let written: Value = serde_json::from_str(&breakers.save().unwrap()).unwrap();
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/state-file.md");
        let docs = std::fs::read_to_string(path).unwrap();
        let (_, example) = docs.split_once("```json").unwrap();
        let (example, table) = example.split_once("```").unwrap();
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        names(&written, &mut ours);
        names(&serde_json::from_str(example).unwrap(), &mut theirs);
        assert_eq!(ours, theirs);
        for name in ours
            .iter()
            .filter(|name| !["name", "digest", "state"].contains(&name.as_str()))
        {
            let inner = written["state"]["circuits"][0]["counts"].get(name).is_some();
            assert!(inner || table.contains(&format!("`{name}`")), "{name}");
        }
    }
}
