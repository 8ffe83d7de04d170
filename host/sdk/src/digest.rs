//! Digests of components, by which they are pinned.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

/// The SHA-256 of a component's bytes, written as `sha256:` and 64 hexadecimal digits.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let shipped = tripwit::Policy::consecutive()?.digest();
/// let written = shipped.to_string();
/// assert!(written.starts_with("sha256:"));
/// assert_eq!(written.parse::<tripwit::Digest>()?, shipped);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }
}

const PREFIX: &str = "sha256:";

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is no digest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no digest; write `sha256:` and 64 hexadecimal digits, as `sha256sum` prints them")]
pub struct InvalidDigest {
    text: String,
}

impl FromStr for Digest {
    type Err = InvalidDigest;

    fn from_str(text: &str) -> Result<Self, InvalidDigest> {
        let invalid = || InvalidDigest {
            text: text.chars().take(100).collect(),
        };
        let hex = text.strip_prefix(PREFIX).ok_or_else(invalid)?;
        let mut bytes = [0; 32];
        if hex.len() != 2 * bytes.len() || !hex.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(invalid());
        }
        for (byte, digits) in bytes.iter_mut().zip(hex.as_bytes().chunks(2)) {
            let digits = str::from_utf8(digits).map_err(|_| invalid())?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| invalid())?;
        }
        Ok(Self(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_reads_as_it_is_written_and_nothing_else_does() {
        let empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Digest::of(b"").to_string(), empty);
        assert_eq!(empty.parse(), Ok(Digest::of(b"")));
        assert_eq!(
            format!("sha256:{}", empty[7..].to_uppercase()).parse(),
            Ok(Digest::of(b""))
        );
        let plus = format!("sha256:+{}", "1".repeat(63));
        for bad in [
            "",
            "sha256:",
            &empty[7..],
            &empty[..70],
            "sha256:zz",
            &plus,
            "md5:00",
        ] {
            let error = bad.parse::<Digest>().unwrap_err().to_string();
            assert!(error.contains("64 hexadecimal digits"), "{error}");
        }
    }
}
