//! Guards real calls under both policies, and shows what the breakers do to an OpenTelemetry collector and to Prometheus.
//!
//! The calls go over HTTP to servers on this machine that refuse and hang by the time line in `services.rs`. Traces, metrics and
//! logs leave by OTLP, and the metrics are served on a page for Prometheus too. README.md beside this package takes a person
//! through it, from here to alerts and a dashboard.

mod calls;
mod otlp;
mod page;
mod services;
mod telemetry;

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse as _;
use axum::routing::get;
use clap::Parser;
use tokio::net::TcpListener;
use tokio::runtime;
use tripwit_examples::{arguments, terminal};

use crate::calls::Calls;
use crate::page::Page;
use crate::services::Services;
use crate::telemetry::Telemetry;

/// Guards calls to servers that fail, and shows what the circuit breakers do by OTLP and on a page for Prometheus.
#[derive(Debug, Parser)]
#[command(
    name = "observe",
    after_help = "\
Examples:
  cargo run --bin observe                                     # two minutes; http://127.0.0.1:9464/metrics has the metrics
  cargo run --bin observe -- --otlp http://127.0.0.1:4318     # and an OpenTelemetry collector gets everything
  cargo run --bin observe -- --seconds 900 --sample 0.1       # a quarter of an hour; a tenth of the traces

Exit code: 0 when the time was up, 1 when something could not be started or exported, 2 for bad arguments."
)]
struct Arguments {
    /// Where a collector takes OTLP over HTTP, without a path [default: nothing leaves by OTLP]
    #[arg(long, value_name = "ENDPOINT", value_parser = endpoint)]
    otlp: Option<String>,

    /// Where the page for Prometheus is served; port 0 for any that is free
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9464")]
    listen: SocketAddr,

    /// How long to go on, in seconds, 1 to 86400
    #[arg(long, value_name = "N", default_value_t = 120, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    seconds: u32,

    /// The share of traces that are kept, 0 to 1; every trip is counted whatever it is
    #[arg(long, value_name = "RATIO", default_value_t = 1.0, value_parser = ratio)]
    sample: f64,
}

fn main() -> ExitCode {
    arguments::run(run)
}

fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let runtime = runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("no threads to run on")?;
    let telemetry = Telemetry::install(arguments.otlp.as_deref(), arguments.sample, runtime.handle())
        .context("telemetry cannot be set up")?;
    let ran = runtime.block_on(async {
        serve(arguments.listen, telemetry.page()).await?;
        let services = Services::start().await?;
        let calls = Calls::new(&services)?;
        let time = Duration::from_secs(arguments.seconds.into());
        calls.go_on_for(time).await
    });
    // Exporters send what they still have; the runtime that carries it is there yet.
    let flushed = telemetry.shut_down().context("not everything was exported");
    ran.and(flushed)
}

/// Serves the page from now on.
async fn serve(address: SocketAddr, page: Page) -> anyhow::Result<()> {
    let door = TcpListener::bind(address)
        .await
        .with_context(|| format!("{address} cannot be listened on; choose another address with --listen"))?;
    let address = door.local_addr()?;
    let metrics = async move || match page.render() {
        Ok(text) => ([(header::CONTENT_TYPE, page::CONTENT_TYPE)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    };
    let router = Router::new().route("/metrics", get(metrics));
    tokio::spawn(async move { axum::serve(door, router).await });
    terminal::say(&format!("Page for Prometheus: http://{address}/metrics"));
    Ok(())
}

fn endpoint(text: &str) -> Result<String, String> {
    let base = text.trim_end_matches('/');
    match reqwest::Url::parse(base) {
        Ok(url) if url.scheme() == "http" && url.path() == "/" => Ok(base.to_owned()),
        Ok(_) => Err("not of the form http://HOST:PORT".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn ratio(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(ratio) if (0.0..=1.0).contains(&ratio) => Ok(ratio),
        _ => Err("not a number from 0 to 1".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_where_a_collector_is_and_no_path() {
        assert_eq!(
            endpoint("http://127.0.0.1:4318/").as_deref(),
            Ok("http://127.0.0.1:4318")
        );
        for bad in [
            "127.0.0.1:4318",
            "https://collector",
            "http://collector/v1/traces",
            "",
        ] {
            assert!(endpoint(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_share_is_from_0_to_1() {
        assert_eq!([ratio("0"), ratio("1")], [Ok(0.0), Ok(1.0)]);
        for bad in ["-0.1", "1.1", "NaN", "a tenth"] {
            assert!(ratio(bad).is_err(), "{bad}");
        }
    }
}
