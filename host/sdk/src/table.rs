//! Which settings a key gets.

use std::collections::HashMap;

use crate::settings::Settings;

/// Which settings a key gets: its own, else those of its longest prefix, else those of every key.
///
/// Made from anything that settings are made from; that is then for every key.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct SettingsTable {
    pub(crate) every: Settings,
    pub(crate) keys: HashMap<String, Settings>,
    pub(crate) prefixes: Vec<(String, Settings)>,
}

impl SettingsTable {
    /// These settings for every key that has none of its own.
    pub fn new(every: impl Into<Settings>) -> Self {
        Self {
            every: every.into(),
            ..Self::default()
        }
    }

    /// Settings of one key. They beat those of a prefix. For one key the last call counts.
    pub fn for_key(mut self, key: &str, settings: impl Into<Settings>) -> Self {
        self.keys.insert(key.to_owned(), settings.into());
        self
    }

    /// Settings of every key that begins with `prefix`. Of several prefixes the longest counts.
    pub fn for_prefix(mut self, prefix: &str, settings: impl Into<Settings>) -> Self {
        self.prefixes.push((prefix.to_owned(), settings.into()));
        self
    }

    pub(crate) fn of(&self, key: &str) -> &Settings {
        // Of prefixes that are set twice the last counts, and `max_by_key` takes the last of equals.
        let by_prefix = || {
            self.prefixes
                .iter()
                .filter(|(prefix, _)| key.starts_with(prefix.as_str()))
                .max_by_key(|(prefix, _)| prefix.len())
                .map(|(_, settings)| settings)
        };
        self.keys.get(key).or_else(by_prefix).unwrap_or(&self.every)
    }
}

impl<S: Into<Settings>> From<S> for SettingsTable {
    fn from(every: S) -> Self {
        Self::new(every)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exact_key_beats_the_longest_prefix_and_that_the_shorter_ones() {
        let table = SettingsTable::new("0")
            .for_key("webhook:a", "1")
            .for_prefix("webhook:", "2")
            .for_prefix("web", "3");
        let of = |key: &str| table.of(key).as_str().to_owned();
        assert_eq!(
            [of("webhook:a"), of("webhook:ab"), of("web"), of("email")],
            ["1", "2", "3", "0"]
        );
    }
}
