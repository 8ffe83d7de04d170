//! The names that users of telemetry rely on, each written once. docs/telemetry.md is held against them.

use crate::gate::Outcome;
use crate::rejection::RejectionReason;
use crate::status::State;
use crate::tally::Ending;

/// The attribute that says what a span is about, and what it says here.
#[cfg(any(test, feature = "opentelemetry-sdk"))]
pub(crate) const DOMAIN: &str = "instrumentation.domain";
#[cfg(any(test, feature = "opentelemetry-sdk"))]
pub(crate) const DOMAIN_VALUE: &str = "circuit_breaker";
/// A circuit's key.
pub(crate) const TOPIC: &str = "circuit_breaker.topic";
pub(crate) const STATE: &str = "circuit_breaker.state";
pub(crate) const OUTCOME: &str = "circuit_breaker.outcome";
pub(crate) const REJECTION_REASON: &str = "circuit_breaker.rejection_reason";

/// What stands for the product where a policy names no namespace, or no scope.
pub(crate) const DEFAULT_NAMESPACE: &str = "tripwit";
pub(crate) const DEFAULT_SCOPE: &str = "tripwit";
/// Those of the policy `outbox`.
#[cfg(any(test, feature = "opentelemetry-sdk"))]
pub(crate) const OUTBOX_NAMESPACE: &str = "paramore.brighter";
#[cfg(any(test, feature = "opentelemetry-sdk"))]
pub(crate) const OUTBOX_SCOPE: &str = "Paramore.Brighter";

/// The attribute of the operation in a namespace.
#[cfg(any(test, feature = "opentelemetry-sdk"))]
pub(crate) fn operation(namespace: &str) -> String {
    format!("{namespace}.operation")
}

/// A state, as attributes write it.
pub(crate) fn state(state: State) -> &'static str {
    match state {
        State::Closed => "closed",
        State::Open => "open",
        State::HalfOpen => "half_open",
    }
}

/// How a call ended, as attributes write it.
pub(crate) fn outcome(ending: Ending) -> &'static str {
    match ending {
        Ending::Ended(Outcome::Success) => "success",
        Ending::Ended(Outcome::Failure) => "failure",
        Ending::Ended(Outcome::Timeout) => "timeout",
        Ending::Ended(Outcome::Ignored) => "ignored",
        Ending::Rejected(_) => "rejected",
    }
}

/// Why a call was not made, as attributes write it.
pub(crate) fn rejection_reason(reason: RejectionReason) -> &'static str {
    match reason {
        RejectionReason::Open => "open",
        RejectionReason::ProbeLimit => "probe_limit",
        RejectionReason::ForcedOpen => "forced_open",
        RejectionReason::Throttled => "throttled",
        RejectionReason::Other => "other",
    }
}

/// What kind of number an instrument gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Added to where something happens.
    #[cfg(any(test, feature = "opentelemetry-sdk"))]
    Counter,
    /// A total that only grows, looked at when it is asked for.
    ObservableCounter,
    /// How many there are now.
    ObservableUpDownCounter,
    /// How something stands now.
    ObservableGauge,
}

/// One instrument. Its name begins with the namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Instrument {
    name: &'static str,
    kind: Kind,
    pub(crate) unit: &'static str,
    pub(crate) description: &'static str,
    /// As the docs list them; `{ns}` stands for the namespace.
    attributes: &'static [&'static str],
}

impl Instrument {
    /// Its name in a namespace.
    pub(crate) fn full_name(&self, namespace: &str) -> String {
        format!("{namespace}.circuit_breaker.{}", self.name)
    }
}

#[cfg(any(test, feature = "opentelemetry-sdk"))]
pub(crate) const TRIPS: Instrument = Instrument {
    name: "trips",
    kind: Kind::Counter,
    unit: "{trip}",
    description: "Number of times a topic's outbox circuit breaker tripped, re-tripped, or reset.",
    attributes: &["{ns}.operation", TOPIC, "service.*"],
};
pub(crate) const CIRCUITS: Instrument = Instrument {
    name: "circuits",
    kind: Kind::ObservableUpDownCounter,
    unit: "{circuit}",
    description: "Number of circuits in each state now.",
    attributes: &[STATE],
};
pub(crate) const STATES: Instrument = Instrument {
    name: "state",
    kind: Kind::ObservableGauge,
    unit: "{circuit}",
    description: "1 for the state that a circuit is in, while it is not closed.",
    attributes: &[TOPIC, STATE],
};
pub(crate) const CALLS: Instrument = Instrument {
    name: "calls",
    kind: Kind::ObservableCounter,
    unit: "{call}",
    description: "Number of calls by how they ended, rejected ones by reason.",
    attributes: &[OUTCOME, REJECTION_REASON],
};
pub(crate) const OPEN_TIME: Instrument = Instrument {
    name: "open_time",
    kind: Kind::ObservableCounter,
    unit: "s",
    description: "Time that circuits spent open, added up over all of them; half-open is not open.",
    attributes: &[],
};
pub(crate) const STALE_RESULTS: Instrument = Instrument {
    name: "stale_results",
    kind: Kind::ObservableCounter,
    unit: "{result}",
    description: "Number of results that came too late to count.",
    attributes: &[],
};
pub(crate) const SHADOW_REJECTIONS: Instrument = Instrument {
    name: "shadow_rejections",
    kind: Kind::ObservableCounter,
    unit: "{call}",
    description: "Number of calls made in shadow mode that automatic mode would have rejected.",
    attributes: &[],
};
pub(crate) const COMPONENT_FAULTS: Instrument = Instrument {
    name: "component_faults",
    kind: Kind::ObservableCounter,
    unit: "{fault}",
    description: "Number of times the policy component trapped, overran its deadline or handed out nonsense.",
    attributes: &[],
};
pub(crate) const SWAPS: Instrument = Instrument {
    name: "swaps",
    kind: Kind::ObservableCounter,
    unit: "{swap}",
    description: "Number of times the policy was exchanged while calls went on.",
    attributes: &[],
};
pub(crate) const DROPPED_ENTRIES: Instrument = Instrument {
    name: "dropped_entries",
    kind: Kind::ObservableCounter,
    unit: "{entry}",
    description: "Number of log lines, spans and moves dropped because the queue was full.",
    attributes: &[],
};

#[cfg(test)]
mod tests {
    use super::*;

    /// Every instrument, in the order of the docs.
    const INSTRUMENTS: [Instrument; 10] = [
        TRIPS,
        CIRCUITS,
        STATES,
        CALLS,
        OPEN_TIME,
        STALE_RESULTS,
        SHADOW_REJECTIONS,
        COMPONENT_FAULTS,
        SWAPS,
        DROPPED_ENTRIES,
    ];

    fn docs() -> String {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/telemetry.md");
        std::fs::read_to_string(path).unwrap()
    }

    fn kind(kind: Kind) -> &'static str {
        match kind {
            Kind::Counter => "counter",
            Kind::ObservableCounter => "observable counter",
            Kind::ObservableUpDownCounter => "observable up-down counter",
            Kind::ObservableGauge => "observable gauge",
        }
    }

    #[test]
    fn the_docs_have_the_table_of_instruments_as_the_code_has_it() {
        let docs = docs();
        let mut rows = String::new();
        for instrument in &INSTRUMENTS {
            let attributes = instrument.attributes.iter().map(|it| format!("`{it}`"));
            let attributes = attributes.collect::<Vec<_>>().join(", ");
            rows.push_str(&format!(
                "| `{}` | {} | `{}` | {} | {} |\n",
                instrument.full_name("{ns}"),
                kind(instrument.kind),
                instrument.unit,
                if attributes.is_empty() {
                    "none"
                } else {
                    &attributes
                },
                instrument.description,
            ));
        }
        assert!(
            docs.contains(&rows),
            "docs/telemetry.md must have these rows:\n{rows}"
        );
    }

    #[test]
    fn the_docs_have_every_value_of_every_attribute() {
        let docs = docs();
        let list = |name: &str, values: Vec<&str>| {
            let mut values: Vec<_> = values.iter().map(|it| format!("`{it}`")).collect();
            values.dedup();
            format!("| `{name}` | {} |", values.join(", "))
        };
        let states = [State::Closed, State::Open, State::HalfOpen].map(state);
        let reasons = crate::tally::ENDINGS.iter().filter_map(|ending| match ending {
            Ending::Rejected(reason) => Some(rejection_reason(*reason)),
            Ending::Ended(_) => None,
        });
        for row in [
            list(DOMAIN, vec![DOMAIN_VALUE]),
            list(STATE, states.into()),
            list(OUTCOME, crate::tally::ENDINGS.map(outcome).into()),
            list(REJECTION_REASON, reasons.collect()),
        ] {
            assert!(
                docs.contains(&row),
                "docs/telemetry.md must have this row:\n{row}"
            );
        }
    }

    #[test]
    fn the_docs_say_how_many_threads_count_for_themselves() {
        let threads = crate::thread_number::NUMBERS;
        for said in [
            format!("no more than {threads} threads"),
            format!("all {threads} places"),
        ] {
            assert!(docs().contains(&said), "docs/telemetry.md must say: {said}");
        }
    }
}
