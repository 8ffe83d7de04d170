//! What the example programs share: the `--scale` of their waits, the command line, and the printing of transitions.
// The code of these pages is compiled, and the README's run, as tests of this package.
#![cfg_attr(doctest, doc = include_str!("../../README.md"))]
#![cfg_attr(doctest, doc = include_str!("../../docs/swapping.md"))]

pub mod arguments;
pub mod scale;
pub mod terminal;
pub mod transitions;
