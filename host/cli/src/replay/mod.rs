//! `tripwit replay`: what breakers would have done, given an access log.

mod command;
mod entry;
mod fields;
mod format;
mod json;
mod layout;
mod order;
mod picture;
mod report;
mod role;
mod run;
mod source;
mod status;

pub(crate) use command::{Arguments, run};
pub(crate) use json::{operation, seconds, settings};
pub(crate) use report::told;
