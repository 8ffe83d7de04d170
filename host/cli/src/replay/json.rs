//! What came of a replay, for programs. Lengths of time are seconds.

use serde_json::{Value, json};
use tripwit::Operation;

use super::command::Made;
use super::report::ranked;
use super::run::Replayed;
use crate::candidate::Candidate;
use crate::time;
use crate::timeline::{Lane, Move, Results, Track};

/// The whole report.
pub(super) fn of(made: &Made<'_>, replayed: &Replayed) -> Value {
    let circuits: Vec<Value> = ranked(replayed)
        .into_iter()
        .map(|(number, circuit)| {
            let policies: Vec<Value> = replayed
                .lanes
                .iter()
                .filter_map(|lane| lane.tracks().get(number).map(track))
                .collect();
            json!({ "circuit": circuit.key, "calls": results(&circuit.results), "policies": policies })
        })
        .collect();
    let bad: Vec<Value> = replayed
        .bad
        .shown
        .iter()
        .map(|(log, line, problem)| json!({ "log": log, "line": line, "problem": problem }))
        .collect();
    let policies: Vec<Value> = made.candidates.iter().zip(&replayed.lanes).map(policy).collect();
    json!({
        "log": made.logs,
        "format": replayed.format,
        "lines": replayed.lines,
        "calls": replayed.calls,
        "by": replayed.by.to_string(),
        "from": time::rfc_3339(replayed.from),
        "to": time::rfc_3339(replayed.to),
        "failures": made.failures.to_string(),
        "ignored": made.ignored.to_string(),
        "left_out": {
            "bad_lines": replayed.bad.count,
            "first_bad_lines": bad,
            "lines_without_group": replayed.ungrouped,
            "calls_beyond_max_circuits": replayed.beyond,
        },
        "calls_out_of_order": replayed.late,
        "policies": policies,
        "circuits": circuits,
    })
}

fn policy((candidate, lane): (&Candidate, &Lane)) -> Value {
    let said = candidate.policy.description();
    json!({
        "policy": candidate.text,
        "name": said.name,
        "version": said.version,
        "digest": candidate.policy.digest().to_string(),
        "settings": settings(candidate),
        "component_faults": lane.faults(),
    })
}

/// The settings as they were given. They have been held against the policy, so they are JSON.
pub(crate) fn settings(candidate: &Candidate) -> Value {
    serde_json::from_str(candidate.settings.as_str()).unwrap_or(Value::Null)
}

/// What became of one circuit under one policy.
fn track(track: &Track) -> Value {
    json!({
        "failures_spared": track.counts.rejected.failed,
        "good_rejected": track.counts.rejected.good,
        "rejected": results(&track.counts.rejected),
        "made": results(&track.counts.made),
        "timed_out": results(&track.counts.timed_out),
        "trips": track.trips,
        "re_trips": track.re_trips,
        "half_opens": track.half_opens,
        "resets": track.resets,
        "open_seconds": seconds(track.open),
        "half_open_seconds": seconds(track.half_open),
        "state": track.state.to_string(),
        "transitions": track.moves.iter().map(transition).collect::<Vec<_>>(),
        "transitions_left_out": track.moves_left_out,
    })
}

fn results(results: &Results) -> Value {
    json!({ "good": results.good, "failed": results.failed, "ignored": results.ignored })
}

/// One move.
fn transition(step: &Move) -> Value {
    json!({
        "at": time::rfc_3339(step.at),
        "operation": operation(step.operation),
        "state": step.after.to_string(),
        "wait_seconds": step.wait.map(seconds),
        "cooldown_count": step.cooldown_count,
    })
}

/// As the contract spells it.
pub(crate) fn operation(operation: Operation) -> &'static str {
    match operation {
        Operation::Trip => "trip",
        Operation::ReTrip => "re-trip",
        Operation::HalfOpen => "half-open",
        Operation::Reset => "reset",
    }
}

/// Nanoseconds as seconds.
pub(crate) fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}
