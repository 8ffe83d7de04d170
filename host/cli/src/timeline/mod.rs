//! Calls with times of their own, led through a policy: what `replay` and `simulate` have in common.

mod bins;
mod call;
mod lane;
mod plot;
mod track;

pub(crate) use bins::Bins;
pub(crate) use call::{Call, Ended};
pub(crate) use lane::{Answer, Lane};
pub(crate) use plot::{Band, Mark, Panel, Plot};
pub(crate) use track::{Move, Results, Track};
