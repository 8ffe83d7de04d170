//! What the figures are to be, and whether they are.

use serde::Serialize;
use tripwit_bench::Guarding;

use crate::cases::{
    SYSTEMS, allocations, attach, bounded, clock_reading_beside, cold_start, failing, healthy, memory,
    rejected, swap,
};
use crate::results::Results;
use crate::subject::Subject;

/// Something that a figure may be at most.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Target {
    /// What is measured, and against what.
    pub(crate) what: String,
    pub(crate) limit: f64,
    /// None where it was not measured.
    pub(crate) measured: Option<f64>,
    pub(crate) unit: &'static str,
}

impl Target {
    pub(crate) fn is_met(&self) -> bool {
        self.measured.is_some_and(|measured| measured <= self.limit)
    }
}

/// Every target.
pub(crate) fn targets(results: &Results) -> Vec<Target> {
    let mut all = Vec::new();
    let seen = Seen(results);
    ends_well(&seen, &mut all);
    awaited(&seen, &mut all);
    asked(&seen, &mut all);
    circuits(&seen, &mut all);
    all
}

fn ends_well(seen: &Seen<'_>, all: &mut Vec<Target>) {
    let policy = Guarding::Consecutive;
    let ours = seen.overhead(healthy::NAME, Subject::Tripwit, Some(policy));
    for (peer, limit) in [
        (Subject::Recloser, 0.2),
        (Subject::FailsafeConsecutive, 0.1),
        (Subject::FailsafeDefault, 0.1),
    ] {
        let theirs = seen.overhead(healthy::NAME, peer, None);
        all.push(ratio(
            format!("healthy call, `consecutive`: overhead to {}'s", peer.name()),
            limit,
            ours,
            theirs,
        ));
    }
    let both = seen.on(healthy::NAME, policy, 2);
    let alone = seen.on(healthy::NAME, policy, 1);
    let what = "healthy call, `consecutive`: two threads on one circuit to one".to_owned();
    all.push(ratio(what, 1.25, both, alone));

    let count = seen.on(healthy::NAME, Guarding::WindowCount, 1);
    let what = "healthy call, `window` by count: to recloser".to_owned();
    all.push(ratio(
        what,
        1.0,
        count,
        seen.ns(healthy::NAME, Subject::Recloser, None),
    ));
    for (policy, readings) in [(Guarding::WindowTime, 1.0), (Guarding::WindowSlow, 2.0)] {
        let limit = seen
            .clock_reading(healthy::NAME)
            .map_or(f64::NAN, |reading| readings * reading + 30.0);
        all.push(Target {
            what: format!(
                "healthy call, {policy}: overhead to {readings} reading(s) of the system's clock and 30 ns"
            ),
            limit,
            measured: seen.overhead(healthy::NAME, Subject::Tripwit, Some(policy)),
            unit: "ns",
        });
    }
}

fn awaited(seen: &Seen<'_>, all: &mut Vec<Target>) {
    let tower = "healthy, tower";
    for (policy, limit) in [(Guarding::Consecutive, 0.1), (Guarding::WindowTime, 0.25)] {
        let ours = seen.on(tower, policy, 1);
        let theirs = seen.ns(tower, Subject::TowerResilience, Some(policy));
        all.push(ratio(
            format!("healthy call of a tower service, {policy}: to tower-resilience"),
            limit,
            ours,
            theirs,
        ));
    }
    for kind in ["async", "tower"] {
        for pace in ["ready at once", "pending once"] {
            let name = format!("healthy, {kind}, time-out, {pace}");
            let ours = seen.on(&name, Guarding::ConsecutiveTimeout, 1);
            let theirs = seen.ns(&name, Subject::TokioTimeout, None);
            all.push(ratio(format!("{name}: to tokio's time-out"), 1.15, ours, theirs));
        }
    }
}

fn asked(seen: &Seen<'_>, all: &mut Vec<Target>) {
    let rejected = seen.on(rejected::NAME, Guarding::Consecutive, 1);
    let what = "rejected call: to a reading of the system's clock".to_owned();
    all.push(ratio(what, 1.5, rejected, seen.clock_reading(rejected::NAME)));
    for policy in [Guarding::Consecutive, Guarding::WindowCount] {
        let ours = seen.on(failing::NAME, policy, 1);
        let what = format!("failing call, {policy}: to the crossings it needs");
        all.push(ratio(what, 1.3, ours, seen.on(failing::RAW, policy, 1)));
    }
}

fn circuits(seen: &Seen<'_>, all: &mut Vec<Target>) {
    let short = seen.on(attach::SHORT, Guarding::Consecutive, 1);
    let long = seen.on(attach::LONG, Guarding::Consecutive, 1);
    let crossings = seen.on(attach::CROSSINGS, Guarding::Consecutive, 1);
    let crossing = crossings.map(|two| two / 2.0);
    for name in [allocations::HEALTHY, allocations::REJECTED] {
        all.push(seen.figure(name, 0.0, name, "allocations"));
    }
    all.push(seen.figure(
        "bytes of a circuit, host and component",
        400.0,
        memory::TOGETHER,
        "bytes",
    ));
    all.push(ratio(
        "a new circuit: to a crossing".to_owned(),
        8.0,
        short,
        crossing,
    ));
    let what = "a new circuit under a long settings text that is known: to a short one".to_owned();
    all.push(ratio(what, 1.25, long, short));
    all.push(seen.figure(
        "many keys through a bounded registry: growth",
        1024.0,
        bounded::GROWTH,
        "KiB",
    ));
    all.push(Target {
        what: "cold start to the first admitted call, component in the cache".to_owned(),
        limit: 5.0,
        measured: seen
            .0
            .ns(cold_start::NAME, Subject::Tripwit, None, 1)
            .map(|ns| ns / cold_start::MILLISECOND),
        unit: "ms",
    });
    all.push(seen.figure("swap under load: wait of a call, 99.9 %", 2.0, swap::WAIT, "ms"));
}

fn ratio(what: String, limit: f64, ours: Option<f64>, theirs: Option<f64>) -> Target {
    Target {
        what,
        limit,
        measured: ours.zip(theirs).map(|(ours, theirs)| ours / theirs),
        unit: "",
    }
}

/// What was measured, as targets ask for it.
struct Seen<'a>(&'a Results);

impl Seen<'_> {
    /// A call on one thread.
    fn ns(&self, name: &str, subject: Subject, policy: Option<Guarding>) -> Option<f64> {
        self.0.ns(name, subject, policy.map(Guarding::name), 1)
    }

    /// A call of Tripwit.
    fn on(&self, name: &str, policy: Guarding, threads: usize) -> Option<f64> {
        self.0.ns(name, Subject::Tripwit, Some(policy.name()), threads)
    }

    /// What the guard adds to the call.
    fn overhead(&self, name: &str, subject: Subject, policy: Option<Guarding>) -> Option<f64> {
        let bare = self.ns(name, Subject::Bare, None)?;
        self.ns(name, subject, policy).map(|ns| (ns - bare).max(0.0))
    }

    /// A reading of the operating system's clock, measured among those of the group.
    fn clock_reading(&self, group: &str) -> Option<f64> {
        self.0
            .ns(&clock_reading_beside(group), Subject::Tripwit, Some(SYSTEMS), 1)
    }

    fn figure(&self, what: &str, limit: f64, name: &str, unit: &'static str) -> Target {
        Target {
            what: what.to_owned(),
            limit,
            measured: self.0.value(name),
            unit,
        }
    }
}
