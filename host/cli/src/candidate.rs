//! A policy as the command line names it: a shipped one or a file, with settings.

use std::fs;
use std::path::Path;

use anyhow::{Context, Error, Result, anyhow, bail};
use tripwit::{BuildError, Policy, PolicyError, Settings};

use crate::load::{Loaded, Loading};

/// A policy, and the settings that every circuit gets.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    /// As it was named.
    pub(crate) text: String,
    /// The policy.
    pub(crate) policy: Policy,
    /// The settings; not yet held against the policy.
    pub(crate) settings: Settings,
}

impl Candidate {
    /// Finds a policy and reads its settings.
    ///
    /// # Errors
    ///
    /// When either cannot be had.
    pub(crate) fn find(text: &str, loading: &Loading) -> Result<Self> {
        // A file may have an `@` in its name.
        let (name, settings) = match text.split_once('@') {
            Some((name, settings)) if !Path::new(text).is_file() => (name, Some(settings)),
            _ => (text, None),
        };
        Ok(Self {
            text: text.to_owned(),
            policy: find(name, loading)?,
            settings: match settings {
                None => Settings::default(),
                Some(inline) if inline.trim_start().starts_with('{') => inline.into(),
                Some(path) => fs::read_to_string(path)
                    .with_context(|| format!("cannot read the settings {path}"))?
                    .into(),
            },
        })
    }

    /// What to say when no circuits can be made under it.
    pub(crate) fn refused(&self, error: BuildError) -> Error {
        let BuildError::Settings { field, problem, .. } = error else {
            return Error::new(error).context(self.text.clone());
        };
        if field.is_empty() {
            anyhow!("settings of {}: {problem}", self.text)
        } else {
            anyhow!("settings of {}: {field}: {problem}", self.text)
        }
    }
}

/// A shipped policy, or the one in a file.
///
/// # Errors
///
/// When there is none, or it cannot be loaded.
pub(crate) fn find(name: &str, loading: &Loading) -> Result<Policy> {
    if let Some(policy) = shipped(name) {
        return Ok(policy?);
    }
    let path = Path::new(name);
    if !path.exists() {
        bail!("no policy {name:?}: it is neither a shipped one (consecutive, outbox, window) nor a file");
    }
    match loading.load(path)? {
        Loaded::Policy(policy) => Ok(policy),
        Loaded::Unfit(error) => Err(error).with_context(|| name.to_owned()),
    }
}

fn shipped(name: &str) -> Option<Result<Policy, PolicyError>> {
    match name {
        "consecutive" => Some(Policy::consecutive()),
        "outbox" => Some(Policy::outbox()),
        "window" => Some(Policy::window()),
        _ => None,
    }
}
