//! Runs the scenarios of this folder's `*.json` files, whose format README.md describes.
//!
//! One runner plays them on several subjects: the native core, the component through wasmtime, and the host's public API.
//!
//! ```
//! use tripwit_conformance::{Subject, Suite};
//!
//! # fn main() -> anyhow::Result<()> {
//! let report = Suite::load()?.run(Subject::Native)?;
//! println!("{report}");
//! assert!(report.holds());
//! # Ok(()) }
//! ```
//!
//! What it does not do: decide what is right. That is in the files alone; a subject only says what it did, in words that
//! are the same for each of them.

mod answer;
mod component;
mod driver;
mod expect;
mod guest;
mod host;
mod native;
pub mod refinement;
mod report;
mod runner;
mod scenario;
mod subject;
mod suite;
mod told;
mod verb;

pub use report::Report;
pub use subject::Subject;
pub use suite::Suite;
