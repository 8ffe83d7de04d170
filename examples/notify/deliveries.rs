//! The records of what is to be delivered.

use std::sync::Arc;

use parking_lot::Mutex;
use reqwest::Url;

use crate::attempt::Attempt;
use crate::channels::Channel;

/// How many deliveries of a notification may fail before it is given up. Rejected ones do not count.
pub(crate) const ATTEMPT_LIMIT: u32 = 5;

/// What is to be told to whom.
#[derive(Debug)]
pub(crate) struct Notification {
    pub(crate) id: usize,
    pub(crate) channel: Channel,
    pub(crate) url: Url,
    pub(crate) text: String,
}

/// A notification, and what became of it so far.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) notification: Arc<Notification>,
    /// Deliveries that were made: the good one, and those that failed.
    pub(crate) attempts: u32,
    pub(crate) status: Status,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// A delivery is under way.
    Pending,
    Sent,
    Failed {
        reason: String,
    },
}

impl Record {
    /// Whether a later pass may deliver it.
    fn is_due(&self) -> bool {
        matches!(self.status, Status::Failed { .. }) && self.attempts < ATTEMPT_LIMIT
    }

    /// Whether it failed for good.
    pub(crate) fn is_given_up(&self) -> bool {
        matches!(self.status, Status::Failed { .. }) && self.attempts >= ATTEMPT_LIMIT
    }
}

/// All records. A database in real life.
#[derive(Debug, Default)]
pub(crate) struct Deliveries {
    records: Mutex<Vec<Record>>,
}

impl Deliveries {
    /// Records a new notification, for delivery by the caller.
    pub(crate) fn add(&self, channel: Channel, url: Url, text: String) -> Arc<Notification> {
        let mut records = self.records.lock();
        let notification = Arc::new(Notification {
            id: records.len(),
            channel,
            url,
            text,
        });
        records.push(Record {
            notification: Arc::clone(&notification),
            attempts: 0,
            status: Status::Pending,
        });
        notification
    }

    /// Records how a delivery ended. One that the circuit rejected has failed, and yet was no attempt.
    pub(crate) fn settle(&self, notification: &Notification, ended: &Attempt) {
        let mut records = self.records.lock();
        let Some(record) = records.get_mut(notification.id) else {
            return;
        };
        if !matches!(ended, Attempt::Rejected(_)) {
            record.attempts += 1;
        }
        record.status = if ended.is_sent() {
            Status::Sent
        } else {
            Status::Failed {
                reason: ended.to_string(),
            }
        };
    }

    /// Picks the failed records for `url` that have attempts left, for delivery by the caller; those that were tried least come first.
    pub(crate) fn take_due(&self, url: &Url) -> Vec<Arc<Notification>> {
        let mut records = self.records.lock();
        let mut due: Vec<_> = records
            .iter_mut()
            .filter(|record| record.is_due() && record.notification.url == *url)
            .collect();
        due.sort_by_key(|record| record.attempts);
        due.into_iter()
            .map(|record| {
                record.status = Status::Pending;
                Arc::clone(&record.notification)
            })
            .collect()
    }

    /// Whether everything is sent or given up.
    pub(crate) fn are_settled(&self) -> bool {
        self.records
            .lock()
            .iter()
            .all(|record| record.status == Status::Sent || record.is_given_up())
    }

    /// A copy of all records, by id.
    pub(crate) fn records(&self) -> Vec<Record> {
        self.records.lock().clone()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use reqwest::StatusCode;
    use tripwit::{Breakers, Policy};

    use super::*;
    use crate::http::{Answer, Receipt};

    fn url() -> Url {
        "http://sms.example.com/send".parse().expect("a URL")
    }

    fn add(deliveries: &Deliveries, text: &str) -> Arc<Notification> {
        deliveries.add(Channel::Sms, url(), text.to_owned())
    }

    fn sent() -> Attempt {
        Attempt::Answered(Answer {
            status: StatusCode::OK,
            retry_after: None,
            receipt: Receipt {
                sent: Some(true),
                reason: None,
            },
        })
    }

    fn failed() -> Attempt {
        Attempt::TimedOut(Duration::from_secs(10))
    }

    /// A real one, from a circuit that was opened by hand.
    fn rejected() -> Attempt {
        let breakers =
            Breakers::new(Policy::consecutive().expect("it ships with the crate")).expect("defaults");
        let breaker = breakers.breaker("sms").expect("a good key");
        breaker.trip();
        let rejection = breaker.acquire().map(drop).expect_err("the circuit is open");
        Attempt::Rejected(rejection)
    }

    #[test]
    fn a_rejected_delivery_is_failed_with_its_attempts_unchanged_and_due_again() {
        let deliveries = Deliveries::default();
        let notification = add(&deliveries, "first");
        deliveries.settle(&notification, &failed());
        deliveries.settle(&notification, &rejected());

        let [record] = &deliveries.records()[..] else {
            panic!("one record")
        };
        assert_eq!(record.attempts, 1);
        let Status::Failed { reason } = &record.status else {
            panic!("it is recorded as failed")
        };
        assert!(reason.starts_with("circuit open: "), "{reason}");
        assert_eq!(deliveries.take_due(&url()).len(), 1);
    }

    #[test]
    fn a_record_is_given_up_at_the_attempt_limit_and_not_picked_again() {
        let deliveries = Deliveries::default();
        let notification = add(&deliveries, "first");
        for attempt in 1..ATTEMPT_LIMIT {
            deliveries.settle(&notification, &failed());
            assert_eq!(deliveries.take_due(&url()).len(), 1, "after attempt {attempt}");
            assert!(!deliveries.are_settled());
        }
        deliveries.settle(&notification, &failed());
        assert!(deliveries.take_due(&url()).is_empty());
        assert!(deliveries.are_settled());
    }

    #[test]
    fn sent_and_pending_records_are_not_picked() {
        let deliveries = Deliveries::default();
        let first = add(&deliveries, "sent");
        add(&deliveries, "pending");
        deliveries.settle(&first, &sent());
        assert!(deliveries.take_due(&url()).is_empty());
        assert!(!deliveries.are_settled(), "one is under way");
    }

    #[test]
    fn a_pass_picks_its_own_destination_and_the_least_tried_first_and_each_once() {
        let deliveries = Deliveries::default();
        let twice = add(&deliveries, "tried twice");
        let once = add(&deliveries, "tried once");
        let elsewhere = deliveries.add(
            Channel::Push,
            "http://push.example.com/".parse().expect("a URL"),
            String::new(),
        );
        deliveries.settle(&elsewhere, &failed());
        deliveries.settle(&twice, &failed());
        deliveries.settle(&twice, &failed());
        deliveries.settle(&once, &failed());

        let due: Vec<_> = deliveries
            .take_due(&url())
            .iter()
            .map(|notification| notification.id)
            .collect();
        assert_eq!(due, [once.id, twice.id]);
        assert!(deliveries.take_due(&url()).is_empty(), "they are under way");
    }
}
