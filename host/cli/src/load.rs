//! Loading a policy from a file, for every subcommand.

use std::path::Path;

use anyhow::{Context, Result};
use tripwit::{Policy, PolicyError};

/// What came of loading a file.
#[derive(Debug)]
pub(crate) enum Loaded {
    /// It is a policy.
    Policy(Policy),
    /// It is a component, and no policy of the contract.
    Unfit(PolicyError),
}

/// Loads a component, as the host loads it.
///
/// # Errors
///
/// When the file cannot be read, or is no component at all.
pub(crate) fn load(path: &Path) -> Result<Loaded> {
    match Policy::from_file(path) {
        Ok(policy) => Ok(Loaded::Policy(policy)),
        Err(
            error @ (PolicyError::ForeignImport { .. }
            | PolicyError::ContractVersion { .. }
            | PolicyError::Link(_)
            | PolicyError::Faulty { .. }),
        ) => Ok(Loaded::Unfit(error)),
        Err(error @ PolicyError::Read { .. }) => Err(error.into()),
        Err(error) => Err(error).with_context(|| path.display().to_string()),
    }
}
