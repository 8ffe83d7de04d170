//! Two producers for the broker, one async and one blocking, each for one topic and on a connection of its own.
//!
//! Both hear of a failure in three ways: as an error, as `Ok(false)`, or later, as a negative confirmation. The first two are what
//! the publish returns; the third settles the permit that was handed in with the message, whenever it arrives.

use std::collections::BTreeMap;
use std::io::{BufRead as _, Write as _};
use std::mem;
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use parking_lot::Mutex;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tripwit::{Failure, OwnedPermit};
use tripwit_examples::transitions::Transitions;

use crate::broker::{Frame, Outcome, Publish};
use crate::store::{Message, Store};

/// How long a producer waits for the broker's answer to one publish.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
const NO_ANSWER: &str = "the broker does not answer";
const CLOSED: &str = "the broker closed the connection without an answer";

/// Where the messages of one topic go, and where their confirmations are recorded.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    pub(crate) broker: SocketAddr,
    pub(crate) topic: String,
    pub(crate) store: Arc<Store>,
    pub(crate) transitions: Arc<Transitions>,
}

/// Publishes on a tokio socket.
#[derive(Debug)]
pub(crate) struct AsyncProducer {
    route: Route,
    connection: Option<AsyncConnection>,
}

#[derive(Debug)]
struct AsyncConnection {
    writer: OwnedWriteHalf,
    answers: tokio::sync::mpsc::UnboundedReceiver<(i64, Outcome)>,
    inbox: Arc<Inbox>,
}

impl AsyncProducer {
    pub(crate) fn new(route: Route) -> Self {
        Self {
            route,
            connection: None,
        }
    }

    /// Hands a message to the broker and says whether it was accepted. `confirmation` is settled when the broker confirms it.
    pub(crate) async fn publish(
        &mut self,
        message: &Message,
        confirmation: OwnedPermit,
    ) -> anyhow::Result<bool> {
        // Put back only after an answer: of a connection that failed nobody knows what it still carries.
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => AsyncConnection::open(&self.route).await?,
        };
        connection.inbox.expect(message.id, confirmation);
        let outcome = connection.exchange(message).await?;
        let inbox = Arc::clone(&connection.inbox);
        self.connection = Some(connection);
        inbox.accepted(message.id, outcome)
    }
}

impl AsyncConnection {
    async fn open(route: &Route) -> anyhow::Result<Self> {
        let stream = tokio::net::TcpStream::connect(route.broker).await?;
        let (reader, writer) = stream.into_split();
        let (answered, answers) = tokio::sync::mpsc::unbounded_channel();
        let inbox = Arc::new(Inbox::new(route));
        let listener = Arc::clone(&inbox);
        tokio::spawn(async move {
            let ended = Self::listen(reader, &listener, &answered).await;
            listener.close(ended);
        });
        Ok(Self {
            writer,
            answers,
            inbox,
        })
    }

    async fn exchange(&mut self, message: &Message) -> anyhow::Result<Outcome> {
        self.writer.write_all(&encode(message)?).await?;
        let answer = tokio::time::timeout(ANSWER_TIMEOUT, self.answers.recv())
            .await
            .context(NO_ANSWER)?;
        answer_to(message, answer.context(CLOSED)?)
    }

    async fn listen(
        reader: OwnedReadHalf,
        inbox: &Inbox,
        answered: &tokio::sync::mpsc::UnboundedSender<(i64, Outcome)>,
    ) -> anyhow::Result<()> {
        let mut lines = tokio::io::BufReader::new(reader).lines();
        while let Some(line) = lines.next_line().await? {
            if let Some(answer) = inbox.receive(&line)? {
                answered.send(answer)?;
            }
        }
        Ok(())
    }
}

/// Publishes on a blocking socket, from plain threads.
#[derive(Debug)]
pub(crate) struct BlockingProducer {
    route: Route,
    connection: Option<BlockingConnection>,
}

#[derive(Debug)]
struct BlockingConnection {
    stream: std::net::TcpStream,
    answers: std::sync::mpsc::Receiver<(i64, Outcome)>,
    inbox: Arc<Inbox>,
}

impl BlockingProducer {
    pub(crate) fn new(route: Route) -> Self {
        Self {
            route,
            connection: None,
        }
    }

    /// As [`AsyncProducer::publish`], blocking.
    pub(crate) fn publish(&mut self, message: &Message, confirmation: OwnedPermit) -> anyhow::Result<bool> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => BlockingConnection::open(&self.route)?,
        };
        connection.inbox.expect(message.id, confirmation);
        let outcome = connection.exchange(message)?;
        let inbox = Arc::clone(&connection.inbox);
        self.connection = Some(connection);
        inbox.accepted(message.id, outcome)
    }
}

impl BlockingConnection {
    fn open(route: &Route) -> anyhow::Result<Self> {
        let stream = std::net::TcpStream::connect(route.broker)?;
        let reader = stream.try_clone()?;
        let (answered, answers) = std::sync::mpsc::channel();
        let inbox = Arc::new(Inbox::new(route));
        let listener = Arc::clone(&inbox);
        std::thread::spawn(move || {
            let ended = Self::listen(reader, &listener, &answered);
            listener.close(ended);
        });
        Ok(Self {
            stream,
            answers,
            inbox,
        })
    }

    fn exchange(&mut self, message: &Message) -> anyhow::Result<Outcome> {
        self.stream.write_all(&encode(message)?)?;
        let answer = self
            .answers
            .recv_timeout(ANSWER_TIMEOUT)
            .map_err(|error| match error {
                std::sync::mpsc::RecvTimeoutError::Timeout => anyhow::anyhow!(NO_ANSWER),
                std::sync::mpsc::RecvTimeoutError::Disconnected => anyhow::anyhow!(CLOSED),
            })?;
        answer_to(message, answer)
    }

    fn listen(
        reader: std::net::TcpStream,
        inbox: &Inbox,
        answered: &std::sync::mpsc::Sender<(i64, Outcome)>,
    ) -> anyhow::Result<()> {
        for line in std::io::BufReader::new(reader).lines() {
            if let Some(answer) = inbox.receive(&line?)? {
                answered.send(answer)?;
            }
        }
        Ok(())
    }
}

/// The listening thread holds the socket too, so it must be told to end.
impl Drop for BlockingConnection {
    fn drop(&mut self) {
        // A socket that is closed already needs no closing.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

fn encode(message: &Message) -> anyhow::Result<Vec<u8>> {
    let Message { id, topic, body } = message.clone();
    let mut line = serde_json::to_vec(&Publish { id, topic, body })?;
    line.push(b'\n');
    Ok(line)
}

fn answer_to(message: &Message, (id, outcome): (i64, Outcome)) -> anyhow::Result<Outcome> {
    ensure!(
        id == message.id,
        "the broker answers message {id} in place of message {}",
        message.id
    );
    Ok(outcome)
}

/// What arrives on one connection, and the permits that its confirmations settle.
#[derive(Debug)]
struct Inbox {
    topic: String,
    store: Arc<Store>,
    transitions: Arc<Transitions>,
    awaiting: Mutex<BTreeMap<i64, Awaiting>>,
}

#[derive(Debug)]
struct Awaiting {
    permit: OwnedPermit,
    /// Until the broker has accepted the message, the publish itself reports what becomes of it.
    accepted: bool,
}

impl Inbox {
    fn new(route: &Route) -> Self {
        let Route {
            topic,
            store,
            transitions,
            ..
        } = route.clone();
        Self {
            topic,
            store,
            transitions,
            awaiting: Mutex::default(),
        }
    }

    /// Called before the message is sent: its confirmation may come before the publish has returned.
    fn expect(&self, id: i64, permit: OwnedPermit) {
        let overdue = self.awaiting.lock().insert(
            id,
            Awaiting {
                permit,
                accepted: false,
            },
        );
        if let Some(overdue) = overdue {
            // Sent a second time, for the first was never confirmed.
            overdue.permit.timeout();
        }
    }

    /// Takes in one line, in the order in which they come. Hands back what answers the publish under way.
    fn receive(&self, line: &str) -> anyhow::Result<Option<(i64, Outcome)>> {
        match serde_json::from_str(line)? {
            Frame::Answer { id, outcome } => {
                if matches!(outcome, Outcome::Accepted)
                    && let Some(awaiting) = self.awaiting.lock().get_mut(&id)
                {
                    awaiting.accepted = true;
                }
                Ok(Some((id, outcome)))
            }
            Frame::Confirmation { id, kept } => {
                self.confirm(id, kept)?;
                Ok(None)
            }
        }
    }

    /// Settles the permit before the outbox learns it: a refused message is outstanding only once its topic has tripped.
    fn confirm(&self, id: i64, kept: bool) -> anyhow::Result<()> {
        let awaiting = self.awaiting.lock().remove(&id);
        match (awaiting, kept) {
            (Some(awaiting), true) => awaiting.permit.success(),
            (Some(awaiting), false) => awaiting
                .permit
                .failure(Failure::new().cause("negative confirmation")),
            // Sent twice, and settled by the confirmation that came first.
            (None, _) => {}
        }
        if kept {
            return self.store.mark_dispatched(id);
        }
        self.transitions
            .note(&format!("{}: message {id}: negative confirmation", self.topic));
        self.store.mark_refused(&[id])
    }

    /// What the answer means: accepted or not, or an error. The permit of a message that is not accepted is given back, for the
    /// call reports that failure.
    fn accepted(&self, id: i64, outcome: Outcome) -> anyhow::Result<bool> {
        let refused = match outcome {
            Outcome::Accepted => return Ok(true),
            Outcome::NotAccepted => Ok(false),
            Outcome::Error(reason) => Err(anyhow::anyhow!("the broker says: {reason}")),
        };
        let confirmation = self.awaiting.lock().remove(&id);
        drop(confirmation);
        refused
    }

    /// The connection has ended: what was accepted on it is never confirmed, and outstanding again.
    fn close(&self, ended: anyhow::Result<()>) {
        if let Err(error) = ended {
            self.transitions
                .note(&format!("{}: the connection broke: {error:#}", self.topic));
        }
        let awaiting = mem::take(&mut *self.awaiting.lock());
        for (id, awaiting) in awaiting.into_iter().filter(|(_, awaiting)| awaiting.accepted) {
            awaiting
                .permit
                .failure(Failure::new().cause("the connection ended before the confirmation"));
            if let Err(error) = self.store.mark_refused(&[id]) {
                self.transitions
                    .note(&format!("{}: message {id}: {error:#}", self.topic));
            }
        }
    }
}
