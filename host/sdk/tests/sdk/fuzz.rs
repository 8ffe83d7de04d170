//! Components with bytes that are not what they were: each is refused with a typed error, or loads, and then whatever it
//! does is survived. Runs 16 cases of each kind, or for as many seconds as `TRIPWIT_FUZZ_SECONDS` says.
//!
//! Most components with any bytes changed are refused. So there is a second kind: other instructions, constants and data,
//! each of a length and type that leaves the component whole. Those load, and compute something else.

use std::cell::Cell;
use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, TestRunner};
use tripwit::{Breakers, ManualClock, Mode, Policy};
use wasmparser::{DataKind, Operator, Parser, Payload};

use crate::support::{fine, refused};

const CASES: u32 = 16;

#[derive(Clone, Debug)]
enum Damage {
    Bits(Index, u8),
    Bytes(Index, Vec<u8>),
    Cut(Index),
    /// The bytes from one place again at another.
    Again(Index, Index, usize),
}

impl Damage {
    fn apply(self, bytes: &mut Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        let at = |place: Index| place.index(bytes.len());
        match self {
            Self::Bits(place, bits) => {
                let place = at(place);
                bytes[place] ^= bits;
            }
            Self::Bytes(place, with) => {
                let place = at(place);
                bytes.splice(place..place, with);
            }
            Self::Cut(place) => {
                let place = at(place);
                bytes.truncate(place);
            }
            Self::Again(from, to, length) => {
                let (from, to) = (at(from), at(to));
                let copy: Vec<u8> = bytes.iter().skip(from).take(length).copied().collect();
                bytes.splice(to..to, copy);
            }
        }
    }
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        // A file whose parts still fit together is the one that goes on to be compiled.
        16 => (any::<Index>(), 1..=u8::MAX).prop_map(|(place, bits)| Damage::Bits(place, bits)),
        1 => (any::<Index>(), proptest::collection::vec(any::<u8>(), 1..9))
            .prop_map(|(place, with)| Damage::Bytes(place, with)),
        1 => any::<Index>().prop_map(Damage::Cut),
        1 => (any::<Index>(), any::<Index>(), 1..400_usize)
            .prop_map(|(from, to, length)| Damage::Again(from, to, length)),
    ]
}

fn shipped() -> impl Strategy<Value = &'static [u8]> {
    let whole: Vec<&'static [u8]> = vec![
        include_bytes!("../../components/consecutive.wasm"),
        include_bytes!("../../components/outbox.wasm"),
        include_bytes!("../../components/window.wasm"),
    ];
    select(whole)
}

fn damaged() -> impl Strategy<Value = Vec<u8>> {
    (shipped(), proptest::collection::vec(damage(), 1..4)).prop_map(|(whole, damage)| {
        let mut bytes = whole.to_vec();
        damage.into_iter().for_each(|it| it.apply(&mut bytes));
        bytes
    })
}

/// A byte that can be another one without the component falling apart.
#[derive(Clone, Copy, Debug)]
enum Loose {
    /// An instruction among those that take and give values of the same types.
    Instruction(&'static [u8]),
    /// The first byte of a number; the bit that says whether more bytes follow is not touched.
    Number,
    Data,
}

/// Opcodes by their types, as the core specification lists them: comparisons and arithmetic of i32 and of i64, without
/// the divisions of a kind of their own (they trap, and so are of interest).
const INSTRUCTIONS: [&[u8]; 4] = [
    &[
        0x46, 0x47, 0x48, 0x49, 0x4a, 0x4b, 0x4c, 0x4d, 0x4e, 0x4f, 0x6a, 0x6b, 0x6c, 0x6d, 0x6e, 0x6f, 0x70,
        0x71, 0x72, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78,
    ],
    &[0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59, 0x5a],
    &[
        0x7c, 0x7d, 0x7e, 0x7f, 0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a,
    ],
    &[0x45, 0x67, 0x68, 0x69],
];

/// Every loose byte of a component, instructions and numbers before data.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "two of some thirty payloads matter here"
)]
fn loose(bytes: &[u8]) -> Vec<(usize, Loose)> {
    let mut places = Vec::new();
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.unwrap() {
            Payload::CodeSectionEntry(body) => {
                let mut operators = body.get_operators_reader().unwrap();
                while !operators.eof() {
                    let (operator, at) = operators.read_with_offset().unwrap();
                    let class = INSTRUCTIONS.iter().find(|class| class.contains(&bytes[at]));
                    if let Some(class) = class {
                        places.push((at, Loose::Instruction(class)));
                    } else if matches!(operator, Operator::I32Const { .. } | Operator::I64Const { .. }) {
                        places.push((at + 1, Loose::Number));
                    }
                }
            }
            Payload::DataSection(section) => {
                for data in section {
                    let data = data.unwrap();
                    if let DataKind::Active { .. } = data.kind {
                        let first = data.range.end - data.data.len();
                        places.extend((first..data.range.end).map(|at| (at, Loose::Data)));
                    }
                }
            }
            _ => {}
        }
    }
    places.sort_by_key(|(_, loose)| matches!(loose, Loose::Data));
    places
}

/// One change of meaning: which of the loose bytes of a sort, and what it becomes.
#[derive(Clone, Debug)]
struct Twist {
    data: bool,
    place: Index,
    to: u8,
}

impl Twist {
    fn apply(&self, places: &[(usize, Loose)], bytes: &mut [u8]) {
        let of_sort = places.partition_point(|(_, loose)| !matches!(loose, Loose::Data));
        let (code, data) = places.split_at(of_sort);
        let places = if self.data { data } else { code };
        let Some((at, loose)) = places.get(self.place.index(places.len().max(1))) else {
            return;
        };
        bytes[*at] = match loose {
            Loose::Instruction(class) => class[usize::from(self.to) % class.len()],
            Loose::Number => (bytes[*at] & 0x80) | (self.to & 0x7f),
            Loose::Data => self.to,
        };
    }
}

fn twisted() -> impl Strategy<Value = Vec<u8>> {
    let twist = (prop::bool::weighted(0.2), any::<Index>(), any::<u8>());
    let twist = twist.prop_map(|(data, place, to)| Twist { data, place, to });
    (shipped(), proptest::collection::vec(twist, 1..6)).prop_map(|(whole, twists)| {
        let places = loose(whole);
        let mut bytes = whole.to_vec();
        twists.iter().for_each(|twist| twist.apply(&places, &mut bytes));
        bytes
    })
}

/// Some of everything that a host does. Says whether the component got that far.
fn use_it(bytes: &[u8]) -> bool {
    let Ok(policy) = Policy::from_bytes(bytes) else {
        return false;
    };
    let clock = ManualClock::new();
    let built = Breakers::builder(policy)
        .clock(clock.clone())
        .shards(2)
        .max_memory(16 << 20)
        .build();
    let Ok(breakers) = built else {
        return false;
    };
    for key in ["one", "two", "three"] {
        let Ok(breaker) = breakers.breaker(key) else {
            continue;
        };
        for round in 0..30 {
            if round % 7 < 5 {
                let _ended = breaker.call_blocking(refused);
            } else {
                let _ended = breaker.call_blocking(fine);
            }
            clock.advance(Duration::from_secs(2));
        }
        breaker.trip();
        breaker.set_mode(Mode::Shadow);
        breaker.reset();
        assert_eq!(breaker.status().key, key);
    }
    breakers.cool_down();
    let saved = breakers.save().unwrap();
    let _restored = breakers.restore(&saved);
    let _swapped = breakers.swap(Policy::consecutive().unwrap(), "{}");
    true
}

/// What became of the components of one run.
struct Ran {
    cases: u32,
    loaded: u32,
}

#[expect(
    clippy::disallowed_methods,
    reason = "only how long to go on is up to the clock"
)]
fn run(components: &impl Strategy<Value = Vec<u8>>) -> Ran {
    let seconds = std::env::var("TRIPWIT_FUZZ_SECONDS").ok();
    let limit = seconds.map(|seconds| Duration::from_secs(seconds.parse().unwrap()));
    let began = std::time::Instant::now();
    let (mut cases, loaded) = (0, Cell::new(0));
    while cases == 0 || limit.is_some_and(|limit| began.elapsed() < limit) {
        let config = Config {
            cases: CASES,
            failure_persistence: None,
            // What fails once is not tried in a hundred smaller forms: each may take seconds.
            max_shrink_iters: 20,
            ..Config::default()
        };
        let ran = TestRunner::new(config).run(components, |bytes| {
            loaded.set(loaded.get() + u32::from(use_it(&bytes)));
            Ok(())
        });
        if let Err(failure) = ran {
            panic!("{failure}");
        }
        cases += CASES;
    }
    let loaded = loaded.get();
    println!("{cases} components, {loaded} of which loaded");
    Ran { cases, loaded }
}

#[test]
fn a_component_with_other_bytes_is_refused_or_survived() {
    run(&damaged());
}

#[test]
fn a_component_that_computes_something_else_is_survived() {
    let Ran { cases, loaded } = run(&twisted());
    assert!(loaded * 2 > cases, "most of them load: {loaded} of {cases} did");
}
