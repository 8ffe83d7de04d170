//! The folder that is watched.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::{MissedTickBehavior, interval};
use tripwit::{Clock as _, Watch, Watched};

use crate::clock::SteadyClock;

/// A folder for policies, and one beside it in which files are written.
#[derive(Debug)]
pub(crate) struct Folder {
    root: tempfile::TempDir,
}

impl Folder {
    pub(crate) fn new() -> anyhow::Result<Self> {
        let root = tempfile::tempdir().context("cannot make a temporary folder")?;
        for name in [WATCHED, WRITTEN] {
            std::fs::create_dir(root.path().join(name))?;
        }
        Ok(Self { root })
    }

    /// What is to be watched.
    pub(crate) fn watched(&self) -> PathBuf {
        self.root.path().join(WATCHED)
    }

    /// Drops in a policy with its settings: written elsewhere, then renamed, the component last, so that whoever watches never sees a part.
    pub(crate) fn drop_in(&self, name: &str, component: &[u8], settings: &str) -> anyhow::Result<()> {
        self.put(&format!("{name}.json"), settings.as_bytes())?;
        self.put(&format!("{name}.wasm"), component)
    }

    fn put(&self, name: &str, bytes: &[u8]) -> anyhow::Result<()> {
        let written = self.root.path().join(WRITTEN).join(name);
        std::fs::write(&written, bytes)
            .and_then(|()| std::fs::rename(&written, self.watched().join(name)))
            .with_context(|| format!("cannot write {}", written.display()))
    }
}

const WATCHED: &str = "policy";
const WRITTEN: &str = "incoming";

/// What came of a look at the folder. Times are readings of the breaker's clock, in nanoseconds.
#[derive(Debug)]
pub(crate) struct Look {
    pub(crate) begin: u64,
    pub(crate) end: u64,
    /// Else why what is there was refused.
    pub(crate) found: Result<Watched, String>,
}

/// Looks again and again, and tells what comes of it, as long as somebody listens. `Watch::start` does so on a thread of its own and
/// leaves the telling to the log; here each answer is waited for.
pub(crate) async fn look_again_and_again(
    mut watch: Watch,
    every: Duration,
    clock: SteadyClock,
    told: UnboundedSender<Look>,
) -> anyhow::Result<()> {
    let mut next = interval(every);
    next.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while !told.is_closed() {
        next.tick().await;
        let begin = clock.monotonic();
        // A swap compiles and blocks: that is nothing for the threads that calls run on.
        let looked = tokio::task::spawn_blocking(move || {
            let found = watch.poll();
            (watch, found)
        });
        let (back, found) = looked.await.context("a look ended early")?;
        watch = back;
        if let Some(found) = found {
            let look = Look {
                begin,
                end: clock.monotonic(),
                found: found.map_err(|error| format!("{:#}", anyhow::Error::new(error))),
            };
            drop(told.send(look));
        }
    }
    Ok(())
}
