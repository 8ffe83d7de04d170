//! The circuits in a file, from one run to the next.

use std::cell::Cell;
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use parking_lot::{Mutex, ReentrantMutex};
use tripwit::{Breakers, RestoreError, State, Status, Subscription};
use tripwit_examples::terminal;

/// Circuits that are saved after every transition, as long as this lives.
#[derive(Debug)]
pub(crate) struct Kept {
    file: Arc<StateFile>,
    /// Every circuit that the file had; none of a file that was not there.
    restored: Option<Vec<Status>>,
    _saving: Subscription,
}

impl Kept {
    /// Restores what the file has, if it is there, and keeps it up to date from now on.
    ///
    /// Who subscribes later hears of a transition when it has been saved already, so what is printed is in the file.
    pub(crate) fn start(path: &Path, breakers: &Breakers, longest_wait: Duration) -> anyhow::Result<Self> {
        let cannot = || format!("cannot use the state file {}", path.display());
        let restored = match breakers.restore_from(path) {
            Ok(_) => Some(breakers.statuses()),
            Err(RestoreError::File { source, .. }) if source.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error).with_context(cannot),
        };
        for status in restored.iter().flatten() {
            let wait = status.retry_after.unwrap_or_default();
            anyhow::ensure!(
                wait <= longest_wait,
                "{}: {} is open for {wait:.2?} more, and here no circuit is for more than {longest_wait:.2?}; \
                 run with the --scale that it was saved with",
                cannot(),
                status.key,
            );
        }
        // At once, so that a file that cannot be written is found now.
        breakers.save_to(path).with_context(cannot)?;
        let file = Arc::new(StateFile {
            path: path.to_owned(),
            breakers: breakers.clone(),
            turn: ReentrantMutex::new(Cell::new(Turn::Free)),
            failure: Mutex::default(),
        });
        let saver = Arc::clone(&file);
        Ok(Self {
            file,
            restored,
            _saving: breakers.subscribe(move |_| saver.save()),
        })
    }

    /// The circuits that were not closed when they were saved.
    pub(crate) fn open_circuits(&self) -> impl Iterator<Item = &str> {
        let open = |status: &&Status| status.state != State::Closed;
        let restored = self.restored.iter().flatten();
        restored.filter(open).map(|status| status.key.as_str())
    }

    /// Why a transition was not saved, if one was not.
    pub(crate) fn failure(&self) -> Option<String> {
        self.file.failure.lock().clone()
    }
}

/// What was restored: keys, states, waits.
impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.file.path.display();
        let Some(restored) = &self.restored else {
            return write!(f, "{path} is not there yet: every circuit starts closed");
        };
        write!(f, "restored {} circuit(s) from {path}", restored.len())?;
        for status in restored {
            write!(f, "\n  {}: {}", status.key, status.state)?;
            if let Some(wait) = status.retry_after {
                write!(f, ", {wait:.2?} of its wait left")?;
            }
            let failures = status.counts.consecutive_failures;
            if status.state == State::Closed && failures > 0 {
                write!(f, ", {failures} failure(s) in a row")?;
            }
        }
        Ok(())
    }
}

/// The file, and who writes it.
#[derive(Debug)]
struct StateFile {
    path: PathBuf,
    breakers: Breakers,
    turn: ReentrantMutex<Cell<Turn>>,
    failure: Mutex<Option<String>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Free,
    Saving,
    /// A circuit has moved since the saving began.
    Again,
}

impl StateFile {
    /// Saves all circuits as they are now.
    ///
    /// One thread at a time looks at the circuits and writes, so no older state takes the place of a newer one. While it looks,
    /// it may be handed what another circuit has to tell, and then is here once more: it saves again, when it is through.
    fn save(&self) {
        let turn = self.turn.lock();
        if turn.get() != Turn::Free {
            turn.set(Turn::Again);
            return;
        }
        loop {
            turn.set(Turn::Saving);
            if let Err(error) = self.breakers.save_to(&self.path) {
                self.fail(format!("{:#}", anyhow::Error::new(error)));
            }
            if turn.replace(Turn::Free) == Turn::Saving {
                return;
            }
        }
    }

    fn fail(&self, problem: String) {
        let mut failure = self.failure.lock();
        if failure.is_none() {
            terminal::complain(&problem);
            *failure = Some(problem);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use tripwit::Policy;
    use tripwit::settings::Consecutive;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn breakers() -> Breakers {
        let settings = Consecutive::default().failure_threshold(1).open_for(MINUTE);
        Breakers::builder(Policy::consecutive().expect("it ships with the crate"))
            .settings(settings)
            .build()
            .expect("good settings")
    }

    fn trip(breakers: &Breakers, key: &str) {
        breakers.breaker(key).expect("a good key").trip();
    }

    #[test]
    fn whoever_subscribes_later_finds_every_transition_in_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("state.json");
        let saving = breakers();
        let _kept = Kept::start(&path, &saving, MINUTE).expect("a new file");
        let found = Arc::new(Mutex::new(Vec::new()));
        let (finder, looked_at) = (Arc::clone(&found), path.clone());
        let _looking = saving.subscribe(move |event| {
            let next = breakers();
            next.restore_from(&looked_at).expect("a whole file");
            finder.lock().push((
                event.key.to_string(),
                next.tripped().contains(&event.key.to_string()),
            ));
        });
        for key in ["a", "b", "c"] {
            trip(&saving, key);
        }
        let found = found.lock().clone();
        assert_eq!(found, ["a", "b", "c"].map(|key| (key.to_owned(), true)));
    }

    #[test]
    fn circuits_that_open_at_once_on_many_threads_are_all_in_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("state.json");
        let saving = breakers();
        let kept = Kept::start(&path, &saving, MINUTE).expect("a new file");
        thread::scope(|scope| {
            for number in 0..16 {
                let saving = &saving;
                scope.spawn(move || trip(saving, &format!("key {number:02}")));
            }
        });
        assert_eq!(kept.failure(), None);
        let next = breakers();
        let restored = Kept::start(&path, &next, MINUTE).expect("a whole file");
        assert_eq!(next.tripped(), saving.tripped());
        assert_eq!(restored.open_circuits().count(), 16);
    }

    #[test]
    fn a_damaged_file_is_refused_in_one_line_that_names_it_and_left_as_it_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("state.json");
        let saving = breakers();
        drop(Kept::start(&path, &saving, MINUTE).expect("a new file"));
        let whole = std::fs::read_to_string(&path).expect("it is there");
        let cut = &whole[..whole.len() / 2];
        std::fs::write(&path, cut).expect("it can be written");
        let error = Kept::start(&path, &breakers(), MINUTE).expect_err("it is cut short");
        let text = format!("{error:#}");
        assert!(text.starts_with(&format!("cannot use the state file {}: ", path.display())));
        assert!(text.contains("damaged") && !text.contains('\n'), "{text}");
        assert_eq!(std::fs::read_to_string(&path).expect("it is there"), cut);
    }

    #[test]
    fn a_wait_that_no_circuit_of_this_run_has_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("state.json");
        let saving = breakers();
        let _kept = Kept::start(&path, &saving, MINUTE).expect("a new file");
        trip(&saving, "sms");
        let error = Kept::start(&path, &breakers(), MINUTE / 30).expect_err("it waits too long");
        let text = error.to_string();
        assert!(
            text.contains("sms is open for") && text.contains("--scale"),
            "{text}"
        );
    }

    #[test]
    fn a_file_that_cannot_be_written_is_found_at_the_start() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("missing/state.json");
        let error = Kept::start(&path, &breakers(), MINUTE).expect_err("no such folder");
        assert!(
            format!("{error:#}").contains("cannot save the circuits in"),
            "{error:#}"
        );
    }

    #[test]
    fn a_failure_to_save_is_kept_for_the_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let saving = breakers();
        let kept = Kept::start(&folder.path().join("state.json"), &saving, MINUTE).expect("a new file");
        drop(folder);
        trip(&saving, "sms");
        assert!(
            kept.failure()
                .expect("the folder is gone")
                .contains("cannot save")
        );
    }
}
