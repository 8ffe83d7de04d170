//! The policy that is checked, under which settings, and what was done to it last.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use tripwit::raw::{Instance, Setup};
use tripwit::{ManualClock, Policy};

use super::case::Case;
use super::history::Entry;
use super::problem::{Checked, Problem};

/// What a policy tells beside its answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Voice {
    /// It hands in spans.
    pub(crate) spans: bool,
    /// It writes log lines.
    pub(crate) lines: bool,
}

/// What is made of the problem of a promise that is not tried just now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watch {
    /// It ends what is under way.
    All,
    /// It is kept for the report, and what is under way goes on; that of this case ends it.
    Only(Case),
    /// It is overlooked.
    Nothing,
}

/// The policy that is checked.
#[derive(Debug)]
pub(crate) struct Subject {
    pub(crate) policy: Policy,
    /// The settings to check it under, the most important first.
    pub(crate) settings: Vec<String>,
    /// What every random choice comes from.
    pub(crate) seed: u64,
    /// What it tells; `None` until that is known.
    pub(crate) voice: Cell<Option<Voice>>,
    heard: Cell<Voice>,
    pub(crate) watch: Cell<Watch>,
    by_the_way: RefCell<Vec<(Case, Problem, History)>>,
    settings_now: RefCell<String>,
    entries: RefCell<Vec<Entry>>,
    notes: RefCell<BTreeSet<String>>,
    move_lines: RefCell<BTreeSet<String>>,
}

/// What was done last.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    /// Under which settings.
    pub(crate) settings: String,
    /// Step by step.
    pub(crate) steps: Vec<String>,
}

impl Subject {
    pub(crate) fn new(policy: Policy, settings: Vec<String>, seed: u64) -> Self {
        Self {
            policy,
            settings,
            seed,
            voice: Cell::new(None),
            heard: Cell::default(),
            watch: Cell::new(Watch::All),
            by_the_way: RefCell::default(),
            settings_now: RefCell::default(),
            entries: RefCell::default(),
            notes: RefCell::default(),
            move_lines: RefCell::default(),
        }
    }

    /// The settings that matter most.
    pub(crate) fn main_settings(&self) -> &str {
        self.settings.first().map_or("{}", String::as_str)
    }

    /// A new instance on this clock.
    pub(crate) fn start(&self, clock: &ManualClock) -> Checked<Instance> {
        self.start_with(clock, self.seed)
    }

    /// A new instance that draws on another seed.
    pub(crate) fn start_with(&self, clock: &ManualClock, seed: u64) -> Checked<Instance> {
        let setup = Setup {
            seed,
            ..Setup::default()
        };
        Ok(Instance::start(&self.policy, clock.clone(), &setup)?)
    }

    /// Forgets what was done: something new begins.
    pub(crate) fn begin(&self, settings: &str) {
        settings.clone_into(&mut self.settings_now.borrow_mut());
        self.entries.borrow_mut().clear();
    }

    /// Writes down what was done.
    pub(crate) fn did(&self, entry: impl Into<Entry>) {
        self.entries.borrow_mut().push(entry.into());
    }

    /// What was done since something new began.
    pub(crate) fn history(&self) -> History {
        History {
            settings: self.settings_now.borrow().clone(),
            steps: self.entries.borrow().iter().map(ToString::to_string).collect(),
        }
    }

    /// Lets go by what does not end what is under way.
    pub(crate) fn mind(&self, checked: Checked) -> Checked {
        let Err(problem) = checked else {
            return Ok(());
        };
        match (self.watch.get(), problem.case) {
            (Watch::Nothing, Some(_)) => Ok(()),
            (Watch::Only(case), Some(broken)) if case != broken => {
                let mut found = self.by_the_way.borrow_mut();
                if found.iter().all(|(known, ..)| *known != broken) {
                    found.push((broken, problem, self.history()));
                }
                Ok(())
            }
            (Watch::All | Watch::Only(_) | Watch::Nothing, _) => Err(problem),
        }
    }

    /// The problems that were let go by. They are taken.
    pub(crate) fn take_by_the_way(&self) -> Vec<(Case, Problem, History)> {
        std::mem::take(&mut *self.by_the_way.borrow_mut())
    }

    /// Learns from its first moves what the policy tells.
    pub(crate) fn hears(&self, told: Voice) {
        let heard = self.heard.get();
        self.heard.set(Voice {
            spans: heard.spans || told.spans,
            lines: heard.lines || told.lines,
        });
    }

    /// From now on it is expected to tell as much as it has so far.
    pub(crate) fn has_heard_enough(&self) -> Voice {
        self.voice.set(Some(self.heard.get()));
        self.heard.get()
    }

    /// Takes note of something that is no failure.
    pub(crate) fn note(&self, note: impl Into<String>) {
        self.notes.borrow_mut().insert(note.into());
    }

    /// The notes so far. They are taken.
    pub(crate) fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut *self.notes.borrow_mut())
            .into_iter()
            .collect()
    }

    /// Remembers what the log says of a move.
    pub(crate) fn learn_line(&self, message: &str) {
        let mut lines = self.move_lines.borrow_mut();
        if lines.len() < 1_000 {
            lines.insert(shape(message));
        }
    }

    /// Whether the log says of a move what this line says.
    pub(crate) fn tells_a_move(&self, message: &str) -> bool {
        self.move_lines.borrow().contains(&shape(message))
    }
}

/// A text without its numbers.
fn shape(message: &str) -> String {
    message.chars().filter(|c| !c.is_ascii_digit()).collect()
}
