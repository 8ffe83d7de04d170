//! From the words of the core to the words of the contract, and back.

use alloc::{borrow::ToOwned, string::ToString, vec::Vec};

use tripwit_core as core_;

use super::bindings::{
    exports::tripwit::breaker::policy as wit,
    tripwit::breaker::{log, spans, types},
};
use crate::{
    Admission, AttachError, Attachment, FieldValue, Instrumentation, Level, Moved, Settlement, Setup,
    Snapshot, Span, Stamped, Status,
};

/// Converts enums of the same cases, both ways.
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

impl From<Level> for log::Level {
    fn from(level: Level) -> Self {
        match level {
            Level::Debug => Self::Debug,
            Level::Info => Self::Info,
            Level::Warn => Self::Warn,
        }
    }
}

impl From<FieldValue> for types::Value {
    fn from(value: FieldValue) -> Self {
        match value {
            FieldValue::Text(text) => Self::Text(text),
            FieldValue::Integer(integer) => Self::Integer(integer),
        }
    }
}

pub(super) fn text_field(name: &str, text: &str) -> types::Field {
    types::Field {
        name: name.to_owned(),
        value: types::Value::Text(text.to_owned()),
    }
}

pub(super) fn fields(fields: Vec<(impl ToString, FieldValue)>) -> Vec<types::Field> {
    fields
        .into_iter()
        .map(|(name, value)| types::Field {
            name: name.to_string(),
            value: value.into(),
        })
        .collect()
}

impl From<Span> for spans::Span {
    fn from(span: Span) -> Self {
        Self {
            name: span.name,
            start: span.at,
            end: span.at,
            attributes: fields(span.attributes),
        }
    }
}

impl From<wit::Setup> for Setup {
    fn from(setup: wit::Setup) -> Self {
        let has = |option| setup.instrumentation.contains(option);
        let instrumentation = Instrumentation {
            request_information: has(wit::Instrumentation::REQUEST_INFORMATION),
            circuit_breaker: has(wit::Instrumentation::CIRCUIT_BREAKER),
            other: has(wit::Instrumentation::OTHER),
        };
        Self {
            seed: setup.seed,
            instrumentation,
            namespace: setup.namespace,
        }
    }
}

impl From<types::Report> for core_::Report {
    fn from(report: types::Report) -> Self {
        Self {
            outcome: report.outcome.into(),
            took: report.took,
            retry_after: report.retry_after,
            cause: report.cause,
        }
    }
}

impl From<core_::Lease> for types::Lease {
    fn from(lease: core_::Lease) -> Self {
        Self {
            mode: lease.mode.into(),
            generation: lease.generation,
            state: lease.state.into(),
            standing: match lease.standing {
                core_::Standing::Admit(ticket) => types::Standing::Admit(ticket),
                core_::Standing::Pass => types::Standing::Pass,
                core_::Standing::Reject(reason) => types::Standing::Reject(reason.into()),
                core_::Standing::Ask => types::Standing::Ask,
            },
            until: lease.until,
            successes: match lease.successes {
                core_::Successes::Each => types::SuccessReporting::Each,
                core_::Successes::UpTo(core_::Allowance { successes, before }) => {
                    types::SuccessReporting::UpTo(types::Allowance { successes, before })
                }
                core_::Successes::Never => types::SuccessReporting::Never,
            },
            slow_after: lease.slow_after,
            call_timeout: lease.call_timeout,
        }
    }
}

impl From<core_::Decision> for wit::Decision {
    fn from(decision: core_::Decision) -> Self {
        match decision {
            core_::Decision::Admit(ticket) => Self::Admit(ticket),
            core_::Decision::Pass => Self::Pass,
            core_::Decision::Reject(core_::Rejection { reason, retry_after }) => {
                Self::Reject(types::Rejection {
                    reason: reason.into(),
                    retry_after,
                })
            }
        }
    }
}

impl From<Stamped> for types::Transition {
    fn from(Stamped { transition, at }: Stamped) -> Self {
        Self {
            operation: transition.operation.into(),
            cause: transition.cause.into(),
            before: transition.before.into(),
            after: transition.after.into(),
            at,
            wait: transition.wait,
            cooldown_count: transition.cooldown_count,
        }
    }
}

impl From<Attachment> for wit::Attachment {
    fn from(attachment: Attachment) -> Self {
        Self {
            circuit: attachment.circuit,
            lease: attachment.lease.into(),
        }
    }
}

impl From<Admission> for wit::Admission {
    fn from(admission: Admission) -> Self {
        Self {
            decision: admission.decision.into(),
            lease: admission.lease.into(),
            transition: admission.transition.map(Into::into),
        }
    }
}

impl From<Settlement> for wit::Settlement {
    fn from(settlement: Settlement) -> Self {
        Self {
            counted: settlement.counted,
            lease: settlement.lease.into(),
            transition: settlement.transition.map(Into::into),
        }
    }
}

impl From<Moved> for types::Moved {
    fn from(moved: Moved) -> Self {
        Self {
            lease: moved.lease.into(),
            transition: moved.transition.map(Into::into),
        }
    }
}

impl From<AttachError> for wit::AttachError {
    fn from(error: AttachError) -> Self {
        match error {
            AttachError::Key(problem) => Self::Key(problem),
            AttachError::Settings(error) => Self::Settings(wit::SettingsError {
                field: error.field,
                problem: error.problem,
            }),
            AttachError::Conflict => Self::Conflict,
            AttachError::Full(limit) => Self::Full(limit),
            AttachError::Snapshot(problem) => Self::Snapshot(problem),
        }
    }
}

impl From<core_::Counts> for wit::Counts {
    fn from(counts: core_::Counts) -> Self {
        Self {
            successes: counts.successes,
            failures: counts.failures,
            timeouts: counts.timeouts,
            slow: counts.slow,
            consecutive_successes: counts.consecutive_successes,
            consecutive_failures: counts.consecutive_failures,
            probes_in_flight: counts.probes_in_flight,
        }
    }
}

impl From<wit::Counts> for core_::Counts {
    fn from(counts: wit::Counts) -> Self {
        Self {
            successes: counts.successes,
            failures: counts.failures,
            timeouts: counts.timeouts,
            slow: counts.slow,
            consecutive_successes: counts.consecutive_successes,
            consecutive_failures: counts.consecutive_failures,
            probes_in_flight: counts.probes_in_flight,
        }
    }
}

impl From<Status> for wit::Status {
    fn from(status: Status) -> Self {
        Self {
            key: status.key.to_string(),
            state: status.state.into(),
            mode: status.mode.into(),
            since: status.since,
            retry_after: status.retry_after,
            cooldown_count: status.cooldown_count,
            counts: status.counts.into(),
            last_failure: status.last_failure,
            last_cause: status.last_cause.map(Into::into),
            extra: Vec::new(),
        }
    }
}

impl From<Snapshot> for wit::Snapshot {
    fn from(snapshot: Snapshot) -> Self {
        let saved = snapshot.saved;
        Self {
            key: snapshot.key,
            settings: snapshot.settings,
            state: saved.state.into(),
            mode: saved.mode.into(),
            since: snapshot.since,
            retry_after: saved.retry_after,
            cooldown_count: saved.cooldown_count,
            reopenings: saved.reopenings,
            counts: saved.counts.into(),
            last_failure: snapshot.last_failure,
            last_cause: snapshot.last_cause,
            detail: snapshot.detail,
            detail_format: snapshot.detail_format,
        }
    }
}

impl From<wit::Snapshot> for Snapshot {
    fn from(snapshot: wit::Snapshot) -> Self {
        Self {
            key: snapshot.key,
            settings: snapshot.settings,
            saved: core_::Saved {
                state: snapshot.state.into(),
                mode: snapshot.mode.into(),
                retry_after: snapshot.retry_after,
                cooldown_count: snapshot.cooldown_count,
                reopenings: snapshot.reopenings,
                counts: snapshot.counts.into(),
            },
            since: snapshot.since,
            last_failure: snapshot.last_failure,
            last_cause: snapshot.last_cause,
            detail: snapshot.detail,
            detail_format: snapshot.detail_format,
        }
    }
}
