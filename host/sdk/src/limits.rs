//! How much a component may be and take: settings of the [`Loader`](crate::Loader), and their ranges.

use std::fmt::Debug;
use std::ops::RangeInclusive;
use std::time::Duration;

use crate::error::PolicyError;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
const GIB: usize = 1 << 30;

/// The memory of an instance, unless its policy was loaded with another limit or the breakers are built with one. Bytes.
pub(crate) const MAX_MEMORY: usize = 192 * MIB;
/// What may be chosen for it.
pub(crate) const MEMORY_RANGE: (RangeInclusive<usize>, &str) =
    (2 * MIB..=4 * GIB, "2 MiB to 4 GiB, in bytes");

/// What a loader lets pass.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Of the whole file, in bytes.
    pub(crate) file: usize,
    /// Of the code in all modules, in bytes: by default some thirty times what a shipped policy has.
    pub(crate) code: usize,
    /// Of the code of one function, in bytes: what compiling one takes can grow faster than its size.
    pub(crate) function: usize,
    /// Of an instance's memory, in bytes.
    pub(crate) memory: usize,
    /// By default far beyond what a shipped policy takes, which is a fifth of a second.
    pub(crate) compile_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            file: 32 * MIB,
            code: 4 * MIB,
            function: 64 * KIB,
            memory: MAX_MEMORY,
            compile_time: Duration::from_secs(60),
        }
    }
}

impl Limits {
    /// Refuses limits that are none.
    pub(crate) fn check(&self) -> Result<(), PolicyError> {
        let (memory, memory_range) = MEMORY_RANGE;
        within(
            "max_file_size",
            self.file,
            64 * KIB..=256 * MIB,
            "64 KiB to 256 MiB, in bytes",
        )?;
        within(
            "max_code_size",
            self.code,
            64 * KIB..=64 * MIB,
            "64 KiB to 64 MiB, in bytes",
        )?;
        within(
            "max_function_size",
            self.function,
            KIB..=MIB,
            "1 KiB to 1 MiB, in bytes",
        )?;
        within("max_memory", self.memory, memory, memory_range)?;
        within(
            "max_compile_time",
            self.compile_time,
            Duration::from_secs(1)..=Duration::from_hours(1),
            "1s to 1h",
        )
    }
}

fn within<T: PartialOrd + Debug>(
    what: &'static str,
    got: T,
    range: RangeInclusive<T>,
    text: &'static str,
) -> Result<(), PolicyError> {
    if range.contains(&got) {
        return Ok(());
    }
    Err(PolicyError::OutOfRange {
        what,
        got: format!("{got:?}"),
        range: text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The docs of the loader say what the defaults are.
    #[test]
    fn the_defaults_are_those_of_the_docs() {
        let docs = include_str!("loader.rs");
        let Limits {
            file,
            code,
            function,
            memory,
            compile_time,
        } = Limits::default();
        let minutes = compile_time.as_secs() / 60;
        for (setting, default) in [
            ("max_file_size", format!("{} MiB", file / MIB)),
            ("max_code_size", format!("{} MiB", code / MIB)),
            ("max_function_size", format!("{} KiB", function / KIB)),
            ("max_memory", format!("{} MiB", memory / MIB)),
            ("max_compile_time", format!("{minutes} minute")),
        ] {
            let (before, _) = docs.split_once(&format!("pub fn {setting}(")).unwrap();
            let (_, said) = before.rsplit_once("Default: ").unwrap();
            assert!(
                said.starts_with(&format!("{default}.")) || said.starts_with(&format!("{default},")),
                "{setting} is {default} by default, and its docs say {said}"
            );
        }
    }
}
