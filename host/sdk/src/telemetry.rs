//! What a shard has to tell: log lines, spans and moves, queued in order and given out when no lock is held.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use opentelemetry::Context;
use parking_lot::Mutex;

use crate::bindings::tripwit::breaker::{log, spans, types};
use crate::circuit::Key;
use crate::emit;
use crate::env::Env;
use crate::instance::Fault;
use crate::ledger::Ledger;
use crate::regime::Regime;
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
    bytes: usize,
    dropped: u64,
}

impl Heard {
    /// Everything, and how much more there was.
    #[cfg(feature = "raw")]
    pub(crate) fn into_parts(self) -> (Vec<Told>, u64) {
        (self.told, self.dropped)
    }

    pub(crate) fn add(&mut self, told: Told) {
        let bytes = self.bytes + told.size();
        if self.told.len() < CAPACITY && bytes <= MAX_BYTES {
            self.bytes = bytes;
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

    /// How many bytes it holds beyond itself.
    fn size(&self) -> usize {
        let (text, fields) = match self {
            Self::Log(line) => (&line.message, &line.fields),
            Self::Span(span) => (&span.name, &span.attributes),
        };
        let fields = fields.iter().map(|(name, value)| {
            let value = match value {
                FieldValue::Text(text) => text.len(),
                FieldValue::Integer(_) | FieldValue::Number(_) | FieldValue::Boolean(_) => 0,
            };
            size_of::<(String, FieldValue)>() + name.len() + value
        });
        text.len() + fields.sum::<usize>()
    }
}

/// One entry of the queue, with the caller's context at the crossing.
pub(crate) struct Entry {
    pub(crate) what: What,
    /// Who decided at the crossing.
    pub(crate) regime: Arc<Regime>,
    pub(crate) context: Context,
    pub(crate) caller: tracing::Span,
}

pub(crate) enum What {
    Told(Told),
    Moved(Event),
    Fault {
        key: Option<Key>,
        fault: Fault,
    },
    /// Entries were dropped, for the first time.
    Overflow,
}

impl What {
    /// How many bytes it holds that a component can make up.
    fn size(&self) -> usize {
        match self {
            Self::Told(told) => told.size(),
            Self::Fault { fault, .. } => fault.problem.len(),
            Self::Moved(_) | Self::Overflow => 0,
        }
    }
}

/// The queue of one shard.
pub(crate) struct Outlet {
    queue: Mutex<Queue>,
    /// Held by the thread that gives out.
    giving_out: Mutex<()>,
    /// A thread that unwound has left entries behind.
    left_behind: AtomicBool,
    ledger: Arc<Ledger>,
}

#[derive(Default)]
struct Queue {
    entries: VecDeque<Entry>,
    /// The sum of the entries' sizes.
    bytes: usize,
}

impl Queue {
    fn has_room_for(&self, what: &What) -> bool {
        self.entries.len() < CAPACITY && self.bytes + what.size() <= MAX_BYTES
    }

    fn push(&mut self, entry: Entry) {
        self.bytes += entry.what.size();
        self.entries.push_back(entry);
    }

    fn pop(&mut self) -> Option<Entry> {
        let entry = self.entries.pop_front()?;
        self.bytes -= entry.what.size();
        Some(entry)
    }
}

impl Outlet {
    pub(crate) fn new(ledger: &Arc<Ledger>) -> Self {
        Self {
            queue: Mutex::default(),
            giving_out: Mutex::default(),
            left_behind: AtomicBool::new(false),
            ledger: ledger.clone(),
        }
    }

    /// Queues what a crossing told, and the moves it made. Called under the shard's lock, so that order is kept.
    pub(crate) fn push(&self, regime: &Arc<Regime>, heard: Heard, moves: Vec<Event>) {
        if heard.told.is_empty() && heard.dropped == 0 && moves.is_empty() {
            return;
        }
        let told = heard.told.into_iter().map(What::Told);
        let all = told.chain(moves.into_iter().map(What::Moved));
        self.extend(regime, all, heard.dropped);
    }

    /// Queues a fault of the component.
    pub(crate) fn fault(&self, regime: &Arc<Regime>, key: Option<Key>, fault: Fault) {
        self.extend(regime, std::iter::once(What::Fault { key, fault }), 0);
    }

    /// Queues what there is room for. `dropped` were dropped before.
    fn extend(&self, regime: &Arc<Regime>, all: impl Iterator<Item = What>, mut dropped: u64) {
        let context = Context::current();
        let caller = tracing::Span::current();
        let entry = |what| Entry {
            what,
            regime: regime.clone(),
            context: context.clone(),
            caller: caller.clone(),
        };
        let mut queue = self.queue.lock();
        for what in all {
            if queue.has_room_for(&what) {
                queue.push(entry(what));
            } else {
                dropped += 1;
            }
        }
        if dropped > 0 && self.ledger.dropped.fetch_add(dropped, Ordering::Relaxed) == 0 {
            // The one entry beyond the capacity says that there were more.
            queue.push(entry(What::Overflow));
        }
    }

    /// Gives out what a thread that unwound has left behind, if one has. Costs one look at a flag where none has.
    #[inline]
    pub(crate) fn give_out_left(&self, env: &Env) {
        if self.left_behind.load(Ordering::Relaxed) {
            self.give_out(env);
        }
    }

    /// Gives out what is queued. Called when no lock is held; one thread at a time does it, and a thread that unwinds
    /// leaves it to the next.
    pub(crate) fn give_out(&self, env: &Env) {
        let unwinds = std::thread::panicking();
        // Read as well, so that whoever takes the flag back sees the entries that it was set for.
        self.left_behind.swap(unwinds, Ordering::AcqRel);
        while !unwinds && !self.queue.lock().entries.is_empty() {
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
        self.queue.lock().pop()
    }
}

/// The most entries that wait in one shard.
const CAPACITY: usize = 4_096;
/// The most bytes that the texts and fields of those entries have, all together.
const MAX_BYTES: usize = 8 << 20;
/// How many entries a thread gives out before it offers another one to take over.
const ONE_TURN: usize = 128;
/// The longest text that is passed on, in bytes: a component is not trusted to be brief.
const MAX_TEXT: usize = 4_096;
const MAX_FIELDS: usize = 64;

/// Cuts a text to what is passed on.
pub(crate) fn clip(mut text: String) -> String {
    if text.len() > MAX_TEXT {
        text.truncate(text.floor_char_boundary(MAX_TEXT));
        text.shrink_to_fit();
    }
    text
}

fn clip_fields(from: Vec<types::Field>) -> Vec<(String, FieldValue)> {
    let mut all = fields(from);
    if all.len() > MAX_FIELDS {
        all.truncate(MAX_FIELDS);
        all.shrink_to_fit();
    }
    for (name, value) in &mut all {
        *name = clip(std::mem::take(name));
        if let FieldValue::Text(text) = value {
            *text = clip(std::mem::take(text));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;
    use crate::policy::Policy;
    use crate::providers::Telemetry;
    use crate::table::SettingsTable;

    #[test]
    fn what_waits_is_bounded_in_bytes_and_what_has_none_has_room_all_the_same() {
        let line = || Told::log(log::Level::Info, "x".repeat(MAX_TEXT), Vec::new());
        let fit = MAX_BYTES / MAX_TEXT;
        let ledger = Arc::new(Ledger::new(Arc::new(ManualClock::new())));
        let outlet = Outlet::new(&ledger);
        let policy = Policy::consecutive().unwrap();
        let regime = Regime::new(policy, SettingsTable::default(), &Telemetry::default());
        let tell = |lines: usize| {
            let mut heard = Heard::default();
            (0..lines).for_each(|_| heard.add(line()));
            outlet.push(&regime, heard, Vec::new());
            ledger.dropped.load(Ordering::Relaxed)
        };
        assert_eq!(tell(fit + 7), 7);
        assert_eq!(tell(1), 8);
        assert!(outlet.pop().is_some());
        assert_eq!(tell(2), 9, "there was room for one again");
        outlet.fault(&regime, None, Fault::new("trip", ""));
        let queue = outlet.queue.lock();
        assert_eq!(queue.bytes, MAX_BYTES);
        assert!(matches!(
            queue.entries.back().map(|entry| &entry.what),
            Some(What::Fault { .. })
        ));
    }

    #[test]
    fn fields_take_room_too() {
        let field = types::Field {
            name: "n".into(),
            value: types::Value::Text("text".into()),
        };
        let told = Told::log(log::Level::Info, "message".into(), vec![field]);
        assert_eq!(told.size(), 7 + 1 + 4 + size_of::<(String, FieldValue)>());
    }
}
