//! The results, for people and for programs.

pub(crate) mod json;
pub(crate) mod markdown;
pub(crate) mod plot;
pub(crate) mod table;
