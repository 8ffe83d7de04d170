//! How a component becomes a policy.

use std::path::Path;

use crate::cache::{Cache, CacheError};
use crate::digest::Digest;
use crate::error::PolicyError;
use crate::policy::{CONSECUTIVE, OUTBOX, Policy, WINDOW, read};
use crate::precheck;

/// Loads policies on conditions of your own: see [`Policy::loader`].
#[derive(Clone, Debug, Default)]
#[must_use = "a loader loads nothing until it is asked to"]
pub struct Loader {
    allowed: Option<Vec<Digest>>,
    cache: Option<Cache>,
}

impl Loader {
    /// Loads only components with these digests; nothing of any other is looked at. Default: any. Called again, it adds to
    /// them.
    pub fn allow(mut self, digests: impl IntoIterator<Item = Digest>) -> Self {
        self.allowed.get_or_insert_default().extend(digests);
        self
    }

    /// Keeps what it has compiled in this folder, and takes it from there the next time: a start then takes some
    /// milliseconds instead of some tens or hundreds. The folder is made where it is not there, with rights for this user only;
    /// use it for nothing else.
    ///
    /// It holds machine code, so only files are taken that nobody but this user can have written, and only as they were
    /// written. What is not there, or not to be trusted, is compiled. Nothing is ever removed: a file of some hundred
    /// kilobytes stays for each component and version of this crate.
    ///
    /// # Errors
    ///
    /// When the folder cannot be made, belongs to another user, is a link, or others may read or write it; and on systems
    /// other than Unix.
    pub fn cache(mut self, folder: impl AsRef<Path>) -> Result<Self, CacheError> {
        self.cache = Some(Cache::at(folder.as_ref())?);
        Ok(self)
    }

    /// Loads a component from a file.
    ///
    /// # Errors
    ///
    /// As [`Policy::from_file`], and when the digest is not allowed.
    pub fn file(&self, path: impl AsRef<Path>) -> Result<Policy, PolicyError> {
        self.bytes(&read(path.as_ref())?)
    }

    /// Loads a component from its bytes.
    ///
    /// # Errors
    ///
    /// As [`Policy::from_bytes`], and when the digest is not allowed.
    pub fn bytes(&self, bytes: &[u8]) -> Result<Policy, PolicyError> {
        let digest = Digest::of(bytes);
        if let Some(allowed) = self.allowed.as_ref().filter(|allowed| !allowed.contains(&digest)) {
            return Err(PolicyError::NotAllowed {
                found: digest,
                allowed: allowed.len(),
            });
        }
        let interfaces = precheck::check(bytes)?;
        Policy::compiled(bytes, interfaces, digest, self.cache.as_ref())
    }

    /// The shipped policy [`consecutive`](Policy::consecutive).
    ///
    /// # Errors
    ///
    /// As [`bytes`](Self::bytes).
    pub fn consecutive(&self) -> Result<Policy, PolicyError> {
        self.bytes(CONSECUTIVE)
    }

    /// The shipped policy [`outbox`](Policy::outbox).
    ///
    /// # Errors
    ///
    /// As [`bytes`](Self::bytes).
    pub fn outbox(&self) -> Result<Policy, PolicyError> {
        self.bytes(OUTBOX)
    }

    /// The shipped policy [`window`](Policy::window).
    ///
    /// # Errors
    ///
    /// As [`bytes`](Self::bytes).
    pub fn window(&self) -> Result<Policy, PolicyError> {
        self.bytes(WINDOW)
    }
}
