//! An outbox that stops sending to a topic whose publishes fail, and goes on with the others.
//!
//! An application leaves messages in a SQLite table. A sweeper publishes them to a broker, each topic under a circuit of the
//! `outbox` policy: a failed publish trips the topic, the sweeper leaves tripped topics out, and cooling down before each
//! sweep brings them back. The broker refuses two of the four topics for a while, by an error, by a plain `false`, and by a
//! negative confirmation that comes later. At the end the books of the application, the outbox and the broker are
//! held against each other: nothing may be lost.

mod broker;
mod producers;
mod report;
mod store;
mod sweeper;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser;
use parking_lot::Mutex;
use tokio::time::{Instant, MissedTickBehavior};
use tripwit::{Breakers, Clock as _, Policy, SystemClock};
use tripwit_examples::scale::Scale;
use tripwit_examples::transitions::Transitions;
use tripwit_examples::{arguments, terminal};

use crate::broker::{Broker, Delays, Script, Treatment};
use crate::producers::{AsyncProducer, BlockingProducer, Route};
use crate::report::{Facts, Moves};
use crate::store::{Message, Store};
use crate::sweeper::{Outlet, Producer, Sweeper};

/// The topics, and whether the service that publishes them is a blocking one.
const TOPICS: [(&str, bool); 4] = [
    ("orders", false),
    ("shipments", false),
    ("payments", true),
    ("audit", true),
];
/// Seconds between two sweeps.
const SWEEP_EVERY: u64 = 5;
/// Seconds until the broker confirms a message that it keeps, and one that it does not.
const CONFIRMED_AFTER: u64 = 1;
const REFUSED_AFTER: u64 = 7;
/// The application deposits this many messages for each topic before each of the first sweeps.
const MESSAGES_A_SWEEP: usize = 2;
const SWEEPS_WITH_NEW_MESSAGES: u32 = 42;
/// What is left of the run's time for the report.
const SPARE: Duration = Duration::from_secs(2);

/// A SQLite outbox whose topics are guarded by circuit breakers.
#[derive(Debug, Parser)]
#[command(name = "outbox", after_help = EXAMPLES)]
struct Arguments {
    #[command(flatten)]
    scale: Scale,
    /// The outbox, a SQLite file; what an earlier run left in it is published too [default: a temporary file]
    #[arg(long, value_name = "PATH")]
    db: Option<PathBuf>,
}

const EXAMPLES: &str = "Examples:
  cargo run --example outbox                      a run of some ten seconds
  cargo run --example outbox -- --scale 1         the same with the real waits, some four minutes
  cargo run --example outbox -- --db outbox.db    keeps the outbox";

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = match arguments::parse::<Arguments>() {
        Ok(arguments) => arguments,
        Err(code) => return code,
    };
    match run(&arguments).await {
        Ok(problems) if problems.is_empty() => ExitCode::SUCCESS,
        Ok(problems) => {
            problems.iter().for_each(|problem| eprintln!("error: {problem}"));
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs until the outbox is empty or time is up, and says what is wrong then.
async fn run(arguments: &Arguments) -> anyhow::Result<Vec<String>> {
    let started = Instant::now();
    let scale = arguments.scale;
    terminal::say(&scale.to_string());
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let path = arguments
        .db
        .clone()
        .unwrap_or_else(|| folder.path().join("outbox.db"));
    let store = Arc::new(Store::open(&path)?);

    let transitions = Arc::new(Transitions::install()?);
    let breakers = Breakers::new(Policy::outbox()?)?;
    transitions.follow(&breakers);
    let moves = Arc::new(Mutex::new(BTreeMap::<String, Moves>::new()));
    let recorded = Arc::clone(&moves);
    let _recording = breakers.subscribe(move |event| {
        let transition = &event.transition;
        recorded
            .lock()
            .entry(event.key.to_string())
            .or_default()
            .record(transition.operation, transition.at);
    });

    let delays = Delays {
        positive: scale.secs(CONFIRMED_AFTER),
        negative: scale.secs(REFUSED_AFTER),
    };
    let broker = Broker::start(script(), delays)
        .await
        .context("cannot start the broker")?;
    let outlets = outlets(&breakers, &broker, &store, &transitions)?;
    let mut sweeper = Sweeper::new(breakers, Arc::clone(&store), Arc::clone(&transitions), outlets);

    let deadline = started + scale.deadline() - SPARE;
    let deposited = sweep_until_empty(&mut sweeper, &store, scale, deadline).await?;
    let facts = Facts {
        skipped: TOPICS
            .iter()
            .map(|(topic, _)| ((*topic).to_owned(), sweeper.skipped(topic)))
            .collect(),
        undispatched: store.undispatched()?.iter().map(|message| message.id).collect(),
        arrivals: broker.arrivals(),
        refusals: broker.refusals(),
        moves: moves.lock().clone(),
        deposited,
        now: SystemClock.wall(),
    };
    say_summary(&facts, &sweeper, arguments.db.as_deref());
    let mut problems = facts.problems();
    problems.extend(transitions.incomplete().iter().map(|topic| {
        format!("{topic}: a transition came without its log line and span, or they without it")
    }));
    Ok(problems)
}

/// The broker refuses `orders` and `payments` in each way, the one in this order, the other in that. After a cool-down the backlog
/// comes at once, some 24 messages, or twice as many where the broker is not well yet; the next refusal hits a topic that has
/// recovered.
fn script() -> Script {
    use Treatment::{Error, Keep, LostAnswer, NegativeConfirmation, NotAccepted};
    Script::default()
        .topic(
            "orders",
            &[
                (Keep, 4),
                (Error, 1),
                (LostAnswer, 1),
                (Keep, 48),
                (NotAccepted, 1),
            ],
        )
        .topic("orders", &[(Keep, 26), (NegativeConfirmation, 2)])
        .topic(
            "payments",
            &[(Keep, 8), (NegativeConfirmation, 2), (Keep, 28), (NotAccepted, 1)],
        )
        .topic("payments", &[(Keep, 26), (Error, 1), (LostAnswer, 1)])
}

fn outlets(
    breakers: &Breakers,
    broker: &Broker,
    store: &Arc<Store>,
    transitions: &Arc<Transitions>,
) -> anyhow::Result<Vec<Outlet>> {
    let outlet = |(topic, blocking): (&str, bool)| {
        let route = Route {
            broker: broker.address(),
            topic: topic.to_owned(),
            store: Arc::clone(store),
            transitions: Arc::clone(transitions),
        };
        let producer = if blocking {
            Producer::Blocking(BlockingProducer::new(route))
        } else {
            Producer::Async(AsyncProducer::new(route))
        };
        anyhow::Ok(Outlet {
            breaker: breakers.breaker(topic)?,
            producer,
        })
    };
    TOPICS.into_iter().map(outlet).collect()
}

/// Deposits and sweeps. Returns all messages that were in the outbox at any time of this run.
async fn sweep_until_empty(
    sweeper: &mut Sweeper,
    store: &Store,
    scale: Scale,
    deadline: Instant,
) -> anyhow::Result<Vec<Message>> {
    let mut messages = store.undispatched()?;
    let mut interval = tokio::time::interval(scale.secs(SWEEP_EVERY));
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while Instant::now() < deadline {
        interval.tick().await;
        let sweep = sweeper.sweeps() + 1;
        if sweep <= SWEEPS_WITH_NEW_MESSAGES {
            messages.extend(store.deposit(&new_messages(sweep))?);
        } else if store.undispatched()?.is_empty() {
            break;
        }
        sweeper.sweep().await?;
    }
    Ok(messages)
}

fn new_messages(sweep: u32) -> Vec<(&'static str, String)> {
    let numbers = 1..=MESSAGES_A_SWEEP;
    numbers
        .flat_map(|number| {
            TOPICS.map(|(topic, _)| (topic, format!("{topic} of sweep {sweep}, number {number}")))
        })
        .collect()
}

fn say_summary(facts: &Facts, sweeper: &Sweeper, kept: Option<&Path>) {
    terminal::say(&format!("\n{}", facts.table().trim_fmt()));
    facts.refusals().iter().for_each(|line| terminal::say(line));
    let left = facts.undispatched.len();
    let found = match (left, kept) {
        (0, _) => "the outbox is empty".to_owned(),
        (_, None) => format!("{left} message(s) are still in the outbox"),
        (_, Some(path)) => format!(
            "{left} message(s) are still in the outbox, run again with --db {}",
            path.display()
        ),
    };
    terminal::say(&format!("after {} sweeps {found}", sweeper.sweeps()));
}
