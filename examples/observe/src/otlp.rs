//! The way out: protobuf over HTTP to a collector.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{
    LogExporter, MetricExporter, Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _,
};
use tokio::runtime::Handle;
use tripwit_examples::terminal;

/// How long one export may take.
const TIME_OUT: Duration = Duration::from_secs(5);

/// One exporter for each of the three signals.
pub(crate) struct Exporters {
    pub(crate) spans: SpanExporter,
    pub(crate) metrics: MetricExporter,
    pub(crate) logs: LogExporter,
}

impl Exporters {
    /// To the collector at `endpoint`, whose paths are those that the protocol has by default.
    pub(crate) fn to(endpoint: &str, runtime: &Handle) -> anyhow::Result<Self> {
        let client: Arc<dyn HttpClient> = Arc::new(Client::new(endpoint, runtime)?);
        macro_rules! exporter {
            ($kind:ident, $path:literal) => {
                $kind::builder()
                    .with_http()
                    .with_shared_http_client(client.clone())
                    .with_protocol(Protocol::HttpBinary)
                    .with_endpoint(format!("{endpoint}/{}", $path))
                    .with_timeout(TIME_OUT)
                    .build()?
            };
        }
        Ok(Self {
            spans: exporter!(SpanExporter, "v1/traces"),
            metrics: exporter!(MetricExporter, "v1/metrics"),
            logs: exporter!(LogExporter, "v1/logs"),
        })
    }
}

/// An HTTP client for exporters, whose threads are not those of the runtime that the sockets belong to.
struct Client {
    client: reqwest::Client,
    endpoint: String,
    runtime: Handle,
    complained: AtomicBool,
}

impl Client {
    fn new(endpoint: &str, runtime: &Handle) -> Result<Self, reqwest::Error> {
        Ok(Self {
            client: reqwest::Client::builder().no_proxy().timeout(TIME_OUT).build()?,
            endpoint: endpoint.to_owned(),
            runtime: runtime.clone(),
            complained: AtomicBool::new(false),
        })
    }

    /// Says once that the collector cannot be used: the exporters go on trying, and nobody else would tell.
    fn complain(&self, problem: &dyn fmt::Display) {
        if !self.complained.swap(true, Ordering::Relaxed) {
            terminal::complain(&format!(
                "The collector at {} takes nothing: {problem}. Is it running, and does it take OTLP over HTTP there?",
                self.endpoint
            ));
        }
    }
}

#[async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = self.client.clone();
        let answer = self
            .runtime
            .spawn(async move { client.send_bytes(request).await })
            .await?;
        match &answer {
            Ok(answer) if answer.status().is_success() => {}
            Ok(answer) => self.complain(&answer.status()),
            Err(error) => self.complain(error),
        }
        answer
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}
