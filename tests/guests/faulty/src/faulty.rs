//! The exports, each with its ways to fail.

use alloc::{collections::BTreeMap, string::String, vec, vec::Vec};
use core::mem::forget;

use spin::Mutex;
use tripwit_policy::component::{
    Adapter, Component, Instance,
    bindings::{
        exports::tripwit::breaker::policy::{
            Admission, AttachError, Attachment, Description, Guest, Lease, Mode, Moved, Report, Settlement,
            Setup, Snapshot, Status,
        },
        tripwit::breaker::{
            log::{Level, log},
            spans::{Span, export_span},
            types::{Allowance, Field, Standing, SuccessReporting, Value},
        },
    },
};

use crate::ORDER;

static INSTANCE: Instance<tripwit_core::Consecutive> = Instance::new();
static KEYS: Mutex<BTreeMap<u32, String>> = Mutex::new(BTreeMap::new());

struct Honest;

impl Component for Honest {
    type Policy = tripwit_core::Consecutive;

    const VERSION: &'static str = env!("CARGO_PKG_VERSION");

    fn instance() -> &'static Instance<Self::Policy> {
        &INSTANCE
    }
}

type Inner = Adapter<Honest>;

/// The fault that a key or the order asks for in an export.
fn fault<'a>(key: &'a str, export: &str) -> Option<&'a str> {
    asked(key, export).or_else(|| asked(order(), export))
}

fn asked<'a>(text: &'a str, export: &str) -> Option<&'a str> {
    let mut parts = text.split(':');
    let fault = parts.next()?;
    (parts.next()? == export).then_some(fault)
}

/// Read where it lies, since a test may have overwritten it.
fn order() -> &'static str {
    let text = core::str::from_utf8(core::hint::black_box(&ORDER)).unwrap_or_default();
    let order = text.split_once('=').map(|(_, order)| order);
    order.unwrap_or_default().trim_end()
}

fn fail(key: &str, export: &str) {
    match fault(key, export) {
        Some("trap") => core::arch::wasm32::unreachable(),
        Some("loop") => loop {
            core::hint::black_box(key);
        },
        Some("recurse") => {
            recurse(1);
        }
        Some("bomb") => {
            let mut bomb = Vec::new();
            loop {
                bomb.push(vec![0_u8; 1 << 16]);
            }
        }
        Some("flood") => (0..10_000).for_each(|_| log(Level::Info, "flood", &[])),
        Some("spans") => (0..10_000).for_each(|_| export_span(&span())),
        Some("giant") => log(Level::Info, &large(), &[]),
        Some("same") => log_same(),
        _ => {}
    }
}

#[expect(unconditional_recursion, reason = "until the stack is used up")]
fn recurse(depth: u64) -> u64 {
    recurse(core::hint::black_box(depth + 1)) + depth
}

fn span() -> Span {
    Span {
        name: "flood".into(),
        start: 0,
        end: 0,
        attributes: Vec::new(),
    }
}

/// Texts that overlap, which safe code cannot make: the host copies each one.
#[expect(unsafe_code, reason = "no safe code makes strings that share their bytes")]
fn log_same() {
    let mut text = "s".repeat(1 << 16);
    let fields: Vec<Field> = (0..10_000)
        .map(|_| Field {
            // SAFETY: the bytes are those of `text`, which outlives every use; no owner frees them.
            name: unsafe { String::from_raw_parts(text.as_mut_ptr(), text.len(), text.len()) },
            value: Value::Boolean(true),
        })
        .collect();
    log(Level::Info, "same", &fields);
    forget(fields);
}

fn large() -> String {
    "L".repeat(4 << 20)
}

fn is(key: &str, export: &str, wanted: &str) -> bool {
    fault(key, export) == Some(wanted)
}

fn refused_at_length(key: &str, export: &str) -> Result<(), AttachError> {
    if is(key, export, "large") {
        return Err(AttachError::Other(large()));
    }
    Ok(())
}

fn key_of(circuit: u32) -> String {
    KEYS.lock().get(&circuit).cloned().unwrap_or_default()
}

fn fail_at(circuit: u32, export: &str) {
    fail(&key_of(circuit), export);
}

fn bend(circuit: u32, export: &str, lease: &mut Lease) {
    match fault(&key_of(circuit), export) {
        Some("past") => {
            lease.standing = Standing::Admit(lease.generation);
            lease.until = Some(0);
        }
        Some("nothing") => {
            lease.successes = SuccessReporting::UpTo(Allowance {
                successes: 0,
                before: None,
            });
        }
        Some("older") => lease.generation = 0,
        Some("unknown") => {
            lease.standing = Standing::Admit(u64::MAX - 1);
            lease.until = None;
            lease.successes = SuccessReporting::UpTo(Allowance {
                successes: u32::MAX,
                before: Some(u64::MAX),
            });
        }
        Some("ever") => {
            lease.generation = u64::MAX;
            lease.until = Some(u64::MAX);
            lease.slow_after = Some(u64::MAX);
            lease.call_timeout = Some(u64::MAX);
        }
        Some("never") => {
            lease.slow_after = Some(0);
            lease.call_timeout = Some(0);
        }
        _ => {}
    }
}

fn attached(key: String, export: &str, mut attachment: Attachment) -> Attachment {
    KEYS.lock().insert(attachment.circuit, key.clone());
    // `consecutive` lets none be kept back one by one, and then nobody settles them.
    if key.split(':').nth(1) == Some("settle-successes") {
        attachment.lease.successes = SuccessReporting::UpTo(Allowance {
            successes: 10,
            before: None,
        });
    }
    bend(attachment.circuit, export, &mut attachment.lease);
    if is(&key, export, "number") {
        attachment.circuit = u32::MAX;
    }
    attachment
}

fn moved(circuit: u32, export: &str, mut moved: Moved) -> Moved {
    bend(circuit, export, &mut moved.lease);
    moved
}

struct Faulty;

impl Guest for Faulty {
    fn describe() -> Description {
        fail("", "describe");
        let mut description = Description {
            name: "faulty".into(),
            ..Inner::describe()
        };
        if is("", "describe", "large") {
            description.summary = large();
        }
        description
    }

    fn prepare(setup: Setup) {
        fail("", "prepare");
        Inner::prepare(setup);
    }

    fn attach(key: String, settings: String) -> Result<Attachment, AttachError> {
        fail(&key, "attach");
        refused_at_length(&key, "attach")?;
        let attachment = Inner::attach(key.clone(), settings)?;
        Ok(attached(key, "attach", attachment))
    }

    fn configure(circuit: u32, settings: String) -> Result<Moved, AttachError> {
        fail_at(circuit, "configure");
        refused_at_length(&key_of(circuit), "configure")?;
        Ok(moved(circuit, "configure", Inner::configure(circuit, settings)?))
    }

    fn detach(circuit: u32) {
        fail_at(circuit, "detach");
        Inner::detach(circuit);
    }

    fn acquire(circuit: u32) -> Admission {
        fail_at(circuit, "acquire");
        let mut admission = Inner::acquire(circuit);
        bend(circuit, "acquire", &mut admission.lease);
        admission
    }

    fn settle(circuit: u32, ticket: u64, report: Report) -> Settlement {
        fail_at(circuit, "settle");
        let mut settlement = Inner::settle(circuit, ticket, report);
        bend(circuit, "settle", &mut settlement.lease);
        settlement
    }

    fn settle_successes(circuit: u32, ticket: u64, count: u32) -> Moved {
        fail_at(circuit, "settle-successes");
        moved(
            circuit,
            "settle-successes",
            Inner::settle_successes(circuit, ticket, count),
        )
    }

    fn lease_of(circuit: u32) -> Lease {
        fail_at(circuit, "lease-of");
        let mut lease = Inner::lease_of(circuit);
        bend(circuit, "lease-of", &mut lease);
        lease
    }

    fn trip(circuit: u32, wait: Option<u64>) -> Moved {
        fail_at(circuit, "trip");
        moved(circuit, "trip", Inner::trip(circuit, wait))
    }

    fn reset(circuit: u32) -> Moved {
        fail_at(circuit, "reset");
        moved(circuit, "reset", Inner::reset(circuit))
    }

    fn set_mode(circuit: u32, mode: Mode) -> Moved {
        fail_at(circuit, "set-mode");
        moved(circuit, "set-mode", Inner::set_mode(circuit, mode))
    }

    fn cool_down() -> Vec<(u32, Moved)> {
        let keys: Vec<(u32, String)> = KEYS.lock().clone().into_iter().collect();
        let mut cooled = Inner::cool_down();
        for (circuit, key) in keys {
            fail(&key, "cool-down");
            match fault(&key, "cool-down") {
                Some("number") => cooled.push((u32::MAX, Inner::reset(circuit))),
                Some("large") => cooled.extend((0..10_000).map(|_| (circuit, Inner::reset(circuit)))),
                Some(_) => cooled.push((circuit, moved(circuit, "cool-down", Inner::reset(circuit)))),
                None => {}
            }
        }
        cooled
    }

    fn inspect(circuit: u32) -> Status {
        fail_at(circuit, "inspect");
        let mut status = Inner::inspect(circuit);
        match fault(&key_of(circuit), "inspect") {
            Some("key") => status.key += "?",
            Some("large") => status.last_cause = Some(large()),
            _ => {}
        }
        status
    }

    fn tripped() -> Vec<String> {
        fail("", "tripped");
        Inner::tripped()
    }

    fn save(circuit: u32) -> Snapshot {
        fail_at(circuit, "save");
        let mut snapshot = Inner::save(circuit);
        match fault(&key_of(circuit), "save") {
            Some("key") => snapshot.key += "?",
            Some("large") => snapshot.detail = large().into_bytes(),
            Some("some") => snapshot.detail = vec![0; 32 << 10],
            _ => {}
        }
        snapshot
    }

    fn restore(snapshot: Snapshot, settings: String, age: u64) -> Result<Attachment, AttachError> {
        let key = snapshot.key.clone();
        fail(&key, "restore");
        refused_at_length(&key, "restore")?;
        let attachment = Inner::restore(snapshot, settings, age)?;
        Ok(attached(key, "restore", attachment))
    }
}

mod exported {
    use super::Faulty;

    tripwit_policy::component::bindings::export!(Faulty with_types_in tripwit_policy::component::bindings);
}
