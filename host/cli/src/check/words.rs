//! The contract's words as people read them.

use std::time::Duration;

use tripwit::raw::{
    Allowance, Cause, Lease, Mode, Operation, Outcome, RejectionReason, Standing, State, SuccessReporting,
    Transition,
};

pub(crate) fn time(nanoseconds: u64) -> String {
    format!("{:?}", Duration::from_nanos(nanoseconds))
}

pub(crate) fn optional_time(nanoseconds: Option<u64>) -> String {
    nanoseconds.map_or_else(|| "none".into(), time)
}

pub(crate) const fn state(state: State) -> &'static str {
    match state {
        State::Closed => "closed",
        State::Open => "open",
        State::HalfOpen => "half-open",
    }
}

pub(crate) const fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Automatic => "automatic",
        Mode::ForcedOpen => "forced-open",
        Mode::Disabled => "disabled",
        Mode::Shadow => "shadow",
    }
}

pub(crate) const fn operation(operation: Operation) -> &'static str {
    match operation {
        Operation::Trip => "trip",
        Operation::ReTrip => "re-trip",
        Operation::HalfOpen => "half-open",
        Operation::Reset => "reset",
    }
}

pub(crate) const fn cause(cause: Cause) -> &'static str {
    match cause {
        Cause::Policy => "policy",
        Cause::Operator => "operator",
        Cause::CoolDown => "cool-down",
    }
}

pub(crate) const fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Success => "success",
        Outcome::Failure => "failure",
        Outcome::Timeout => "time-out",
        Outcome::Ignored => "ignored",
    }
}

pub(crate) const fn reason(reason: RejectionReason) -> &'static str {
    match reason {
        RejectionReason::Open => "open",
        RejectionReason::ProbeLimit => "probe-limit",
        RejectionReason::ForcedOpen => "forced-open",
        RejectionReason::Throttled => "throttled",
        RejectionReason::Other => "other",
    }
}

pub(crate) fn moved(transition: Option<&Transition>) -> String {
    let Some(transition) = transition else {
        return "no move".into();
    };
    let mut text = format!(
        "{} by {}, {} to {}",
        operation(transition.operation),
        cause(transition.cause),
        state(transition.before),
        state(transition.after)
    );
    if let Some(wait) = transition.wait {
        text += &format!(", wait {}", time(wait));
    }
    if let Some(count) = transition.cooldown_count {
        text += &format!(", {count} cycles");
    }
    text
}

/// What a lease lets a host do, its tickets and its generation left out.
pub(crate) fn lease(lease: &Lease) -> String {
    let standing = match lease.standing {
        Standing::Admit(_) => "admit".into(),
        Standing::Pass => "pass".into(),
        Standing::Reject(why) => format!("reject ({})", reason(why)),
        Standing::Ask => "ask".into(),
    };
    let successes = match lease.successes {
        SuccessReporting::Each => "each success".into(),
        SuccessReporting::UpTo(Allowance { successes, before }) => {
            format!(
                "up to {successes} successes kept back, before {}",
                optional_time(before)
            )
        }
        SuccessReporting::Never => "no success".into(),
    };
    format!(
        "{}, {}: {standing} until {}, {successes}, slow after {}, time-out {}",
        state(lease.state),
        mode(lease.mode),
        optional_time(lease.until),
        optional_time(lease.slow_after),
        optional_time(lease.call_timeout)
    )
}
