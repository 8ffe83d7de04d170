//! Durations as settings and log lines write them: "30s", "500ms", "1m30s".

use alloc::string::String;
use core::{fmt, time::Duration};

use jiff::fmt::friendly::{Spacing, SpanParser, SpanPrinter};

use crate::Nanoseconds;

/// Why a text is no duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DurationError {
    /// Not a sequence of numbers with units.
    Malformed,
    /// Below zero.
    Negative,
    /// More nanoseconds than a `u64` holds (584 years).
    TooLong,
}

impl fmt::Display for DurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => {
                "not a duration; write numbers with units, such as \"30s\", \"500ms\" or \"1m30s\""
            }
            Self::Negative => "a duration cannot be negative",
            Self::TooLong => "longer than 584 years",
        })
    }
}

impl core::error::Error for DurationError {}

/// Reads a duration such as "30s", "500ms", "1m30s" or "24h".
///
/// # Errors
///
/// When the text is no duration, is negative, or does not fit in a `u64` of nanoseconds.
pub fn parse_duration(text: &str) -> Result<Nanoseconds, DurationError> {
    let parsed = SpanParser::new()
        .parse_duration(text)
        .map_err(|_| DurationError::Malformed)?;
    if parsed.is_negative() {
        return Err(DurationError::Negative);
    }
    u64::try_from(parsed.as_nanos()).map_err(|_| DurationError::TooLong)
}

/// Writes a duration as [`parse_duration`] reads it, in the largest units that need no fractions.
#[must_use]
pub fn format_duration(nanoseconds: Nanoseconds) -> String {
    SpanPrinter::new()
        .spacing(Spacing::None)
        .unsigned_duration_to_string(&Duration::from_nanos(nanoseconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_written() {
        for (text, nanoseconds) in [
            ("30s", 30_000_000_000),
            ("500ms", 500_000_000),
            ("1m30s", 90_000_000_000),
            ("24h", 86_400_000_000_000),
            ("0s", 0),
            ("1us", 1_000),
        ] {
            assert_eq!(parse_duration(text), Ok(nanoseconds), "{text}");
        }
    }

    #[test]
    fn what_is_written_reads_back_to_the_nanosecond() {
        for nanoseconds in [0, 1, 999, 1_500_000, 90_000_000_000, 3_600_000_000_000, u64::MAX] {
            assert_eq!(parse_duration(&format_duration(nanoseconds)), Ok(nanoseconds));
        }
        assert_eq!(format_duration(30_000_000_000), "30s");
        assert_eq!(format_duration(90_500_000_000), "1m30s500ms");
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for text in ["", "30", "s", "fast", "30 seconds and a bit", "1e3s"] {
            assert_eq!(parse_duration(text), Err(DurationError::Malformed), "{text}");
        }
        assert_eq!(parse_duration("-5s"), Err(DurationError::Negative));
        assert_eq!(parse_duration("9999999h"), Err(DurationError::TooLong));
    }
}
