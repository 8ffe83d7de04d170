//! `tripwit check`: whether a component keeps what the contract promises.

mod case;
mod cases;
mod checker;
mod circuit;
mod command;
mod history;
mod leased;
mod play;
mod problem;
mod ran;
mod report;
mod schema;
mod step;
mod subject;
mod walk;
mod watch;
mod words;

pub(crate) use command::{Arguments, run};
