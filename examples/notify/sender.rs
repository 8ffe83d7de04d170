//! Delivers a notification by its channel.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use tripwit::{Breaker, Breakers, CallError, classify};
use tripwit_examples::scale::Scale;

use crate::attempt::{Attempt, back_off, retry};
use crate::channels::Channel;
use crate::deliveries::Notification;
use crate::http::{Answer, Http};
use crate::ledger::Ledger;
use crate::webhook::Webhooks;

/// Tries of one delivery by a channel that retries.
const TRIES: u32 = 3;
/// Wait before the second of them; twice as long before the third.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// Time-out of an unguarded call.
const UNGUARDED_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest Retry-After that is heeded.
const RETRY_AFTER_CAP: Duration = Duration::from_secs(60);

/// Every way out.
#[derive(Debug)]
pub(crate) struct Sender {
    breakers: Breakers,
    http: Http,
    webhooks: Webhooks,
    scale: Scale,
    guarded: Arc<Ledger>,
    unguarded: Ledger,
}

impl Sender {
    /// A sender whose guarded calls go through `breakers` and into `ledger`.
    pub(crate) fn new(breakers: Breakers, http: Http, scale: Scale, ledger: Arc<Ledger>) -> Self {
        let webhooks = Webhooks::new(http.clone());
        Self {
            breakers,
            http,
            webhooks,
            scale,
            guarded: ledger,
            unguarded: Ledger::default(),
        }
    }

    pub(crate) fn breakers(&self) -> &Breakers {
        &self.breakers
    }

    pub(crate) fn webhooks(&self) -> &Webhooks {
        &self.webhooks
    }

    /// The calls that went through a breaker, by circuit.
    pub(crate) fn guarded(&self) -> &Ledger {
        &self.guarded
    }

    /// The calls that did not, by channel.
    pub(crate) fn unguarded(&self) -> &Ledger {
        &self.unguarded
    }

    /// Makes one delivery, with the tries that its channel has.
    ///
    /// # Errors
    ///
    /// When the notification's circuit cannot be had. A delivery that fails is no error.
    pub(crate) async fn deliver(&self, notification: &Arc<Notification>) -> anyhow::Result<Attempt> {
        let Some(key) = notification.channel.circuit(&notification.url)? else {
            let wait = |tried, last: &Attempt| wait_as_asked(self.scale, tried, last);
            return Ok(retry(TRIES, || self.call_unguarded(notification), wait).await);
        };
        let breaker = self.breakers.breaker(&key)?;
        // Retries are around the breaker: it hears of every try, and one that it rejects is the last.
        let tries = if notification.channel == Channel::Webhook {
            TRIES
        } else {
            1
        };
        let wait = |tried, _: &Attempt| self.scale.wait(back_off(FIRST_WAIT, tried));
        Ok(retry(tries, || self.call_guarded(&breaker, notification), wait).await)
    }

    async fn call_guarded(&self, breaker: &Breaker, notification: &Arc<Notification>) -> Attempt {
        let call = async {
            match notification.channel {
                Channel::Webhook => self.webhooks.post(notification).await,
                Channel::Email | Channel::Sms | Channel::Push | Channel::WhatsApp | Channel::Slack => {
                    self.http.post(notification).await
                }
            }
        };
        let attempt = match breaker
            .classify(classify::by_value(Answer::verdict))
            .call(call)
            .await
        {
            Ok(answer) => Attempt::Answered(answer),
            Err(CallError::Inner(error)) => Attempt::Unanswered(error),
            Err(CallError::TimedOut { after, .. }) => Attempt::TimedOut(after),
            Err(CallError::Rejected(rejection)) => Attempt::Rejected(rejection),
            Err(other) => Attempt::Unanswered(anyhow::anyhow!("{other:?}")),
        };
        self.guarded.enter(breaker.key(), notification.id, &attempt);
        attempt
    }

    async fn call_unguarded(&self, notification: &Arc<Notification>) -> Attempt {
        let after = self.scale.wait(UNGUARDED_TIMEOUT);
        let attempt = match timeout(after, self.http.post(notification)).await {
            Ok(Ok(answer)) => Attempt::Answered(answer),
            Ok(Err(error)) => Attempt::Unanswered(error),
            Err(_) => Attempt::TimedOut(after),
        };
        self.unguarded
            .enter(&notification.channel.to_string(), notification.id, &attempt);
        attempt
    }
}

/// The wait of a channel without a breaker: as long as the provider asks for, up to a cap.
fn wait_as_asked(scale: Scale, tried: u32, last: &Attempt) -> Duration {
    let usual = || scale.wait(back_off(FIRST_WAIT, tried));
    last.retry_after()
        .unwrap_or_else(usual)
        .min(scale.wait(RETRY_AFTER_CAP))
}

#[cfg(test)]
mod tests {
    use reqwest::StatusCode;

    use super::*;
    use crate::http::Receipt;

    fn busy(retry_after: Option<u64>) -> Attempt {
        Attempt::Answered(Answer {
            status: StatusCode::TOO_MANY_REQUESTS,
            retry_after: retry_after.map(Duration::from_secs),
            receipt: Receipt::default(),
        })
    }

    #[test]
    fn a_retry_after_is_heeded_up_to_the_cap() {
        let wait = |seconds| wait_as_asked(Scale::new(1), 1, &busy(Some(seconds)));
        assert_eq!(wait(0), Duration::ZERO);
        assert_eq!(wait(60), RETRY_AFTER_CAP);
        assert_eq!(wait(61), RETRY_AFTER_CAP);
        assert_eq!(wait(u64::MAX), RETRY_AFTER_CAP);
    }

    #[test]
    fn without_a_retry_after_the_usual_wait_doubles() {
        let wait = |tried| wait_as_asked(Scale::new(10), tried, &busy(None));
        assert_eq!(
            [wait(1), wait(2)],
            [Duration::from_millis(100), Duration::from_millis(200)]
        );
    }
}
