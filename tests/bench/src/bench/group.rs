//! What is measured together.

use std::future::poll_fn;
use std::hint::black_box;
use std::sync::Arc;
use std::task::Poll;

use anyhow::Result;
use tripwit_bench::{Inputs, Refused, work};

use crate::guard::{Answer, AsyncGuard, Ending, Guard};
use crate::subject::Subject;

/// What one thread does in a round: makes so many calls, and says what became of the last one.
pub(crate) type Round = Box<dyn FnMut(u64) -> Ending>;

/// Prepares a thread for its rounds.
pub(crate) type Start = Box<dyn Fn() -> Result<Round> + Send + Sync>;

/// Subjects that are measured in turns, so that whatever slows the machine down slows all of them down.
pub(crate) struct Group {
    pub(crate) name: &'static str,
    /// On how many threads, one after the other. In increasing order.
    pub(crate) threads: &'static [usize],
    pub(crate) entries: Vec<Entry>,
}

/// One subject in a group.
pub(crate) struct Entry {
    /// Where it is not the group's.
    pub(crate) name: Option<String>,
    pub(crate) subject: Subject,
    pub(crate) policy: String,
    /// How each call must end.
    pub(crate) ends: Ending,
    pub(crate) start: Start,
}

impl Group {
    pub(crate) fn new(name: &'static str, threads: &'static [usize]) -> Self {
        Self {
            name,
            threads,
            entries: Vec::new(),
        }
    }

    /// One more subject, whose calls are made.
    pub(crate) fn add(&mut self, subject: Subject, policy: impl ToString, start: Start) {
        self.entries.push(Entry {
            name: None,
            subject,
            policy: policy.to_string(),
            ends: Ending::Made,
            start,
        });
    }

    /// One more subject, whose calls are rejected.
    pub(crate) fn add_rejecting(&mut self, subject: Subject, policy: impl ToString, start: Start) {
        self.entries.push(Entry {
            name: None,
            subject,
            policy: policy.to_string(),
            ends: Ending::Rejected,
            start,
        });
    }

    /// Something else that the group's subjects are held against.
    pub(crate) fn add_named(&mut self, name: impl ToString, policy: impl ToString, start: Start) {
        self.entries.push(Entry {
            name: Some(name.to_string()),
            subject: Subject::Tripwit,
            policy: policy.to_string(),
            ends: Ending::Made,
            start,
        });
    }
}

/// Blocking calls, whose threads share the guard.
pub(crate) fn blocking<G: Guard>(guard: G, inputs: &Inputs) -> Start {
    let guard = Arc::new(guard);
    let inputs = inputs.clone();
    Box::new(move || {
        let (guard, inputs) = (guard.clone(), inputs.clone());
        Ok(Box::new(move |calls| {
            let mut ending = Ending::Made;
            for input in inputs.each(calls) {
                ending = black_box(&guard.call(black_box(input))).ending();
            }
            ending
        }))
    })
}

/// How a call that is awaited runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readiness {
    /// It is ready when it is first asked.
    Ready,
    /// It is ready when it is asked a second time.
    Pending,
}

impl Readiness {
    pub(crate) async fn work(self, input: u64) -> Result<u64, Refused> {
        if self == Self::Pending {
            let mut asked = false;
            poll_fn(|cx| {
                if std::mem::replace(&mut asked, true) {
                    return Poll::Ready(());
                }
                cx.waker().wake_by_ref();
                Poll::Pending
            })
            .await;
        }
        work(input)
    }
}

/// Calls that are awaited one after the other, in a runtime of the thread's own.
pub(crate) fn awaited<G: AsyncGuard>(guard: G, pace: Readiness, inputs: &Inputs) -> Start {
    let guard = Arc::new(guard);
    let inputs = inputs.clone();
    Box::new(move || {
        let (guard, inputs, runtime) = (guard.clone(), inputs.clone(), runtime()?);
        Ok(Box::new(move |calls| {
            runtime.block_on(async {
                let mut ending = Ending::Made;
                for input in inputs.each(calls) {
                    let call = pace.work(black_box(input));
                    ending = black_box(&guard.call(call).await).ending();
                }
                ending
            })
        }))
    })
}

/// A runtime on the thread that it is made on.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()?)
}
