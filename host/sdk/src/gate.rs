//! What every thread may see of a circuit without a lock.
//!
//! The words of a lease are kept under a sequence lock: a reader that meets a writer does not wait for it but takes the
//! shard's lock. Successes that a lease lets the host keep back are counted in one word together with the lease's
//! epoch, so that none can land under a lease that it was not kept back under.
//!
//! What a healthy call runs through is always inlined: a view that is written to memory and read back costs more than all
//! the rest of it.
//!
//! Every method whose name ends in `_locked` may be called only by the holder of the shard's lock.

use crate::lease::{Lease, Standing, Successes};
use crate::sync::{AtomicU64, Ordering, fence};
use crate::words::{Mode, RejectionReason};
pub(crate) use held::{Admission, Held};
use packed::Packed;

mod held;
mod packed;

/// One circuit's lease, for many readers and one writer at a time.
pub(crate) struct Gate {
    words: Words,
    kept: Kept,
}

/// Read by every call, written at each crossing.
struct Words {
    /// The epoch, and in the lowest bits what a call must know of the lease first: see [`WRITING`] and those after it.
    sequence: AtomicU64,
    ticket: AtomicU64,
    generation: AtomicU64,
    incarnation: AtomicU64,
    packed: AtomicU64,
    until: AtomicU64,
    before: AtomicU64,
    slow_after: AtomicU64,
    call_timeout: AtomicU64,
}

impl Words {
    #[inline(always)]
    fn admission(&self) -> Admission {
        Admission {
            ticket: self.ticket.load(Ordering::Relaxed),
            generation: self.generation.load(Ordering::Relaxed),
            incarnation: self.incarnation.load(Ordering::Relaxed),
        }
    }
}

struct Kept(AtomicU64);

/// A lease as one moment showed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct View {
    /// Grows with every crossing, also when the lease stays the same.
    pub(crate) epoch: u64,
    pub(crate) lease: Lease,
    /// Which instance of the component handed it out.
    pub(crate) incarnation: u64,
    /// No component stands behind it any more.
    pub(crate) at_fault: bool,
}

/// How far the gate answers by the lease that it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Authority {
    /// Wherever the lease says.
    Lease,
    /// Never by its marks: the component is asked each time.
    Component,
    /// By what the host made up: the component has failed.
    Host,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Success,
    Failure,
    Timeout,
    Ignored,
}

/// What a reading of the clock is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum For {
    /// How long a call took.
    Length,
    /// Whether an instant is there that the component named.
    Deadline,
}

/// What a lease says about a call that wants to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Admit(Admission),
    Pass,
    Reject {
        reason: RejectionReason,
        retry_after: Option<u64>,
    },
    /// It does not say: the component must be asked.
    Ask,
}

/// What a lease says about a call that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    /// Admitted too long ago to count.
    Void,
    /// Changes nothing, and need not be told.
    Nothing,
    /// May be kept back, if there is still room.
    Keep { allowed: u32 },
    /// The component must be told.
    Tell,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) outcome: Outcome,
    /// How long it ran, where that was measured.
    pub(crate) took: Option<u64>,
    /// When, where the clock was read.
    pub(crate) at: Option<u64>,
}

/// A call that was settled at the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settled {
    pub(crate) outcome: Outcome,
    /// Not where it was admitted too long ago to count.
    pub(crate) counted: bool,
}

/// What became of a success that was to be kept back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeping {
    Kept,
    /// The lease has changed: look again.
    Changed,
    /// There is no room, or the component is being asked at this moment: take the lock.
    Closed,
}

impl View {
    /// Decides on a call that wants to begin. `now` is asked for only where it matters.
    #[inline(always)]
    pub(crate) fn answer(&self, now: impl FnOnce() -> u64) -> Answer {
        let lease = &self.lease;
        let left = match lease.until {
            None => None,
            Some(until) => match until.checked_sub(now()) {
                None | Some(0) => return Answer::Ask,
                left => left,
            },
        };
        match lease.standing {
            Standing::Admit(ticket) => Answer::Admit(Admission {
                ticket,
                generation: lease.generation,
                incarnation: self.incarnation,
            }),
            Standing::Pass => Answer::Pass,
            Standing::Reject(reason) => Answer::Reject {
                reason,
                retry_after: left,
            },
            Standing::Ask => Answer::Ask,
        }
    }

    /// Whether a permit no longer counts.
    #[inline(always)]
    pub(crate) fn voids(&self, permit: &Admission) -> bool {
        self.lease.generation != permit.generation || self.incarnation != permit.incarnation || self.at_fault
    }

    /// Decides on a call that ended.
    ///
    /// Without a reading of the clock nothing that depends on it is decided here.
    #[inline(always)]
    pub(crate) fn weigh(&self, permit: &Admission, ended: Ended) -> Weight {
        let Ended { outcome, took, at } = ended;
        if self.voids(permit) {
            return Weight::Void;
        }
        match outcome {
            Outcome::Ignored if self.lease.standing == Standing::Admit(permit.ticket) => Weight::Nothing,
            Outcome::Success if !self.is_slow(took) => match self.lease.successes {
                Successes::Never => Weight::Nothing,
                // What is kept back is handed in under the ticket that calls share, so only those calls may be.
                Successes::UpTo { count, before }
                    if ends_before(at, before) && self.lease.standing == Standing::Admit(permit.ticket) =>
                {
                    Weight::Keep { allowed: count }
                }
                Successes::UpTo { .. } | Successes::Each => Weight::Tell,
            },
            Outcome::Success | Outcome::Failure | Outcome::Timeout | Outcome::Ignored => Weight::Tell,
        }
    }

    /// Whether a reading of the clock is needed to decide on a success.
    #[inline(always)]
    pub(crate) fn weighs_by_the_clock(&self) -> bool {
        matches!(self.lease.successes, Successes::UpTo { before: Some(_), .. })
    }

    #[inline(always)]
    fn is_slow(&self, took: Option<u64>) -> bool {
        matches!((took, self.lease.slow_after), (Some(took), Some(limit)) if took > limit)
    }
}

fn ends_before(now: Option<u64>, before: Option<u64>) -> bool {
    before.is_none_or(|before| now.is_some_and(|now| now < before))
}

impl Gate {
    pub(crate) fn new(lease: &Lease, incarnation: u64) -> Self {
        let gate = Self {
            words: Words {
                sequence: AtomicU64::new(0),
                packed: AtomicU64::new(0),
                ticket: AtomicU64::new(0),
                generation: AtomicU64::new(0),
                incarnation: AtomicU64::new(0),
                until: AtomicU64::new(NONE),
                before: AtomicU64::new(NONE),
                slow_after: AtomicU64::new(NONE),
                call_timeout: AtomicU64::new(NONE),
            },
            kept: Kept(AtomicU64::new(CLOSED)),
        };
        gate.publish_locked(lease, incarnation, Authority::Lease);
        gate.open_locked();
        gate
    }

    /// Reads words of one lease that has this mark, if it has one to have: `see` gets the sequence too, and what it sees counts
    /// only if no writer was at work meanwhile.
    #[inline(always)]
    fn look<R>(&self, mark: u64, see: impl FnOnce(&Words, u64) -> R) -> Option<R> {
        let sequence = self.words.sequence.load(Ordering::Acquire);
        if sequence & (WRITING | mark) != mark {
            return None;
        }
        let seen = see(&self.words, sequence);
        fence(Ordering::Acquire);
        (self.words.sequence.load(Ordering::Relaxed) == sequence).then_some(seen)
    }

    /// Admits a call by a plain lease: what a healthy call comes to, in as few steps as it takes. `None`: look at the lease.
    /// `stamp` is asked for only where it matters.
    #[inline(always)]
    pub(crate) fn admit_plainly(&self, stamp: impl FnOnce() -> u64) -> Option<Held> {
        let (sequence, admission, call_timeout) = self.look(PLAIN, |words, sequence| {
            let admission = words.admission();
            let call_timeout = match sequence & MEASURED {
                0 => NONE,
                _ => words.call_timeout.load(Ordering::Relaxed),
            };
            (sequence, admission, call_timeout)
        })?;
        Some(Held {
            sequence,
            admission,
            started: match sequence & MEASURED {
                0 => NONE,
                _ => stamp(),
            },
            call_timeout,
        })
    }

    /// The same by a lease that is simple as well as plain, under which there is nothing else to know.
    #[inline(always)]
    pub(crate) fn admit_simply(&self) -> Option<Held> {
        self.look(SIMPLE, |words, sequence| Held {
            sequence,
            admission: words.admission(),
            started: NONE,
            call_timeout: NONE,
        })
    }

    /// Settles the success of a call that was admitted plainly, if that lease still stands and has room for it. Else look at
    /// the lease. `now` is asked for only where it matters, and told what for.
    #[inline(always)]
    pub(crate) fn succeed_plainly(&self, held: Held, now: impl FnOnce(For) -> u64) -> bool {
        let stands = self.words.sequence.load(Ordering::Acquire) == held.sequence;
        match held.sequence & SIMPLE {
            0 => stands && self.succeed_by_words(held.sequence, held.started, now),
            _ => stands,
        }
    }

    /// The same where it means something that a call succeeds, or how long it took.
    #[inline]
    fn succeed_by_words(&self, sequence: u64, started: u64, now: impl FnOnce(For) -> u64) -> bool {
        let words = &self.words;
        if sequence & (MEASURED | BY_CLOCK) != 0 {
            let now = now(match sequence & BY_CLOCK {
                0 => For::Length,
                _ => For::Deadline,
            });
            let took = match sequence & MEASURED {
                0 => 0,
                _ => now.saturating_sub(started),
            };
            let limit = |word: &AtomicU64| word.load(Ordering::Relaxed);
            if took > limit(&words.slow_after)
                || took > limit(&words.call_timeout)
                || now >= limit(&words.before)
            {
                return false;
            }
        }
        let packed = Packed(words.packed.load(Ordering::Relaxed));
        // What was read is of the lease that still stands. Were it another's, the counter would be closed or of its epoch.
        fence(Ordering::Acquire);
        words.sequence.load(Ordering::Relaxed) == sequence
            && (sequence & NEVER != 0
                || self.keep(sequence >> EPOCH_SHIFT, packed.allowed()) == Keeping::Kept)
    }

    /// Rejects a call by a lease that does so until an instant that is not there yet. `None`: look at the lease.
    #[inline(always)]
    pub(crate) fn reject_plainly(&self, now: impl FnOnce() -> u64) -> Option<(RejectionReason, u64)> {
        let (reason, until) = self.look(REJECTS, |words, _| {
            let packed = Packed(words.packed.load(Ordering::Relaxed));
            (packed.reason(), words.until.load(Ordering::Relaxed))
        })?;
        let left = until.checked_sub(now()).filter(|left| *left > 0)?;
        Some((reason, left))
    }

    /// The lease at this moment; `None` when a writer is at work.
    #[inline(always)]
    pub(crate) fn read(&self) -> Option<View> {
        self.look(0, |_, sequence| self.load(sequence))
    }

    /// The lease as it stands.
    pub(crate) fn read_locked(&self) -> View {
        self.load(self.words.sequence.load(Ordering::Relaxed))
    }

    #[inline(always)]
    fn load(&self, sequence: u64) -> View {
        let words = &self.words;
        let packed = Packed(words.packed.load(Ordering::Relaxed));
        let lease = Lease {
            mode: packed.mode(),
            state: packed.state(),
            generation: words.generation.load(Ordering::Relaxed),
            standing: packed.standing(words.ticket.load(Ordering::Relaxed)),
            until: packed.has_until().then_some(words.until.load(Ordering::Relaxed)),
            successes: packed.successes(some(words.before.load(Ordering::Relaxed))),
            slow_after: some(words.slow_after.load(Ordering::Relaxed)),
            call_timeout: some(words.call_timeout.load(Ordering::Relaxed)),
        };
        View {
            epoch: sequence >> EPOCH_SHIFT,
            lease,
            incarnation: words.incarnation.load(Ordering::Relaxed),
            at_fault: packed.at_fault(),
        }
    }

    /// Replaces the lease and begins a new epoch. The counter must be closed.
    pub(crate) fn publish_locked(&self, lease: &Lease, incarnation: u64, authority: Authority) {
        let at_fault = authority == Authority::Host;
        let words = &self.words;
        let sequence = words.sequence.load(Ordering::Relaxed);
        words.sequence.store(sequence | WRITING, Ordering::Relaxed);
        fence(Ordering::Release);
        let (packed, ticket, before) = Packed::from(lease, at_fault);
        words.packed.store(packed.0, Ordering::Relaxed);
        words.ticket.store(ticket, Ordering::Relaxed);
        words.generation.store(lease.generation, Ordering::Relaxed);
        words.incarnation.store(incarnation, Ordering::Relaxed);
        words.until.store(lease.until.unwrap_or(NONE), Ordering::Relaxed);
        words.before.store(before, Ordering::Relaxed);
        words
            .slow_after
            .store(lease.slow_after.unwrap_or(NONE), Ordering::Relaxed);
        words
            .call_timeout
            .store(lease.call_timeout.unwrap_or(NONE), Ordering::Relaxed);
        let epoch = (sequence >> EPOCH_SHIFT).wrapping_add(1);
        let marks = match authority {
            Authority::Lease => marks(lease),
            Authority::Component | Authority::Host => 0,
        };
        words
            .sequence
            .store(epoch << EPOCH_SHIFT | marks, Ordering::Release);
    }

    /// Settles a call by the lease as it is now. `None`: it does not settle it, and the component must be told.
    ///
    /// How the call ended is asked for once for each lease that is looked at, since which readings it takes depends on it.
    #[inline(always)]
    pub(crate) fn settle(&self, permit: &Admission, ended: impl Fn(&View) -> Ended) -> Option<Settled> {
        loop {
            let view = self.read()?;
            let ended = ended(&view);
            let counted = match view.weigh(permit, ended) {
                Weight::Void => false,
                Weight::Nothing => true,
                Weight::Keep { allowed } => match self.keep(view.epoch, allowed) {
                    Keeping::Kept => true,
                    Keeping::Changed => continue,
                    Keeping::Closed => return None,
                },
                Weight::Tell => return None,
            };
            return Some(Settled {
                outcome: ended.outcome,
                counted,
            });
        }
    }

    /// Keeps one success back under the lease of this epoch.
    #[inline]
    pub(crate) fn keep(&self, epoch: u64, allowed: u32) -> Keeping {
        let allowed = u64::from(allowed).min(MAX_COUNT);
        let mut seen = self.kept.0.load(Ordering::Relaxed);
        loop {
            if seen == CLOSED {
                return Keeping::Closed;
            }
            if seen >> COUNT_BITS != epoch & EPOCH_MASK {
                return Keeping::Changed;
            }
            if seen & COUNT_MASK >= allowed {
                return Keeping::Closed;
            }
            match self
                .kept
                .0
                .compare_exchange_weak(seen, seen + 1, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => return Keeping::Kept,
                Err(now) => seen = now,
            }
        }
    }

    /// How many successes are kept back at this moment.
    pub(crate) fn kept(&self) -> u32 {
        count(self.kept.0.load(Ordering::Relaxed))
    }

    /// Closes the counter and takes what it held.
    pub(crate) fn close_locked(&self) -> u32 {
        count(self.kept.0.swap(CLOSED, Ordering::AcqRel))
    }

    /// Opens the counter, empty, for the lease that stands.
    pub(crate) fn open_locked(&self) {
        let epoch = self.words.sequence.load(Ordering::Relaxed) >> EPOCH_SHIFT;
        self.kept
            .0
            .store((epoch & EPOCH_MASK) << COUNT_BITS, Ordering::Release);
    }
}

fn count(kept: u64) -> u32 {
    if kept == CLOSED {
        0
    } else {
        u32::try_from(kept & COUNT_MASK).unwrap_or(0)
    }
}

/// What stands for 'none' among instants and durations: the end of time, which is the same to a lease. `until` alone is told
/// from none, since a rejection says how long it lasts.
const NONE: u64 = u64::MAX;
/// The words are being written.
const WRITING: u64 = 1;
/// The lease admits at any time, and at least some successes need not be told.
const PLAIN: u64 = 1 << 1;
/// The lease rejects until some instant, whoever asks.
const REJECTS: u64 = 1 << 2;
/// Successes mean nothing.
const NEVER: u64 = 1 << 3;
/// How long a call takes means something.
const MEASURED: u64 = 1 << 4;
/// Successes may be kept back until some instant.
const BY_CLOCK: u64 = 1 << 5;
/// The lease is plain, and neither successes nor how long a call takes mean anything.
const SIMPLE: u64 = 1 << 6;
const EPOCH_SHIFT: u32 = 7;

/// What a call must know of a lease first. Nothing, where it has to look at the whole of it.
fn marks(lease: &Lease) -> u64 {
    let mark = |holds: bool, mark: u64| if holds { mark } else { 0 };
    let plain = lease.is_plain();
    let rejects = matches!(lease.standing, Standing::Reject(_));
    let never = lease.successes == Successes::Never;
    let by_clock = matches!(lease.successes, Successes::UpTo { before: Some(_), .. });
    mark(plain, PLAIN)
        | mark(
            rejects && lease.until.is_some() && lease.mode != Mode::Shadow,
            REJECTS,
        )
        | mark(never, NEVER)
        | mark(lease.measures(), MEASURED)
        | mark(by_clock, BY_CLOCK)
        | mark(plain && never && !lease.measures(), SIMPLE)
}

const COUNT_BITS: u32 = 24;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;
/// One less than fits, so that no count looks like a closed counter.
pub(crate) const MAX_COUNT: u64 = COUNT_MASK - 1;
const EPOCH_MASK: u64 = (1 << (64 - COUNT_BITS)) - 1;
/// No success can be kept back: the component is being asked.
const CLOSED: u64 = u64::MAX;

fn some(word: u64) -> Option<u64> {
    (word != NONE).then_some(word)
}
