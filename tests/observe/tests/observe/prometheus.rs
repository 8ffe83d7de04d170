//! A Prometheus that scrapes the example.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

use crate::program::{PATIENCE, Running, example_file, installed, observe};

/// How long until another program is asked again.
const PAUSE: Duration = Duration::from_millis(200);

/// Scrapes and looks at the rules every second, so that a test need not wait for long.
const EVERY_SECOND: &str = "{ scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s }";

/// Names and kinds as a scrape has them, but for the namespace.
const SERIES: [(&str, &str); 10] = [
    ("trips_total", "counter"),
    ("circuits", "gauge"),
    ("state", "gauge"),
    ("calls_total", "counter"),
    ("open_time_seconds_total", "counter"),
    ("stale_results_total", "counter"),
    ("shadow_rejections_total", "counter"),
    ("component_faults_total", "counter"),
    ("swaps_total", "counter"),
    ("dropped_entries_total", "counter"),
];
const NAMESPACES: [&str; 2] = ["tripwit", "paramore_brighter"];

/// The example, with its page at an address that was free.
async fn example(arguments: &[&str]) -> (Running, String) {
    let mut example = Running::start(
        observe()
            .args(["--listen", "127.0.0.1:0", "--seconds", "300"])
            .args(arguments),
    );
    let page = example
        .line("the address of the page", |line| {
            line.strip_prefix("Page for Prometheus: ").map(str::to_owned)
        })
        .await;
    (example, page)
}

/// A Prometheus that scrapes the example by the configuration beside it.
struct Prometheus {
    _server: Running,
    _example: Running,
    _folder: TempDir,
    address: String,
}

impl Prometheus {
    async fn start() -> Self {
        let (example, page) = example(&[]).await;
        let folder = tempfile::tempdir().unwrap();
        let config = fs::read_to_string(example_file("prometheus.yml")).unwrap();
        let target = page
            .strip_prefix("http://")
            .and_then(|it| it.strip_suffix("/metrics"))
            .unwrap();
        let config = config
            .replace("{ scrape_interval: 15s, evaluation_interval: 15s }", EVERY_SECOND)
            .replace("127.0.0.1:9464", target)
            .replace("alerts.yml", example_file("alerts.yml").to_str().unwrap());
        assert!(
            config.contains(EVERY_SECOND) && config.contains(target),
            "{config}"
        );
        let file = folder.path().join("prometheus.yml");
        fs::write(&file, config).unwrap();

        let mut server = Running::start(
            installed("prometheus")
                .arg(format!("--config.file={}", file.display()))
                .arg(format!(
                    "--storage.tsdb.path={}",
                    folder.path().join("data").display()
                ))
                .arg("--web.listen-address=127.0.0.1:0"),
        );
        let address = server
            .line("Prometheus's address", |line| {
                let said = line
                    .contains("Listening on")
                    .then(|| line.rsplit_once("address=127.0.0.1:"));
                said.flatten().map(|(_, port)| format!("http://127.0.0.1:{port}"))
            })
            .await;
        Self {
            _server: server,
            _example: example,
            _folder: folder,
            address,
        }
    }

    /// What the API answers, once it is ready to answer.
    async fn get(&self, path: &str, query: &[(&str, &str)]) -> Option<Value> {
        let url = reqwest::Url::parse_with_params(&format!("{}/api/v1/{path}", self.address), query).unwrap();
        let answer: Value = client().get(url.clone()).send().await.ok()?.json().await.ok()?;
        assert_ne!(answer["status"], "error", "{url}: {answer}");
        Some(answer["data"].clone())
    }

    /// Asks again and again until `pick` makes something of the answer.
    async fn ask<T>(&self, path: &str, query: &[(&str, &str)], pick: impl Fn(&Value) -> Option<T>) -> T {
        let mut last = None;
        let answered = timeout(PATIENCE, async {
            loop {
                last = self.get(path, query).await;
                if let Some(picked) = last.as_ref().and_then(&pick) {
                    return picked;
                }
                sleep(PAUSE).await;
            }
        });
        let answer = answered.await;
        answer.unwrap_or_else(|_| panic!("{path} {query:?} did not come to what was waited for: {last:?}"))
    }

    /// The labels and values of the series that are there, once there is one.
    async fn series(&self, expression: &str) -> Vec<(Value, f64)> {
        self.series_that(expression, |series| !series.is_empty()).await
    }

    async fn series_that(
        &self,
        expression: &str,
        enough: impl Fn(&[(Value, f64)]) -> bool,
    ) -> Vec<(Value, f64)> {
        self.ask("query", &[("query", expression)], |data| {
            let all = data["result"].as_array()?.iter();
            let all = all.map(|it| {
                (
                    it["metric"].clone(),
                    it["value"][1].as_str().unwrap().parse().unwrap(),
                )
            });
            let all: Vec<_> = all.collect();
            enough(&all).then_some(all)
        })
        .await
    }
}

fn client() -> reqwest::Client {
    reqwest::Client::builder()
        .no_proxy()
        .timeout(PATIENCE)
        .build()
        .unwrap()
}

/// The names of a series' labels, and the values of one of them, over all series.
fn labels(series: &[(Value, f64)], one: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let names = series
        .iter()
        .flat_map(|(labels, _)| labels.as_object().unwrap().keys().cloned());
    let values = series
        .iter()
        .filter_map(|(labels, _)| labels[one].as_str().map(str::to_owned));
    (names.collect(), values.collect())
}

fn set(all: &[&str]) -> BTreeSet<String> {
    all.iter().map(|one| (*one).to_owned()).collect()
}

/// The text of the page, once it has all of these.
async fn page_with(page: &str, parts: &[&str]) -> String {
    let mut text = String::new();
    let complete = timeout(PATIENCE, async {
        while !parts.iter().all(|part| text.contains(part)) {
            sleep(PAUSE).await;
            text = client().get(page).send().await.unwrap().text().await.unwrap();
        }
    });
    assert!(complete.await.is_ok(), "not all of {parts:?} are in\n{text}");
    text
}

#[tokio::test]
async fn the_page_is_what_promtool_takes_for_sound() {
    let (_example, page) = example(&[]).await;
    let trips = NAMESPACES.map(|namespace| format!("{namespace}_circuit_breaker_trips_total{{"));
    let text = page_with(&page, &trips.each_ref().map(String::as_str)).await;
    let mut promtool = Running::start_with(installed("promtool").args(["check", "metrics"]), &text);
    assert!(promtool.end().await.success());
    assert_eq!(promtool.said(), "", "{text}");
}

#[tokio::test]
async fn every_trip_is_counted_though_no_trace_is_kept() {
    let (_example, page) = example(&["--sample", "0"]).await;
    page_with(
        &page,
        &[
            "tripwit_operation=\"trip\"",
            "tripwit_operation=\"re_trip\"",
            "paramore_brighter_operation=\"trip\"",
        ],
    )
    .await;
}

/// The labels of a series: those that all have, and its own.
fn with(own: &[&str]) -> BTreeSet<String> {
    let all = [
        "__name__",
        "instance",
        "job",
        "otel_scope_name",
        "otel_scope_version",
    ];
    all.iter().chain(own).map(|name| (*name).to_owned()).collect()
}

#[tokio::test]
async fn prometheus_has_every_series_with_its_kind() {
    let prometheus = Prometheus::start().await;
    for namespace in NAMESPACES {
        for (name, kind) in SERIES {
            let name = format!("{namespace}_circuit_breaker_{name}");
            let query = [("metric", &*name)];
            let told = prometheus.ask("metadata", &query, |data| {
                data[&name][0]["type"].as_str().map(str::to_owned)
            });
            assert_eq!(told.await, kind, "{name}");
        }
    }
}

#[tokio::test]
async fn a_trip_is_counted_by_circuit_operation_and_service() {
    let prometheus = Prometheus::start().await;
    let of_payments = "tripwit_circuit_breaker_trips_total{circuit_breaker_topic=\"payments\"}";
    let of_orders = "paramore_brighter_circuit_breaker_trips_total{circuit_breaker_topic=\"orders\"}";
    for (trips, namespace, scope, operations) in [
        (
            of_payments,
            "tripwit",
            "tripwit",
            &["trip", "re_trip", "half_open", "reset"][..],
        ),
        (
            of_orders,
            "paramore_brighter",
            "Paramore.Brighter",
            &["trip", "re_trip", "reset"],
        ),
    ] {
        let series = prometheus
            .series_that(trips, |series| series.len() == operations.len())
            .await;
        let operation = format!("{namespace}_operation");
        let (names, values) = labels(&series, &operation);
        let own = [
            "service_name",
            "service_version",
            "circuit_breaker_topic",
            &operation,
        ];
        assert_eq!(names, with(&own));
        assert_eq!(values, set(operations));
        assert_eq!(labels(&series, "otel_scope_name").1, set(&[scope]));
        assert_eq!(labels(&series, "service_name").1, set(&["observe"]));
    }
}

#[tokio::test]
async fn circuits_are_counted_by_state_and_named_while_they_are_not_closed() {
    let prometheus = Prometheus::start().await;
    for (namespace, circuits) in [("tripwit", 3.0), ("paramore_brighter", 2.0)] {
        let name = format!("{namespace}_circuit_breaker_circuits");
        let all = |series: &[(Value, f64)]| series.iter().map(|it| it.1).sum::<f64>() == circuits;
        let series = prometheus.series_that(&name, all).await;
        let (names, values) = labels(&series, "circuit_breaker_state");
        assert_eq!(names, with(&["circuit_breaker_state"]));
        assert_eq!(values, set(&["closed", "open", "half_open"]));

        prometheus
            .series(&format!("{name}{{circuit_breaker_state=\"open\"}} > 0"))
            .await;
        let named = prometheus
            .series(&format!("{namespace}_circuit_breaker_state == 1"))
            .await;
        let (names, values) = labels(&named, "circuit_breaker_state");
        assert_eq!(names, with(&["circuit_breaker_topic", "circuit_breaker_state"]));
        assert!(!values.contains("closed"), "{values:?}");
    }
}

#[tokio::test]
async fn calls_are_counted_by_outcome_and_rejected_ones_by_reason() {
    let prometheus = Prometheus::start().await;
    let rejected = "tripwit_circuit_breaker_calls_total{circuit_breaker_rejection_reason!=\"\"} > 0";
    let rejected = prometheus.series(rejected).await;
    let (names, values) = labels(&rejected, "circuit_breaker_outcome");
    assert_eq!(
        names,
        with(&["circuit_breaker_outcome", "circuit_breaker_rejection_reason"])
    );
    assert_eq!(values, set(&["rejected"]));

    let made = "tripwit_circuit_breaker_calls_total{circuit_breaker_rejection_reason=\"\"} > 0";
    let made = prometheus.series_that(made, |series| series.len() >= 3).await;
    let (names, values) = labels(&made, "circuit_breaker_outcome");
    assert_eq!(names, with(&["circuit_breaker_outcome"]));
    assert!(
        values.is_superset(&set(&["success", "failure", "timeout"])),
        "{values:?}"
    );

    for counter in ["open_time_seconds_total", "shadow_rejections_total"] {
        let series = prometheus
            .series(&format!("tripwit_circuit_breaker_{counter} > 0"))
            .await;
        assert_eq!(labels(&series, "").0, with(&[]), "{counter}");
    }
}

#[tokio::test]
async fn the_rule_file_loads_and_its_alerts_fire() {
    let prometheus = Prometheus::start().await;
    let expected = [
        "CircuitBreakerTripped",
        "CircuitBreakerKeepsTripping",
        "OutboxCircuitBreakerTripped",
        "OutboxCircuitBreakerKeepsTripping",
    ];
    for alert in expected {
        let rules = prometheus.ask("rules", &[], |data| {
            let rules = data["groups"]
                .as_array()?
                .iter()
                .flat_map(|group| group["rules"].as_array().cloned().unwrap_or_default());
            let rules: Vec<_> = rules.collect();
            let firing = rules
                .iter()
                .any(|rule| rule["name"] == alert && rule["state"] == "firing" && rule["health"] == "ok");
            firing.then_some(rules)
        });
        assert_eq!(rules.await.len(), expected.len(), "{alert}");
    }
}

#[tokio::test]
async fn every_panel_of_the_dashboard_has_something_to_show() {
    let prometheus = Prometheus::start().await;
    let text = fs::read_to_string(example_file("dashboard.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let mut shown = BTreeSet::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let expression = target["expr"].as_str().unwrap();
            // What Grafana puts in.
            let asked = expression
                .replace("$__rate_interval", "5s")
                .replace("$__range", "1m")
                .replace("$job", "observe");
            assert!(!asked.contains('$'), "{asked}");
            prometheus.series(&asked).await;
            shown.extend(
                SERIES
                    .iter()
                    .map(|it| it.0)
                    .filter(|name| expression.contains(&format!("circuit_breaker_{name}"))),
            );
        }
    }
    // Whatever the breakers measure has its panel.
    assert_eq!(shown, SERIES.iter().map(|it| it.0).collect());
}
