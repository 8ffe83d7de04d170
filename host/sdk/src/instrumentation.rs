//! What spans carry.

use crate::bindings::exports::tripwit::breaker::policy as wit;

/// What spans carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instrumentation {
    /// The operation: `trip`, `re_trip`, `half_open`, `reset`.
    pub request_information: bool,
    /// The circuit's key, and the count of cool-down cycles where there is one.
    pub circuit_breaker: bool,
    /// Options that choose nothing else here. Any option puts the domain `circuit_breaker` on each span.
    pub other: bool,
}

/// The bits that choose something here, as Brighter's `InstrumentationOptions` number them.
const REQUEST_INFORMATION: u32 = 1;
const CIRCUIT_BREAKER: u32 = 128;

impl Instrumentation {
    /// Everything. The default.
    pub const ALL: Self = Self {
        request_information: true,
        circuit_breaker: true,
        other: true,
    };
    /// Spans without attributes. They are not counted as trips, since nothing tells them from other spans.
    pub const NONE: Self = Self {
        request_information: false,
        circuit_breaker: false,
        other: false,
    };

    /// The options that a number of Brighter's `InstrumentationOptions` stands for: 1 for the operation
    /// (`RequestInformation`), 128 for key and count (`CircuitBreaker`), added up. Every other bit stands for something
    /// that these spans do not have, so it is [`other`](Self::other).
    ///
    /// ```
    /// use tripwit::Instrumentation;
    /// assert_eq!(Instrumentation::from_bits(255), Instrumentation::ALL);
    /// assert_eq!(Instrumentation::from_bits(0), Instrumentation::NONE);
    /// ```
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        Self {
            request_information: bits & REQUEST_INFORMATION != 0,
            circuit_breaker: bits & CIRCUIT_BREAKER != 0,
            other: bits & !(REQUEST_INFORMATION | CIRCUIT_BREAKER) != 0,
        }
    }
}

impl Default for Instrumentation {
    fn default() -> Self {
        Self::ALL
    }
}

impl From<Instrumentation> for wit::Instrumentation {
    fn from(from: Instrumentation) -> Self {
        let mut flags = Self::empty();
        if from.request_information {
            flags |= Self::REQUEST_INFORMATION;
        }
        if from.circuit_breaker {
            flags |= Self::CIRCUIT_BREAKER;
        }
        if from.other {
            flags |= Self::OTHER;
        }
        flags
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_integer_of_the_first_seed_chooses_what_it_names() {
        let chosen = |bits| {
            let of = Instrumentation::from_bits(bits);
            (of.request_information, of.circuit_breaker, of.other)
        };
        assert_eq!(chosen(1), (true, false, false), "RequestInformation");
        for (bit, name) in [
            (2, "RequestBody"),
            (4, "RequestContext"),
            (8, "Messaging"),
            (16, "DatabaseInformation"),
            (32, "ClamCheck"),
            (64, "Brighter"),
            (1 << 31, "unknown"),
        ] {
            assert_eq!(chosen(bit), (false, false, true), "{name}");
        }
        assert_eq!(chosen(128), (false, true, false), "CircuitBreaker");
        assert_eq!(chosen(129), (true, true, false));
    }
}
