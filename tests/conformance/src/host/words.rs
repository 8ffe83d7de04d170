//! What the host's API says, in the words of README.md.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tripwit::{Breaker, FieldValue, Instrumentation, Policy, Transition};
use tripwit_core::format_duration;

use crate::scenario::SetupText;
use crate::told::fields;

pub(super) fn time(duration: Option<Duration>) -> Value {
    duration.map(text).into()
}

fn text(duration: Duration) -> String {
    format_duration(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}

pub(super) fn point(at: SystemTime) -> String {
    text(at.duration_since(UNIX_EPOCH).unwrap_or_default())
}

pub(super) fn transition(moved: Option<&Transition>) -> Value {
    let Some(moved) = moved else { return Value::Null };
    json!({
        "operation": moved.operation.to_string(),
        "cause": moved.cause.to_string(),
        "before": moved.before.to_string(),
        "after": moved.after.to_string(),
        "at": point(moved.at),
        "wait": time(moved.wait),
        "cooldown_count": moved.cooldown_count,
    })
}

pub(super) fn status(breaker: &Breaker) -> Result<Value> {
    let status = breaker.status();
    ensure!(
        (status.state, status.mode) == (breaker.state(), breaker.mode()),
        "the lease says {} and {}, the component {} and {}",
        breaker.state(),
        breaker.mode(),
        status.state,
        status.mode
    );
    let counts = status.counts;
    Ok(json!({
        "key": status.key,
        "state": status.state.to_string(),
        "mode": status.mode.to_string(),
        "since": point(status.since),
        "retry_after": time(status.retry_after),
        "cooldown_count": status.cooldown_count,
        "counts": {
            "successes": counts.successes,
            "failures": counts.failures,
            "timeouts": counts.timeouts,
            "slow": counts.slow,
            "consecutive_successes": counts.consecutive_successes,
            "consecutive_failures": counts.consecutive_failures,
            "probes_in_flight": counts.probes_in_flight,
        },
        "last_failure": status.last_failure.map(point),
        "last_cause": status.last_cause,
        "extra": extra(&status.extra),
    }))
}

pub(super) fn description(policy: &Policy) -> Result<Value> {
    let it = policy.description();
    let schema: Value = serde_json::from_str(&it.settings_schema).context("the settings' schema")?;
    Ok(json!({
        "name": it.name,
        "version": it.version,
        "summary": it.summary,
        "settings_schema": schema,
        "extra": extra(&it.extra),
    }))
}

fn extra(from: &[(String, FieldValue)]) -> serde_json::Map<String, Value> {
    fields(from.iter().map(|(name, it)| (name.clone(), value(it))))
}

fn value(from: &FieldValue) -> Value {
    match from {
        FieldValue::Text(text) => text.as_str().into(),
        FieldValue::Integer(number) => (*number).into(),
        FieldValue::Number(number) => (*number).into(),
        FieldValue::Boolean(yes) => (*yes).into(),
    }
}

/// The instrumentation scope that a policy's spans must have.
pub(super) fn scope(policy: &Policy) -> String {
    let extra = extra(&policy.description().extra);
    let scope = extra.get("instrumentation_scope").and_then(Value::as_str);
    scope.unwrap_or("tripwit").to_owned()
}

pub(super) fn instrumentation(setup: &SetupText) -> Instrumentation {
    let tripwit_policy::Instrumentation {
        request_information,
        circuit_breaker,
        other,
    } = tripwit_policy::Setup::from(setup).instrumentation;
    Instrumentation {
        request_information,
        circuit_breaker,
        other,
    }
}
