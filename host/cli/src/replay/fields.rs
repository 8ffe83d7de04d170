//! The fields of one line, as far as they matter.

use std::borrow::Cow;

use super::role::{Meaning, Role};
use crate::time::Unit;

/// The fields of a line, one of each role at most.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Fields<'a>([Option<Field<'a>>; Role::ALL.len()]);

/// One field.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Field<'a> {
    /// Its text; empty where the log says that there is none.
    pub(super) text: Cow<'a, str>,
    /// The unit of its number, where it is one.
    pub(super) unit: Option<Unit>,
    /// Of a time: whether it is that of the call's beginning.
    pub(super) begin: bool,
    rank: usize,
}

impl<'a> Fields<'a> {
    /// Adds a field, unless there is one that counts more. `-` stands for nothing.
    pub(super) fn put(&mut self, meaning: Meaning, text: impl Into<Cow<'a, str>>) {
        let Some(place) = self.0.get_mut(meaning.role as usize) else {
            return;
        };
        if place.as_ref().is_some_and(|there| there.rank <= meaning.rank) {
            return;
        }
        let text = text.into();
        *place = Some(Field {
            text: if text == "-" { Cow::Borrowed("") } else { text },
            unit: meaning.unit,
            begin: meaning.begin,
            rank: meaning.rank,
        });
    }

    /// The field of a role, also where it is empty.
    pub(super) fn field(&self, role: Role) -> Option<&Field<'a>> {
        self.0.get(role as usize)?.as_ref()
    }

    /// The text of a role's field, where there is one that is not empty.
    pub(super) fn text(&self, role: Role) -> Option<&str> {
        let text = self.field(role)?.text.as_ref();
        (!text.is_empty()).then_some(text)
    }
}
