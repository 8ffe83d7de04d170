//! What a shard has to tell: log lines, spans and moves, queued in order and given out when no lock is held.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use opentelemetry::Context;
use parking_lot::Mutex;

use crate::bindings::tripwit::breaker::{log, spans, types};
use crate::emit;
use crate::env::Env;
use crate::instance::Fault;
use crate::ledger::Ledger;
use crate::status::{Event, FieldValue, fields};

/// What a component tells through its imports.
#[derive(Debug)]
pub(crate) enum Told {
    Log(Line),
    Span(Span),
}

/// What a component tells in one crossing: log lines and spans, in order, as many as the queue could hold.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    told: Vec<Told>,
    dropped: u64,
}

impl Heard {
    pub(crate) fn add(&mut self, told: Told) {
        if self.told.len() < CAPACITY {
            self.told.push(told);
        } else {
            self.dropped += 1;
        }
    }
}

/// A log line.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) level: log::Level,
    pub(crate) message: String,
    pub(crate) fields: Vec<(String, FieldValue)>,
}

/// A finished span. Times are nanoseconds since the Unix epoch.
#[derive(Debug)]
pub(crate) struct Span {
    pub(crate) name: String,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) attributes: Vec<(String, FieldValue)>,
}

impl Told {
    pub(crate) fn log(level: log::Level, message: String, fields: Vec<types::Field>) -> Self {
        Self::Log(Line {
            level,
            message: clip(message),
            fields: clip_fields(fields),
        })
    }

    pub(crate) fn span(span: spans::Span) -> Self {
        Self::Span(Span {
            name: clip(span.name),
            start: span.start,
            end: span.end,
            attributes: clip_fields(span.attributes),
        })
    }
}

/// One entry of the queue, with the caller's context at the crossing.
pub(crate) struct Entry {
    pub(crate) what: What,
    pub(crate) context: Context,
    pub(crate) caller: tracing::Span,
}

pub(crate) enum What {
    Told(Told),
    Moved(Event),
    Fault {
        key: Option<Arc<str>>,
        fault: Fault,
    },
    /// Entries were dropped, for the first time.
    Overflow,
}

/// The queue of one shard.
pub(crate) struct Outlet {
    queue: Mutex<VecDeque<Entry>>,
    /// Held by the thread that gives out.
    giving_out: Mutex<()>,
    ledger: Arc<Ledger>,
}

impl Outlet {
    pub(crate) fn new(ledger: &Arc<Ledger>) -> Self {
        Self {
            queue: Mutex::default(),
            giving_out: Mutex::default(),
            ledger: ledger.clone(),
        }
    }

    /// Queues what a crossing told, and the moves it made. Called under the shard's lock, so that order is kept.
    pub(crate) fn push(&self, heard: Heard, moves: Vec<Event>) {
        if heard.told.is_empty() && moves.is_empty() {
            return;
        }
        let told = heard.told.into_iter().map(What::Told);
        self.extend(told.chain(moves.into_iter().map(What::Moved)), heard.dropped);
    }

    /// Queues a fault of the component.
    pub(crate) fn fault(&self, key: Option<Arc<str>>, fault: Fault) {
        self.extend(std::iter::once(What::Fault { key, fault }), 0);
    }

    /// Queues what there is room for. `dropped` were dropped before.
    fn extend(&self, all: impl Iterator<Item = What>, mut dropped: u64) {
        let context = Context::current();
        let caller = tracing::Span::current();
        let entry = |what| Entry {
            what,
            context: context.clone(),
            caller: caller.clone(),
        };
        let mut queue = self.queue.lock();
        for what in all {
            if queue.len() < CAPACITY {
                queue.push_back(entry(what));
            } else {
                dropped += 1;
            }
        }
        if dropped > 0 && self.ledger.dropped.fetch_add(dropped, Ordering::Relaxed) == 0 {
            // The one entry beyond the capacity says that there were more.
            queue.push_back(entry(What::Overflow));
        }
    }

    /// Gives out what is queued. Called when no lock is held; one thread at a time does it, and a thread that unwinds
    /// leaves it to the next.
    pub(crate) fn give_out(&self, env: &Env) {
        while !std::thread::panicking() && !self.queue.lock().is_empty() {
            // Whoever holds this looks at the queue once more after letting go of it, so nothing stays behind.
            let Some(turn) = self.giving_out.try_lock() else {
                return;
            };
            for _ in 0..ONE_TURN {
                let Some(entry) = self.pop() else { break };
                // Whatever a subscriber or an exporter does, the breaker goes on.
                let _ = catch_unwind(AssertUnwindSafe(|| emit::emit(env, entry)));
            }
            drop(turn);
            // Another thread that has something to tell may take over here.
            std::thread::yield_now();
        }
    }

    fn pop(&self) -> Option<Entry> {
        self.queue.lock().pop_front()
    }
}

/// The most entries that wait in one shard.
const CAPACITY: usize = 4_096;
/// How many entries a thread gives out before it offers another one to take over.
const ONE_TURN: usize = 128;
/// The longest text that is passed on, in bytes: a component is not trusted to be brief.
const MAX_TEXT: usize = 4_096;
const MAX_FIELDS: usize = 64;

/// Cuts a text to what is passed on.
pub(crate) fn clip(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(MAX_TEXT));
    text
}

fn clip_fields(from: Vec<types::Field>) -> Vec<(String, FieldValue)> {
    let mut all = fields(from);
    all.truncate(MAX_FIELDS);
    for (name, value) in &mut all {
        *name = clip(std::mem::take(name));
        if let FieldValue::Text(text) = value {
            *text = clip(std::mem::take(text));
        }
    }
    all
}
