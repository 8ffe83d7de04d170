//! Why targets are missed, as far as is known.

use crate::targets::Target;

/// How what is measured begins, and why it takes longer than it is to.
const REASONS: [(&str, &str); 6] = [
    (
        "healthy call, `consecutive`",
        "Beside the call stand some 120 instructions, none of them locked: two looks at the lease, a guard against panics, a \
         result of 48 bytes, and the count for the metrics, which is about a third of them (a thread's own cell, found by its \
         breakers). Done so far: one word says that a lease is a plain one, and nothing is written to memory that the end of \
         the call must read back; before that it was 2.6 of recloser's and 0.5 of failsafe-default's.",
    ),
    (
        "healthy call of a tower service",
        "The key is made and compared with that of the request before, its circuit's reference count goes up and down, and a \
         future that has room for a timer, over 100 bytes, is moved twice. Done so far: a service remembers the circuit of its \
         last request, which left out two hashes, a lock and five reference counts; before that it was 0.54.",
    ),
    (
        "healthy, ",
        "Under a time-out the policy is told how long a call ran, so the clock is read when it begins and when it ends; tokio \
         reads it once. A reading of the system's clock is most of what is left. Not tried yet: a faster clock, such as that of \
         the crate quanta.",
    ),
    (
        "rejected call",
        "Beside the reading of the clock, the rejection takes the circuit's key along (a reference count up and down, two locked \
         instructions) and is counted. Done so far: it is rejected where it is made, by one look at the lease; before that it \
         was 2.2.",
    ),
    (
        "failing call",
        "Beside the crossing there are a lock, a reading of the clock, checks of the answer, and the lease to be published. \
         It is at the limit, and on either side of it from run to run.",
    ),
    (
        "swap under load",
        "Most of the long waits are of 3 to 4 ms, a slice of the scheduler: three threads share two processors, and whoever \
         holds a shard's lock may have to wait for one. A batch holds the lock for half a millisecond. Tried: giving up the \
         processor after each batch, which made no difference that could be told from the noise.",
    ),
];

/// Why each of these is missed, once for those that have one reason.
pub(super) fn of(targets: &[Target]) -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    let is_missed = |beginning: &str| {
        let of_it = |target: &&Target| reason(&target.what).is_some_and(|(known, _)| *known == beginning);
        let mut of_it = targets.iter().filter(of_it);
        of_it.any(|target| target.measured.is_some() && !target.is_met())
    };
    REASONS.iter().filter(move |(beginning, _)| is_missed(beginning))
}

fn reason(what: &str) -> Option<&'static (&'static str, &'static str)> {
    REASONS.iter().find(|(beginning, _)| what.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(what: &str, measured: f64) -> Target {
        Target {
            what: what.to_owned(),
            limit: 1.0,
            measured: Some(measured),
            unit: "",
        }
    }

    #[test]
    fn a_reason_is_given_once_and_only_for_what_is_missed() {
        let targets = [
            target(
                "healthy, async, time-out, ready at once: to tokio's time-out",
                2.0,
            ),
            target(
                "healthy, tower, time-out, ready at once: to tokio's time-out",
                2.0,
            ),
            target("rejected call: to a clock reading", 0.5),
            target("swap under load: wait of a call, 99.9 %", 2.0),
        ];
        let given: Vec<_> = of(&targets).map(|(beginning, _)| *beginning).collect();
        assert_eq!(given, ["healthy, ", "swap under load"]);
    }
}
