//! A message broker on a local TCP socket, which refuses publishes by a script.
//!
//! One JSON object a line, both ways: a [`Publish`] from the publisher, a [`Frame`] from the broker. Each publish is answered at once;
//! an accepted one is confirmed later, which says whether the broker keeps the message.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tripwit_examples::terminal;

/// What the broker says when it refuses with an error.
const REASON: &str = "no space left on the partition";

/// What a publisher sends.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Publish {
    pub(crate) id: i64,
    pub(crate) topic: String,
    pub(crate) body: String,
}

/// What the broker sends back; `id` is the message's.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(crate) enum Frame {
    /// At once.
    Answer { id: i64, outcome: Outcome },
    /// Later, for an accepted message: whether it is kept.
    Confirmation { id: i64, kept: bool },
}

/// What the broker says at once of a publish.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Outcome {
    /// Taken in; a confirmation follows.
    Accepted,
    /// Not taken in, and no error either.
    NotAccepted,
    /// Not taken in, and why.
    Error(String),
}

/// What becomes of one publish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Treatment {
    /// Accepted, kept and confirmed.
    Keep,
    /// Refused with an error.
    Error,
    /// Refused with a plain `false`.
    NotAccepted,
    /// Accepted, and refused later by a negative confirmation.
    NegativeConfirmation,
    /// Kept, but the connection breaks before the publisher can learn it.
    LostAnswer,
}

impl fmt::Display for Treatment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Keep => "kept",
            Self::Error => "error",
            Self::NotAccepted => "plain false",
            Self::NegativeConfirmation => "negative confirmation",
            Self::LostAnswer => "answer lost",
        })
    }
}

/// How the publishes of each topic are treated, in the order in which they come. What the script does not name is kept.
#[derive(Debug, Default)]
pub(crate) struct Script {
    topics: HashMap<String, VecDeque<(Treatment, u32)>>,
}

impl Script {
    /// Adds what becomes of the next publishes of a topic: so many of each treatment, in this order.
    pub(crate) fn topic(mut self, topic: &str, treatments: &[(Treatment, u32)]) -> Self {
        self.topics
            .entry(topic.to_owned())
            .or_default()
            .extend(treatments);
        self
    }

    fn next(&mut self, topic: &str) -> Treatment {
        let Some(treatments) = self.topics.get_mut(topic) else {
            return Treatment::Keep;
        };
        while let Some((treatment, left)) = treatments.front_mut() {
            if *left > 0 {
                *left -= 1;
                return *treatment;
            }
            treatments.pop_front();
        }
        Treatment::Keep
    }
}

/// How long the broker takes to confirm.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delays {
    pub(crate) positive: Duration,
    pub(crate) negative: Duration,
}

/// A message that the broker keeps, and how many times it arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub(crate) body: String,
    pub(crate) times: u32,
}

/// A running broker. It serves until its tokio runtime ends.
#[derive(Debug)]
pub(crate) struct Broker {
    address: SocketAddr,
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    delays: Delays,
    script: Mutex<Script>,
    arrivals: Mutex<HashMap<i64, Arrival>>,
    refusals: Mutex<BTreeMap<(String, Treatment), u32>>,
}

impl Broker {
    /// Listens on a free local port.
    pub(crate) async fn start(script: Script, delays: Delays) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let state = Arc::new(State {
            delays,
            script: Mutex::new(script),
            arrivals: Mutex::default(),
            refusals: Mutex::default(),
        });
        tokio::spawn(accept(listener, Arc::clone(&state)));
        Ok(Self { address, state })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The messages that it keeps, by id.
    pub(crate) fn arrivals(&self) -> HashMap<i64, Arrival> {
        self.state.arrivals.lock().clone()
    }

    /// How many publishes it has refused, by topic and way.
    pub(crate) fn refusals(&self) -> BTreeMap<(String, Treatment), u32> {
        self.state.refusals.lock().clone()
    }
}

async fn accept(listener: TcpListener, state: Arc<State>) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(serve(stream, Arc::clone(&state)));
    }
}

/// Serves one connection until either side closes it; confirmations that are still due then never come.
async fn serve(stream: TcpStream, state: Arc<State>) {
    let (reader, writer) = stream.into_split();
    let (frames, outbound) = mpsc::unbounded_channel();
    let ended = tokio::select! {
        ended = read(reader, frames, &state) => ended,
        ended = write(writer, outbound) => ended,
    };
    if let Err(error) = ended {
        terminal::say(&format!("broker: a connection broke: {error:#}"));
    }
}

async fn read(reader: OwnedReadHalf, frames: UnboundedSender<Frame>, state: &State) -> anyhow::Result<()> {
    let mut lines = BufReader::new(reader).lines();
    while let Some(line) = lines.next_line().await? {
        let publish: Publish = serde_json::from_str(&line)?;
        let id = publish.id;
        let treatment = state.treat(publish);
        let (outcome, confirmation) = match treatment {
            Treatment::Keep => (Outcome::Accepted, Some((true, state.delays.positive))),
            Treatment::NegativeConfirmation => (Outcome::Accepted, Some((false, state.delays.negative))),
            Treatment::NotAccepted => (Outcome::NotAccepted, None),
            Treatment::Error => (Outcome::Error(REASON.to_owned()), None),
            Treatment::LostAnswer => return Ok(()),
        };
        frames.send(Frame::Answer { id, outcome })?;
        if let Some((kept, delay)) = confirmation {
            let frames = frames.clone();
            tokio::spawn(async move {
                tokio::time::sleep(delay).await;
                // When the connection has gone by now, nobody is left to tell.
                let _ = frames.send(Frame::Confirmation { id, kept });
            });
        }
    }
    Ok(())
}

async fn write(mut writer: OwnedWriteHalf, mut frames: UnboundedReceiver<Frame>) -> anyhow::Result<()> {
    while let Some(frame) = frames.recv().await {
        let mut line = serde_json::to_string(&frame)?;
        line.push('\n');
        writer.write_all(line.as_bytes()).await?;
    }
    Ok(())
}

impl State {
    /// Decides what becomes of a publish, and keeps the message or counts the refusal.
    fn treat(&self, publish: Publish) -> Treatment {
        let treatment = self.script.lock().next(&publish.topic);
        if matches!(treatment, Treatment::Keep | Treatment::LostAnswer) {
            let mut arrivals = self.arrivals.lock();
            let arrival = arrivals.entry(publish.id).or_insert(Arrival {
                body: publish.body,
                times: 0,
            });
            arrival.times += 1;
            if arrival.times > 1 {
                terminal::say(&format!(
                    "broker: message {} of {} arrived again",
                    publish.id, publish.topic
                ));
            }
        }
        if treatment != Treatment::Keep {
            *self
                .refusals
                .lock()
                .entry((publish.topic, treatment))
                .or_default() += 1;
        }
        treatment
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(script: Script) -> State {
        let delays = Delays {
            positive: Duration::ZERO,
            negative: Duration::ZERO,
        };
        State {
            delays,
            script: Mutex::new(script),
            arrivals: Mutex::default(),
            refusals: Mutex::default(),
        }
    }

    fn treat(state: &State, topic: &str, id: i64) -> Treatment {
        state.treat(Publish {
            id,
            topic: topic.to_owned(),
            body: format!("body {id}"),
        })
    }

    #[test]
    fn a_script_is_followed_in_order_and_then_everything_is_kept() {
        use Treatment::{Error, Keep, NegativeConfirmation, NotAccepted};
        let mut script = Script::default().topic(
            "orders",
            &[(Keep, 2), (Error, 1), (NotAccepted, 0), (NegativeConfirmation, 2)],
        );
        let treatments: Vec<_> = (0..7).map(|_| script.next("orders")).collect();
        assert_eq!(
            treatments,
            [
                Keep,
                Keep,
                Error,
                NegativeConfirmation,
                NegativeConfirmation,
                Keep,
                Keep
            ]
        );
    }

    #[test]
    fn each_topic_has_a_script_of_its_own() {
        let mut script = Script::default()
            .topic("orders", &[(Treatment::Error, 1)])
            .topic("payments", &[(Treatment::Keep, 1), (Treatment::NotAccepted, 1)]);
        assert_eq!(script.next("payments"), Treatment::Keep);
        assert_eq!(script.next("audit"), Treatment::Keep);
        assert_eq!(script.next("orders"), Treatment::Error);
        assert_eq!(script.next("payments"), Treatment::NotAccepted);
    }

    #[test]
    fn what_is_refused_is_counted_by_its_way_and_not_kept() {
        use Treatment::{Error, NegativeConfirmation, NotAccepted};
        let state = state(Script::default().topic(
            "orders",
            &[(Error, 1), (NotAccepted, 2), (NegativeConfirmation, 1)],
        ));
        for id in 1..=4 {
            treat(&state, "orders", id);
        }
        assert!(state.arrivals.lock().is_empty());
        let refusals: Vec<_> = state
            .refusals
            .lock()
            .iter()
            .map(|((_, way), count)| (*way, *count))
            .collect();
        assert_eq!(
            refusals,
            [(Error, 1), (NotAccepted, 2), (NegativeConfirmation, 1)]
        );
    }

    #[test]
    fn a_message_whose_answer_is_lost_is_kept_and_arrives_a_second_time() {
        let state = state(Script::default().topic("orders", &[(Treatment::LostAnswer, 1)]));
        assert_eq!(treat(&state, "orders", 7), Treatment::LostAnswer);
        assert_eq!(treat(&state, "orders", 7), Treatment::Keep);
        assert_eq!(
            state.arrivals.lock().get(&7),
            Some(&Arrival {
                body: "body 7".to_owned(),
                times: 2
            })
        );
    }

    #[tokio::test]
    async fn each_refusal_is_answered_in_its_own_way_on_the_connection() {
        use Treatment::{Error, Keep, LostAnswer, NegativeConfirmation, NotAccepted};
        let script = Script::default().topic(
            "orders",
            &[
                (Keep, 1),
                (Error, 1),
                (NotAccepted, 1),
                (NegativeConfirmation, 1),
                (LostAnswer, 1),
            ],
        );
        let delays = Delays {
            positive: Duration::ZERO,
            negative: Duration::ZERO,
        };
        let broker = Broker::start(script, delays).await.unwrap();
        let (reader, mut writer) = TcpStream::connect(broker.address()).await.unwrap().into_split();
        let mut lines = BufReader::new(reader).lines();
        let mut frames = Vec::new();
        for (id, expected) in [(1, 2), (2, 1), (3, 1), (4, 2), (5, 0)] {
            let publish = Publish {
                id,
                topic: "orders".to_owned(),
                body: String::new(),
            };
            let line = format!("{}\n", serde_json::to_string(&publish).unwrap());
            writer.write_all(line.as_bytes()).await.unwrap();
            for _ in 0..expected {
                frames.push(lines.next_line().await.unwrap().unwrap());
            }
        }
        assert_eq!(
            frames,
            [
                r#"{"kind":"answer","id":1,"outcome":"accepted"}"#,
                r#"{"kind":"confirmation","id":1,"kept":true}"#,
                r#"{"kind":"answer","id":2,"outcome":{"error":"no space left on the partition"}}"#,
                r#"{"kind":"answer","id":3,"outcome":"not-accepted"}"#,
                r#"{"kind":"answer","id":4,"outcome":"accepted"}"#,
                r#"{"kind":"confirmation","id":4,"kept":false}"#,
            ]
        );
        assert_eq!(
            lines.next_line().await.unwrap(),
            None,
            "the connection is closed without an answer"
        );
    }
}
