//! A lease's small parts in one word.

use super::{COUNT_MASK, MAX_COUNT, NONE};
use crate::lease::{Lease, Standing, Successes};
use crate::words::{Mode, RejectionReason, State};

/// The small parts of a lease in one word: standing, reason, state, mode, successes, fault, allowance.
#[derive(Clone, Copy)]
pub(super) struct Packed(pub(super) u64);

impl Packed {
    pub(super) fn from(lease: &Lease, at_fault: bool) -> (Self, u64, u64) {
        let (standing, reason, ticket) = match lease.standing {
            Standing::Admit(ticket) => (0, 0, ticket),
            Standing::Pass => (1, 0, 0),
            Standing::Reject(reason) => (2, reason as u64, 0),
            Standing::Ask => (3, 0, 0),
        };
        let (successes, allowed, before) = match lease.successes {
            Successes::Each => (0, 0, NONE),
            Successes::UpTo { count, before } => (1, u64::from(count).min(MAX_COUNT), before.unwrap_or(NONE)),
            Successes::Never => (2, 0, NONE),
        };
        let word = standing
            | reason << 2
            | (lease.state as u64) << 5
            | (lease.mode as u64) << 7
            | successes << 9
            | u64::from(at_fault) << 11
            | allowed << 12
            | u64::from(lease.until.is_some()) << 40;
        (Self(word), ticket, before)
    }

    #[inline(always)]
    pub(super) fn standing(self, ticket: u64) -> Standing {
        match self.0 & 3 {
            0 => Standing::Admit(ticket),
            1 => Standing::Pass,
            2 => Standing::Reject(self.reason()),
            _ => Standing::Ask,
        }
    }

    #[inline(always)]
    pub(super) fn reason(self) -> RejectionReason {
        match self.0 >> 2 & 7 {
            0 => RejectionReason::Open,
            1 => RejectionReason::ProbeLimit,
            2 => RejectionReason::ForcedOpen,
            3 => RejectionReason::Throttled,
            _ => RejectionReason::Other,
        }
    }

    /// Whether the standing ends. The end may be the last instant there is, so it cannot tell by itself.
    #[inline(always)]
    pub(super) fn has_until(self) -> bool {
        self.0 >> 40 & 1 == 1
    }

    #[inline(always)]
    pub(super) fn state(self) -> State {
        match self.0 >> 5 & 3 {
            0 => State::Closed,
            1 => State::Open,
            _ => State::HalfOpen,
        }
    }

    #[inline(always)]
    pub(super) fn mode(self) -> Mode {
        match self.0 >> 7 & 3 {
            0 => Mode::Automatic,
            1 => Mode::ForcedOpen,
            2 => Mode::Disabled,
            _ => Mode::Shadow,
        }
    }

    #[inline(always)]
    pub(super) fn successes(self, before: Option<u64>) -> Successes {
        match self.0 >> 9 & 3 {
            0 => Successes::Each,
            1 => Successes::UpTo {
                count: self.allowed(),
                before,
            },
            _ => Successes::Never,
        }
    }

    /// How many successes may be kept back, where some may.
    #[inline(always)]
    pub(super) fn allowed(self) -> u32 {
        u32::try_from(self.0 >> 12 & COUNT_MASK).unwrap_or(0)
    }

    #[inline(always)]
    pub(super) fn at_fault(self) -> bool {
        self.0 >> 11 & 1 == 1
    }
}
