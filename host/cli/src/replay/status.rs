//! Which statuses are failures.

use std::fmt;

/// A set of statuses, and perhaps that there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Statuses {
    /// As it was written.
    text: String,
    /// From the least to the most, both in it.
    ranges: Vec<(u16, u16)>,
    none: bool,
}

impl Statuses {
    /// Whether a status is in the set.
    pub(super) fn has(&self, status: Option<u16>) -> bool {
        match status {
            None => self.none,
            Some(status) => self
                .ranges
                .iter()
                .any(|(least, most)| (*least..=*most).contains(&status)),
        }
    }
}

impl fmt::Display for Statuses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Reads a set: `5xx`, `429`, `500-504` and `none`, with commas between.
///
/// # Errors
///
/// When a part is none of these.
pub(super) fn statuses(text: &str) -> Result<Statuses, String> {
    let mut set = Statuses {
        text: text.to_owned(),
        ranges: Vec::new(),
        none: false,
    };
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        if part == "none" {
            set.none = true;
        } else {
            let range = range(part).ok_or_else(|| {
                format!("{part:?} is no status; write 503, 500-504, 5xx or none, with commas between")
            })?;
            set.ranges.push(range);
        }
    }
    Ok(set)
}

fn range(part: &str) -> Option<(u16, u16)> {
    let status = |text: &str| text.parse::<u16>().ok().filter(|status| *status <= 999);
    if let Some(class) = part.strip_suffix("xx") {
        let class = class
            .parse::<u16>()
            .ok()
            .filter(|class| (1..=9).contains(class))?;
        return Some((class * 100, class * 100 + 99));
    }
    match part.split_once('-') {
        Some((least, most)) => {
            let range = (status(least.trim())?, status(most.trim())?);
            (range.0 <= range.1).then_some(range)
        }
        None => status(part).map(|status| (status, status)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_given_one_by_one_by_range_and_by_class() {
        let set = statuses("5xx, 429,408-410, none").unwrap();
        for status in [500, 599, 429, 408, 410] {
            assert!(set.has(Some(status)), "{status}");
        }
        for status in [499, 600, 407, 411, 200] {
            assert!(!set.has(Some(status)), "{status}");
        }
        assert!(set.has(None));
        assert!(!statuses("").unwrap().has(None));
        for bad in ["x", "5x", "0xx", "504-500", "1000", "-1"] {
            assert!(statuses(bad).unwrap_err().contains("is no status"), "{bad}");
        }
    }
}
