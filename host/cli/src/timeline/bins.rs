//! Calls and failures over time, in bounded memory.

/// As many bins as there may be; a time beyond the last one makes each twice as wide.
const MOST: usize = 512;

/// Counts by equal stretches of time, which get wider as time goes on.
#[derive(Clone, Debug)]
pub(crate) struct Bins {
    start: u64,
    width: u64,
    bins: Vec<Bin>,
}

/// What fell into one stretch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bin {
    /// Calls that ended well or badly.
    pub(crate) calls: u64,
    /// Those that ended badly.
    pub(crate) failures: u64,
}

impl Bins {
    /// Bins from this time on, at first so wide; both in nanoseconds.
    pub(crate) fn new(start: u64, width: u64) -> Self {
        Self {
            start,
            width: width.max(1),
            bins: Vec::new(),
        }
    }

    /// Counts a call that ended at this time; one from before the start is in the first bin.
    pub(crate) fn add(&mut self, at: u64, failed: bool) {
        let mut place = self.place(at);
        while place >= MOST {
            self.widen();
            place = self.place(at);
        }
        if place >= self.bins.len() {
            self.bins.resize(place + 1, Bin::default());
        }
        if let Some(bin) = self.bins.get_mut(place) {
            bin.calls += 1;
            bin.failures += u64::from(failed);
        }
    }

    /// Each bin that has calls, with its beginning and its end.
    pub(crate) fn filled(&self) -> impl Iterator<Item = (u64, u64, Bin)> {
        let places = (self.start..).step_by(usize::try_from(self.width).unwrap_or(usize::MAX));
        places
            .zip(&self.bins)
            .filter(|(_, bin)| bin.calls > 0)
            .map(|(from, bin)| (from, from.saturating_add(self.width), *bin))
    }

    /// How wide a bin is, in nanoseconds.
    pub(crate) fn width(&self) -> u64 {
        self.width
    }

    /// Makes bins at least so many times wider that they are at least this wide.
    pub(crate) fn widen_to(&mut self, width: u64) {
        while self.width < width {
            self.widen();
        }
    }

    fn place(&self, at: u64) -> usize {
        usize::try_from(at.saturating_sub(self.start) / self.width).unwrap_or(usize::MAX)
    }

    fn widen(&mut self) {
        self.width = self.width.saturating_mul(2);
        self.bins = self
            .bins
            .chunks(2)
            .map(|pair| {
                pair.iter().fold(Bin::default(), |sum, bin| Bin {
                    calls: sum.calls + bin.calls,
                    failures: sum.failures + bin.failures,
                })
            })
            .collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_get_wider_and_lose_no_call() {
        let mut bins = Bins::new(100, 1);
        for at in 100..100_100 {
            bins.add(at, at % 4 == 0);
        }
        let all: Vec<_> = bins.filled().collect();
        assert!(all.len() <= MOST);
        assert_eq!(all.iter().map(|(_, _, bin)| bin.calls).sum::<u64>(), 100_000);
        assert_eq!(all.iter().map(|(_, _, bin)| bin.failures).sum::<u64>(), 25_000);
        assert_eq!(all.first().unwrap().0, 100);
        assert_eq!(bins.width(), 256);
    }

    #[test]
    fn a_call_from_before_the_start_is_in_the_first_bin() {
        let mut bins = Bins::new(100, 10);
        bins.add(7, true);
        assert_eq!(
            bins.filled().collect::<Vec<_>>(),
            [(
                100,
                110,
                Bin {
                    calls: 1,
                    failures: 1
                }
            )]
        );
    }
}
