//! Policies that are swapped in when their file is dropped into a folder.

use std::fmt;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Thread;
use std::time::{Duration, SystemTime};

use crate::breakers::Breakers;
use crate::digest::Digest;
use crate::error::{PolicyError, SwapError};
use crate::loader::Loader;
use crate::policy::read;
use crate::table::SettingsTable;

/// Watches a component file, or a folder of them, and lets what is found there decide.
///
/// Of a folder the file `*.wasm` that was modified last counts (of several, the last by name). Beside `window.wasm` may be
/// `window.json`, the settings for every key; without one the settings stay where the policy is another version of the
/// same, and are the policy's defaults where it is another one. Settings that were given for single keys and prefixes stay
/// with the same policy. A settings file that changes alone reconfigures.
///
/// A file is taken when it looks the same twice in a row, so that one which is still being written is not; to be sure,
/// write it elsewhere and rename it. One that is refused changes nothing, and is reported once, as an error in the log and
/// by [`poll`](Self::poll): until it is another one. A file that goes changes nothing; of a folder, the one that
/// was modified last of the rest then counts.
///
/// ```no_run
/// # use tripwit::{Breakers, Digest, Policy, Watch};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let breakers = Breakers::new(Policy::consecutive()?)?;
/// let audited: Digest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855".parse()?;
/// let watching = Watch::new(&breakers, "/etc/orders/policy").allow([audited]).start()?;
/// // As long as `watching` lives.
/// # drop(watching);
/// # Ok(()) }
/// ```
#[must_use = "nothing is watched until `start` or `poll` is called"]
pub struct Watch {
    breakers: Breakers,
    path: PathBuf,
    loader: Loader,
    interval: Duration,
    /// What it looked like the last time.
    seen: Option<Look>,
    /// What was dealt with last.
    settled: Option<Look>,
}

/// What there is to see without opening a file. `Ok(None)`: a folder without a component. `Err`: nothing can be seen, and
/// why not.
type Look = Result<Option<Found>, String>;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Found {
    component: Stamp,
    settings: Option<Stamp>,
}

/// One file as it was at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stamp {
    modified: Option<SystemTime>,
    path: PathBuf,
    size: u64,
}

/// What came of a look at what is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Watched {
    /// Another policy decides.
    Swapped(Digest),
    /// The policy is the same, with other settings.
    Reconfigured,
    /// What is there is what decides already.
    Same,
}

/// Why what is watched does not decide. Circuits go on as they were.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WatchError {
    /// There is nothing to be seen.
    #[error("cannot watch {}: {problem}", path.display())]
    Unseen {
        /// What is watched.
        path: PathBuf,
        /// Why not.
        problem: String,
    },
    /// The component is not taken.
    #[error("the watched policy {} is not taken", path.display())]
    Policy {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: PolicyError,
    },
    /// The settings cannot be read.
    #[error("cannot read the settings {}: {problem}", path.display())]
    Settings {
        /// The file.
        path: PathBuf,
        /// Why not.
        problem: String,
    },
    /// The policy does not take over.
    #[error("the watched policy {} does not take over", path.display())]
    Swap {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: SwapError,
    },
}

impl Watch {
    /// Will watch a component file, or a folder of them. Neither needs to be there yet.
    pub fn new(breakers: &Breakers, path: impl Into<PathBuf>) -> Self {
        Self {
            breakers: breakers.clone(),
            path: path.into(),
            loader: Loader::default(),
            interval: Duration::from_secs(1),
            seen: None,
            settled: None,
        }
    }

    /// Takes only components with these digests. Default: any. Called again, it adds to them.
    pub fn allow(mut self, digests: impl IntoIterator<Item = Digest>) -> Self {
        self.loader = self.loader.allow(digests);
        self
    }

    /// Loads components this way: [`Policy::loader`](crate::Policy::loader) says which ways there are. Default: as [`Policy::from_file`](crate::Policy::from_file) does.
    pub fn loader(mut self, loader: Loader) -> Self {
        self.loader = loader;
        self
    }

    /// How often to look. Range: from 10 ms. Default: 1 s.
    pub fn every(mut self, interval: Duration) -> Self {
        self.interval = interval.max(SHORTEST);
        self
    }

    /// Watches on a thread of its own, as long as what this returns lives. Swaps are made on that thread.
    ///
    /// # Errors
    ///
    /// When no thread can be started.
    pub fn start(mut self) -> std::io::Result<Watching> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let handle = std::thread::Builder::new()
            .name("tripwit-watch".into())
            .spawn(move || {
                while !stopped.load(Ordering::Acquire) {
                    let _reported = self.poll();
                    std::thread::park_timeout(self.interval);
                }
            })?;
        Ok(Watching {
            stop,
            thread: handle.thread().clone(),
        })
    }

    /// Looks once, for those who have a thread of their own for it. `None`: nothing has changed since the last look, or it
    /// has only just changed.
    ///
    /// # Errors
    ///
    /// When what is there now does not decide: once for each change.
    pub fn poll(&mut self) -> Option<Result<Watched, WatchError>> {
        let look = look(&self.path);
        if self.settled.as_ref() == Some(&look) {
            return None;
        }
        // Nothing to see is nothing that may still be in the midst of being written.
        if matches!(look, Ok(Some(_))) && self.seen.as_ref() != Some(&look) {
            self.seen = Some(look);
            return None;
        }
        let answer = match &look {
            Ok(None) => {
                self.settled = Some(look);
                return None;
            }
            Ok(Some(found)) => self.take(found),
            Err(problem) => Err(WatchError::Unseen {
                path: self.path.clone(),
                problem: problem.clone(),
            }),
        };
        let busy = matches!(
            answer,
            Err(WatchError::Swap {
                source: SwapError::Busy,
                ..
            })
        );
        if busy {
            // It is nobody's fault: the next look tries again.
            return None;
        }
        self.settled = Some(look);
        if let Err(error) = &answer {
            tracing::error!(
                target: "tripwit",
                problem = chain(error),
                "The watched policy is refused; circuits go on as they were"
            );
        }
        Some(answer)
    }

    fn take(&self, found: &Found) -> Result<Watched, WatchError> {
        let path = &found.component.path;
        let policy = |source| WatchError::Policy {
            path: path.clone(),
            source,
        };
        let bytes = read(path, &self.loader.limits).map_err(policy)?;
        let regime = self.breakers.0.env.regime();
        let now = &regime.policy;
        let same = Digest::of(&bytes) == now.digest();
        let candidate = if same {
            now.clone()
        } else {
            self.loader.bytes(&bytes).map_err(policy)?
        };
        let kept = if candidate.is_version_of(now) {
            regime.settings.clone()
        } else {
            SettingsTable::default()
        };
        let settings = match &found.settings {
            Some(stamp) => SettingsTable {
                every: settings_text(&stamp.path)?.into(),
                ..kept
            },
            None => kept,
        };
        let swap = |source| WatchError::Swap {
            path: path.clone(),
            source,
        };
        if !same {
            let digest = candidate.digest();
            self.breakers.swap(candidate, settings).map_err(swap)?;
            return Ok(Watched::Swapped(digest));
        }
        if settings.every == regime.settings.every {
            return Ok(Watched::Same);
        }
        self.breakers.reconfigure(settings).map_err(swap)?;
        Ok(Watched::Reconfigured)
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch")
            .field("path", &self.path)
            .field("loader", &self.loader)
            .field("interval", &self.interval)
            .finish_non_exhaustive()
    }
}

/// A watch that goes on as long as this lives.
#[derive(Debug)]
#[must_use = "watching ends when this is dropped"]
pub struct Watching {
    stop: Arc<AtomicBool>,
    thread: Thread,
}

impl Drop for Watching {
    /// Does not wait for a swap that is under way.
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

const SHORTEST: Duration = Duration::from_millis(10);
/// The largest settings file that is read, in bytes.
const MAX_SETTINGS: u64 = 1 << 20;

fn look(path: &Path) -> Look {
    let text = |error: std::io::Error| error.to_string();
    let metadata = std::fs::metadata(path).map_err(text)?;
    let component = if metadata.is_dir() {
        let Some(newest) = newest(path).map_err(text)? else {
            return Ok(None);
        };
        newest
    } else {
        Stamp::new(path.to_owned(), &metadata)
    };
    let settings = component.path.with_extension("json");
    let settings = std::fs::metadata(&settings)
        .ok()
        .map(|metadata| Stamp::new(settings, &metadata));
    Ok(Some(Found { component, settings }))
}

fn newest(folder: &Path) -> std::io::Result<Option<Stamp>> {
    let mut newest: Option<Stamp> = None;
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let is_component = path.extension().is_some_and(|extension| extension == "wasm");
        // One that has gone in between is none.
        if let Some(metadata) = is_component.then(|| std::fs::metadata(&path).ok()).flatten()
            && metadata.is_file()
        {
            let stamp = Stamp::new(path, &metadata);
            if newest.as_ref().is_none_or(|newest| stamp.is_after(newest)) {
                newest = Some(stamp);
            }
        }
    }
    Ok(newest)
}

impl Stamp {
    fn new(path: PathBuf, metadata: &Metadata) -> Self {
        Self {
            modified: metadata.modified().ok(),
            size: metadata.len(),
            path,
        }
    }

    fn is_after(&self, other: &Self) -> bool {
        (&self.modified, &self.path) > (&other.modified, &other.path)
    }
}

fn settings_text(path: &Path) -> Result<String, WatchError> {
    let failed = |problem: String| WatchError::Settings {
        path: path.to_owned(),
        problem,
    };
    let size = std::fs::metadata(path)
        .map_err(|error| failed(error.to_string()))?
        .len();
    if size > MAX_SETTINGS {
        return Err(failed(format!(
            "it has {size} bytes; at most {MAX_SETTINGS} are read"
        )));
    }
    std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))
}

/// An error with all that it comes from, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}
