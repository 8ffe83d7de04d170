//! Durations as settings and log lines write them: "30s", "500ms", "1m30s".

use alloc::{format, string::String};
use core::fmt;

use crate::Nanoseconds;

/// The units, from the largest. (A library for this would be a tenth of a component's size.)
const UNITS: [(&str, Nanoseconds); 6] = [
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// Why a text is no duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DurationError {
    /// Not a sequence of numbers with units.
    Malformed,
    /// More nanoseconds than a `u64` holds (584 years).
    TooLong,
}

impl fmt::Display for DurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => {
                "not a duration; write numbers with units, such as \"30s\", \"500ms\" or \"1m30s\""
            }
            Self::TooLong => "longer than 584 years",
        })
    }
}

impl core::error::Error for DurationError {}

/// Reads a duration such as "30s", "500ms", "1m30s" or "24h": whole numbers with the units h, m, s, ms, us, ns, each at most
/// once and from the largest.
///
/// # Errors
///
/// When the text is no duration, or does not fit in a `u64` of nanoseconds.
pub fn parse_duration(text: &str) -> Result<Nanoseconds, DurationError> {
    let mut rest = text;
    let mut total: Nanoseconds = 0;
    let mut smaller = UNITS.iter();
    while !rest.is_empty() || text.is_empty() {
        let (digits, unit) = split_where(rest, |c| !c.is_ascii_digit());
        let (name, after) = split_where(unit, |c| !c.is_ascii_lowercase());
        let (_, size) = smaller
            .find(|(unit, _)| *unit == name)
            .ok_or(DurationError::Malformed)?;
        let many = if digits.is_empty() {
            Err(DurationError::Malformed)
        } else {
            digits.parse().map_err(|_| DurationError::TooLong)
        };
        let part = size.checked_mul(many?).ok_or(DurationError::TooLong)?;
        total = total.checked_add(part).ok_or(DurationError::TooLong)?;
        rest = after;
    }
    Ok(total)
}

fn split_where(text: &str, ends: fn(char) -> bool) -> (&str, &str) {
    text.find(ends)
        .and_then(|place| text.split_at_checked(place))
        .unwrap_or((text, ""))
}

/// Writes a duration as [`parse_duration`] reads it, in the largest units that need no fractions.
#[must_use]
pub fn format_duration(nanoseconds: Nanoseconds) -> String {
    if nanoseconds == 0 {
        return "0s".into();
    }
    let mut rest = nanoseconds;
    let mut text = String::new();
    for (unit, size) in UNITS {
        let (many, left) = (rest / size, rest % size);
        if many > 0 {
            text += &format!("{many}{unit}");
        }
        rest = left;
    }
    text
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
            ("1h1m1s1ms1us1ns", 3_661_001_001_001),
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
        for text in [
            "",
            "30",
            "s",
            "fast",
            "30 seconds",
            "1e3s",
            "-5s",
            "1.5s",
            "30s1m",
            "1s1s",
            "5s ",
            " 5s",
            "1S",
            "\u{663}s",
        ] {
            assert_eq!(parse_duration(text), Err(DurationError::Malformed), "{text}");
        }
        assert_eq!(parse_duration("9999999h"), Err(DurationError::TooLong));
    }
}
