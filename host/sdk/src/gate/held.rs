//! What a call that was admitted is settled by.

use super::{NONE, some};

/// What a permit remembers of its admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Admission {
    pub(crate) ticket: u64,
    pub(crate) generation: u64,
    pub(crate) incarnation: u64,
}

/// What a permit holds. Words and nothing else, so that a healthy call need not write it to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    /// Of the lease that admitted the call, where that was a plain one; else [`NOT_PLAIN`] or [`UNRECORDED`].
    pub(super) sequence: u64,
    pub(super) admission: Admission,
    /// [`NONE`] where it means nothing how long the call takes.
    pub(super) started: u64,
    pub(super) call_timeout: u64,
}

/// The sequence of no lease, since epochs begin at 1: the component admitted the call, or a lease that is not plain.
const NOT_PLAIN: u64 = 0;
/// The sequence of no lease: the end of the call is of no interest.
const UNRECORDED: u64 = u64::MAX;

impl Held {
    /// By the component, or by a lease that is not plain.
    pub(crate) fn not_plainly(admission: Admission, started: Option<u64>, call_timeout: Option<u64>) -> Self {
        Self {
            sequence: NOT_PLAIN,
            admission,
            started: started.unwrap_or(NONE),
            call_timeout: call_timeout.unwrap_or(NONE),
        }
    }

    /// By nobody: the call is made and not recorded.
    pub(crate) fn unrecorded(call_timeout: Option<u64>) -> Self {
        let nothing = Admission {
            ticket: 0,
            generation: 0,
            incarnation: 0,
        };
        Self {
            sequence: UNRECORDED,
            ..Self::not_plainly(nothing, None, call_timeout)
        }
    }

    /// Word by word: for [`of_words`](Self::of_words).
    #[inline(always)]
    pub(crate) fn words(self) -> [u64; 6] {
        let Admission {
            ticket,
            generation,
            incarnation,
        } = self.admission;
        [
            self.sequence,
            ticket,
            generation,
            incarnation,
            self.started,
            self.call_timeout,
        ]
    }

    pub(crate) fn of_words(
        [sequence, ticket, generation, incarnation, started, call_timeout]: [u64; 6],
    ) -> Self {
        let admission = Admission {
            ticket,
            generation,
            incarnation,
        };
        Self {
            sequence,
            admission,
            started,
            call_timeout,
        }
    }

    /// None: the end of the call is of no interest.
    pub(crate) fn admission(&self) -> Option<Admission> {
        (self.sequence != UNRECORDED).then_some(self.admission)
    }

    /// When the call began, where it matters how long it takes.
    pub(crate) fn started(&self) -> Option<u64> {
        some(self.started)
    }

    #[inline(always)]
    pub(crate) fn call_timeout(&self) -> Option<u64> {
        some(self.call_timeout)
    }
}
