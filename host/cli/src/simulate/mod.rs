//! `tripwit simulate`: what a policy does, given a script of how calls end.

mod command;
mod play;
mod report;
mod script;

pub(crate) use command::{Arguments, run};
