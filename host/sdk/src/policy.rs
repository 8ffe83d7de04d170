//! Loading a policy: a component, compiled and linked once.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use parking_lot::Mutex;
use wasmtime::component::{Component, Linker};

use crate::bindings::BreakerPre;
use crate::bindings::exports::tripwit::breaker::policy::Setup;
use crate::clock::SystemClock;
use crate::digest::Digest;
use crate::engine::engine;
use crate::error::PolicyError;
use crate::instance::{Fault, Host, Instance, Start, link};
use crate::instrumentation::Instrumentation;
use crate::limits::Limits;
use crate::loader::Loader;
use crate::precheck::Interfaces;
use crate::status::{FieldValue, fields};

/// The shipped components.
pub(crate) const CONSECUTIVE: &[u8] = include_bytes!("../components/consecutive.wasm");
pub(crate) const OUTBOX: &[u8] = include_bytes!("../components/outbox.wasm");
pub(crate) const WINDOW: &[u8] = include_bytes!("../components/window.wasm");

/// A breaker policy: a component that is compiled, linked and found to start.
///
/// Compiling takes some tens of milliseconds, so make one and clone it; clones share the compiled code.
#[derive(Clone)]
pub struct Policy(Arc<Loaded>);

struct Loaded {
    pre: BreakerPre<Host>,
    description: Description,
    interfaces: Interfaces,
    size: usize,
    max_memory: usize,
    digest: Digest,
}

/// What a policy says about itself.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Description {
    /// Its name, such as `consecutive`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What it does, in a sentence.
    pub summary: String,
    /// JSON Schema of its settings, with defaults, units and bounds, as JSON text.
    pub settings_schema: String,
    /// What else it has to say.
    pub extra: Vec<(String, FieldValue)>,
}

impl Policy {
    /// The shipped policy that opens after failures in a row, waits, and probes. Compiled once a process.
    ///
    /// # Errors
    ///
    /// When the WebAssembly engine cannot be used on this machine.
    pub fn consecutive() -> Result<Self, PolicyError> {
        static LOADED: Mutex<Option<Policy>> = Mutex::new(None);
        shipped(&LOADED, CONSECUTIVE)
    }

    /// The shipped policy that opens when too large a share of the last calls, or of those of the last seconds, failed or
    /// were slow. Compiled once a process.
    ///
    /// # Errors
    ///
    /// When the WebAssembly engine cannot be used on this machine.
    pub fn window() -> Result<Self, PolicyError> {
        static LOADED: Mutex<Option<Policy>> = Mutex::new(None);
        shipped(&LOADED, WINDOW)
    }

    /// The shipped policy of an outbox: a failure opens, cool-down cycles close. Compiled once a process.
    ///
    /// # Errors
    ///
    /// When the WebAssembly engine cannot be used on this machine.
    pub fn outbox() -> Result<Self, PolicyError> {
        static LOADED: Mutex<Option<Policy>> = Mutex::new(None);
        shipped(&LOADED, OUTBOX)
    }

    /// Loads a component from a file.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or as [`from_bytes`](Self::from_bytes).
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, PolicyError> {
        Self::loader().file(path)
    }

    /// Loads a component from its bytes: checks what it is and what it imports, compiles it, and starts it once on
    /// trial.
    ///
    /// # Errors
    ///
    /// When the bytes are no component, are more than 32 MiB, hold more than 4 MiB of code, 64 KiB in one function, or
    /// anything else that no policy needs and that makes compiling costly, take longer than a minute to compile, import
    /// anything beyond two clocks, log and spans, speak another version of the contract, or do not start. Each error names
    /// what it is about.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, PolicyError> {
        Self::loader().bytes(bytes)
    }

    /// Loads policies on conditions: only with known digests, with compiled code kept for the next process, with other limits than
    /// the usual ones.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let audited = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855".parse()?;
    /// let policy = tripwit::Policy::loader()
    ///     .allow([audited])
    ///     .cache("/var/cache/orders/policies")?
    ///     .file("/etc/orders/policy.wasm")?;
    /// # drop(policy);
    /// # Ok(()) }
    /// ```
    pub fn loader() -> Loader {
        Loader::default()
    }

    /// Compiles what was found good, or takes it as it was compiled before, links it and starts it once on trial.
    pub(crate) fn compiled(
        bytes: &[u8],
        interfaces: Interfaces,
        digest: Digest,
        loader: &Loader,
    ) -> Result<Self, PolicyError> {
        let (cache, limits) = (loader.cache.as_ref(), &loader.limits);
        let engine = engine().map_err(|error| PolicyError::Compile(error.into_boxed_dyn_error()))?;
        let component = match cache.and_then(|cache| cache.read(&engine, digest)) {
            Some(component) => component,
            None => {
                let component = compile(bytes, limits.compile_time)?;
                if let Some(Err(error)) = cache.map(|cache| cache.write(&engine, digest, &component)) {
                    tracing::warn!(target: "tripwit", problem = %error, "A compiled policy cannot be kept");
                }
                component
            }
        };
        let pre = linked(&component, loader.wasi)
            .map_err(|error| PolicyError::Link(error.into_boxed_dyn_error()))?;
        let description = describe(&pre, limits).map_err(|fault| PolicyError::Faulty {
            problem: fault.text(),
        })?;
        Ok(Self(Arc::new(Loaded {
            pre,
            description,
            interfaces,
            size: bytes.len(),
            max_memory: limits.memory,
            digest,
        })))
    }

    /// What the policy says about itself.
    #[must_use]
    pub fn description(&self) -> &Description {
        &self.0.description
    }

    /// The component's digest.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.0.digest
    }

    /// Whether both are the same policy by name, in the same version or another.
    pub(crate) fn is_version_of(&self, other: &Self) -> bool {
        self.description().name == other.description().name
    }

    /// The component's size, in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.0.size
    }

    /// The interfaces that the component imports, with their versions, in its own order.
    #[must_use]
    pub fn imports(&self) -> &[String] {
        &self.0.interfaces.imports
    }

    /// The interface of the contract that the component exports, such as `tripwit:breaker/policy@0.1.0`.
    #[must_use]
    pub fn contract(&self) -> &str {
        &self.0.interfaces.contract
    }

    /// The most memory of an instance, unless something else is said, in bytes.
    pub(crate) fn max_memory(&self) -> usize {
        self.0.max_memory
    }

    pub(crate) fn pre(&self) -> &BreakerPre<Host> {
        &self.0.pre
    }
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policy")
            .field("name", &self.0.description.name)
            .field("version", &self.0.description.version)
            .field("digest", &self.0.digest)
            .finish()
    }
}

fn shipped(loaded: &Mutex<Option<Policy>>, bytes: &[u8]) -> Result<Policy, PolicyError> {
    let mut loaded = loaded.lock();
    if let Some(policy) = &*loaded {
        return Ok(policy.clone());
    }
    let policy = Policy::from_bytes(bytes)?;
    *loaded = Some(policy.clone());
    Ok(policy)
}

/// Compiles on a thread of its own. Compiling cannot be interrupted: where it takes too long, the thread is left to itself
/// and ends when it is through.
fn compile(bytes: &[u8], limit: Duration) -> Result<Component, PolicyError> {
    let failed = |error: wasmtime::Error| PolicyError::Compile(error.into_boxed_dyn_error());
    let engine = engine().map_err(failed)?;
    let bytes = bytes.to_vec();
    let (done, compiled) = mpsc::sync_channel(1);
    std::thread::Builder::new()
        .name("tripwit-compiler".into())
        .spawn(move || done.send(Component::new(&engine, bytes)))
        .map_err(|error| PolicyError::Compile(error.into()))?;
    match compiled.recv_timeout(limit) {
        Ok(component) => component.map_err(failed),
        Err(RecvTimeoutError::Timeout) => Err(PolicyError::CompileTimeout { limit }),
        Err(RecvTimeoutError::Disconnected) => Err(PolicyError::Compile("the compiler panicked".into())),
    }
}

fn linked(component: &Component, wasi: bool) -> wasmtime::Result<BreakerPre<Host>> {
    let mut linker = Linker::new(component.engine());
    link(&mut linker, wasi.then_some(component))?;
    BreakerPre::new(linker.instantiate_pre(component)?)
}

fn describe(pre: &BreakerPre<Host>, limits: &Limits) -> Result<Description, Fault> {
    let mut instance = Instance::start(
        pre,
        Start {
            clock: Arc::new(SystemClock),
            setup: Setup {
                seed: 0,
                instrumentation: Instrumentation::ALL.into(),
                namespace: None,
            },
            max_memory: limits.memory,
            memory: &Arc::new(AtomicUsize::new(0)),
        },
    )?;
    let told = instance.describe()?;
    Ok(Description {
        name: told.name,
        version: told.version,
        summary: told.summary,
        settings_schema: told.settings_schema,
        extra: fields(told.extra),
    })
}

/// Reads a file that is no larger than a component may be.
pub(crate) fn read(path: &Path, limits: &Limits) -> Result<Vec<u8>, PolicyError> {
    let failed = |source| PolicyError::Read {
        path: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(failed)?;
    let size = file.metadata().map_err(failed)?.len();
    let limit = limits.file as u64;
    if size > limit {
        return Err(PolicyError::TooLarge { size, limit });
    }
    let mut bytes = Vec::new();
    // One that grows while it is read is refused by its size all the same.
    file.take(limit + 1).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compiling_that_takes_too_long_is_given_up() {
        let bytes = include_bytes!("../components/consecutive.wasm");
        let limit = Duration::from_micros(1);
        match compile(bytes, limit) {
            Err(PolicyError::CompileTimeout { limit: named }) => assert_eq!(named, limit),
            Err(other) => panic!("{other:?}"),
            Ok(_) => panic!("compiled within a microsecond"),
        }
        assert!(
            compile(bytes, Limits::default().compile_time).is_ok(),
            "the next one has a thread of its own"
        );
    }
}
