//! The results, for people and for programs.

pub(crate) mod json;
pub(crate) mod markdown;
pub(crate) mod plot;
mod reasons;
pub(crate) mod table;
