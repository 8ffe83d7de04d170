//! Components with bytes that are not what they were: each is refused with a typed error, or loads, and then whatever it
//! does is survived. Runs 16 cases, or for as many seconds as `TRIPWIT_FUZZ_SECONDS` says.

use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, TestRunner};
use tripwit::{Breakers, ManualClock, Mode, Policy};

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

fn components() -> impl Strategy<Value = Vec<u8>> {
    let whole: Vec<&'static [u8]> = vec![
        include_bytes!("../../components/consecutive.wasm"),
        include_bytes!("../../components/outbox.wasm"),
        include_bytes!("../../components/window.wasm"),
    ];
    (select(whole), proptest::collection::vec(damage(), 1..4)).prop_map(|(whole, damage)| {
        let mut bytes = whole.to_vec();
        damage.into_iter().for_each(|it| it.apply(&mut bytes));
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

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "only how long to go on is up to the clock"
)]
fn a_component_with_other_bytes_is_refused_or_survived() {
    let seconds = std::env::var("TRIPWIT_FUZZ_SECONDS").ok();
    let limit = seconds.map(|seconds| Duration::from_secs(seconds.parse().unwrap()));
    let began = std::time::Instant::now();
    let (mut cases, used) = (0, std::cell::Cell::new(0));
    while cases == 0 || limit.is_some_and(|limit| began.elapsed() < limit) {
        let config = Config {
            cases: CASES,
            failure_persistence: None,
            // What fails once is not tried in a hundred smaller forms: each may take seconds.
            max_shrink_iters: 20,
            ..Config::default()
        };
        let ran = TestRunner::new(config).run(&components(), |bytes| {
            used.set(used.get() + u32::from(use_it(&bytes)));
            Ok(())
        });
        if let Err(failure) = ran {
            panic!("{failure}");
        }
        cases += CASES;
    }
    println!("{cases} components, {} of which loaded", used.get());
}
