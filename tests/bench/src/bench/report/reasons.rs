//! Why targets are missed, as far as is known.

use crate::targets::Target;

/// How what is measured begins, and why it takes longer than it is to.
const REASONS: [(&str, &str); 6] = [
    (
        "healthy call, `consecutive`",
        "Beside the call stand some fifty instructions (release build), none of them locked: two looks at the lease, a guard against panics, the \
         result, and the count for the metrics. What recloser and failsafe-consecutive spend is mostly locked instructions, \
         whose length depends on the processor. Done so far: one word \
         says that a lease is a plain one, a thread counts by a small number that it has, and nothing is written to memory \
         that the end of the call must read back; before that it was 2.6 of recloser's and 0.5 of failsafe-default's, then 0.69 and 0.13.",
    ),
    (
        "healthy call of a tower service",
        "The key is made and compared with that of the request before, and its circuit's reference count goes up and down: two \
         locked instructions, about half of what is left. Done so far: a service remembers the circuit of its last request, \
         and its future is put together where it stays; before that it was 0.54, then 0.16.",
    ),
    (
        "healthy, ",
        "Under a time-out the policy is told how long a call ran, so the clock is read when it begins and when it ends, and for \
         one that is pending a third time, to know how much time is left. tokio reads it once, when its timer is made; a \
         pending call pays for that here too. A tower service counts a reference up and down besides, two locked instructions, \
         and a pending call must ask whether there is a runtime. Done so far: a clock that is half as long to read where \
         Linux goes by the processor's counter; before that it was 1.4 to 2.0. Tried: not asking for a runtime, and not reading the \
         clock for the time that is left, which made a pending call better by 0.02 and 0.03 of tokio's; the first panics where \
         there is none, and with the second a call may run longer than its limit.",
    ),
    (
        "rejected call",
        "A rejection takes the time that is left and a copy of the circuit's key along, and is counted. Done so far: a short key \
         is copied rather than counted, and the clock is shorter to read where Linux goes by the processor's counter; before \
         that it was 2.2, then 1.8.",
    ),
    (
        "failing call",
        "Beside the crossing there are a lock, a reading of the clock, checks of the answer, and the lease to be published. \
         It is near the limit, and on either side of it from run to run.",
    ),
    (
        "swap under load",
        "Two threads call and a third one swaps; on two processors whoever holds a shard's lock may have to wait for one, up to a slice of the \
         scheduler, 3 to 4 ms. Done so far: a batch holds the lock for a fifth of a millisecond, and then sleeps for as \
         long; giving up the processor without sleeping made no difference that could be told from the noise.",
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
            target("rejected call: to a reading of the system's clock", 0.5),
            target("swap under load: wait of a call, 99.9 %", 2.0),
        ];
        let given: Vec<_> = of(&targets).map(|(beginning, _)| *beginning).collect();
        assert_eq!(given, ["healthy, ", "swap under load"]);
    }
}
