//! The processor's own counter of time.

use crate::clock::since_start;
use crate::counted::Source;

/// Where it can be trusted.
pub(crate) struct Processor;

impl Processor {
    /// Linux has seen to it that the counter is steady, and the same on every processor, before it goes by it itself. And it
    /// must be there to be read in order, which some virtual machines hide.
    pub(crate) fn trusted() -> Option<Self> {
        if !reads_in_order() {
            return None;
        }
        const GOES_BY: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        let goes_by = std::fs::read_to_string(GOES_BY).ok()?;
        (goes_by.trim_end() == "tsc").then_some(Self)
    }
}

/// The counter never goes on where there is none to read.
impl Source for Processor {
    #[inline(always)]
    fn ticks(&self) -> u64 {
        #[cfg(target_arch = "x86_64")]
        return safe_arch::read_timestamp_counter();
        #[cfg(not(target_arch = "x86_64"))]
        0
    }

    #[inline(always)]
    fn ticks_in_order(&self) -> u64 {
        #[cfg(target_arch = "x86_64")]
        return safe_arch::read_timestamp_counter_p(&mut 0);
        #[cfg(not(target_arch = "x86_64"))]
        0
    }

    fn time(&self) -> u64 {
        since_start()
    }
}

/// Whether there is the instruction `rdtscp`.
fn reads_in_order() -> bool {
    #[cfg(target_arch = "x86_64")]
    return core::arch::x86_64::__cpuid(0x8000_0001).edx & 1 << 27 != 0;
    #[cfg(not(target_arch = "x86_64"))]
    false
}
