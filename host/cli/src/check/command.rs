//! The subcommand.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use tripwit::raw::{AttachError, Instance, Setup};
use tripwit::{ManualClock, Policy, PolicyError};

use super::case::Case;
use super::checker::{Failure, Verdict, Verdicts, check};
use super::report::{self, Made};
use super::subject::History;
use crate::load::{Loaded, Loading};
use crate::terminal;

/// Checks that a policy keeps the contract: whatever it decides, permits, generations, modes, snapshots, leases and the rest must be right.
///
/// Random walks find what no script does; what they find is shown by as few steps as can be.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tripwit check policy.wasm
  tripwit check policy.wasm --settings '{\"failure_threshold\": 3}'
  tripwit check policy.wasm --seed 7 --json | jq '.cases[] | select(.verdict == \"fail\")'

Exit codes: 0 every case passed; 1 a case failed; 2 the file cannot be read or is no component, or the settings do not fit.")]
pub(crate) struct Arguments {
    /// The component.
    file: PathBuf,
    /// Settings to check under, as JSON. What they leave open is at its default first, and then varied as the policy's schema suggests.
    #[arg(long, value_name = "JSON")]
    settings: Option<String>,
    /// Print the report as JSON.
    #[arg(long)]
    json: bool,
    /// What every random choice comes from: the same seed takes the same walks.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    loading: Loading,
}

/// Checks a component and prints the report.
///
/// # Errors
///
/// When the file cannot be read or is no component, or the settings do not fit.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let (policy, verdicts) = match arguments.loading.load(&arguments.file)? {
        Loaded::Policy(policy) => {
            if let Some(settings) = &arguments.settings {
                judge_settings(&policy, settings)?;
            }
            let verdicts = check(&policy, arguments.settings.as_deref(), arguments.seed);
            (Some(policy), verdicts)
        }
        Loaded::Unfit(error) => (None, unfit(error)),
    };
    let made = Made {
        file: &arguments.file.display().to_string(),
        policy: policy.as_ref(),
        seed: arguments.seed,
        settings: arguments.settings.as_deref(),
    };
    if arguments.json {
        terminal::say(&format!("{:#}", report::json(&made, &verdicts)));
    } else {
        terminal::say(&report::text(&made, &verdicts));
    }
    Ok(if verdicts.failed() == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn judge_settings(policy: &Policy, settings: &str) -> Result<()> {
    let clock = ManualClock::new();
    clock.advance(Duration::from_secs(1));
    let attached = Instance::start(policy, clock, &Setup::default())?.attach("settings", settings)?;
    match attached {
        Ok(_) => Ok(()),
        Err(AttachError::Settings(error)) if error.field.is_empty() => bail!("--settings: {}", error.problem),
        Err(AttachError::Settings(error)) => bail!("--settings: {}: {}", error.field, error.problem),
        Err(error) => bail!("--settings: {}", super::problem::refusal(&error)),
    }
}

/// A component that the host does not load.
fn unfit(error: PolicyError) -> Verdicts {
    let failure = Failure {
        expected: Case::Contract.promise().into(),
        got: format!("{:#}", anyhow::Error::from(error)),
        history: History {
            settings: "{}".into(),
            steps: vec!["load".into()],
        },
    };
    let verdict = |case| {
        if case == Case::Contract {
            Verdict::Failed(Box::new(failure.clone()))
        } else {
            Verdict::CutShort(Case::Contract)
        }
    };
    Verdicts(Case::ALL.map(|case| (case, verdict(case))).to_vec())
}
