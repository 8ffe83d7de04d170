//! What is measured, a file for each.

use std::hint::black_box;
use std::sync::OnceLock;
use std::time::Instant;

use anyhow::Result;
use tripwit::{Clock, SystemClock};

use crate::group::{Group, Start};
use crate::guard::Ending;
use crate::results::Results;
use crate::runner::Effort;

pub(crate) mod allocations;
pub(crate) mod attach;
pub(crate) mod awaited;
pub(crate) mod bounded;
pub(crate) mod cold_start;
pub(crate) mod crossing;
pub(crate) mod failing;
pub(crate) mod healthy;
pub(crate) mod many;
pub(crate) mod memory;
pub(crate) mod rejected;
pub(crate) mod swap;
pub(crate) mod tower;

/// Makes a group ready to be measured.
pub(crate) type MakeGroup = fn() -> Result<Group>;

/// Subjects that are held against each other.
pub(crate) const GROUPS: [MakeGroup; 14] = [
    healthy::group,
    many::group,
    rejected::group,
    failing::below_the_threshold,
    failing::one_percent,
    failing::fifty_percent,
    awaited::group,
    awaited::ready_with_timeout,
    awaited::pending_with_timeout,
    tower::healthy,
    tower::ready_with_timeout,
    tower::pending_with_timeout,
    tower::rejected,
    tower::failing,
];

/// Measures something of Tripwit alone.
pub(crate) type Measure = fn(&mut Results, Effort) -> Result<()>;

/// What is measured of Tripwit alone, and what it is called while it runs. The crossings come first: others are held
/// against them.
pub(crate) const OWN: [(&str, Measure); 7] = [
    ("crossing", crossing::measure),
    ("allocations", allocations::measure),
    ("attach", attach::measure),
    ("memory", memory::measure),
    ("bounded registry", bounded::measure),
    ("cold start", cold_start::measure),
    ("swap", swap::measure),
];

/// What the readings of the clock are called that are measured among the subjects of a group.
pub(crate) fn clock_reading_beside(group: &str) -> String {
    format!("clock reading, {group}")
}

/// What the policy column says of the operating system's clock.
pub(crate) const SYSTEMS: &str = "the operating system's";

/// Measures readings of the clock among a group's subjects: the operating system's, which the targets are in, and Tripwit's own.
fn add_clock_readings(group: &mut Group) {
    let name = clock_reading_beside(group.name);
    group.add_named(&name, SYSTEMS, reading(system_clock));
    group.add_named(&name, "Tripwit's", reading(|| SystemClock.monotonic()));
    group.add_named(&name, "Tripwit's, of lengths", reading(|| SystemClock.stamp()));
}

fn reading(read: fn() -> u64) -> Start {
    Box::new(move || {
        Ok(Box::new(move |calls| {
            for _ in 0..calls {
                black_box(read());
            }
            Ending::Made
        }))
    })
}

/// Nanoseconds since it was first read, as a program without Tripwit has them.
#[expect(clippy::disallowed_methods, reason = "its reading is what is measured")]
fn system_clock() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    let passed = START.get_or_init(Instant::now).elapsed();
    u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX)
}
