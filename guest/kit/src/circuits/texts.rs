//! Settings by their text: each text in use is read once.

use alloc::{sync::Arc, vec::Vec};

use tripwit_core::{Policy, SettingsError};

/// The texts in use and what they say, sorted by text.
#[derive(Debug)]
pub(super) struct Texts<P: Policy>(Vec<(Arc<str>, Arc<P::Settings>)>);

impl<P: Policy> Texts<P> {
    pub(super) fn new() -> Self {
        Self(Vec::new())
    }

    pub(super) fn read(&mut self, text: &str) -> Result<(Arc<str>, Arc<P::Settings>), SettingsError> {
        let place = self.place_of(text);
        if let Some(known) = place.ok().and_then(|place| self.0.get(place)) {
            return Ok(known.clone());
        }
        let read = (Arc::from(text), Arc::new(P::parse(text)?));
        self.0.insert(place.unwrap_or_else(|place| place), read.clone());
        Ok(read)
    }

    /// Forgets a text that no circuit has any more: it is held by the caller and the list alone.
    pub(super) fn forget(&mut self, text: &Arc<str>) {
        if Arc::strong_count(text) <= 2
            && let Ok(place) = self.place_of(text)
        {
            self.0.remove(place);
        }
    }

    fn place_of(&self, text: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| known.as_ref().cmp(text))
    }
}
