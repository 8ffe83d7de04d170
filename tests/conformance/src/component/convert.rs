//! From the words of the contract to those of the kit, and back.

use anyhow::{Result, bail};
use serde_json::{Map, Value};
use tripwit_core as core_;
use tripwit_policy as kit;

use super::bindings::exports::tripwit::breaker::policy as wit;
use super::bindings::tripwit::breaker::{log, types};
use crate::guest::Inspection;
use crate::told;

macro_rules! same_cases {
    ($($core:path = $wit:path { $($case:ident),+ })+) => {$(
        impl From<$core> for $wit {
            fn from(value: $core) -> Self {
                match value { $(<$core>::$case => Self::$case),+ }
            }
        }

        impl From<$wit> for $core {
            fn from(value: $wit) -> Self {
                match value { $(<$wit>::$case => Self::$case),+ }
            }
        }
    )+};
}

same_cases! {
    core_::State = types::State { Closed, Open, HalfOpen }
    core_::Mode = types::Mode { Automatic, ForcedOpen, Disabled, Shadow }
    core_::Outcome = types::Outcome { Success, Failure, Timeout, Ignored }
    core_::RejectionReason = types::RejectionReason { Open, ProbeLimit, ForcedOpen, Throttled, Other }
    core_::Operation = types::Operation { Trip, ReTrip, HalfOpen, Reset }
    core_::Cause = types::Cause { Policy, Operator, CoolDown }
}

pub(super) fn level(level: log::Level) -> &'static str {
    match level {
        log::Level::Trace => "TRACE",
        log::Level::Debug => "DEBUG",
        log::Level::Info => "INFO",
        log::Level::Warn => "WARN",
        log::Level::Error => "ERROR",
        log::Level::Critical => "CRITICAL",
    }
}

pub(super) fn fields(from: Vec<types::Field>) -> Map<String, Value> {
    told::fields(from.into_iter().map(|field| {
        let value = match field.value {
            types::Value::Text(text) => text.into(),
            types::Value::Integer(number) => number.into(),
            types::Value::Number(number) => number.into(),
            types::Value::Boolean(yes) => yes.into(),
        };
        (field.name, value)
    }))
}

pub(super) fn setup(setup: &kit::Setup) -> wit::Setup {
    let kit::Instrumentation {
        request_information,
        circuit_breaker,
        other,
    } = setup.instrumentation;
    let mut instrumentation = wit::Instrumentation::empty();
    for (wanted, option) in [
        (request_information, wit::Instrumentation::REQUEST_INFORMATION),
        (circuit_breaker, wit::Instrumentation::CIRCUIT_BREAKER),
        (other, wit::Instrumentation::OTHER),
    ] {
        if wanted {
            instrumentation |= option;
        }
    }
    wit::Setup {
        seed: setup.seed,
        instrumentation,
        namespace: setup.namespace.clone(),
    }
}

pub(super) fn report(report: &core_::Report) -> types::Report {
    types::Report {
        outcome: report.outcome.into(),
        took: report.took,
        retry_after: report.retry_after,
        cause: report.cause.clone(),
    }
}

/// The answer of a function that may refuse. The shipped policies have no reasons of their own.
pub(super) fn refusable<T: Into<U>, U>(
    answer: Result<T, wit::AttachError>,
) -> Result<Result<U, kit::AttachError>> {
    Ok(Err(match answer {
        Ok(done) => return Ok(Ok(done.into())),
        Err(wit::AttachError::Key(problem)) => kit::AttachError::Key(problem),
        Err(wit::AttachError::Settings(wit::SettingsError { field, problem })) => {
            kit::AttachError::Settings(core_::SettingsError { field, problem })
        }
        Err(wit::AttachError::Conflict) => kit::AttachError::Conflict,
        Err(wit::AttachError::Full(limit)) => kit::AttachError::Full(limit),
        Err(wit::AttachError::Snapshot(problem)) => kit::AttachError::Snapshot(problem),
        Err(wit::AttachError::Other(problem)) => bail!("refused for a reason of its own: {problem}"),
    }))
}

impl From<wit::Status> for Inspection {
    fn from(from: wit::Status) -> Self {
        let status = kit::Status {
            key: from.key.as_str().into(),
            state: from.state.into(),
            mode: from.mode.into(),
            since: from.since,
            retry_after: from.retry_after,
            cooldown_count: from.cooldown_count,
            counts: from.counts.into(),
            last_failure: from.last_failure,
            last_cause: from.last_cause.map(Into::into),
        };
        Self {
            status,
            extra: fields(from.extra),
        }
    }
}

impl From<types::Lease> for core_::Lease {
    fn from(from: types::Lease) -> Self {
        Self {
            mode: from.mode.into(),
            generation: from.generation,
            state: from.state.into(),
            standing: match from.standing {
                types::Standing::Admit(ticket) => core_::Standing::Admit(ticket),
                types::Standing::Pass => core_::Standing::Pass,
                types::Standing::Reject(reason) => core_::Standing::Reject(reason.into()),
                types::Standing::Ask => core_::Standing::Ask,
            },
            until: from.until,
            successes: match from.successes {
                types::SuccessReporting::Each => core_::Successes::Each,
                types::SuccessReporting::UpTo(types::Allowance { successes, before }) => {
                    core_::Successes::UpTo(core_::Allowance { successes, before })
                }
                types::SuccessReporting::Never => core_::Successes::Never,
            },
            slow_after: from.slow_after,
            call_timeout: from.call_timeout,
        }
    }
}

fn stamped(from: types::Transition) -> kit::Stamped {
    kit::Stamped {
        transition: core_::Transition {
            operation: from.operation.into(),
            cause: from.cause.into(),
            before: from.before.into(),
            after: from.after.into(),
            wait: from.wait,
            cooldown_count: from.cooldown_count,
        },
        at: from.at,
    }
}

impl From<wit::Attachment> for kit::Attachment {
    fn from(from: wit::Attachment) -> Self {
        Self {
            circuit: from.circuit,
            lease: from.lease.into(),
        }
    }
}

impl From<wit::Admission> for kit::Admission {
    fn from(from: wit::Admission) -> Self {
        Self {
            decision: match from.decision {
                wit::Decision::Admit(ticket) => core_::Decision::Admit(ticket),
                wit::Decision::Pass => core_::Decision::Pass,
                wit::Decision::Reject(types::Rejection { reason, retry_after }) => {
                    core_::Decision::Reject(core_::Rejection {
                        reason: reason.into(),
                        retry_after,
                    })
                }
            },
            lease: from.lease.into(),
            transition: from.transition.map(stamped),
        }
    }
}

impl From<wit::Settlement> for kit::Settlement {
    fn from(from: wit::Settlement) -> Self {
        Self {
            counted: from.counted,
            lease: from.lease.into(),
            transition: from.transition.map(stamped),
        }
    }
}

impl From<types::Moved> for kit::Moved {
    fn from(from: types::Moved) -> Self {
        Self {
            lease: from.lease.into(),
            transition: from.transition.map(stamped),
        }
    }
}

impl From<wit::Counts> for core_::Counts {
    fn from(from: wit::Counts) -> Self {
        Self {
            successes: from.successes,
            failures: from.failures,
            timeouts: from.timeouts,
            slow: from.slow,
            consecutive_successes: from.consecutive_successes,
            consecutive_failures: from.consecutive_failures,
            probes_in_flight: from.probes_in_flight,
        }
    }
}

impl From<core_::Counts> for wit::Counts {
    fn from(from: core_::Counts) -> Self {
        Self {
            successes: from.successes,
            failures: from.failures,
            timeouts: from.timeouts,
            slow: from.slow,
            consecutive_successes: from.consecutive_successes,
            consecutive_failures: from.consecutive_failures,
            probes_in_flight: from.probes_in_flight,
        }
    }
}

impl From<wit::Snapshot> for kit::Snapshot {
    fn from(from: wit::Snapshot) -> Self {
        Self {
            key: from.key,
            settings: from.settings,
            saved: core_::Saved {
                state: from.state.into(),
                mode: from.mode.into(),
                retry_after: from.retry_after,
                cooldown_count: from.cooldown_count,
                reopenings: from.reopenings,
                counts: from.counts.into(),
            },
            since: from.since,
            last_failure: from.last_failure,
            last_cause: from.last_cause,
            detail: from.detail,
            detail_format: from.detail_format,
        }
    }
}

impl From<&kit::Snapshot> for wit::Snapshot {
    fn from(from: &kit::Snapshot) -> Self {
        Self {
            key: from.key.clone(),
            settings: from.settings.clone(),
            state: from.saved.state.into(),
            mode: from.saved.mode.into(),
            since: from.since,
            retry_after: from.saved.retry_after,
            cooldown_count: from.saved.cooldown_count,
            reopenings: from.saved.reopenings,
            counts: from.saved.counts.into(),
            last_failure: from.last_failure,
            last_cause: from.last_cause.clone(),
            detail: from.detail.clone(),
            detail_format: from.detail_format.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_only_a_policy_has_to_say_is_in_the_answer() {
        let field = |name: &str, value| types::Field {
            name: name.into(),
            value,
        };
        let status = wit::Status {
            key: "orders".into(),
            state: types::State::Closed,
            mode: types::Mode::Automatic,
            since: 0,
            retry_after: None,
            cooldown_count: None,
            counts: core_::Counts::default().into(),
            last_failure: None,
            last_cause: None,
            extra: vec![
                field("why", types::Value::Text("slow".into())),
                field("calls", types::Value::Integer(3)),
                field("share", types::Value::Number(50.0)),
                field("full", types::Value::Boolean(false)),
            ],
        };
        let answer = crate::answer::inspection(&status.into());
        let extra = r#"{"calls":3,"full":false,"share":50.0,"why":"slow"}"#;
        assert_eq!(answer["extra"].to_string(), extra);
        assert_eq!(answer["key"], json!("orders"));
    }
}
