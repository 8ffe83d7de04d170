//! The providers: HTTP servers on this machine that are well or ill by the script.

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use anyhow::Context as _;
use axum::extract::State;
use axum::http::header::RETRY_AFTER;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use axum::serve::Listener;
use axum::{Json, Router};
use parking_lot::Mutex;
use reqwest::Url;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep_until};
use tripwit_examples::scale::Scale;
use tripwit_examples::transitions::Transitions;

use crate::http::{Message, Receipt};
use crate::script::{GONE, Mood, Plan};

/// One server.
#[derive(Debug)]
pub(crate) struct Provider {
    pub(crate) plan: &'static Plan,
    address: SocketAddr,
    scale: Scale,
    started: Instant,
    requests: AtomicU64,
    hanging: AtomicUsize,
    delivered: Mutex<BTreeSet<usize>>,
}

impl Provider {
    /// Starts the server on a free port. It runs until the process ends.
    pub(crate) async fn start(
        plan: &'static Plan,
        scale: Scale,
        started: Instant,
    ) -> anyhow::Result<Arc<Self>> {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .context("no port is free on 127.0.0.1")?;
        let provider = Arc::new(Self {
            plan,
            address: listener.local_addr()?,
            scale,
            started,
            requests: AtomicU64::new(0),
            hanging: AtomicUsize::new(0),
            delivered: Mutex::default(),
        });
        let door = Door {
            listener,
            provider: Arc::clone(&provider),
        };
        let router = Router::new().fallback(answer).with_state(Arc::clone(&provider));
        tokio::spawn(async move { axum::serve(door, router).await });
        Ok(provider)
    }

    /// Its host name as a client looks it up.
    pub(crate) fn host(&self) -> String {
        self.plan.host.to_ascii_lowercase()
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The circuit of the calls to it; none where they are not guarded.
    pub(crate) fn circuit(&self) -> anyhow::Result<Option<String>> {
        self.plan.channel.circuit(&self.url("/")?)
    }

    /// The addresses to deliver to, as the customers wrote them, each with every how many incidents.
    pub(crate) fn destinations(&self) -> anyhow::Result<Vec<(Url, u32)>> {
        self.plan
            .paths
            .iter()
            .map(|(path, every)| Ok((self.url(path)?, *every)))
            .collect()
    }

    fn url(&self, path: &str) -> anyhow::Result<Url> {
        Ok(Url::parse(&format!(
            "http://{}:{}{path}",
            self.plan.host,
            self.address.port()
        ))?)
    }

    /// How many requests came in.
    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// How many requests wait for an answer that will not come.
    pub(crate) fn hanging(&self) -> usize {
        self.hanging.load(Ordering::Relaxed)
    }

    /// Whether this notification came in and was confirmed.
    pub(crate) fn has_delivered(&self, id: usize) -> bool {
        self.delivered.lock().contains(&id)
    }

    /// Says so whenever the mood changes.
    pub(crate) async fn announce(&self, transitions: &Transitions) {
        for (begins, mood) in self.plan.moods {
            sleep_until(self.started + self.scale.secs(*begins)).await;
            transitions.note(&format!("({} {mood})", self.plan.host));
        }
    }

    fn mood(&self) -> Mood {
        self.plan.mood_at(self.scale.real(self.started.elapsed()))
    }

    fn deliver(&self, message: &Message) -> Response {
        self.delivered.lock().insert(message.id);
        reply(StatusCode::ACCEPTED, true, None)
    }

    /// Never answers; ends when the client hangs up.
    async fn hang(&self) -> Response {
        let _hanging = Hanging::begin(&self.hanging);
        std::future::pending().await
    }
}

async fn answer(State(provider): State<Arc<Provider>>, uri: Uri, Json(message): Json<Message>) -> Response {
    let number = provider.requests.fetch_add(1, Ordering::Relaxed);
    if uri.path() == GONE {
        return reply(StatusCode::GONE, false, Some("nobody lives here any more"));
    }
    match provider.mood() {
        // A connection that was let in just before the mood changed is served.
        Mood::Well | Mood::Refusing => provider.deliver(&message),
        Mood::Unavailable => reply(StatusCode::SERVICE_UNAVAILABLE, false, Some("down for repair")),
        Mood::Busy(seconds) => busy(seconds),
        Mood::NotSent => reply(StatusCode::OK, false, Some("not sent: no credit")),
        Mood::Hanging => provider.hang().await,
        Mood::Flaky if number.is_multiple_of(2) => busy(1),
        Mood::Flaky => provider.deliver(&message),
    }
}

fn reply(status: StatusCode, sent: bool, reason: Option<&str>) -> Response {
    let receipt = Receipt {
        sent: Some(sent),
        reason: reason.map(str::to_owned),
    };
    (status, Json(receipt)).into_response()
}

fn busy(seconds: u64) -> Response {
    let answer = reply(StatusCode::TOO_MANY_REQUESTS, false, Some("too many requests"));
    ([(RETRY_AFTER, seconds.to_string())], answer).into_response()
}

/// Counts a request for as long as it hangs.
struct Hanging<'a>(&'a AtomicUsize);

impl<'a> Hanging<'a> {
    fn begin(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Hanging<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Lets connections in, except in the mood to refuse them.
struct Door {
    listener: TcpListener,
    provider: Arc<Provider>,
}

impl Listener for Door {
    type Io = TcpStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (TcpStream, SocketAddr) {
        loop {
            let (connection, peer) = Listener::accept(&mut self.listener).await;
            if self.provider.mood() != Mood::Refusing {
                return (connection, peer);
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}
