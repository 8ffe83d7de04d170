//! Whatever a component does, in whichever of its exports: the host survives it with a typed error or goes on as `on_fault`
//! says, every circuit of another shard keeps what it has, those of its own shard come back from their snapshots, and
//! memory stays bounded.

use std::sync::LazyLock;
use std::time::Duration;

use tripwit::{
    Breaker, Breakers, ManualClock, Mode, OnFault, Policy, PolicyError, RejectionReason, State, SwapError,
};

use crate::heap::peak;
use crate::support::{fine, refused, touchy};

const WAIT: Duration = Duration::from_secs(5);
const BYTES: &[u8] = include_bytes!("../guests/faulty.wasm");
const MEMORY: usize = 16 << 20;
/// What the host may hold for a shard beside the component's own memory: a queue of 8 MiB, an answer of 1 MiB, and less than
/// one for the rest.
const HEAP: usize = 10 << 20;
/// In two shards: that all are in the same one is as likely as one in 32,768.
const MANY: usize = 16;

/// How an export is brought to be called for a circuit of this key.
type Provoke = fn(&Bed, &str) -> Result<(), SwapError>;

const EXPORTS: [(&str, Provoke); 13] = [
    ("attach", |bed, key| {
        bed.bad(key);
        Ok(())
    }),
    ("configure", |bed, key| {
        let _bad = bed.bad(key);
        bed.breakers.reconfigure(touchy().open_for(2 * WAIT))
    }),
    ("detach", |bed, key| {
        let _bad = bed.bad(key);
        bed.breakers.swap(Policy::consecutive().unwrap(), touchy())
    }),
    ("acquire", |bed, key| {
        let bad = bed.bad(key);
        bad.trip_for(Duration::from_nanos(1));
        bed.clock.advance(Duration::from_nanos(1));
        let _admitted = bad.acquire().is_ok();
        Ok(())
    }),
    ("settle", |bed, key| {
        bed.bad(key).call_blocking(refused).unwrap_err();
        Ok(())
    }),
    ("settle-successes", |bed, key| {
        let bad = bed.bad(key);
        bad.call_blocking(fine).unwrap();
        // What was kept back is handed in first.
        bad.reset();
        Ok(())
    }),
    ("trip", |bed, key| {
        bed.bad(key).trip();
        Ok(())
    }),
    ("reset", |bed, key| {
        bed.bad(key).reset();
        Ok(())
    }),
    ("set-mode", |bed, key| {
        bed.bad(key).set_mode(Mode::Shadow);
        Ok(())
    }),
    ("cool-down", |bed, key| {
        let _bad = bed.bad(key);
        bed.breakers.cool_down();
        Ok(())
    }),
    ("inspect", |bed, key| {
        assert_eq!(bed.bad(key).status().key, key);
        Ok(())
    }),
    ("save", |bed, key| {
        bed.bad(key).trip();
        Ok(())
    }),
    ("restore", |bed, key| {
        let _bad = bed.bad(key);
        bed.breakers.swap(faulty(), touchy())
    }),
];

/// Of these the host finds out on a trial, and changes nothing.
const ON_TRIAL: [&str; 2] = ["configure", "restore"];
/// These answer with a lease.
const WITH_LEASE: [&str; 8] = [
    "attach",
    "acquire",
    "settle",
    "settle-successes",
    "trip",
    "reset",
    "set-mode",
    "cool-down",
];

fn faulty() -> Policy {
    static POLICY: LazyLock<Policy> = LazyLock::new(|| Policy::from_bytes(BYTES).unwrap());
    POLICY.clone()
}

/// Circuits in two shards: some with a failure counted, some open.
struct Bed {
    breakers: Breakers,
    clock: ManualClock,
    on_fault: OnFault,
    counted: Vec<Breaker>,
    open: Vec<Breaker>,
}

impl Bed {
    fn new(on_fault: OnFault) -> Self {
        let clock = ManualClock::new();
        let breakers = Breakers::builder(faulty())
            .settings(touchy())
            .clock(clock.clone())
            .shards(2)
            .max_memory(MEMORY)
            .on_fault(on_fault)
            .build()
            .unwrap();
        let many = |name: &str| -> Vec<_> {
            (0..MANY)
                .map(|number| breakers.breaker(&format!("{name} {number}")).unwrap())
                .collect()
        };
        let bed = Self {
            counted: many("counted"),
            open: many("open"),
            breakers,
            clock,
            on_fault,
        };
        for counted in &bed.counted {
            counted.call_blocking(refused).unwrap_err();
        }
        for open in &bed.open {
            open.trip();
        }
        bed
    }

    fn bad(&self, key: &str) -> Breaker {
        self.breakers.breaker(key).unwrap()
    }

    /// Holds after every fault.
    fn goes_on(&self, key: &str) {
        let bad = self.bad(key);
        for _ in 0..12 {
            let admitted = bad.acquire().is_ok();
            let rejects = bad.state() != State::Closed || self.on_fault == OnFault::Reject;
            assert!(admitted || rejects, "{key}: rejected in {:?}", bad.state());
        }
        for open in &self.open {
            let rejection = open.acquire().unwrap_err();
            assert_eq!(rejection.reason(), RejectionReason::Open, "{key}: {}", open.key());
            assert!(rejection.retry_after() <= Some(WAIT), "{key}: {}", open.key());
        }
        for counted in &self.counted {
            counted.call_blocking(refused).unwrap_err();
        }
        let kept = |it: &&Breaker| it.state() == State::Open;
        let kept = self.counted.iter().filter(kept).count();
        assert!(kept > 0, "{key}: the other shard has lost what was counted");
        self.clock.advance(WAIT);
        for open in &self.open {
            open.call_blocking(fine).unwrap();
            assert_eq!(open.state(), State::Closed, "{key}: {}", open.key());
        }
    }
}

/// A fault in an export, from beginning to end. Gives how many faults the host found.
fn survives(fault: &str, export: &str, on_fault: OnFault) -> u64 {
    let (_, provoke) = EXPORTS.iter().find(|(name, _)| *name == export).unwrap();
    let (bed, key) = (Bed::new(on_fault), format!("{fault}:{export}"));
    let mut ended = Ok(());
    let held = peak(|| ended = provoke(&bed, &key));
    assert!(held < HEAP, "{key}: {held} bytes on the heap");
    let faults = bed.breakers.faults();
    if ON_TRIAL.contains(&export)
        && faults == 0
        && let Err(error) = &ended
    {
        let text = error.to_string();
        assert!(text.contains(&key), "{text}");
        bed.goes_on(&key);
        return 1;
    }
    ended.unwrap();
    bed.goes_on(&key);
    faults
}

#[test]
fn every_export_may_trap_overrun_its_stack_take_all_memory_or_tell_too_much() {
    for (export, _) in EXPORTS {
        for (fault, on_fault) in [
            ("trap", OnFault::Admit),
            ("trap", OnFault::Reject),
            ("recurse", OnFault::Admit),
            ("bomb", OnFault::Admit),
            ("giant", OnFault::Admit),
            ("same", OnFault::Reject),
        ] {
            assert!(survives(fault, export, on_fault) >= 1, "{fault}:{export}");
        }
    }
}

#[test]
fn every_export_may_run_for_ever() {
    std::thread::scope(|scope| {
        for (export, _) in EXPORTS {
            scope.spawn(move || assert!(survives("loop", export, OnFault::Admit) >= 1, "loop:{export}"));
        }
    });
}

#[test]
fn every_export_may_write_as_much_as_it_likes() {
    for (export, _) in EXPORTS {
        for fault in ["flood", "spans"] {
            assert_eq!(survives(fault, export, OnFault::Admit), 0, "{fault}:{export}");
        }
    }
}

#[test]
fn leases_against_the_contract_are_faults_and_others_are_kept_to() {
    for export in WITH_LEASE {
        for fault in ["past", "nothing"] {
            assert!(survives(fault, export, OnFault::Admit) >= 1, "{fault}:{export}");
        }
        // The policy of these circuits decides badly, and that is all.
        for fault in ["older", "unknown", "ever", "never"] {
            survives(fault, export, OnFault::Admit);
        }
    }
}

#[test]
fn answers_that_are_too_large_or_of_another_circuit_are_faults() {
    for (fault, exports) in [
        (
            "large",
            &["attach", "configure", "inspect", "save", "restore", "cool-down"][..],
        ),
        ("key", &["inspect", "save"]),
        ("number", &["cool-down"]),
    ] {
        for export in exports {
            assert!(survives(fault, export, OnFault::Admit) >= 1, "{fault}:{export}");
        }
    }
}

#[test]
fn one_number_for_two_circuits_is_a_fault() {
    let bed = Bed::new(OnFault::Admit);
    for number in 0..3 {
        let bad = bed.bad(&format!("number:attach:{number}"));
        bad.call_blocking(fine).unwrap();
    }
    assert!(bed.breakers.faults() >= 1, "of three, two are in one shard");
    bed.goes_on("number:attach:0");
}

#[test]
fn snapshots_without_end_do_not_fill_the_hosts_memory() {
    let clock = ManualClock::new();
    let breakers = Breakers::builder(faulty())
        .settings(touchy())
        .clock(clock.clone())
        .shards(1)
        .max_memory(4 << 20)
        .build()
        .unwrap();
    let held = peak(|| {
        for number in 0..600 {
            breakers.breaker(&format!("some:save:{number}")).unwrap().trip();
        }
    });
    assert!(breakers.faults() >= 1);
    assert!(held < (8 << 20) + HEAP, "{held} bytes on the heap");
    let others = breakers.breaker("other").unwrap();
    others.call_blocking(fine).unwrap();
}

/// The component with a fault in its data that holds for the whole instance.
fn ordered(order: &str) -> Vec<u8> {
    const MARK: &[u8] = b"tripwit-faulty-order=";
    let mut bytes = BYTES.to_vec();
    let starts = bytes.windows(MARK.len()).position(|at| at == MARK).unwrap() + MARK.len();
    bytes[starts..starts + order.len()].copy_from_slice(order.as_bytes());
    bytes
}

#[test]
fn a_component_that_fails_as_it_starts_is_refused() {
    for order in [
        "trap:describe",
        "loop:describe",
        "recurse:describe",
        "bomb:describe",
        "same:describe",
        "large:describe",
        "trap:prepare",
        "loop:prepare",
    ] {
        let mut refused = None;
        let bytes = ordered(order);
        let held = peak(|| refused = Policy::from_bytes(&bytes).err());
        match refused {
            Some(PolicyError::Faulty { problem }) => {
                let (_, export) = order.split_once(':').unwrap();
                assert!(problem.contains(export), "{order}: {problem}");
            }
            other => panic!("{order}: {other:?}"),
        }
        // Compiling takes heap of its own.
        assert!(held < 64 << 20, "{order}: {held} bytes on the heap");
    }
    assert!(Policy::from_bytes(&ordered("flood:describe")).is_ok());
}

#[test]
fn whatever_reaches_beyond_the_contract_is_refused_by_name() {
    for import in [
        "wasi:filesystem/types@0.2.12",
        "wasi:filesystem/preopens@0.2.12",
        "wasi:sockets/tcp@0.2.12",
        "wasi:sockets/udp-create-socket@0.2.12",
        "wasi:cli/environment@0.2.12",
        "wasi:cli/stdout@0.2.12",
        "wasi:random/random@0.2.12",
        "wasi:http/outgoing-handler@0.2.12",
        "wasi:io/poll@0.2.12",
        "wasi:clocks/timezone@0.2.12",
    ] {
        let wat = format!(
            r#"(component (import "{import}" (instance))
                (instance $i) (export "tripwit:breaker/policy@0.1.0" (instance $i)))"#
        );
        match Policy::from_bytes(&wat::parse_str(wat).unwrap()) {
            Err(PolicyError::ForeignImport { import: named, .. }) => assert_eq!(named, import),
            other => panic!("{import}: {other:?}"),
        }
    }
}

#[test]
fn no_component_can_wait_on_a_clock() {
    // The resource that waiting takes is one of wasi:io, which no component gets.
    let wat = r#"(component
        (import "wasi:clocks/monotonic-clock@0.2.12" (instance
            (export "pollable" (type $pollable (sub resource)))
            (export "subscribe-duration" (func (param "when" u64) (result (own $pollable))))))
        (instance $i) (export "tripwit:breaker/policy@0.1.0" (instance $i)))"#;
    let loaded = Policy::from_bytes(&wat::parse_str(wat).unwrap());
    assert!(matches!(loaded, Err(PolicyError::Link(_))), "{loaded:?}");
}

#[test]
fn a_component_of_an_older_contract_is_refused() {
    let (new, old) = (b"tripwit:breaker/policy@0.1.0", b"tripwit:breaker/policy@0.0.9");
    let mut bytes = BYTES.to_vec();
    let places: Vec<_> = bytes
        .windows(new.len())
        .enumerate()
        .filter_map(|(place, at)| (at == new).then_some(place))
        .collect();
    assert!(!places.is_empty());
    for place in places {
        bytes[place..place + old.len()].copy_from_slice(old);
    }
    match Policy::from_bytes(&bytes) {
        Err(PolicyError::ContractVersion { found, .. }) => {
            assert_eq!(found.as_deref(), Some("tripwit:breaker/policy@0.0.9"));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_file_cut_short_anywhere_is_refused() {
    for length in (0..BYTES.len())
        .step_by(499)
        .chain(BYTES.len() - 300..BYTES.len())
    {
        match Policy::from_bytes(&BYTES[..length]) {
            Err(
                PolicyError::Damaged { .. }
                | PolicyError::NotAComponent { .. }
                | PolicyError::ContractVersion { .. },
            ) => {}
            // Only what follows the exports may be missing: a section that says who built it.
            Ok(_) => assert_eq!(
                BYTES[length], 0,
                "{length} bytes: cut within a section, and taken"
            ),
            other => panic!("{length} bytes: {other:?}"),
        }
    }
}

#[test]
fn a_component_that_would_take_minutes_to_compile_is_refused_at_once() {
    // Thirty components, each with two instances of the one before: a billion, in two kilobytes.
    let mut doubling =
        String::from("(component (component $c0 (core module $m) (core instance (instantiate $m)))");
    for level in 1..=30 {
        let below = level - 1;
        doubling += &format!(
            "(component $c{level} (alias outer 1 $c{below} (component $b))
                (instance (instantiate $b)) (instance (instantiate $b)))"
        );
    }
    doubling += "(instance (instantiate $c30)))";
    let functions = format!("(component (core module {}))", "(func)".repeat(100_000));
    let locals = format!(
        "(component (core module (func (local {}))))",
        "i64 ".repeat(50_000)
    );
    let long = format!(
        "(component (core module (func {})))",
        "i32.const 0 drop ".repeat(1 << 20)
    );
    for (wat, problem) in [
        (
            doubling,
            "instances of components within it; at most 4096 are compiled",
        ),
        (functions, "functions; at most 20000 are compiled"),
        (
            locals,
            "local variables in one function; at most 1000 are compiled",
        ),
        (long, "bytes of code in one function; at most 65536 are compiled"),
    ] {
        let error = Policy::from_bytes(&wat::parse_str(wat).unwrap()).unwrap_err();
        assert!(matches!(error, PolicyError::TooCostly { .. }), "{error:?}");
        assert!(error.to_string().contains(problem), "{error}");
    }
}
