//! `tripwit check`: whether a component keeps what the contract promises.

mod answer;
mod case;
mod cases;
mod checker;
mod circuit;
mod command;
mod commands;
mod history;
mod leased;
mod look;
mod play;
mod problem;
mod ran;
mod report;
mod schema;
mod step;
mod subject;
mod told;
mod walk;
mod watch;
mod words;

pub(crate) use command::{Arguments, run};
