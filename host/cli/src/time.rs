//! Times and lengths of time, as logs and people write them. Inside, both are nanoseconds, times since the Unix epoch.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

/// Nanoseconds of a second.
pub(crate) const SECOND: u64 = 1_000_000_000;

/// A unit of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// `s`
    Seconds,
    /// `ms`
    Milliseconds,
    /// `us`
    Microseconds,
    /// `ns`
    Nanoseconds,
}

impl Unit {
    /// The unit that is written so.
    pub(crate) fn named(text: &str) -> Option<Self> {
        match text {
            "s" => Some(Self::Seconds),
            "ms" => Some(Self::Milliseconds),
            "us" => Some(Self::Microseconds),
            "ns" => Some(Self::Nanoseconds),
            _ => None,
        }
    }

    fn nanoseconds(self) -> u64 {
        match self {
            Self::Seconds => SECOND,
            Self::Milliseconds => 1_000_000,
            Self::Microseconds => 1_000,
            Self::Nanoseconds => 1,
        }
    }
}

/// Reads a time: RFC 3339, as web servers write it (`02/Jan/2026:15:04:05 +0100`), or a number since the Unix epoch in this unit; without one, in the
/// unit that makes it a time between 1973 and 5138. Where no offset is given, it is UTC.
pub(crate) fn timestamp(text: &str, unit: Option<Unit>) -> Option<u64> {
    let text = text.trim_matches(|c: char| c == '[' || c == ']' || c.is_whitespace());
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        let whole = text.split('.').next().unwrap_or_default().len();
        let unit = unit.unwrap_or(match whole {
            0..=11 => Unit::Seconds,
            12..=14 => Unit::Milliseconds,
            15..=17 => Unit::Microseconds,
            _ => Unit::Nanoseconds,
        });
        return scaled(text, unit);
    }
    let read = Timestamp::strptime("%d/%b/%Y:%H:%M:%S%.f %z", text)
        .or_else(|_| text.parse())
        .or_else(|_| {
            let civil: DateTime = text.parse()?;
            TimeZone::UTC.to_timestamp(civil)
        });
    u64::try_from(read.ok()?.as_nanosecond()).ok()
}

/// Reads a length of time: a number in this unit, or with units of its own (`1m30s`, `12.5ms`).
pub(crate) fn duration(text: &str, unit: Option<Unit>) -> Option<u64> {
    let text = text.trim();
    if let Ok(number) = text.parse::<f64>() {
        return if number < 0.0 { None } else { scaled(text, unit?) };
    }
    let read: SignedDuration = text.parse().ok()?;
    u64::try_from(read.as_nanos()).ok()
}

/// For command lines.
///
/// # Errors
///
/// When the text is no length of time, or is 0.
pub(crate) fn argument(text: &str) -> Result<u64, String> {
    match duration(text, None) {
        Some(0) => Err("must be more than nothing".into()),
        Some(nanoseconds) => Ok(nanoseconds),
        None => Err("no length of time; write it as 500ms, 30s or 1m30s".into()),
    }
}

/// A decimal number of units, exactly where it has no more than 18 digits on either side.
fn scaled(text: &str, unit: Unit) -> Option<u64> {
    let scale = unit.nanoseconds();
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.len() <= 18 && text.bytes().all(|byte| byte.is_ascii_digit());
    if digits(whole) && digits(fraction) && !(whole.is_empty() && fraction.is_empty()) {
        let number = |text: &str| {
            if text.is_empty() {
                Some(0)
            } else {
                text.parse::<u64>().ok()
            }
        };
        let part = u128::from(number(fraction)?) * u128::from(scale)
            / 10_u128.pow(u32::try_from(fraction.len()).ok()?);
        return number(whole)?
            .checked_mul(scale)?
            .checked_add(u64::try_from(part).ok()?);
    }
    let number: f64 = text.parse().ok()?;
    let nanoseconds = number * scale as f64;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "held against the range just before"
    )]
    (0.0..1.8e19)
        .contains(&nanoseconds)
        .then(|| nanoseconds.round() as u64)
}

/// A time in UTC, for people: `2026-01-02 15:04:05`, with milliseconds where there are any.
pub(crate) fn date_and_time(at: u64) -> String {
    let shape = if at % SECOND < 1_000_000 {
        "%Y-%m-%d %H:%M:%S"
    } else {
        "%Y-%m-%d %H:%M:%S.%3f"
    };
    format(at, shape)
}

/// A time in UTC, for programs: RFC 3339.
pub(crate) fn rfc_3339(at: u64) -> String {
    Timestamp::from_nanosecond(i128::from(at)).map_or_else(|_| at.to_string(), |at| at.to_string())
}

/// A time in UTC, in a shape of `strftime`.
pub(crate) fn format(at: u64, shape: &str) -> String {
    Timestamp::from_nanosecond(i128::from(at))
        .map_or_else(|_| at.to_string(), |at| at.strftime(shape).to_string())
}

/// A length of time for people, to about three digits: `1h2m`, `1m30s`, `12.5s`, `40ms`.
pub(crate) fn lasting(nanoseconds: u64) -> String {
    let milliseconds = nanoseconds.saturating_add(500_000) / 1_000_000;
    let seconds = milliseconds / 1_000;
    let two = |large: u64, unit: &str, small: u64, other: &str| {
        if small == 0 {
            format!("{large}{unit}")
        } else {
            format!("{large}{unit}{small}{other}")
        }
    };
    match seconds {
        0 if nanoseconds == 0 => "0s".into(),
        0 if milliseconds == 0 => "<1ms".into(),
        0 => format!("{milliseconds}ms"),
        1..60 if milliseconds.is_multiple_of(1_000) => format!("{seconds}s"),
        1..60 => {
            let text = format!("{seconds}.{:03}", milliseconds % 1_000);
            format!("{}s", text.trim_end_matches('0'))
        }
        60..3_600 => two(seconds / 60, "m", seconds % 60, "s"),
        3_600..86_400 => two(seconds / 3_600, "h", seconds / 60 % 60, "m"),
        _ => two(seconds / 86_400, "d", seconds / 3_600 % 24, "h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW_YEAR_2026: u64 = 1_767_225_600 * SECOND;

    #[test]
    fn times_are_read_as_logs_write_them() {
        for text in [
            "2026-01-01T00:00:00Z",
            "2026-01-01T01:00:00+01:00",
            "2026-01-01 00:00:00",
            "01/Jan/2026:01:00:00 +0100",
            "[01/Jan/2026:00:00:00 +0000]",
            "1767225600",
            "1767225600.000",
            "1767225600000",
            "1767225600000000",
            "1767225600000000000",
        ] {
            assert_eq!(timestamp(text, None), Some(NEW_YEAR_2026), "{text}");
        }
        assert_eq!(timestamp("1767225600.25", None), Some(NEW_YEAR_2026 + SECOND / 4));
        assert_eq!(timestamp("7", Some(Unit::Milliseconds)), Some(7_000_000));
        for text in [
            "",
            "-",
            "yesterday",
            "32/Jan/2026:00:00:00 +0000",
            "1969-12-31T00:00:00Z",
            ".",
        ] {
            assert_eq!(timestamp(text, None), None, "{text}");
        }
    }

    #[test]
    fn lengths_of_time_are_read_exactly() {
        for (text, unit, nanoseconds) in [
            ("0.005", Some(Unit::Seconds), Some(5_000_000)),
            ("12", Some(Unit::Milliseconds), Some(12_000_000)),
            ("1e-3", Some(Unit::Seconds), Some(1_000_000)),
            ("1m30s", None, Some(90 * SECOND)),
            ("12.5ms", None, Some(12_500_000)),
            ("12", None, None),
            ("-1", Some(Unit::Seconds), None),
            ("nan", Some(Unit::Seconds), None),
            ("soon", None, None),
        ] {
            assert_eq!(duration(text, unit), nanoseconds, "{text}");
        }
    }

    #[test]
    fn lengths_of_time_are_written_for_people() {
        for (nanoseconds, text) in [
            (0, "0s"),
            (1, "<1ms"),
            (40_000_000, "40ms"),
            (12_500_000_000, "12.5s"),
            (30 * SECOND, "30s"),
            (20_050_000_000, "20.05s"),
            (90 * SECOND, "1m30s"),
            (3_720 * SECOND, "1h2m"),
            (90_000 * SECOND, "1d1h"),
        ] {
            assert_eq!(lasting(nanoseconds), text);
        }
    }
}
