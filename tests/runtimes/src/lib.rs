//! What the tests of other runtimes share: what a runner must have played, and what it must not let pass.
//!
//! A runner is a program in another language that plays the scenarios of `tests/conformance` on the components. Its arguments
//! are the folder of the scenarios, that of the components and, where it is wanted, a file for the transcript.
//!
//! What it does not do: know any language. Each has a folder of its own beside this one, with the runner and its tests.

mod doctored;
mod program;
mod runner;

pub use program::{copy, installed_once, repository, run, version_of};
pub use runner::Runner;
