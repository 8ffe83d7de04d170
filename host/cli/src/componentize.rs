//! Making a component of a compiled policy.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::Args;
use tripwit::Policy;
use wit_component::ComponentEncoder;

use crate::terminal;

/// Makes a component of a policy crate's module, as cargo builds it for wasm32-unknown-unknown.
///
/// The same as `wasm-tools component new`, and then loads it once, as a host would.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cargo build --release --target wasm32-unknown-unknown
  tripwit componentize target/wasm32-unknown-unknown/release/throttle.wasm --output throttle.wasm

Exit codes: 0 the component is written; 2 the module cannot be read, or is no policy.")]
pub(crate) struct Arguments {
    /// The module
    module: PathBuf,
    /// The component to write
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
}

/// Makes a component and says what it is.
///
/// # Errors
///
/// When the module cannot be read, or no policy comes of it.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let (module, output) = (arguments.module.display(), arguments.output.display());
    let bytes = fs::read(&arguments.module).with_context(|| format!("cannot read the module {module}"))?;
    let component = encode(&bytes).with_context(|| format!("{module} cannot be made a component"))?;
    let policy = Policy::from_bytes(&component).with_context(|| format!("{module} is no policy"))?;
    fs::write(&arguments.output, component).with_context(|| format!("cannot write {output}"))?;
    let said = policy.description();
    terminal::say(&format!(
        "{output}: {} {}, {} bytes, {}",
        said.name,
        said.version,
        policy.size(),
        policy.digest()
    ));
    Ok(ExitCode::SUCCESS)
}

/// How every core module begins, of the version that there is.
const MODULE: &[u8] = b"\0asm\x01\0\0\0";

fn encode(module: &[u8]) -> Result<Vec<u8>> {
    ensure!(module.starts_with(MODULE), "it is no WebAssembly module");
    ComponentEncoder::default()
        .validate(true)
        .debug_names(false)
        .module(module)?
        .encode()
}
