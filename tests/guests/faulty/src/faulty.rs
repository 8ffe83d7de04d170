//! The exports, each with its way to fail.

use alloc::{
    collections::BTreeMap,
    string::{String, ToString},
    vec::Vec,
};

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
            types::{Allowance, Standing, SuccessReporting},
        },
    },
};

static INSTANCE: Instance<tripwit_core::Consecutive> = Instance::new();
static KEYS: Mutex<BTreeMap<u32, String>> = Mutex::new(BTreeMap::new());

struct Honest;

impl Component for Honest {
    type Policy = tripwit_core::Consecutive;

    fn instance() -> &'static Instance<Self::Policy> {
        &INSTANCE
    }
}

type Inner = Adapter<Honest>;

/// The fault that a key asks for in an export.
fn fault<'a>(key: &'a str, export: &str) -> Option<&'a str> {
    let mut parts = key.split(':');
    let fault = parts.next()?;
    (parts.next()? == export).then_some(fault)
}

fn fail(key: &str, export: &str) {
    match fault(key, export) {
        Some("trap") => core::arch::wasm32::unreachable(),
        Some("loop") => loop {
            core::hint::black_box(key);
        },
        Some("bomb") => {
            let mut bomb = Vec::new();
            loop {
                bomb.push(key.to_string());
            }
        }
        Some("flood") => {
            for _ in 0..10_000 {
                log(Level::Info, "flood", &[]);
            }
        }
        _ => {}
    }
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
        _ => {}
    }
}

struct Faulty;

impl Guest for Faulty {
    fn describe() -> Description {
        Description {
            name: "faulty".into(),
            ..Inner::describe()
        }
    }

    fn prepare(setup: Setup) {
        Inner::prepare(setup);
    }

    fn attach(key: String, settings: String) -> Result<Attachment, AttachError> {
        fail(&key, "attach");
        let mut attachment = Inner::attach(key.clone(), settings)?;
        KEYS.lock().insert(attachment.circuit, key);
        bend(attachment.circuit, "attach", &mut attachment.lease);
        Ok(attachment)
    }

    fn configure(circuit: u32, settings: String) -> Result<Moved, AttachError> {
        fail_at(circuit, "configure");
        Inner::configure(circuit, settings)
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
        Inner::settle_successes(circuit, ticket, count)
    }

    fn lease_of(circuit: u32) -> Lease {
        fail_at(circuit, "lease-of");
        Inner::lease_of(circuit)
    }

    fn trip(circuit: u32, wait: Option<u64>) -> Moved {
        fail_at(circuit, "trip");
        let mut moved = Inner::trip(circuit, wait);
        bend(circuit, "trip", &mut moved.lease);
        moved
    }

    fn reset(circuit: u32) -> Moved {
        fail_at(circuit, "reset");
        Inner::reset(circuit)
    }

    fn set_mode(circuit: u32, mode: Mode) -> Moved {
        fail_at(circuit, "set-mode");
        Inner::set_mode(circuit, mode)
    }

    fn cool_down() -> Vec<(u32, Moved)> {
        let keys: Vec<String> = KEYS.lock().values().cloned().collect();
        keys.iter().for_each(|key| fail(key, "cool-down"));
        Inner::cool_down()
    }

    fn inspect(circuit: u32) -> Status {
        fail_at(circuit, "inspect");
        Inner::inspect(circuit)
    }

    fn tripped() -> Vec<String> {
        Inner::tripped()
    }

    fn save(circuit: u32) -> Snapshot {
        fail_at(circuit, "save");
        Inner::save(circuit)
    }

    fn restore(snapshot: Snapshot, settings: String, age: u64) -> Result<Attachment, AttachError> {
        let key = snapshot.key.clone();
        fail(&key, "restore");
        let attachment = Inner::restore(snapshot, settings, age)?;
        KEYS.lock().insert(attachment.circuit, key);
        Ok(attachment)
    }
}

mod exported {
    use super::Faulty;

    tripwit_policy::component::bindings::export!(Faulty with_types_in tripwit_policy::component::bindings);
}
