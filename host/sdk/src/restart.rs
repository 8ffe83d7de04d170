//! The circuits of one process, taken over by the next.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::bindings::exports::tripwit::breaker::policy::Snapshot;
use crate::breakers::{Breakers, Inner};
use crate::circuit::Circuit;
use crate::clock::Stopwatch;
use crate::error::{AttachError, SwapError, check_key};
use crate::handover::{Copy, Way};
use crate::machine::{Cx, Machine};
use crate::regime::Regime;
use crate::settings::Settings;
use crate::snapshots::{Room, Saved, Taken};
use crate::state_file::{SavedCircuit, State, StateError};
use crate::trial::faulty;

/// Why the circuits could not be saved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SaveError {
    /// The file cannot be written. What it held before is still there.
    #[error("cannot save the circuits in {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// No JSON can be made of them.
    #[error("cannot write the circuits as JSON: {0}")]
    Json(serde_json::Error),
}

/// Why saved circuits were not taken over. But for the last one, nothing has changed: none of them is there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// The file cannot be read.
    #[error("cannot read the saved circuits {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The text is not what was saved.
    #[error(transparent)]
    State(#[from] StateError),
    /// The policy does not take the circuits over.
    #[error("the saved circuits are not restored: {0}")]
    Trial(SwapError),
    /// There is no room for a circuit.
    #[error("not all saved circuits are restored: {0}")]
    Circuit(AttachError),
}

impl Breakers {
    /// The circuits as a JSON text, for [`restore`](Self::restore) in the next process. docs/state-file.md of the
    /// repository has its schema. Circuits that are closed and have nothing recorded are left out: they are what they will
    /// be without it.
    ///
    /// Waits are what is left of them now: the time until they are restored does not count.
    ///
    /// This blocks until every circuit is copied. Where there are more than one batch takes (a fifth of a millisecond), it
    /// sleeps between two as long as the one before took: in async code, use a thread for it.
    ///
    /// # Errors
    ///
    /// When no JSON can be made of them, which no circuit is known to do.
    pub fn save(&self) -> Result<String, SaveError> {
        self.0.save().write().map_err(SaveError::Json)
    }

    /// Saves the circuits in a file, in the place of what it held. Whoever reads the file finds the one or the other, whole,
    /// whatever happens meanwhile.
    ///
    /// As every call, it may give out what circuits have to tell before it returns: a [subscriber](Self::subscribe) that saves
    /// may be called again, on its own thread, by its own saving. So hold no lock around this that the subscriber takes.
    /// It blocks as [`save`](Self::save) does, and for the disk.
    ///
    /// # Errors
    ///
    /// When the file cannot be written. It holds what it held then.
    pub fn save_to(&self, path: impl AsRef<Path>) -> Result<(), SaveError> {
        let path = path.as_ref();
        let json = self.save()?;
        replace(path, json.as_bytes()).map_err(|source| SaveError::File {
            path: path.to_owned(),
            source,
        })
    }

    /// Takes over what [`save`](Self::save) wrote: under this policy, whichever it is, by the rules of a
    /// [`swap`](Self::swap). Gives how many circuits came over.
    ///
    /// Everything is tried first. A circuit that has the key already is replaced, and calls under way on it no longer count.
    /// Circuits get the settings of the table here, except those that were asked for with settings of their own under this
    /// policy.
    ///
    /// An open circuit waits as long as it still had to wait when it was saved, whatever the clocks have done since.
    ///
    /// # Errors
    ///
    /// When the text is damaged, something else or of an unknown version, or the policy refuses a circuit: nothing has
    /// changed then. When there are more circuits than may be, those that came before stay.
    pub fn restore(&self, json: &str) -> Result<usize, RestoreError> {
        self.0.restore(self, &State::read(json)?)
    }

    /// Takes over what [`save_to`](Self::save_to) wrote.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, and as [`restore`](Self::restore). A file that is not there is an error of kind
    /// `NotFound`, as of a first start.
    pub fn restore_from(&self, path: impl AsRef<Path>) -> Result<usize, RestoreError> {
        let path = path.as_ref();
        let json = std::fs::read_to_string(path).map_err(|source| RestoreError::File {
            path: path.to_owned(),
            source,
        })?;
        self.restore(&json)
    }
}

/// Writes a file beside it, and puts it in its place once it is on the disk.
fn replace(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    // So that the new name outlives a power cut. Not every system opens folders.
    if let Ok(folder) = std::fs::File::open(folder) {
        let _ = folder.sync_all();
    }
    Ok(())
}

impl Inner {
    fn save(&self) -> State {
        let mut all = Vec::new();
        for shard in &self.shards {
            let mut from = 0;
            shard.in_batches(&self.env, |machine, cx, watch| {
                machine.save_batch(cx, &mut from, watch, &mut all)
            });
        }
        let mut circuits: Vec<_> = all.into_iter().map(|(circuit, _)| circuit).collect();
        circuits.sort_unstable_by(|one, other| one.key.cmp(&other.key));
        State::new(&self.env.regime().policy, circuits)
    }

    fn restore(&self, breakers: &Breakers, state: &State) -> Result<usize, RestoreError> {
        let Some(_turn) = self.env.changing.try_lock() else {
            return Err(RestoreError::Trial(SwapError::Busy));
        };
        let regime = self.env.regime();
        let returning = self.returning(&regime, state)?;
        let now = self.env.clock.monotonic();
        for shard in &returning {
            let start = regime.start(&self.env, &Arc::default());
            let mut trial = start.map_err(|fault| RestoreError::Trial(faulty(fault).into()))?;
            for circuit in shard {
                circuit
                    .copy(now)
                    .try_on(&mut trial, now, Way::Swap)
                    .map_err(|problem| RestoreError::Trial(problem.of(&circuit.snapshot.key)))?;
            }
        }
        let mut restored = 0;
        for circuit in returning.into_iter().flatten() {
            let handle = breakers.breaker(&circuit.snapshot.key);
            let handle = handle.map_err(RestoreError::Circuit)?;
            self.shard(handle.shard()).locked(&self.env, |machine, cx| {
                machine.replace(cx, handle.circuit(), circuit)
            });
            restored += 1;
        }
        Ok(restored)
    }

    /// The circuits by shard, with the settings that they will have.
    fn returning(&self, regime: &Regime, state: &State) -> Result<Vec<Vec<Returning>>, StateError> {
        let mut shards: Vec<Vec<Returning>> = self.shards.iter().map(|_| Vec::new()).collect();
        let same = state.is_of(&regime.policy);
        for saved in &state.circuits {
            check_key(&saved.key).map_err(|problem| StateError::Damaged {
                problem: format!("a key: {problem}"),
            })?;
            let own = saved.own_settings.as_deref().filter(|_| same).map(Settings::from);
            let circuit = Returning {
                own: own.is_some(),
                settings: own.unwrap_or_else(|| regime.settings.of(&saved.key).clone()),
                snapshot: saved.snapshot()?,
            };
            if let Some(shard) = shards.get_mut(self.shard_of(&saved.key)) {
                shard.push(circuit);
            }
        }
        Ok(shards)
    }
}

/// A circuit of another process.
struct Returning {
    snapshot: Snapshot,
    settings: Settings,
    own: bool,
}

impl Returning {
    fn copy(&self, now: u64) -> Copy {
        Copy {
            key: self.snapshot.key.as_str().into(),
            now: self.settings.clone(),
            wanted: self.settings.clone(),
            saved: Some(Saved::new(self.snapshot.clone(), now, &Room::default())),
        }
    }
}

impl Machine {
    /// Adds what is to be kept of circuits, from the place `from` on, until the time for one batch is up, with the room that
    /// it takes while it is put together. Says whether there are more.
    fn save_batch(
        &mut self,
        cx: &Cx<'_>,
        from: &mut usize,
        watch: &Stopwatch,
        all: &mut Vec<(SavedCircuit, Taken)>,
    ) -> bool {
        self.batch(from, watch, |machine, index| {
            let circuit = machine.slots.get(index).map(|slot| slot.circuit.clone());
            let Some(circuit) = circuit.filter(|circuit| circuit.is_worth_keeping()) else {
                return;
            };
            let Some(saved) = machine.save_now(cx, &circuit) else {
                return;
            };
            let slot = machine.slots.get(index).filter(|slot| slot.own);
            let own = slot.map(|slot| slot.settings.as_str().to_owned());
            let age = cx.now.saturating_sub(saved.at);
            all.push((SavedCircuit::new(saved.snapshot, age, own), saved.taken));
        })
    }

    /// Puts a circuit of another process in the place of the one that has its key.
    fn replace(&mut self, cx: &Cx<'_>, circuit: &Circuit, returning: Returning) {
        self.let_go(cx, circuit);
        let Some(slot) = self.slots.get_mut(circuit.slot()) else {
            return;
        };
        slot.settings = returning.settings;
        slot.own = returning.own;
        slot.saved = Some(Box::new(Saved::new(returning.snapshot, cx.now, cx.room)));
        circuit.recorded.store(true, Ordering::Relaxed);
        self.enter(cx, circuit);
    }
}
