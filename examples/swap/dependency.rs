//! What is called: an HTTP server on this machine that is well, fails now and then, or fails always.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::time::sleep;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    Well,
    /// Every other request is answered with HTTP 503.
    Flaky,
    /// Every request is.
    Down,
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Well => "is well",
            Self::Flaky => "answers every other call with 503",
            Self::Down => "answers every call with 503",
        })
    }
}

/// The server.
#[derive(Debug)]
pub(crate) struct Dependency {
    address: SocketAddr,
    /// How long it thinks about a request.
    latency: Duration,
    health: Mutex<Health>,
    requests: AtomicU64,
    refused: AtomicU64,
}

impl Dependency {
    /// Starts it, well, on a free port. It runs until the process ends.
    pub(crate) async fn start(latency: Duration) -> anyhow::Result<Arc<Self>> {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .context("no port is free on 127.0.0.1")?;
        let dependency = Arc::new(Self {
            address: listener.local_addr()?,
            latency,
            health: Mutex::new(Health::Well),
            requests: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        });
        let router = Router::new().fallback(answer).with_state(Arc::clone(&dependency));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(dependency)
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    pub(crate) fn become_so(&self, health: Health) {
        *self.health.lock() = health;
    }

    /// How many requests came in, and how many of them were answered with 503.
    pub(crate) fn requests(&self) -> [u64; 2] {
        [&self.requests, &self.refused].map(|count| count.load(Ordering::Relaxed))
    }
}

async fn answer(State(dependency): State<Arc<Dependency>>) -> StatusCode {
    let number = dependency.requests.fetch_add(1, Ordering::Relaxed);
    let health = *dependency.health.lock();
    sleep(dependency.latency).await;
    let fails = match health {
        Health::Well => false,
        Health::Flaky => number.is_multiple_of(2),
        Health::Down => true,
    };
    if !fails {
        return StatusCode::OK;
    }
    dependency.refused.fetch_add(1, Ordering::Relaxed);
    StatusCode::SERVICE_UNAVAILABLE
}
