//! Compiled components on disk, so that a process need not compile what one before it has compiled.

use std::fs::{self, File};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use wasmtime::Engine;
use wasmtime::component::Component;

use crate::digest::Digest;

/// Why a folder cannot hold compiled components.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CacheError {
    /// It cannot be made or looked at.
    #[error("cannot use the folder {} for compiled policies", path.display())]
    Io {
        /// The folder.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Somebody else could put machine code there.
    #[error("the folder {} cannot be trusted with compiled policies: {problem}", path.display())]
    Untrusted {
        /// The folder.
        path: PathBuf,
        /// What is wrong, and what would be right.
        problem: &'static str,
    },
}

/// A folder of compiled components, each under the engine and the digest that it was compiled by and from.
///
/// What is in it is machine code that this process would run unchecked. So only files are read that nobody but this user
/// could have written, and only as they were written: anything else is compiled anew.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    folder: PathBuf,
    owner: u32,
}

impl Cache {
    /// Uses this folder, which is made where it is not there.
    pub(crate) fn at(folder: &Path) -> Result<Self, CacheError> {
        let failed = |source| CacheError::Io {
            path: folder.to_owned(),
            source,
        };
        make(folder).map_err(failed)?;
        // What this process makes belongs to whom it runs as.
        let probe = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
        let owner = owner_of(&probe.as_file().metadata().map_err(failed)?);
        let metadata = fs::symlink_metadata(folder).map_err(failed)?;
        let problem = if !metadata.is_dir() {
            Some("it is a link; name the folder itself")
        } else if owner_of(&metadata) != owner {
            Some("it belongs to another user; use one of your own")
        } else if is_open_to_others(&metadata) {
            Some("others may read or write it; set its mode to 0700")
        } else {
            None
        };
        match problem {
            Some(problem) => Err(CacheError::Untrusted {
                path: folder.to_owned(),
                problem,
            }),
            None => Ok(Self {
                folder: folder.to_owned(),
                owner,
            }),
        }
    }

    /// The component that was compiled from bytes with this digest, if it is there and can be trusted.
    pub(crate) fn read(&self, engine: &Engine, digest: Digest) -> Option<Component> {
        let mut file = File::open(self.file(engine, digest)).ok()?;
        let metadata = file.metadata().ok()?;
        if !metadata.is_file() || owner_of(&metadata) != self.owner || is_open_to_others(&metadata) {
            return None;
        }
        let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).ok()?);
        file.read_to_end(&mut bytes).ok()?;
        let (sum, compiled) = bytes.strip_prefix(MAGIC)?.split_first_chunk::<SUM>()?;
        if Digest::of(compiled).to_string().as_bytes() != sum {
            return None;
        }
        deserialize(engine, compiled)
    }

    /// Keeps a compiled component for the next process.
    pub(crate) fn write(&self, engine: &Engine, digest: Digest, component: &Component) -> io::Result<()> {
        let compiled = component.serialize().map_err(io::Error::other)?;
        // Made with rights for nobody else, and in its place only when it is whole.
        let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
        file.write_all(MAGIC)?;
        file.write_all(Digest::of(&compiled).to_string().as_bytes())?;
        file.write_all(&compiled)?;
        file.persist(self.file(engine, digest))
            .map_err(|error| error.error)?;
        Ok(())
    }

    fn file(&self, engine: &Engine, digest: Digest) -> PathBuf {
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        let engine = hasher.hash_one(engine.precompile_compatibility_hash());
        let digest = digest.to_string();
        let digest = digest.trim_start_matches("sha256:");
        self.folder.join(format!("{digest}-{engine:016x}.compiled"))
    }
}

/// How every file begins.
const MAGIC: &[u8] = b"tripwit compiled component 1\n";
/// The length of a written digest, in bytes.
const SUM: usize = 71;

#[expect(
    unsafe_code,
    reason = "the only way to load machine code; the bytes are those that this user's process wrote, by owner, rights and digest"
)]
fn deserialize(engine: &Engine, compiled: &[u8]) -> Option<Component> {
    // SAFETY: the bytes came from `Component::serialize`: only this user can write the file that they were read from, and
    // their digest is the one that was written with them. The engine refuses those of another version or other settings.
    unsafe { Component::deserialize(engine, compiled) }.ok()
}

#[cfg(unix)]
fn make(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;

    if let Some(parent) = folder.parent() {
        fs::create_dir_all(parent)?;
    }
    match fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(unix)]
fn owner_of(metadata: &fs::Metadata) -> u32 {
    std::os::unix::fs::MetadataExt::uid(metadata)
}

#[cfg(unix)]
fn is_open_to_others(metadata: &fs::Metadata) -> bool {
    std::os::unix::fs::MetadataExt::mode(metadata) & 0o077 != 0
}

/// Where rights cannot be looked at, no folder can be trusted.
#[cfg(not(unix))]
fn make(_folder: &Path) -> io::Result<()> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "compiled policies are kept on Unix only",
    ))
}

#[cfg(not(unix))]
fn owner_of(_metadata: &fs::Metadata) -> u32 {
    0
}

#[cfg(not(unix))]
fn is_open_to_others(_metadata: &fs::Metadata) -> bool {
    true
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;
    use crate::engine::engine;

    const BYTES: &[u8] = include_bytes!("../components/outbox.wasm");

    fn filled() -> (tempfile::TempDir, Cache, Engine, Digest) {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(&folder.path().join("new").join("cache")).unwrap();
        let (engine, digest) = (engine().unwrap(), Digest::of(BYTES));
        assert!(cache.read(&engine, digest).is_none());
        let component = Component::new(&engine, BYTES).unwrap();
        cache.write(&engine, digest, &component).unwrap();
        (folder, cache, engine, digest)
    }

    #[test]
    fn what_was_compiled_is_read_back_under_its_engine_and_digest_only() {
        let (_folder, cache, engine, digest) = filled();
        assert!(cache.read(&engine, digest).is_some());
        assert!(cache.read(&engine, Digest::of(b"other")).is_none());
        let other = Engine::new(wasmtime::Config::new().epoch_interruption(false)).unwrap();
        assert!(cache.read(&other, digest).is_none());
        let file = cache.file(&engine, digest);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(&cache.folder).unwrap().count(), 1);
    }

    #[test]
    fn a_file_that_is_damaged_or_that_others_could_have_written_is_not_read() {
        let (_folder, cache, engine, digest) = filled();
        let file = cache.file(&engine, digest);
        let good = fs::read(&file).unwrap();
        for place in [
            0,
            MAGIC.len() + 3,
            MAGIC.len() + SUM,
            good.len() / 2,
            good.len() - 1,
        ] {
            let mut bad = good.clone();
            bad[place] ^= 1;
            fs::write(&file, bad).unwrap();
            assert!(cache.read(&engine, digest).is_none(), "byte {place}");
        }
        for length in [0, 5, MAGIC.len() + SUM, good.len() - 1] {
            fs::write(&file, &good[..length]).unwrap();
            assert!(cache.read(&engine, digest).is_none(), "{length} bytes");
        }
        fs::write(&file, &good).unwrap();
        assert!(cache.read(&engine, digest).is_some());
        fs::set_permissions(&file, fs::Permissions::from_mode(0o620)).unwrap();
        assert!(cache.read(&engine, digest).is_none());
    }

    #[test]
    fn a_folder_that_others_could_write_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let open = folder.path().join("open");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).unwrap();
        let error = Cache::at(&open).unwrap_err().to_string();
        assert!(error.contains("0700") && error.contains("open"), "{error}");
        fs::set_permissions(&open, fs::Permissions::from_mode(0o700)).unwrap();
        Cache::at(&open).unwrap();
        let link = folder.path().join("link");
        symlink(&open, &link).unwrap();
        assert!(Cache::at(&link).unwrap_err().to_string().contains("link"));
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(matches!(Cache::at(&file), Err(CacheError::Io { .. })));
    }
}
