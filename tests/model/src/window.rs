//! The rule of `window`: shares of the last calls.

use tripwit_core::{Instant, Nanoseconds};

use crate::call::Call;
use crate::shape::Buckets;

/// How far back a window reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reach {
    /// The last so many calls.
    Calls(usize),
    /// The calls of so many buckets, the one of now among them.
    Time(Buckets),
}

/// When a window opens its circuit. Rates are thousandths of a per cent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WindowRule {
    /// Which calls it looks at.
    pub reach: Reach,
    /// Below so many it decides nothing.
    pub minimum_calls: usize,
    /// At least this share failed.
    pub failure_rate: u64,
    /// At least this share was slow.
    pub slow_rate: u64,
    /// So many probes are judged.
    pub probe_calls: usize,
}

impl WindowRule {
    /// The calls that are in the window.
    pub(crate) fn kept<'a>(&self, calls: &'a [Call], now: Instant) -> &'a [Call] {
        let first = match self.reach {
            Reach::Calls(size) => calls.len().saturating_sub(size),
            Reach::Time(Buckets { width, buckets }) => {
                calls.partition_point(|call| call.at / width + buckets <= now / width)
            }
        };
        calls.split_at(first).1
    }

    /// Whether so many failed and slow calls are at least the shares of `whole`.
    fn is_bad(&self, calls: &[Call], whole: usize) -> bool {
        let failed = calls.iter().filter(|call| call.failed()).count() as u64;
        let slow = calls.iter().filter(|call| call.slow).count() as u64;
        let whole = whole as u64;
        failed * 100_000 >= self.failure_rate * whole || slow * 100_000 >= self.slow_rate * whole
    }

    pub(crate) fn opens(&self, calls: &[Call], now: Instant) -> bool {
        let kept = self.kept(calls, now);
        kept.len() >= self.minimum_calls && self.is_bad(kept, kept.len())
    }

    /// As soon as the probes that are to come cannot save it, it opens; once all have come, it closes.
    pub(crate) fn verdict(&self, probes: &[Call]) -> Option<bool> {
        if self.is_bad(probes, self.probe_calls) {
            return Some(false);
        }
        (probes.len() >= self.probe_calls).then_some(true)
    }

    /// A call as another instance has it, so long after it was saved: it is known to its bucket only.
    pub(crate) fn aged(&self, call: &Call, age: Nanoseconds) -> Call {
        let at = match self.reach {
            Reach::Calls(_) => call.at,
            Reach::Time(Buckets { width, .. }) => (call.at / width * width).saturating_sub(age),
        };
        Call { at, ..*call }
    }

    /// The calls that are in the window, with how many buckets ago each ended.
    pub(crate) fn essence(&self, calls: &[Call], now: Instant) -> Vec<Call> {
        let ago = |call: &Call| match self.reach {
            Reach::Calls(_) => 0,
            Reach::Time(Buckets { width, .. }) => now / width - call.at / width,
        };
        let kept = self.kept(calls, now).iter();
        kept.map(|call| Call {
            at: ago(call),
            ..*call
        })
        .collect()
    }

    /// How far `now` is into its bucket.
    pub(crate) fn phase(&self, now: Instant) -> Nanoseconds {
        match self.reach {
            Reach::Calls(_) => 0,
            Reach::Time(Buckets { width, .. }) => now % width,
        }
    }
}
