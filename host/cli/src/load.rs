//! Loading a policy from a file, for every subcommand.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use clap::Args;
use tripwit::{Loader, Policy, PolicyError};

use crate::time::argument;

/// How components are loaded. What is left out is as the host has it.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Loading components")]
pub(crate) struct Loading {
    /// Give them a sandbox of WASI with nothing in it, as components made of JavaScript or Python want it
    #[arg(long)]
    wasi: bool,
    /// Keep what is compiled in this folder, and take it from there the next time
    #[arg(long, value_name = "FOLDER")]
    cache: Option<PathBuf>,
    /// The largest file, in bytes or as 12MiB. Default: 32MiB
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_file_size: Option<usize>,
    /// The most code, as above. Default: 4MiB
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_code_size: Option<usize>,
    /// The most code of one function. Default: 64KiB
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_function_size: Option<usize>,
    /// The most memory of an instance. Default: 192MiB
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_memory: Option<usize>,
    /// How long compiling may take. Default: 1m
    #[arg(long, value_name = "TIME", value_parser = argument)]
    max_compile_time: Option<u64>,
}

/// What came of loading a file.
#[derive(Debug)]
pub(crate) enum Loaded {
    /// It is a policy.
    Policy(Policy),
    /// It is a component, and no policy of the contract.
    Unfit(PolicyError),
}

impl Loading {
    /// Loads a component, as the host loads it.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, is no component at all, or is beyond a limit.
    pub(crate) fn load(&self, path: &Path) -> Result<Loaded> {
        match self.loader()?.file(path) {
            Ok(policy) => Ok(Loaded::Policy(policy)),
            Err(
                error @ (PolicyError::ForeignImport { .. }
                | PolicyError::ContractVersion { .. }
                | PolicyError::Link(_)
                | PolicyError::Faulty { .. }),
            ) => Ok(Loaded::Unfit(error)),
            Err(error @ PolicyError::Read { .. }) => Err(error.into()),
            Err(PolicyError::OutOfRange { what, got, range }) => {
                Err(anyhow!("{} is {got}; it must be {range}", flag(what)))
            }
            Err(error) => {
                let flag = raised_by(&error).map(|setting| format!(": see {}", flag(setting)));
                let error = anyhow::Error::from(error).context(path.display().to_string());
                Err(match flag {
                    Some(flag) => anyhow!("{error:#}{flag}"),
                    None => error,
                })
            }
        }
    }

    fn loader(&self) -> Result<Loader> {
        type Limit = (Option<usize>, fn(Loader, usize) -> Loader);
        let limits: [Limit; 4] = [
            (self.max_file_size, Loader::max_file_size),
            (self.max_code_size, Loader::max_code_size),
            (self.max_function_size, Loader::max_function_size),
            (self.max_memory, Loader::max_memory),
        ];
        let mut loader = Policy::loader().wasi(self.wasi);
        for (limit, set) in limits {
            if let Some(bytes) = limit {
                loader = set(loader, bytes);
            }
        }
        if let Some(time) = self.max_compile_time {
            loader = loader.max_compile_time(Duration::from_nanos(time));
        }
        match &self.cache {
            Some(folder) => loader.cache(folder).context("--cache"),
            None => Ok(loader),
        }
    }
}

/// The option that stands for a setting of the loader.
fn flag(setting: &str) -> String {
    format!("--{}", setting.replace('_', "-"))
}

/// The setting of the loader that would let this one in.
fn raised_by(error: &PolicyError) -> Option<&'static str> {
    if let PolicyError::TooCostly { setting, .. } = error {
        *setting
    } else if matches!(error, PolicyError::TooLarge { .. }) {
        Some("max_file_size")
    } else if matches!(error, PolicyError::CompileTimeout { .. }) {
        Some("max_compile_time")
    } else {
        None
    }
}

fn size(text: &str) -> Result<usize, String> {
    let (digits, unit) = [("KiB", 1_usize << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)]
        .into_iter()
        .find_map(|(name, unit)| Some((text.strip_suffix(name)?, unit)))
        .unwrap_or((text, 1));
    let number: Option<usize> = digits.trim_end().parse().ok();
    number
        .and_then(|number| number.checked_mul(unit))
        .ok_or_else(|| format!("{text:?} is no size; write bytes, or a number with KiB, MiB or GiB"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_bytes_or_have_a_unit() {
        for (text, bytes) in [
            ("0", 0),
            ("65536", 65_536),
            ("64KiB", 65_536),
            ("12 MiB", 12 << 20),
            ("1GiB", 1 << 30),
        ] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "MiB", "12MB", "1.5MiB", "-1", "18446744073709551615GiB"] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    /// What the help says of the defaults is what the docs of the host say.
    #[test]
    fn the_defaults_are_those_of_the_host() {
        let host = include_str!("../../sdk/src/loader.rs");
        let command = Loading::augment_args(clap::Command::new("test"));
        let mut compared = 0;
        for argument in command.get_arguments() {
            let help = argument.get_help().unwrap().to_string();
            let Some((_, default)) = help.rsplit_once("Default: ") else {
                continue;
            };
            let (before, _) = host
                .split_once(&format!("pub fn {}(", argument.get_id()))
                .unwrap();
            let (_, said) = before.rsplit_once("Default: ").unwrap();
            let said = said.replacen(' ', "", 1).replacen("1minute", "1m", 1);
            assert!(
                said.starts_with(default),
                "{}: {default} is {said}",
                argument.get_id()
            );
            compared += 1;
        }
        assert_eq!(compared, 5, "one for each limit");
    }
}
