//! What came of a replay, as a plot.

use super::command::Made;
use super::report::{ranked, title};
use super::run::Replayed;
use crate::timeline::{Band, Panel, Plot};

/// The circuits that the report shows, each with its error rate, and its state under every policy.
pub(super) fn of(made: &Made<'_>, replayed: &Replayed) -> Plot {
    let panels = ranked(replayed)
        .into_iter()
        .take(made.top)
        .map(|(number, circuit)| Panel {
            title: circuit.key.clone(),
            bins: circuit.bins.clone(),
            bands: replayed
                .lanes
                .iter()
                .enumerate()
                .filter_map(|(place, lane)| {
                    let track = lane.tracks().get(number)?;
                    Some(Band {
                        label: title(made, place),
                        moves: track.moves.clone(),
                        cut_off: track.moves_left_out > 0,
                        marks: Vec::new(),
                    })
                })
                .collect(),
        })
        .collect();
    Plot {
        title: made.logs.clone(),
        from: replayed.from,
        to: replayed.to,
        elapsed: false,
        panels,
    }
}
