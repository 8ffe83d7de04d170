//! What can go wrong while a policy is loaded and circuits are made. Calls have [`CallError`](crate::CallError).

use std::path::PathBuf;

use crate::digest::Digest;

/// Why a component cannot be used as a policy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// The file cannot be read.
    #[error("cannot read the policy {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The component is none of those that are allowed.
    #[error(
        "the policy's digest is {found}, which is none of the {allowed} allowed; fetch the right file, or allow this one"
    )]
    NotAllowed {
        /// Its digest.
        found: Digest,
        /// How many digests are allowed.
        allowed: usize,
    },
    /// A limit of the loader is none that there can be.
    #[error("{what} of the loader is {got}; it must be {range}")]
    OutOfRange {
        /// Which limit.
        what: &'static str,
        /// What it is.
        got: String,
        /// What it may be.
        range: &'static str,
    },
    /// The component is larger than any policy needs to be.
    #[error(
        "the policy has {size} bytes; at most {limit} are loaded, unless `max_file_size` of the loader is raised"
    )]
    TooLarge {
        /// Its size, in bytes.
        size: u64,
        /// The most that is loaded, in bytes.
        limit: u64,
    },
    /// Compiling the component would cost too much: it has more of something than any policy needs.
    #[error("the policy has {found} {what}; at most {limit} are compiled{}", unless_raised(*setting))]
    TooCostly {
        /// What it has too much of.
        what: &'static str,
        /// How many of them were found before the rest was left aside.
        found: u64,
        /// How many there may be.
        limit: u64,
        /// The setting of the loader that raises the limit, where there is one.
        setting: Option<&'static str>,
    },
    /// Compiling the component was given up: it took too long. A thread is busy with it yet, until it is through.
    #[error(
        "the policy was not compiled within {limit:?}; use one with smaller functions, or raise `max_compile_time` of the loader"
    )]
    CompileTimeout {
        /// How long it may take.
        limit: std::time::Duration,
    },
    /// The bytes are something else than a component.
    #[error(
        "the policy is {found}, not a WebAssembly component; make one of it with `tripwit componentize` or `wasm-tools component new`"
    )]
    NotAComponent {
        /// What they are.
        found: String,
    },
    /// The bytes begin as a component and are damaged.
    #[error("the policy is a damaged WebAssembly component: {problem}; fetch or build it again")]
    Damaged {
        /// What is wrong, and where.
        problem: String,
    },
    /// The component wants something that no policy gets.
    #[error("the policy imports {import:?}; a policy may import only {allowed}")]
    ForeignImport {
        /// What it wants.
        import: String,
        /// What it may have.
        allowed: &'static str,
    },
    /// The component speaks another version of the contract, or none.
    #[error("the policy has {}; this host needs {wanted}", found.as_deref().unwrap_or("no export `tripwit:breaker/policy`"))]
    ContractVersion {
        /// The interface that it has, if any.
        found: Option<String>,
        /// The interface that it must have.
        wanted: &'static str,
    },
    /// The component cannot be compiled.
    #[error("the policy cannot be compiled")]
    Compile(#[source] Source),
    /// The component's types are not those of the contract.
    #[error("the policy does not keep to the contract tripwit:breaker@0.1")]
    Link(#[source] Source),
    /// The component fails as soon as it is started.
    #[error("the policy fails when it is started: {problem}")]
    Faulty {
        /// How.
        problem: String,
    },
}

/// What the WebAssembly runtime says about a component that it does not take.
type Source = Box<dyn std::error::Error + Send + Sync>;

/// Why no set of circuits could be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The policy refuses a settings text.
    #[error("settings for {for_what}: {}", at_field(field, problem))]
    Settings {
        /// Which of the settings: `every key`, `key "..."` or `prefix "..."`.
        for_what: String,
        /// JSON Pointer of the field; empty for the whole text.
        field: String,
        /// What is wrong with it, and what would be right.
        problem: String,
    },
    /// A key that settings are for can never be a circuit's.
    #[error("settings for key {key:?}: {problem}")]
    Key {
        /// The key.
        key: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A number is out of its range.
    #[error("{what} is {got}; it must be {range}")]
    OutOfRange {
        /// Which number.
        what: &'static str,
        /// What it is.
        got: usize,
        /// What it may be.
        range: &'static str,
    },
    /// The namespace cannot begin the name of an instrument.
    #[error("namespace {namespace:?}: {problem}")]
    Namespace {
        /// The namespace.
        namespace: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The component cannot be started.
    #[error("the policy fails when it is started: {problem}")]
    Faulty {
        /// How.
        problem: String,
    },
}

/// Why no other policy, or no other settings, took over. Nothing has changed: circuits go on as they were.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SwapError {
    /// The policy did not start on trial, or refuses a settings text.
    #[error("nothing is swapped: {0}")]
    Trial(BuildError),
    /// The policy does not take a circuit over, or not under its settings.
    #[error("nothing is swapped: on trial, {0}")]
    Circuit(AttachError),
    /// The policy failed when it took a circuit over: it trapped, never ended, or made another state of it.
    #[error("nothing is swapped: on trial, the policy failed for key {key:?}: {problem}")]
    Faulty {
        /// The circuit's key.
        key: String,
        /// In which function, and how.
        problem: String,
    },
    /// Another thread is exchanging the policy or its settings at this moment, or this one is called from a subscriber in
    /// the midst of it.
    #[error(
        "nothing is swapped: another swap of the same circuits is under way; try again when it is through"
    )]
    Busy,
}

impl From<BuildError> for SwapError {
    fn from(error: BuildError) -> Self {
        Self::Trial(error)
    }
}

/// Why a circuit could not be had. Nothing of it stays behind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AttachError {
    /// The key is empty or too long.
    #[error("key {key:?}: {problem}")]
    Key {
        /// The key, shortened where it is too long.
        key: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The policy refuses the settings.
    #[error("settings for key {key:?}: {}", at_field(field, problem))]
    Settings {
        /// The key.
        key: String,
        /// JSON Pointer of the field; empty for the whole text.
        field: String,
        /// What is wrong with it, and what would be right.
        problem: String,
    },
    /// The key has a circuit already, with other settings.
    #[error("key {key:?} has a circuit with other settings; use one set of settings for one key")]
    Conflict {
        /// The key.
        key: String,
    },
    /// As many circuits as may be are in use, open or half-open.
    #[error(
        "no circuit for key {key:?}: all {limit} are in use or not closed; raise `max_circuits` or use fewer keys"
    )]
    Full {
        /// The key.
        key: String,
        /// The most circuits that there may be.
        limit: usize,
    },
    /// The component's memory is nearly used up, and no circuit can make room.
    #[error(
        "no circuit for key {key:?}: the policy's memory of {limit} bytes is nearly used up; raise `max_memory`, add shards or use fewer keys"
    )]
    Memory {
        /// The key.
        key: String,
        /// The most memory that one shard may have, in bytes.
        limit: usize,
    },
    /// The policy refuses for a reason of its own.
    #[error("no circuit for key {key:?}: {problem}")]
    Other {
        /// The key.
        key: String,
        /// Its reason.
        problem: String,
    },
}

fn unless_raised(setting: Option<&str>) -> String {
    setting.map_or_else(String::new, |setting| {
        format!(", unless `{setting}` of the loader is raised")
    })
}

fn at_field(field: &str, problem: &str) -> String {
    if field.is_empty() {
        problem.to_owned()
    } else {
        format!("{field}: {problem}")
    }
}

/// The longest key, in bytes.
pub(crate) const MAX_KEY: usize = 512;

/// Whether a key can be a circuit's; else what is wrong with it.
pub(crate) fn check_key(key: &str) -> Result<(), String> {
    match key.len() {
        0 => Err("a key must not be empty".into()),
        1..=MAX_KEY => Ok(()),
        length => Err(format!(
            "a key has at most {MAX_KEY} bytes, this one has {length}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_1_to_512_bytes_are_taken() {
        assert!(check_key("").is_err());
        assert!(check_key("k").is_ok());
        assert!(check_key(&"k".repeat(512)).is_ok());
        assert!(
            check_key(&"k".repeat(513))
                .unwrap_err()
                .contains("this one has 513")
        );
        assert!(
            check_key(&"é".repeat(257)).is_err(),
            "bytes count, not characters"
        );
    }

    #[test]
    fn an_error_of_the_settings_names_the_field() {
        let error = BuildError::Settings {
            for_what: "key \"sms\"".into(),
            field: "/open_for".into(),
            problem: "must be 1ms to 24h".into(),
        };
        assert_eq!(
            error.to_string(),
            "settings for key \"sms\": /open_for: must be 1ms to 24h"
        );
    }
}
