//! The policy that is checked, under which settings, and what was done to it last.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use tripwit::raw::{Instance, Setup};
use tripwit::{ManualClock, Policy};

use super::problem::Checked;

/// What a policy tells beside its answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Voice {
    /// It hands in spans.
    pub(crate) spans: bool,
    /// It writes log lines.
    pub(crate) lines: bool,
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
    history: RefCell<History>,
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
            history: RefCell::default(),
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
        *self.history.borrow_mut() = History {
            settings: settings.into(),
            steps: Vec::new(),
        };
    }

    /// Writes down what was done.
    pub(crate) fn did(&self, step: impl Into<String>) {
        let mut history = self.history.borrow_mut();
        // What is long is random, and is made short before it is shown.
        if history.steps.len() < 10_000 {
            history.steps.push(step.into());
        }
    }

    /// What was done since something new began.
    pub(crate) fn history(&self) -> History {
        self.history.borrow().clone()
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
