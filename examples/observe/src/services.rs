//! What is called: HTTP servers on this machine, well for most of the time.

use std::net::SocketAddr;
use std::ops::Range;
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::routing::post;
use tokio::net::TcpListener;
use tokio::time::{Instant, sleep};

/// Seconds after which the time line begins anew.
const ROUND: u64 = 15;

/// Who fails, how, and in which seconds of each round.
const TIME_LINE: [(&str, Trouble, Range<u64>); 5] = [
    ("payments", Trouble::Refuses, 1..5),
    ("shipping", Trouble::Refuses, 1..5),
    ("inventory", Trouble::Hangs, 6..8),
    ("orders", Trouble::Refuses, 2..5),
    ("invoices", Trouble::Refuses, 9..10),
];

/// Longer than any call waits.
const HANGS_FOR: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    Refuses,
    Hangs,
}

/// The servers, of which each has a path.
#[derive(Clone, Debug)]
pub(crate) struct Services {
    address: SocketAddr,
}

impl Services {
    /// Starts them, and with them the time line.
    pub(crate) async fn start() -> anyhow::Result<Self> {
        let door = TcpListener::bind("127.0.0.1:0")
            .await
            .context("no port for the servers")?;
        let address = door.local_addr()?;
        let started = Instant::now();
        let answer = async move |Path(name): Path<String>| answer(&name, started.elapsed()).await;
        let router = Router::new().route("/{name}", post(answer));
        tokio::spawn(async move { axum::serve(door, router).await });
        Ok(Self { address })
    }

    /// Where the server of this name is called.
    pub(crate) fn url(&self, name: &str) -> String {
        format!("http://{}/{name}", self.address)
    }
}

async fn answer(name: &str, elapsed: Duration) -> StatusCode {
    match trouble(name, elapsed) {
        None => StatusCode::OK,
        Some(Trouble::Refuses) => StatusCode::SERVICE_UNAVAILABLE,
        Some(Trouble::Hangs) => {
            sleep(HANGS_FOR).await;
            StatusCode::OK
        }
    }
}

fn trouble(name: &str, elapsed: Duration) -> Option<Trouble> {
    let second = elapsed.as_secs() % ROUND;
    let due = |(who, _, when): &&(&str, Trouble, Range<u64>)| *who == name && when.contains(&second);
    TIME_LINE.iter().find(due).map(|(_, trouble, _)| *trouble)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_comes_and_goes_in_every_round() {
        let at = |seconds| trouble("payments", Duration::from_secs(seconds));
        assert_eq!(
            [at(0), at(1), at(4), at(5)],
            [None, Some(Trouble::Refuses), Some(Trouble::Refuses), None]
        );
        assert_eq!(at(ROUND + 1), Some(Trouble::Refuses));
        assert_eq!(trouble("inventory", Duration::from_secs(7)), Some(Trouble::Hangs));
        assert_eq!(trouble("nobody", Duration::from_secs(1)), None);
    }
}
