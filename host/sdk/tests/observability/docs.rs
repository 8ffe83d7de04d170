//! docs/telemetry.md says what comes out.

use std::collections::BTreeSet;

use tracing::Level;
use tripwit::Mode;

use crate::support::{Line, Log, Pipeline, WAIT, consecutive, outbox};

fn docs() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/telemetry.md");
    std::fs::read_to_string(path).unwrap()
}

/// Everything that circuits under both policies can tell.
fn told(log: &Log, pipeline: &Pipeline) -> [Vec<Line>; 2] {
    let (topics, _clock) = outbox(pipeline.telemetry());
    let (channels, clock) = consecutive(pipeline.telemetry());
    let (orders, sms) = (
        topics.breaker("orders").unwrap(),
        channels.breaker("sms").unwrap(),
    );
    log.during(|| {
        orders.trip();
        orders.trip();
        orders.reset();
    });
    let of_outbox = log.lines();
    log.during(|| {
        sms.trip();
        clock.advance(WAIT);
        sms.acquire().unwrap().failure(tripwit::Failure::new());
        sms.reset();
        sms.set_mode(Mode::Shadow);
    });
    let others = log.lines().split_off(of_outbox.len());
    [of_outbox, others]
}

#[test]
fn every_log_line_is_in_the_docs_with_its_level_and_fields() {
    let docs = docs();
    let [of_outbox, others] = told(&Log::from(Level::DEBUG), &Pipeline::new());
    assert_eq!((of_outbox.len(), others.len()), (3, 5));
    let of_outbox = of_outbox.into_iter().map(|line| ("`outbox`", line));
    let others = others.into_iter().map(|line| match line.1.contains(" mode of ") {
        true => ("all", line),
        false => ("others", line),
    });
    for (policy, (level, message, fields)) in of_outbox.chain(others) {
        let message = message
            .replace("topic orders", "topic {topic}")
            .replace("topic sms", "topic {topic}")
            .replace("10 c", "{n} c")
            .replace("5s", "{wait}")
            .replace("shadow", "{mode}");
        let fields: Vec<_> = fields.iter().map(|(name, _)| format!("`{name}`")).collect();
        let row = format!(
            "| {policy} | {} | `{message}` | {} |",
            level.to_lowercase(),
            fields.join(", ")
        );
        assert!(
            docs.contains(&row),
            "docs/telemetry.md must have this row:\n{row}"
        );
    }
}

#[test]
fn every_span_is_in_the_docs_with_its_attributes() {
    let docs = docs();
    let pipeline = Pipeline::new();
    told(&Log::from(Level::DEBUG), &pipeline);
    let mut operations = BTreeSet::new();
    for span in pipeline.spans.get_finished_spans().unwrap() {
        let (_, operation) = span.name.split_once(' ').unwrap();
        let row = docs
            .lines()
            .find(|line| line.starts_with(&format!("| `{{topic}} {operation}` | ")))
            .unwrap();
        for attribute in &span.attributes {
            let name = attribute.key.as_str();
            let name = ["paramore.brighter", "tripwit"]
                .into_iter()
                .fold(name.to_owned(), |name, ns| {
                    name.replace(&format!("{ns}."), "{ns}.")
                });
            assert!(row.contains(&format!("`{name}`")), "{row} lacks {name}");
        }
        operations.insert(operation.to_owned());
    }
    let operations: Vec<_> = operations.iter().map(String::as_str).collect();
    assert_eq!(operations, ["half_open", "re_trip", "reset", "trip"]);
}
