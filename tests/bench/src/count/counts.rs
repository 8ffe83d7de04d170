//! Counts of instructions, and what became more.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// Instructions a call, by path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts(BTreeMap<String, u64>);

/// What a comparison came to: its text says it all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) failed: bool,
    text: String,
}

impl Counts {
    /// Those that are written down.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let why = || format!("cannot read {}; {RENEW}", path.display());
        let text = fs::read_to_string(path).with_context(why)?;
        Ok(Self(serde_json::from_str(&text).with_context(why)?))
    }

    /// Writes them down.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(&self.0)? + "\n";
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Takes note of a path.
    pub(crate) fn insert(&mut self, path: &str, instructions: u64) {
        self.0.insert(path.to_owned(), instructions);
    }

    /// Holds these against those that were counted before.
    pub(crate) fn against(&self, before: &Self) -> Verdict {
        let mut verdict = Verdict {
            failed: false,
            text: String::new(),
        };
        for (path, now) in &self.0 {
            let (remark, failed) = match before.0.get(path) {
                None => ("was not counted before".to_owned(), true),
                Some(before) if now * 10 > before * 11 => {
                    (format!("was {before}: MORE THAN A TENTH MORE"), true)
                }
                Some(before) if now * 10 < before * 9 => (
                    format!("was {before}: more than a tenth less, write it down"),
                    false,
                ),
                Some(before) => (format!("was {before}"), false),
            };
            verdict.failed |= failed;
            verdict.text += &format!("{path:<16} {now:>8} instructions a call, {remark}\n");
        }
        if verdict.failed {
            verdict.text += RENEW;
        }
        verdict
    }
}

impl Display for Counts {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|(path, now)| writeln!(f, "{path:<16} {now:>8} instructions a call"))
    }
}

impl Display for Verdict {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

const RENEW: &str = "\
Where that is as it should be, write the new counts down and say in the commit why they grew:
    TRIPWIT_RENEW_COUNTS=1 .ci/run counts";

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(instructions: u64) -> Counts {
        let mut counts = Counts::default();
        counts.insert("healthy", instructions);
        counts
    }

    #[test]
    fn more_than_a_tenth_more_fails() {
        assert!(!counts(110).against(&counts(100)).failed);
        assert!(counts(111).against(&counts(100)).failed);
        assert!(!counts(1).against(&counts(100)).failed);
    }

    #[test]
    fn a_path_that_was_not_counted_before_fails_and_says_how_to_renew() {
        let verdict = counts(1).against(&Counts::default());
        assert!(verdict.failed);
        assert!(verdict.to_string().ends_with(RENEW));
    }

    #[test]
    fn what_is_written_down_is_read_back() -> Result<()> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("instructions.json");
        counts(7).write(&path)?;
        assert_eq!(Counts::read(&path)?, counts(7));
        assert!(Counts::read(&folder.path().join("none")).is_err());
        Ok(())
    }
}
