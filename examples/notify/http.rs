//! The client: one notification, posted once.

use std::time::Duration;

use anyhow::Context as _;
use reqwest::header::RETRY_AFTER;
use reqwest::{StatusCode, redirect};
use serde::{Deserialize, Serialize};
use tripwit::{Failure, Verdict};
use tripwit_examples::scale::Scale;

use crate::deliveries::Notification;
use crate::providers::Provider;

/// What is posted.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Message {
    pub(crate) id: usize,
    pub(crate) text: String,
}

/// What a provider says about it, whatever the status; nothing where its answer has another form.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Receipt {
    pub(crate) sent: Option<bool>,
    pub(crate) reason: Option<String>,
}

/// The answer of a provider, good or bad.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    /// As the provider asked for it, scaled.
    pub(crate) retry_after: Option<Duration>,
    pub(crate) receipt: Receipt,
}

impl Answer {
    /// Whether the notification is delivered. A good status is not enough where the body says that nothing was sent.
    pub(crate) fn is_sent(&self) -> bool {
        self.status.is_success() && self.receipt.sent != Some(false)
    }

    /// Whether the provider is overloaded or broken, and a later try may do.
    pub(crate) fn is_temporary(&self) -> bool {
        self.status.is_server_error() || self.status == StatusCode::TOO_MANY_REQUESTS
    }

    /// What went wrong, for people.
    pub(crate) fn problem(&self) -> String {
        match &self.receipt.reason {
            Some(reason) => format!("HTTP {}: {reason}", self.status.as_u16()),
            None => format!("HTTP {}", self.status.as_u16()),
        }
    }

    /// What the answer says about the provider.
    ///
    /// None of the bad ones is an `Err`, and yet they are failures: 5xx, 429 and 'not sent'. Any other refusal is about the
    /// request and not about the provider.
    pub(crate) fn verdict(&self) -> Verdict {
        if self.is_sent() {
            return Verdict::Success;
        }
        if !self.is_temporary() && !self.status.is_success() {
            return Verdict::Ignored;
        }
        let failure = Failure::new().cause(self.problem());
        Verdict::Failure(match self.retry_after {
            Some(wait) => failure.retry_after(wait),
            None => failure,
        })
    }
}

/// The HTTP client of every channel.
#[derive(Clone, Debug)]
pub(crate) struct Http {
    client: reqwest::Client,
    scale: Scale,
}

impl Http {
    /// A client that finds the providers' host names on this machine.
    pub(crate) fn new<'a>(
        providers: impl IntoIterator<Item = &'a Provider>,
        scale: Scale,
    ) -> anyhow::Result<Self> {
        let mut client = reqwest::Client::builder()
            .no_proxy()
            .redirect(redirect::Policy::none())
            // A connection a call, so that a provider which closes connections is noticed.
            .pool_max_idle_per_host(0);
        for provider in providers {
            client = client.resolve(&provider.host(), provider.address());
        }
        Ok(Self {
            client: client.build().context("the HTTP client cannot be built")?,
            scale,
        })
    }

    /// Posts the notification once. An `Err` is a network error.
    pub(crate) async fn post(&self, notification: &Notification) -> anyhow::Result<Answer> {
        let message = Message {
            id: notification.id,
            text: notification.text.clone(),
        };
        let response = self
            .client
            .post(notification.url.clone())
            .json(&message)
            .send()
            .await?;
        let status = response.status();
        let retry_after = response
            .headers()
            .get(RETRY_AFTER)
            .and_then(|value| value.to_str().ok());
        let retry_after = retry_after.and_then(|text| self.parse_retry_after(text));
        let body = response.bytes().await?;
        Ok(Answer {
            status,
            retry_after,
            receipt: serde_json::from_slice(&body).unwrap_or_default(),
        })
    }

    /// Seconds. The other form of the header, a date, counts as absent here.
    fn parse_retry_after(&self, text: &str) -> Option<Duration> {
        text.trim().parse().ok().map(|seconds| self.scale.secs(seconds))
    }
}
