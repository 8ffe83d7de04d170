//! Webhook calls, which run in a task of their own and are told when nobody waits for them any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context as _;
use tokio_util::sync::CancellationToken;

use crate::deliveries::Notification;
use crate::http::{Answer, Http};

/// Posts to webhooks.
#[derive(Clone, Debug)]
pub(crate) struct Webhooks {
    http: Http,
    cancelled: Arc<AtomicU64>,
}

impl Webhooks {
    pub(crate) fn new(http: Http) -> Self {
        Self {
            http,
            cancelled: Arc::default(),
        }
    }

    /// Posts the notification once.
    ///
    /// A time-out of the breaker drops this future. The task that it started would go on all the same, so the task has a
    /// cancellation token, which is cancelled when this future ends, however it ends.
    pub(crate) async fn post(&self, notification: &Arc<Notification>) -> anyhow::Result<Answer> {
        let token = CancellationToken::new();
        let _cancel = token.clone().drop_guard();
        let work = self.clone().run(Arc::clone(notification), token);
        tokio::spawn(work)
            .await
            .context("the webhook's task ended early")?
    }

    async fn run(self, notification: Arc<Notification>, token: CancellationToken) -> anyhow::Result<Answer> {
        let Some(answered) = token.run_until_cancelled(self.http.post(&notification)).await else {
            self.cancelled.fetch_add(1, Ordering::Relaxed);
            anyhow::bail!("cancelled");
        };
        answered
    }

    /// How many calls were cancelled.
    pub(crate) fn cancelled(&self) -> u64 {
        self.cancelled.load(Ordering::Relaxed)
    }
}
