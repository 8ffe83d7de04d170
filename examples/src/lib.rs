//! What the example programs share: the `--scale` of their waits, the command line, and the printing of transitions.
// The README's code is compiled and run as a test of this package.
#![cfg_attr(doctest, doc = include_str!("../../README.md"))]

pub mod arguments;
pub mod scale;
pub mod terminal;
pub mod transitions;
