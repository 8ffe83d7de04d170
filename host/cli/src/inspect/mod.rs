//! `tripwit inspect`: what a policy is, wants and takes.

mod command;
mod settings;

pub(crate) use command::{Arguments, run};
