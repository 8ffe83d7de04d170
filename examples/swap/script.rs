//! What happens, step by step. Each step waits for what the one before it led to.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, sleep, timeout_at};
use tripwit::settings::{Consecutive, Window};
use tripwit::{Breakers, Digest, Settings, State, Watched};
use tripwit_examples::scale::Scale;
use tripwit_examples::transitions::Transitions;

use crate::dependency::{Dependency, Health};
use crate::folder::{Folder, Look};
use crate::history::History;

/// The components as they are shipped. An operator has them as files.
pub(crate) const CONSECUTIVE: &[u8] = include_bytes!("../../host/sdk/components/consecutive.wasm");
pub(crate) const WINDOW: &[u8] = include_bytes!("../../host/sdk/components/window.wasm");

/// Real seconds for which an open circuit waits.
const OPEN_SECS: u64 = 30;
/// Real seconds for which things are left as they are.
const SPELL_SECS: u64 = 15;

/// Opens at 20 failures in a row. Every other call failing never makes so many, with as few callers as there are.
pub(crate) fn consecutive(scale: Scale) -> Settings {
    Consecutive::default()
        .failure_threshold(20)
        .open_for(scale.secs(OPEN_SECS))
        .into()
}

/// Opens at 40 % of failures. Every other call failing is more.
fn window(scale: Scale) -> Settings {
    Window::default()
        .window_calls(50)
        .failure_rate(40.0)
        .probe_calls(4)
        .open_for(scale.secs(OPEN_SECS))
        .into()
}

/// What the steps act on, and what they wait for.
#[derive(Debug)]
pub(crate) struct Script<'a> {
    pub(crate) scale: Scale,
    pub(crate) folder: &'a Folder,
    pub(crate) dependency: &'a Dependency,
    pub(crate) breakers: &'a Breakers,
    pub(crate) history: &'a Arc<History>,
    pub(crate) transitions: &'a Transitions,
    pub(crate) looks: UnboundedReceiver<Look>,
    pub(crate) swaps: Vec<Swap>,
    /// What did not come out as promised.
    pub(crate) problems: Vec<String>,
}

/// One swap, from the begin of the look that found the file. Times are readings of the breaker's clock, in nanoseconds.
#[derive(Debug)]
pub(crate) struct Swap {
    pub(crate) to: String,
    pub(crate) begin: u64,
    pub(crate) end: u64,
}

impl Script<'_> {
    /// Plays every step, until `deadline`. Gives the swaps, and what did not come out as promised.
    pub(crate) async fn play(mut self, deadline: Instant) -> (Vec<Swap>, Vec<String>) {
        match timeout_at(deadline, self.steps()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => self.fail(format!("{error:#}")),
            Err(_) => self.fail("a step waited for what did not come in time".to_owned()),
        }
        (self.swaps, self.problems)
    }

    async fn steps(&mut self) -> anyhow::Result<()> {
        let settings = consecutive(self.scale);
        self.folder
            .drop_in("consecutive", CONSECUTIVE, settings.as_str())?;
        let first = self.look().await?;
        if !matches!(first.found, Ok(Watched::Same)) {
            self.fail(format!(
                "the policy that decides already was not left alone: {first:?}"
            ));
        }
        self.spell().await;

        self.note("Swap an open circuit: `window` comes while `consecutive` holds the circuit open.");
        self.dependency_becomes(Health::Down);
        self.history.reach(State::Open).await;
        self.swap("window", WINDOW, &window(self.scale)).await?;
        if self.breakers.tripped().is_empty() {
            self.fail("the circuit was open, and closed by the swap".to_owned());
        }
        self.spell().await;
        self.dependency_becomes(Health::Well);
        self.history.reach(State::Closed).await;

        self.note("What `consecutive` does not see: the dependency fails half of its calls.");
        self.dependency_becomes(Health::Flaky);
        self.history.reach(State::Open).await;

        self.note("Bad files change nothing.");
        let (cut, _) = WINDOW.split_at(WINDOW.len() / 2);
        self.refuse("cut", cut, "{}").await?;
        self.refuse("window", WINDOW, r#"{"failure_rate":400}"#).await?;
        self.dependency_becomes(Health::Well);
        self.history.reach(State::Closed).await;

        self.note("Swap back, the circuit closed and every caller at work.");
        self.swap("consecutive", CONSECUTIVE, &settings).await?;
        let moves = self.history.moves().len();
        self.dependency_becomes(Health::Flaky);
        self.spell().await;
        self.dependency_becomes(Health::Well);
        if self.history.moves().len() > moves {
            self.fail("under `consecutive` the circuit moved, although every other call was good".to_owned());
        }
        Ok(())
    }

    /// Drops in a good policy, and waits until it decides.
    async fn swap(&mut self, name: &str, component: &[u8], settings: &Settings) -> anyhow::Result<()> {
        self.folder.drop_in(name, component, settings.as_str())?;
        let look = self.look().await?;
        match &look.found {
            Ok(Watched::Swapped(digest)) if *digest == Digest::of(component) => {}
            other => anyhow::bail!("{name}.wasm was dropped in, and this came of it: {other:?}"),
        }
        let decides = self.breakers.policy().description().name.clone();
        if decides != name {
            self.fail(format!("{name} was swapped in, and {decides} decides"));
        }
        let took = Duration::from_nanos(look.end - look.begin);
        self.note(&format!(
            "({name} decides, {took:.1?} after its file was seen; the circuit is {})",
            self.state()
        ));
        self.swaps.push(Swap {
            to: decides,
            begin: look.begin,
            end: look.end,
        });
        Ok(())
    }

    /// Drops in a bad file, and waits until it is refused.
    async fn refuse(&mut self, name: &str, component: &[u8], settings: &str) -> anyhow::Result<()> {
        let before = self.breakers.policy().digest();
        self.folder.drop_in(name, component, settings)?;
        let look = self.look().await?;
        if look.found.is_ok() || self.breakers.policy().digest() != before {
            self.fail(format!(
                "a bad {name}.wasm was dropped in, and taken: {:?}",
                look.found
            ));
        }
        let decides = self.breakers.policy().description().name.clone();
        self.note(&format!(
            "({decides} still decides; the circuit is {})",
            self.state()
        ));
        Ok(())
    }

    async fn look(&mut self) -> anyhow::Result<Look> {
        self.looks
            .recv()
            .await
            .context("nobody watches the folder any more")
    }

    async fn spell(&self) {
        sleep(self.scale.secs(SPELL_SECS)).await;
    }

    fn dependency_becomes(&self, health: Health) {
        self.dependency.become_so(health);
        self.note(&format!("(the dependency {health})"));
    }

    fn state(&self) -> State {
        self.history.state()
    }

    fn note(&self, text: &str) {
        self.transitions.note(text);
    }

    fn fail(&mut self, problem: String) {
        self.problems.push(problem);
    }
}
