//! The cases, each a function that tries a promise of the contract.

mod circuits;
mod clock;
mod cool_down;
mod description;
mod generations;
mod half_open;
mod modes;
mod moves;
mod operator;
mod permits;
mod queries;
mod settings;
mod snapshots;

pub(super) use circuits::{keys, limits};
pub(super) use clock::clock;
pub(super) use cool_down::cool_down;
pub(super) use description::description;
pub(super) use generations::generations;
pub(super) use half_open::half_open;
pub(super) use modes::modes;
pub(super) use moves::{edges, moves};
pub(super) use operator::operator;
pub(super) use permits::permits;
pub(super) use queries::queries;
pub(super) use settings::settings;
pub(super) use snapshots::snapshots;
