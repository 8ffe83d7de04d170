//! Loading a policy: a component, compiled and linked once.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use wasmtime::component::{Component, Linker};

use crate::bindings::BreakerPre;
use crate::bindings::exports::tripwit::breaker::policy::Setup;
use crate::builder::DEFAULT_MAX_MEMORY;
use crate::clock::SystemClock;
use crate::engine::engine;
use crate::error::PolicyError;
use crate::instance::{Fault, Host, Instance, Start, link};
use crate::instrumentation::Instrumentation;
use crate::precheck::{self, Interfaces};
use crate::status::{FieldValue, fields};

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
    digest: String,
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
        shipped(&LOADED, include_bytes!("../components/consecutive.wasm"))
    }

    /// The shipped policy of an outbox: a failure opens, cool-down cycles close. Compiled once a process.
    ///
    /// # Errors
    ///
    /// When the WebAssembly engine cannot be used on this machine.
    pub fn outbox() -> Result<Self, PolicyError> {
        static LOADED: Mutex<Option<Policy>> = Mutex::new(None);
        shipped(&LOADED, include_bytes!("../components/outbox.wasm"))
    }

    /// Loads a component from a file.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or as [`from_bytes`](Self::from_bytes).
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, PolicyError> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(|source| PolicyError::Read {
            path: path.to_owned(),
            source,
        })?;
        Self::from_bytes(&bytes)
    }

    /// Loads a component from its bytes: checks what it is and what it imports, compiles it, and starts it once on
    /// trial.
    ///
    /// # Errors
    ///
    /// When the bytes are no component, are more than 32 MiB, import anything beyond two clocks, log and spans, speak
    /// another version of the contract, or do not start. Each error names what it is about.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, PolicyError> {
        let interfaces = precheck::check(bytes)?;
        let engine = engine().map_err(|error| PolicyError::Compile(error.into_boxed_dyn_error()))?;
        let component = Component::new(&engine, bytes)
            .map_err(|error| PolicyError::Compile(error.into_boxed_dyn_error()))?;
        let pre = linked(&component).map_err(|error| PolicyError::Link(error.into_boxed_dyn_error()))?;
        let description = describe(&pre).map_err(|fault| PolicyError::Faulty {
            problem: fault.text(),
        })?;
        Ok(Self(Arc::new(Loaded {
            pre,
            description,
            interfaces,
            size: bytes.len(),
            digest: digest(bytes),
        })))
    }

    /// What the policy says about itself.
    #[must_use]
    pub fn description(&self) -> &Description {
        &self.0.description
    }

    /// The component's digest: `sha256:` and 64 hexadecimal digits.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.0.digest
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

fn linked(component: &Component) -> wasmtime::Result<BreakerPre<Host>> {
    let mut linker = Linker::new(component.engine());
    link(&mut linker)?;
    BreakerPre::new(linker.instantiate_pre(component)?)
}

fn describe(pre: &BreakerPre<Host>) -> Result<Description, Fault> {
    let mut instance = Instance::start(
        pre,
        Start {
            clock: Arc::new(SystemClock),
            setup: Setup {
                seed: 0,
                instrumentation: Instrumentation::ALL.into(),
                namespace: None,
            },
            max_memory: DEFAULT_MAX_MEMORY,
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

fn digest(bytes: &[u8]) -> String {
    let mut text = String::from("sha256:");
    for byte in Sha256::digest(bytes) {
        text.push_str(&format!("{byte:02x}"));
    }
    text
}
