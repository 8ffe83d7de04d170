//! How a component becomes a policy.

use std::path::Path;
use std::time::Duration;

use crate::cache::{Cache, CacheError};
use crate::digest::Digest;
use crate::error::PolicyError;
use crate::limits::Limits;
use crate::policy::{CONSECUTIVE, OUTBOX, Policy, WINDOW, read};
use crate::precheck;

/// Loads policies on conditions of your own: see [`Policy::loader`].
#[derive(Clone, Debug, Default)]
#[must_use = "a loader loads nothing until it is asked to"]
pub struct Loader {
    allowed: Option<Vec<Digest>>,
    pub(crate) cache: Option<Cache>,
    pub(crate) limits: Limits,
    pub(crate) wasi: bool,
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

    /// The largest file that is loaded, in bytes. Range: 64 KiB to 256 MiB. Default: 32 MiB.
    pub fn max_file_size(mut self, bytes: usize) -> Self {
        self.limits.file = bytes;
        self
    }

    /// The most code that is compiled, in bytes. Range: 64 KiB to 64 MiB. Default: 4 MiB, about thirty times what a shipped
    /// policy has. Compiling cannot be interrupted, so it is bounded by what there is to compile. A component that brings
    /// an interpreter along may need more: one of componentize-js has 9 MiB.
    pub fn max_code_size(mut self, bytes: usize) -> Self {
        self.limits.code = bytes;
        self
    }

    /// The most code of one function, in bytes: what compiling one takes can grow faster than its size. Range: 1 KiB to 1 MiB.
    /// Default: 64 KiB.
    pub fn max_function_size(mut self, bytes: usize) -> Self {
        self.limits.function = bytes;
        self
    }

    /// The most memory of an instance of the policy, in bytes: on trial, and later where
    /// [`BreakersBuilder::max_memory`](crate::BreakersBuilder::max_memory) says nothing else. Range: 2 MiB to 4 GiB. Default: 192 MiB.
    pub fn max_memory(mut self, bytes: usize) -> Self {
        self.limits.memory = bytes;
        self
    }

    /// How long compiling may take. Range: 1 s to 1 h. Default: 1 minute. One that takes longer is given up, and keeps a
    /// processor busy until it is through.
    pub fn max_compile_time(mut self, time: Duration) -> Self {
        self.limits.compile_time = time;
        self
    }

    /// Gives the policy a sandbox of WASI 0.2, for components that were made of other languages and ask for more than a policy
    /// needs. There is nothing in it: no file, no network, no environment, no arguments, no standard input or output. The clocks
    /// are the host's, as they are for every policy. Random numbers are the same in every instance, so that runs can be
    /// repeated: a policy draws from the seed that it is given. Whoever reads, writes, opens or waits for something is
    /// trapped, and that is a fault of the policy. Default: off; such a component is refused.
    #[cfg(feature = "wasi")]
    pub fn wasi(mut self, wasi: bool) -> Self {
        self.wasi = wasi;
        self
    }

    /// Loads a component from a file.
    ///
    /// # Errors
    ///
    /// As [`Policy::from_file`], and when the digest is not allowed or a limit is out of its range.
    pub fn file(&self, path: impl AsRef<Path>) -> Result<Policy, PolicyError> {
        self.limits.check()?;
        self.bytes(&read(path.as_ref(), &self.limits)?)
    }

    /// Loads a component from its bytes.
    ///
    /// # Errors
    ///
    /// As [`Policy::from_bytes`], and when the digest is not allowed or a limit is out of its range.
    pub fn bytes(&self, bytes: &[u8]) -> Result<Policy, PolicyError> {
        self.limits.check()?;
        let digest = Digest::of(bytes);
        if let Some(allowed) = self.allowed.as_ref().filter(|allowed| !allowed.contains(&digest)) {
            return Err(PolicyError::NotAllowed {
                found: digest,
                allowed: allowed.len(),
            });
        }
        let interfaces = precheck::check(bytes, &self.limits, self.wasi)?;
        Policy::compiled(bytes, interfaces, digest, self)
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
