//! Other programs: found, set up and run.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

/// The folder of the repository.
#[must_use]
pub fn repository() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().nth(2).unwrap_or(own).to_owned()
}

/// Runs a program to its end, and hands back what it printed.
///
/// # Errors
///
/// When it cannot be started, or is not content; with all that it printed.
pub fn run(command: &mut Command) -> Result<String> {
    let (content, printed) = outcome(command)?;
    ensure!(content, "{command:?} failed:\n{printed}");
    Ok(printed)
}

/// Runs a program to its end: whether it was content, and what it printed.
pub(crate) fn outcome(command: &mut Command) -> Result<(bool, String)> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    let [out, err] =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    Ok((output.status.success(), out + &err))
}

/// What a program says of its version, such as `v20.19.0` or `Python 3.11.2`, which must be at least this one.
///
/// # Errors
///
/// When it is missing or too old; the text ends in `remedy`.
pub fn version_of(program: &str, least: (u32, u32), remedy: &str) -> Result<String> {
    let said = run(Command::new(program).arg("--version"))
        .with_context(|| format!("{program} is missing or does not run. {remedy}"))?;
    let said = said.trim().to_owned();
    let digits = said.trim_start_matches(|letter: char| !letter.is_ascii_digit());
    let mut parts = digits.split('.').map(str::parse);
    let (Some(Ok(major)), Some(Ok(minor))) = (parts.next(), parts.next()) else {
        bail!("{program} has the version {said:?}, which says nothing. {remedy}");
    };
    let (least_major, least_minor) = least;
    ensure!(
        (major, minor) >= least,
        "{program} is {said}, and must be {least_major}.{least_minor} at least. {remedy}"
    );
    Ok(said)
}

/// Copies the files of one folder of the repository that end like this into the same folder below `root`. Those that are there already are
/// left alone, since another process may be reading them.
///
/// # Errors
///
/// When there are none, or they cannot be copied.
pub fn copy(folder: &str, endings: &[&str], root: &Path) -> Result<()> {
    let (from, to) = (repository().join(folder), root.join(folder));
    fs::create_dir_all(&to).with_context(|| to.display().to_string())?;
    let mut copied = 0;
    for entry in fs::read_dir(&from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if endings.iter().any(|ending| name.ends_with(ending)) {
            let contents = fs::read(entry.path()).with_context(|| name.clone())?;
            let place = to.join(&name);
            if !fs::read(&place).is_ok_and(|there| there == contents) {
                fs::write(&place, contents).with_context(|| place.display().to_string())?;
            }
            copied += 1;
        }
    }
    ensure!(
        copied > 0,
        "{} holds nothing that ends in {endings:?}",
        from.display()
    );
    Ok(())
}

/// Runs `install` unless it has been run in this folder for the same `wanted`, a text of versions. One process at a time.
///
/// # Errors
///
/// Those of `install`, and when the folder cannot be written.
pub fn installed_once(folder: &Path, wanted: &str, install: impl FnOnce() -> Result<()>) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let lock = File::create(folder.join("installing.lock"))?;
    lock.lock()?;
    let note = folder.join("installed.txt");
    if fs::read_to_string(&note).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    install()?;
    fs::write(&note, wanted).with_context(|| note.display().to_string())
}
