//! What a guarded call comes to when it is not simply made.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::bindings::tripwit::breaker::types as wit;
use crate::circuit::Key;
pub use crate::words::RejectionReason;

impl fmt::Display for RejectionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Open => "open",
            Self::ProbeLimit => "probe-limit",
            Self::ForcedOpen => "forced-open",
            Self::Throttled => "throttled",
            Self::Other => "other",
        })
    }
}

impl From<wit::RejectionReason> for RejectionReason {
    fn from(reason: wit::RejectionReason) -> Self {
        match reason {
            wit::RejectionReason::Open => Self::Open,
            wit::RejectionReason::ProbeLimit => Self::ProbeLimit,
            wit::RejectionReason::ForcedOpen => Self::ForcedOpen,
            wit::RejectionReason::Throttled => Self::Throttled,
            wit::RejectionReason::Other => Self::Other,
        }
    }
}

/// A call that was not made, because its circuit said no.
///
/// Nothing was sent. Its text names the circuit and says what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    key: Key,
    reason: RejectionReason,
    /// Nanoseconds.
    retry_after: Option<u64>,
    at_fault: bool,
}

impl Rejection {
    #[inline]
    pub(crate) fn new(key: &Key, reason: RejectionReason, retry_after: Option<u64>) -> Self {
        Self {
            key: key.clone(),
            reason,
            retry_after,
            at_fault: false,
        }
    }

    /// What `OnFault::Reject` answers.
    pub(crate) fn at_fault(key: &Key) -> Self {
        Self {
            key: key.clone(),
            reason: RejectionReason::Other,
            retry_after: None,
            at_fault: true,
        }
    }

    /// The circuit's key.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Why the call was not made.
    #[must_use]
    pub fn reason(&self) -> RejectionReason {
        self.reason
    }

    /// How long until it is worth asking again; `None` where no clock decides (forced open, cool-down cycles).
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after.map(Duration::from_nanos)
    }
}

impl std::error::Error for Rejection {}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.key();
        if self.at_fault {
            return write!(
                f,
                "the policy component of circuit {key:?} failed, and calls are then rejected as `on_fault` says; look for the fault in the log of target `tripwit`"
            );
        }
        match self.reason {
            RejectionReason::Open => write!(f, "circuit {key:?} is open")?,
            RejectionReason::ProbeLimit => {
                write!(f, "circuit {key:?} is half-open and all its probes are under way")?;
            }
            RejectionReason::ForcedOpen => {
                return write!(
                    f,
                    "circuit {key:?} is held open by an operator; set its mode back to automatic"
                );
            }
            RejectionReason::Throttled => write!(f, "circuit {key:?} sheds a share of its calls")?,
            RejectionReason::Other => write!(f, "circuit {key:?} rejects calls")?,
        }
        match self.retry_after() {
            Some(wait) => write!(f, "; the call was not made, try again in {wait:?}"),
            None => f.write_str("; the call was not made, try again later"),
        }
    }
}

/// What a guarded call came to, where it gave no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError<E> {
    /// The circuit said no, and the call was not made.
    #[error(transparent)]
    Rejected(#[from] Rejection),
    /// The call ran longer than the circuit lets it, and was given up.
    #[error(
        "a call through circuit {key:?} ran longer than {after:?} and was given up; what it started elsewhere may still go on"
    )]
    TimedOut {
        /// The circuit's key.
        key: Arc<str>,
        /// How long a call may run.
        after: Duration,
    },
    /// The call was made and returned this error.
    #[error(transparent)]
    Inner(E),
}

impl<E> CallError<E> {
    /// The call's own error, if it was made and returned one.
    pub fn into_inner(self) -> Option<E> {
        match self {
            Self::Inner(error) => Some(error),
            Self::Rejected(_) | Self::TimedOut { .. } => None,
        }
    }

    /// The rejection, if the call was not made.
    pub fn rejection(&self) -> Option<&Rejection> {
        match self {
            Self::Rejected(rejection) => Some(rejection),
            Self::Inner(_) | Self::TimedOut { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An error with all its sources, as it is commonly printed.
    fn chain(error: &dyn std::error::Error) -> String {
        match error.source() {
            Some(source) => format!("{error}: {}", chain(source)),
            None => error.to_string(),
        }
    }

    #[test]
    fn the_calls_own_error_is_printed_once() {
        let refused = std::io::Error::other("refused");
        assert_eq!(chain(&CallError::Inner(refused)), "refused");
    }

    #[test]
    fn a_rejection_names_the_circuit_and_what_to_do() {
        let key = Key::from("payments");
        let open = Rejection::new(&key, RejectionReason::Open, Some(1_500_000_000));
        assert_eq!(
            open.to_string(),
            "circuit \"payments\" is open; the call was not made, try again in 1.5s"
        );
        let forced = Rejection::new(&key, RejectionReason::ForcedOpen, None);
        assert!(forced.to_string().ends_with("set its mode back to automatic"));
        assert!(
            Rejection::at_fault(&key)
                .to_string()
                .contains("the policy component of circuit \"payments\" failed")
        );
    }
}
