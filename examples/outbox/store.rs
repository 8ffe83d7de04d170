//! The outbox: a SQLite table of messages that the broker has yet to confirm.

use std::path::Path;

use anyhow::Context as _;
use parking_lot::Mutex;
use rusqlite::{Connection, Row, params};

/// A message as the application left it in the outbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) id: i64,
    pub(crate) topic: String,
    pub(crate) body: String,
}

/// The outbox in one SQLite file. Statements are short, so one connection behind a lock serves
/// every thread, those of the async runtime too.
#[derive(Debug)]
pub(crate) struct Store {
    connection: Mutex<Connection>,
}

/// `sent_in_sweep` is null while nobody has handed the message to the broker, or once it is known to have been refused.
const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS outbox (
        id            INTEGER PRIMARY KEY AUTOINCREMENT,
        topic         TEXT    NOT NULL,
        body          TEXT    NOT NULL,
        created       TEXT    NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
        dispatched    INTEGER NOT NULL DEFAULT 0,
        sent_in_sweep INTEGER
    );
    CREATE INDEX IF NOT EXISTS outbox_outstanding ON outbox (id) WHERE dispatched = 0;
    UPDATE outbox SET sent_in_sweep = NULL WHERE dispatched = 0;";

impl Store {
    /// Opens the outbox at `path`, which is made where it is missing. What an earlier process had sent without hearing a
    /// confirmation is outstanding again.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        let open = || -> rusqlite::Result<Connection> {
            let connection = Connection::open(path)?;
            connection.pragma_update(None, "journal_mode", "WAL")?;
            connection.execute_batch(SCHEMA)?;
            Ok(connection)
        };
        let connection = open().with_context(|| format!("cannot open the outbox {}", path.display()))?;
        Ok(Self {
            connection: Mutex::new(connection),
        })
    }

    /// Adds messages, all or none; a real application does it in the transaction that changes its own tables.
    pub(crate) fn deposit(&self, messages: &[(&str, String)]) -> anyhow::Result<Vec<Message>> {
        let mut connection = self.connection.lock();
        let transaction = connection.transaction()?;
        let mut deposited = Vec::with_capacity(messages.len());
        for (topic, body) in messages {
            let id = transaction
                .prepare_cached("INSERT INTO outbox (topic, body) VALUES (?1, ?2)")?
                .insert(params![topic, body])?;
            deposited.push(Message {
                id,
                topic: (*topic).to_owned(),
                body: body.clone(),
            });
        }
        transaction.commit()?;
        Ok(deposited)
    }

    /// Takes the oldest messages to publish in this sweep, at most `limit`, leaving out whole topics. They are marked as sent, so
    /// that the next sweeps leave them alone until they are confirmed, refused, or `patience` sweeps old.
    ///
    /// Topics are left out here rather than afterwards: else the backlog of a tripped one would fill the batch.
    pub(crate) fn take_outstanding(
        &self,
        without: &[String],
        sweep: u32,
        patience: u32,
        limit: u32,
    ) -> anyhow::Result<Vec<Message>> {
        let without = serde_json::to_string(without)?;
        let connection = self.connection.lock();
        let mut statement = connection.prepare_cached(
            "UPDATE outbox SET sent_in_sweep = ?2
             WHERE id IN (
                 SELECT id FROM outbox
                 WHERE dispatched = 0
                   AND (sent_in_sweep IS NULL OR sent_in_sweep + ?3 <= ?2)
                   AND topic NOT IN (SELECT value FROM json_each(?1))
                 ORDER BY id LIMIT ?4)
             RETURNING id, topic, body",
        )?;
        let rows = statement.query_map(params![without, sweep, patience, limit], message)?;
        let mut messages = rows.collect::<rusqlite::Result<Vec<_>>>()?;
        messages.sort_unstable_by_key(|message| message.id);
        Ok(messages)
    }

    /// Every message that is not dispatched, oldest first.
    pub(crate) fn undispatched(&self) -> anyhow::Result<Vec<Message>> {
        let connection = self.connection.lock();
        let mut statement = connection
            .prepare_cached("SELECT id, topic, body FROM outbox WHERE dispatched = 0 ORDER BY id")?;
        let rows = statement.query_map([], message)?;
        Ok(rows.collect::<rusqlite::Result<Vec<_>>>()?)
    }

    /// The broker keeps the message: it is done with.
    pub(crate) fn mark_dispatched(&self, id: i64) -> anyhow::Result<()> {
        let connection = self.connection.lock();
        connection
            .prepare_cached("UPDATE outbox SET dispatched = 1 WHERE id = ?1")?
            .execute([id])?;
        Ok(())
    }

    /// The broker does not have the messages: the next sweep that does not skip their topic takes them again.
    pub(crate) fn mark_refused(&self, ids: &[i64]) -> anyhow::Result<()> {
        let ids = serde_json::to_string(ids)?;
        let connection = self.connection.lock();
        connection
            .prepare_cached(
                "UPDATE outbox SET sent_in_sweep = NULL WHERE id IN (SELECT value FROM json_each(?1))",
            )?
            .execute([ids])?;
        Ok(())
    }
}

fn message(row: &Row<'_>) -> rusqlite::Result<Message> {
    Ok(Message {
        id: row.get(0)?,
        topic: row.get(1)?,
        body: row.get(2)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: u32 = 4;

    fn store_with(topics: &[&str]) -> Store {
        let store = Store::open(Path::new(":memory:")).unwrap();
        let messages: Vec<_> = topics
            .iter()
            .map(|topic| (*topic, format!("about {topic}")))
            .collect();
        store.deposit(&messages).unwrap();
        store
    }

    fn take(store: &Store, without: &[&str], sweep: u32) -> Vec<i64> {
        let without: Vec<String> = without.iter().map(|topic| (*topic).to_owned()).collect();
        store
            .take_outstanding(&without, sweep, PATIENCE, 100)
            .unwrap()
            .iter()
            .map(|message| message.id)
            .collect()
    }

    #[test]
    fn deposited_messages_are_taken_oldest_first_and_whole() {
        let store = store_with(&["orders", "audit"]);
        let taken = store.take_outstanding(&[], 1, PATIENCE, 100).unwrap();
        let expected = |id, topic: &str| Message {
            id,
            topic: topic.to_owned(),
            body: format!("about {topic}"),
        };
        assert_eq!(taken, [expected(1, "orders"), expected(2, "audit")]);
    }

    #[test]
    fn tripped_topics_are_left_out_whatever_their_names_hold() {
        let store = store_with(&["orders", "it's \"quoted\", once", "audit"]);
        assert_eq!(
            take(&store, &["orders", "it's \"quoted\", once", "unknown"], 1),
            [3]
        );
        assert_eq!(
            take(&store, &["Orders"], 2),
            [1, 2],
            "topics compare byte by byte"
        );
    }

    #[test]
    fn a_tripped_topic_does_not_fill_the_batch() {
        let store = store_with(&["orders", "orders", "orders", "audit"]);
        let taken = store
            .take_outstanding(&["orders".to_owned()], 1, PATIENCE, 2)
            .unwrap();
        assert_eq!(taken.iter().map(|message| message.id).collect::<Vec<_>>(), [4]);
        assert_eq!(
            store.take_outstanding(&[], 2, PATIENCE, 2).unwrap().len(),
            2,
            "the limit holds"
        );
    }

    #[test]
    fn a_message_on_its_way_is_taken_again_only_when_patience_has_run_out() {
        let store = store_with(&["orders"]);
        assert_eq!(take(&store, &[], 3), [1]);
        assert_eq!(take(&store, &[], 3 + PATIENCE - 1), [0; 0]);
        assert_eq!(take(&store, &[], 3 + PATIENCE), [1]);
    }

    #[test]
    fn refused_messages_are_taken_by_the_next_sweep_and_a_dispatched_one_never() {
        let store = store_with(&["orders", "orders", "orders"]);
        assert_eq!(take(&store, &[], 1), [1, 2, 3]);
        store.mark_refused(&[1, 3]).unwrap();
        store.mark_dispatched(2).unwrap();
        assert_eq!(take(&store, &[], 2), [1, 3]);
        assert_eq!(take(&store, &[], 100), [1, 3]);
        let left: Vec<_> = store
            .undispatched()
            .unwrap()
            .iter()
            .map(|message| message.id)
            .collect();
        assert_eq!(left, [1, 3]);
    }

    #[test]
    fn a_reopened_outbox_keeps_its_messages_and_takes_up_what_was_on_its_way() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("outbox.db");
        let store = Store::open(&path).unwrap();
        store
            .deposit(&[("orders", "first".to_owned()), ("orders", "second".to_owned())])
            .unwrap();
        assert_eq!(take(&store, &[], 50), [1, 2]);
        store.mark_dispatched(1).unwrap();
        drop(store);
        assert_eq!(take(&Store::open(&path).unwrap(), &[], 1), [2]);
    }

    #[test]
    fn a_file_that_is_no_database_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.txt");
        std::fs::write(&path, "not a database, but long enough to be looked at as one").unwrap();
        let error = format!("{:#}", Store::open(&path).unwrap_err());
        assert!(
            error.contains("notes.txt") && error.contains("not a database"),
            "{error}"
        );
    }
}
