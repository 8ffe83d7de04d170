//! What is checked: one case for each promise of the contract.

use serde::Serialize;

/// A promise of the contract that holds for every policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Case {
    Contract,
    Description,
    Settings,
    Keys,
    Limits,
    Moves,
    Edges,
    Operator,
    Permits,
    Generations,
    Modes,
    Queries,
    HalfOpen,
    CoolDown,
    Clock,
    Snapshots,
    Leases,
}

impl Case {
    /// All of them, in the order of the report.
    pub(crate) const ALL: [Self; 17] = [
        Self::Contract,
        Self::Description,
        Self::Settings,
        Self::Keys,
        Self::Limits,
        Self::Moves,
        Self::Edges,
        Self::Operator,
        Self::Permits,
        Self::Generations,
        Self::Modes,
        Self::Queries,
        Self::HalfOpen,
        Self::CoolDown,
        Self::Clock,
        Self::Snapshots,
        Self::Leases,
    ];

    /// Its name in reports.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Contract => "contract",
            Self::Description => "description",
            Self::Settings => "settings",
            Self::Keys => "keys",
            Self::Limits => "limits",
            Self::Moves => "moves",
            Self::Edges => "edges",
            Self::Operator => "operator",
            Self::Permits => "permits",
            Self::Generations => "generations",
            Self::Modes => "modes",
            Self::Queries => "queries",
            Self::HalfOpen => "half-open",
            Self::CoolDown => "cool-down",
            Self::Clock => "clock",
            Self::Snapshots => "snapshots",
            Self::Leases => "leases",
        }
    }

    /// The promise, in a line.
    pub(crate) const fn promise(self) -> &'static str {
        match self {
            Self::Contract => {
                "speaks the contract, imports two clocks, log and spans at the most, and starts"
            }
            Self::Description => {
                "describes itself the same each time; its schema is JSON Schema, and its defaults are accepted"
            }
            Self::Settings => "refuses settings that do not fit, names the field, and nothing is left behind",
            Self::Keys => "keeps circuits apart by their keys, byte by byte",
            Self::Limits => {
                "holds many circuits and long keys, and gives back the memory of circuits that are detached"
            }
            Self::Moves => "reports each move exactly once, by answer, span and log line alike",
            Self::Edges => "moves along declared edges only, and names operation and cause rightly",
            Self::Operator => "obeys trip and reset, and moves nothing where nothing is to do",
            Self::Permits => {
                "counts a probe's result once; tickets that are used up or unknown are void; an ignored probe frees its place"
            }
            Self::Generations => {
                "lets no result of an older generation change anything; generations only grow"
            }
            Self::Modes => {
                "rejects in forced-open, passes in disabled, decides in shadow as in automatic; state stays, counts start anew"
            }
            Self::Queries => "moves nothing when it is only looked at",
            Self::HalfOpen => "is never stuck in half-open: lost probes are given up, good ones close it",
            Self::CoolDown => "counts cool-down cycles down to the reset, or is not touched by them",
            Self::Clock => {
                "outlives a clock that steps back or far ahead; a wait neither ends early nor restarts"
            }
            Self::Snapshots => {
                "goes on from its own snapshot as if nothing had happened; refuses damage without a trap"
            }
            Self::Leases => "hands out leases that give the same results as asking each time",
        }
    }
}
