//! Answers as JSON, in the words of README.md: every field is there, `null` where it has no value, and times are texts.

use anyhow::Context;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tripwit_core::{
    Cause, Counts, Decision, Lease, Mode, Operation, Rejection, RejectionReason, Saved, Standing, State,
    Successes, format_duration, parse_duration,
};
use tripwit_policy::{AttachError, Snapshot, Stamped};

use crate::guest::Inspection;

pub(crate) fn time(nanoseconds: Option<u64>) -> Value {
    nanoseconds.map(format_duration).into()
}

pub(crate) fn state_name(state: State) -> &'static str {
    match state {
        State::Closed => "closed",
        State::Open => "open",
        State::HalfOpen => "half-open",
    }
}

pub(crate) fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Automatic => "automatic",
        Mode::ForcedOpen => "forced-open",
        Mode::Disabled => "disabled",
        Mode::Shadow => "shadow",
    }
}

fn reason_name(reason: RejectionReason) -> &'static str {
    match reason {
        RejectionReason::Open => "open",
        RejectionReason::ProbeLimit => "probe-limit",
        RejectionReason::ForcedOpen => "forced-open",
        RejectionReason::Throttled => "throttled",
        RejectionReason::Other => "other",
    }
}

pub(crate) fn transition(moved: Option<Stamped>) -> Value {
    let Some(Stamped { transition, at }) = moved else {
        return Value::Null;
    };
    json!({
        "operation": match transition.operation {
            Operation::Trip => "trip",
            Operation::ReTrip => "re_trip",
            Operation::HalfOpen => "half_open",
            Operation::Reset => "reset",
        },
        "cause": match transition.cause {
            Cause::Policy => "policy",
            Cause::Operator => "operator",
            Cause::CoolDown => "cool-down",
        },
        "before": state_name(transition.before),
        "after": state_name(transition.after),
        "at": format_duration(at),
        "wait": time(transition.wait),
        "cooldown_count": transition.cooldown_count,
    })
}

pub(crate) fn admission(decision: Decision, moved: Option<Stamped>) -> Value {
    let (name, rejection) = match decision {
        Decision::Admit(_) => ("admit", None),
        Decision::Pass => ("pass", None),
        Decision::Reject(rejection) => ("reject", Some(rejection)),
    };
    json!({
        "decision": name,
        "reason": rejection.map(|Rejection { reason, .. }| reason_name(reason)),
        "retry_after": time(rejection.and_then(|rejection| rejection.retry_after)),
        "transition": transition(moved),
    })
}

pub(crate) fn counts(counts: &Counts) -> Value {
    json!({
        "successes": counts.successes,
        "failures": counts.failures,
        "timeouts": counts.timeouts,
        "slow": counts.slow,
        "consecutive_successes": counts.consecutive_successes,
        "consecutive_failures": counts.consecutive_failures,
        "probes_in_flight": counts.probes_in_flight,
    })
}

pub(crate) fn inspection(Inspection { status, extra }: &Inspection) -> Value {
    json!({
        "key": status.key.as_ref(),
        "state": state_name(status.state),
        "mode": mode_name(status.mode),
        "since": format_duration(status.since),
        "retry_after": time(status.retry_after),
        "cooldown_count": status.cooldown_count,
        "counts": counts(&status.counts),
        "last_failure": time(status.last_failure),
        "last_cause": status.last_cause.as_deref(),
        "extra": extra,
    })
}

/// A lease. `generation` is counted from 1 among those that the circuit had.
pub(crate) fn lease(lease: &Lease, generation: usize) -> Value {
    let (standing, reason) = match lease.standing {
        Standing::Admit(_) => ("admit", None),
        Standing::Pass => ("pass", None),
        Standing::Reject(reason) => ("reject", Some(reason_name(reason))),
        Standing::Ask => ("ask", None),
    };
    let (successes, allowance) = match lease.successes {
        Successes::Each => ("each", None),
        Successes::UpTo(allowance) => ("up-to", Some(allowance)),
        Successes::Never => ("never", None),
    };
    json!({
        "mode": mode_name(lease.mode),
        "generation": generation,
        "state": state_name(lease.state),
        "standing": standing,
        "reason": reason,
        "until": time(lease.until),
        "successes": successes,
        "allowance": allowance.map(|it| json!({"successes": it.successes, "before": time(it.before)})),
        "slow_after": time(lease.slow_after),
        "call_timeout": time(lease.call_timeout),
    })
}

pub(crate) fn attach_error(error: &AttachError) -> Value {
    let (kind, field, problem) = match error {
        AttachError::Key(problem) => ("key", None, Some(problem.clone())),
        AttachError::Settings(error) => ("settings", Some(&error.field), Some(error.problem.clone())),
        AttachError::Conflict => ("conflict", None, None),
        AttachError::Full(limit) => ("full", None, Some(limit.to_string())),
        AttachError::Snapshot(problem) => ("snapshot", None, Some(problem.clone())),
    };
    json!({"error": kind, "field": field, "problem": problem})
}

/// Why other settings, or another policy, were not taken. `key`: of the circuit that they were refused for, if it was one.
pub(crate) fn refusal(error: &AttachError, key: Option<&str>) -> Value {
    let mut answer = attach_error(error);
    if let Value::Object(fields) = &mut answer {
        fields.insert("key".into(), key.into());
    }
    answer
}

/// A snapshot as it is written.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct SnapshotText {
    key: String,
    settings: String,
    state: String,
    mode: String,
    since: String,
    retry_after: Option<String>,
    cooldown_count: Option<u32>,
    reopenings: u32,
    counts: CountsText,
    last_failure: Option<String>,
    last_cause: Option<String>,
    detail: Vec<u8>,
    detail_format: String,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct CountsText {
    successes: u32,
    failures: u32,
    timeouts: u32,
    slow: u32,
    consecutive_successes: u32,
    consecutive_failures: u32,
    probes_in_flight: u32,
}

pub(crate) fn snapshot(snapshot: &Snapshot) -> anyhow::Result<Value> {
    let Saved { counts, .. } = snapshot.saved;
    Ok(serde_json::to_value(SnapshotText {
        key: snapshot.key.clone(),
        settings: snapshot.settings.clone(),
        state: state_name(snapshot.saved.state).into(),
        mode: mode_name(snapshot.saved.mode).into(),
        since: format_duration(snapshot.since),
        retry_after: snapshot.saved.retry_after.map(format_duration),
        cooldown_count: snapshot.saved.cooldown_count,
        reopenings: snapshot.saved.reopenings,
        counts: CountsText {
            successes: counts.successes,
            failures: counts.failures,
            timeouts: counts.timeouts,
            slow: counts.slow,
            consecutive_successes: counts.consecutive_successes,
            consecutive_failures: counts.consecutive_failures,
            probes_in_flight: counts.probes_in_flight,
        },
        last_failure: snapshot.last_failure.map(format_duration),
        last_cause: snapshot.last_cause.clone(),
        detail: snapshot.detail.clone(),
        detail_format: snapshot.detail_format.clone(),
    })?)
}

/// The snapshot with some of its fields changed.
pub(crate) fn changed(from: &Snapshot, with: &Map<String, Value>) -> anyhow::Result<Snapshot> {
    let mut whole = snapshot(from)?;
    merge(&mut whole, with);
    let text: SnapshotText = serde_json::from_value(whole).context("the changed snapshot")?;
    let counts = text.counts;
    Ok(Snapshot {
        key: text.key,
        settings: text.settings,
        saved: Saved {
            state: named(
                &text.state,
                &[State::Closed, State::Open, State::HalfOpen],
                state_name,
            )?,
            mode: named(
                &text.mode,
                &[Mode::Automatic, Mode::ForcedOpen, Mode::Disabled, Mode::Shadow],
                mode_name,
            )?,
            retry_after: text.retry_after.as_deref().map(parse_duration).transpose()?,
            cooldown_count: text.cooldown_count,
            reopenings: text.reopenings,
            counts: Counts {
                successes: counts.successes,
                failures: counts.failures,
                timeouts: counts.timeouts,
                slow: counts.slow,
                consecutive_successes: counts.consecutive_successes,
                consecutive_failures: counts.consecutive_failures,
                probes_in_flight: counts.probes_in_flight,
            },
        },
        since: parse_duration(&text.since)?,
        last_failure: text.last_failure.as_deref().map(parse_duration).transpose()?,
        last_cause: text.last_cause,
        detail: text.detail,
        detail_format: text.detail_format,
    })
}

fn merge(into: &mut Value, from: &Map<String, Value>) {
    for (name, value) in from {
        match (into.get_mut(name), value) {
            (Some(inner @ Value::Object(_)), Value::Object(fields)) => merge(inner, fields),
            (Some(place), _) => *place = value.clone(),
            (None, _) => {
                // Refused when the whole is read.
                if let Value::Object(all) = into {
                    all.insert(name.clone(), value.clone());
                }
            }
        }
    }
}

fn named<T: Copy>(text: &str, all: &[T], name: fn(T) -> &'static str) -> anyhow::Result<T> {
    all.iter()
        .copied()
        .find(|one| name(*one) == text)
        .with_context(|| format!("{text:?} is not known here"))
}
