//! The `tripwit` command: what can be done with a breaker policy from a terminal.

mod candidate;
mod check;
mod componentize;
mod inspect;
mod load;
mod pages;
mod replay;
mod simulate;
mod terminal;
mod time;
mod timeline;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

/// Works with breaker policies: WebAssembly components that decide when a circuit opens and closes.
#[derive(Debug, Parser)]
#[command(
    name = "tripwit",
    version,
    after_help = "Exit codes: 0 all is well; 1 the policy failed a check; 2 bad input, such as a file that is no component."
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Check(check::Arguments),
    Componentize(componentize::Arguments),
    Inspect(inspect::Arguments),
    Simulate(simulate::Arguments),
    Replay(Box<replay::Arguments>),
    Completions(pages::Completions),
    Man(pages::Manual),
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return usage(&error),
    };
    let ended = match arguments.command {
        Command::Check(arguments) => check::run(&arguments),
        Command::Componentize(arguments) => componentize::run(&arguments),
        Command::Inspect(arguments) => inspect::run(&arguments),
        Command::Simulate(arguments) => simulate::run(&arguments),
        Command::Replay(arguments) => replay::run(&arguments),
        Command::Completions(arguments) => Ok(pages::completions(&arguments, Arguments::command())),
        Command::Man(arguments) => pages::manual(&arguments, Arguments::command()),
    };
    ended.unwrap_or_else(|error| {
        // What libraries say may go over several lines.
        let text = format!("{error:#}");
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        terminal::complain(&lines.join(" "));
        ExitCode::from(2)
    })
}

/// Help goes to standard output as it is; bad arguments are answered with one line.
fn usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        terminal::say(error.render().to_string().trim_end());
        return ExitCode::SUCCESS;
    }
    // The first paragraph says what is wrong; what comes after it is in the help.
    let text = error.to_string();
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .take_while(|line| !line.is_empty())
        .collect();
    let line = lines.join(" ");
    let line = line.trim_start_matches("error: ");
    terminal::complain(&format!("{line}; see `tripwit --help`"));
    ExitCode::from(2)
}
