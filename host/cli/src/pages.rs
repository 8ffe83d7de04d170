//! What helps with the command itself: completions and man pages.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Args, Command};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::terminal;

/// Prints completions for a shell.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tripwit completions bash > ~/.local/share/bash-completion/completions/tripwit
  tripwit completions zsh > ~/.zfunc/_tripwit
  tripwit completions fish > ~/.config/fish/completions/tripwit.fish")]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints the man page, or that of a subcommand.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tripwit man | man -l -
  tripwit man replay | man -l -
  tripwit man --dir ~/.local/share/man/man1")]
pub(crate) struct Manual {
    /// The subcommand
    #[arg(conflicts_with = "dir")]
    subcommand: Option<String>,
    /// Write every page into this folder instead
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
}

/// Prints completions.
pub(crate) fn completions(arguments: &Completions, mut command: Command) -> ExitCode {
    let mut bytes = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "tripwit", &mut bytes);
    terminal::say(String::from_utf8_lossy(&bytes).trim_end());
    ExitCode::SUCCESS
}

/// Prints a man page, or writes all of them.
///
/// # Errors
///
/// When there is no such subcommand, or the folder cannot be written to.
pub(crate) fn manual(arguments: &Manual, mut command: Command) -> Result<ExitCode> {
    command.build();
    if let Some(folder) = &arguments.dir {
        clap_mangen::generate_to(command, folder)
            .with_context(|| format!("cannot write man pages into {}", folder.display()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let page = match &arguments.subcommand {
        None => command,
        Some(name) => match command.find_subcommand(name) {
            Some(subcommand) => subcommand.clone(),
            None => bail!("no subcommand {name:?}; see `tripwit --help`"),
        },
    };
    let mut bytes = Vec::new();
    Man::new(page)
        .render(&mut bytes)
        .context("no man page could be made")?;
    terminal::say(String::from_utf8_lossy(&bytes).trim_end());
    Ok(ExitCode::SUCCESS)
}
