//! An OpenTelemetry collector that is not ours.

use std::net::TcpListener;

use crate::program::{Running, installed, observe};

const SCOPES: [&str; 2] = [
    "InstrumentationScope tripwit 0.1.0",
    "InstrumentationScope Paramore.Brighter 0.1.0",
];

const METRICS: [&str; 10] = [
    "trips",
    "circuits",
    "state",
    "calls",
    "open_time",
    "stale_results",
    "shadow_rejections",
    "component_faults",
    "swaps",
    "dropped_entries",
];

const SPANS: [&str; 7] = [
    "payments trip",
    "payments re_trip",
    "payments half_open",
    "payments reset",
    "orders trip",
    "orders re_trip",
    "orders reset",
];

const LOGS: [&str; 7] = [
    "Circuit breaker tripped for topic payments; rejecting calls for 500ms",
    "Circuit breaker re-tripped for topic payments; rejecting calls for 500ms",
    "Circuit breaker half-open for topic payments; probing",
    "Circuit breaker reset for topic payments; calls admitted",
    "Circuit breaker tripped for topic orders; suppressing publish for 2 cooldown cycle(s)",
    "Circuit breaker re-tripped for topic orders; cooldown extended to 2 cycle(s)",
    "Circuit breaker reset for topic orders; publish suppression lifted",
];

/// A collector that prints what it takes, and where it takes OTLP over HTTP.
async fn collector() -> (Running, String) {
    let [http, grpc] = free_addresses();
    let mut collector = Running::start(
        installed("rotel-agent")
            .arg("start")
            .args(["--exporter", "blackhole", "--debug-log-verbosity", "detailed"])
            .args([
                "--debug-log",
                "traces",
                "--debug-log",
                "metrics",
                "--debug-log",
                "logs",
            ])
            .args(["--otlp-http-endpoint", &http, "--otlp-grpc-endpoint", &grpc]),
    );
    collector.all(&["Starting Rotel".to_owned()]).await;
    (collector, format!("http://{http}"))
}

/// Addresses that nobody listens on, for a program that cannot choose by itself.
fn free_addresses() -> [String; 2] {
    let doors = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    doors.map(|door| door.local_addr().unwrap().to_string())
}

/// What stands behind `name` in a block of lines, without the blanks.
fn field<'a>(block: &'a str, name: &str) -> &'a str {
    let line = block
        .lines()
        .find_map(|line| line.trim_start().strip_prefix(name));
    let line = line.unwrap_or_else(|| panic!("no {name} in {block}"));
    line.trim_start().trim_start_matches(':').trim()
}

/// The block of the first span or log record that has this line.
fn block<'a>(said: &'a str, begin: &str, line: &str) -> &'a str {
    let at = said
        .find(&format!("{line}\n"))
        .unwrap_or_else(|| panic!("no {line}"));
    let from = said[..at].rfind(begin).unwrap();
    let to = said[at..].find(begin).map_or(said.len(), |to| at + to);
    &said[from..to]
}

#[tokio::test]
async fn a_collector_takes_traces_metrics_and_logs() {
    let (mut collector, endpoint) = collector().await;
    let arguments = ["--listen", "127.0.0.1:0", "--seconds", "8", "--otlp", &endpoint];
    let ended = Running::start(observe().args(arguments)).end().await;
    assert!(ended.success(), "{ended}");

    let spans = SPANS.map(|span| format!("Name           : {span}"));
    let logs = LOGS.map(|log| format!("Body: Str({log})"));
    let metrics = ["tripwit", "paramore.brighter"]
        .map(|namespace| METRICS.map(|metric| format!("-> Name: {namespace}.circuit_breaker.{metric}")));
    let everything = [
        &spans[..],
        &logs,
        metrics.as_flattened(),
        &SCOPES.map(str::to_owned),
    ]
    .concat();
    collector.all(&everything).await;
    let said = collector.said();
    assert!(said.contains(
        "-> Description: Number of times a topic's outbox circuit breaker tripped, re-tripped, or reset."
    ));
    assert!(said.contains("-> service.name: Str(observe)"));

    // The span of a trip, the call that it belongs to, and the log line of the same moment.
    let trip = block(said, "Span #", &spans[0]);
    assert_eq!(field(trip, "Kind"), "SPAN_KIND_INTERNAL");
    assert_eq!(field(trip, "Status code"), "STATUS_CODE_OK");
    assert_eq!(field(trip, "Start time"), field(trip, "End time"));
    assert_eq!(field(trip, "-> instrumentation.domain"), "Str(circuit_breaker)");
    assert_eq!(field(trip, "-> tripwit.operation"), "Str(trip)");
    assert_eq!(field(trip, "-> circuit_breaker.topic"), "Str(payments)");
    let call = block(
        said,
        "Span #",
        &format!("    ID             : {}", field(trip, "Parent ID")),
    );
    assert_eq!(field(call, "Name"), "call payments");
    let log = block(said, "LogRecord #", &logs[0]);
    assert_eq!(field(log, "SeverityText"), "WARN");
    assert_eq!(field(log, "-> topic"), "Str(payments)");
    assert_eq!(
        [field(log, "Trace ID"), field(log, "Span ID")],
        [field(trip, "Trace ID"), field(trip, "Parent ID")]
    );
}

#[tokio::test]
async fn an_example_without_its_collector_says_so_and_goes_on() {
    let [nobody, _] = free_addresses();
    let arguments = [
        "--listen",
        "127.0.0.1:0",
        "--seconds",
        "6",
        "--otlp",
        &format!("http://{nobody}"),
    ];
    let mut example = Running::start(observe().args(arguments));
    let complaint = format!("The collector at http://{nobody} takes nothing");
    example
        .all(&[complaint, "Circuit breaker reset for topic payments".to_owned()])
        .await;
    // It was asked to export, and could not.
    assert_eq!(example.end().await.code(), Some(1));
}
