//! The least that two durable transactions an action can be: one thread that commits together what waits, over two
//! tables.
//!
//! Open inserts the first half of a random key into an index and a row with the text of the arguments, and commits;
//! close updates that row with the answer, and commits. Nothing is looked up, sealed, chained or indexed besides.

use std::iter::once;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rusqlite::{Connection, Transaction, TransactionBehavior, params};
use tokio::sync::oneshot;

const QUEUE: usize = 1024;
const BATCH: usize = 256;
const BETWEEN_CHECKPOINTS: Duration = Duration::from_millis(100);

/// A bare store. Dropped, its threads end.
pub(crate) struct Bare {
    queue: Option<SyncSender<(Job, oneshot::Sender<i64>)>>,
    stop: Option<SyncSender<()>>,
    threads: Vec<JoinHandle<()>>,
}

enum Job {
    Open { key: [u8; 32], arguments: String },
    Close { id: i64, answer: String },
}

impl Bare {
    pub(crate) fn open(path: &Path) -> Self {
        let writing = connect(path);
        writing
            .execute_batch(
                "CREATE TABLE IF NOT EXISTS keys (half BLOB PRIMARY KEY NOT NULL, id INTEGER NOT NULL) STRICT, WITHOUT ROWID;
                 CREATE TABLE IF NOT EXISTS calls (id INTEGER PRIMARY KEY, key BLOB NOT NULL, arguments TEXT NOT NULL,
                    answer TEXT) STRICT;",
            )
            .unwrap();
        let checkpoints = connect(path);
        let (queue, waiting) = sync_channel(QUEUE);
        let (stop, stopped) = sync_channel::<()>(1);
        let threads = vec![
            thread::spawn(move || write(&writing, &waiting)),
            thread::spawn(move || {
                while stopped.recv_timeout(BETWEEN_CHECKPOINTS) == Err(RecvTimeoutError::Timeout) {
                    let _ = checkpoints.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
                }
            }),
        ];
        Self { queue: Some(queue), stop: Some(stop), threads }
    }

    /// Opens and closes an action of this key: two transactions.
    pub(crate) async fn run(&self, key: [u8; 32], arguments: &str, answer: &str) {
        let id = self.submit(Job::Open { key, arguments: arguments.to_owned() }).await;
        self.submit(Job::Close { id, answer: answer.to_owned() }).await;
    }

    async fn submit(&self, job: Job) -> i64 {
        let (tell, told) = oneshot::channel();
        assert!(self.queue.as_ref().unwrap().try_send((job, tell)).is_ok(), "the queue is long enough for all clients");
        told.await.unwrap()
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        (self.queue, self.stop) = (None, None);
        for thread in self.threads.drain(..) {
            thread.join().unwrap();
        }
    }
}

fn write(connection: &Connection, waiting: &Receiver<(Job, oneshot::Sender<i64>)>) {
    let mut answers = Vec::with_capacity(BATCH);
    while let Ok(first) = waiting.recv() {
        let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate).unwrap();
        for (job, tell) in once(first).chain(waiting.try_iter()).take(BATCH) {
            answers.push((tell, run(connection, &job)));
        }
        transaction.commit().unwrap();
        for (tell, id) in answers.drain(..) {
            let _ = tell.send(id);
        }
    }
}

fn run(connection: &Connection, job: &Job) -> i64 {
    let statement = |sql| connection.prepare_cached(sql).unwrap();
    match job {
        Job::Open { key, arguments } => {
            statement("INSERT INTO calls (key, arguments) VALUES (?1, ?2)").execute(params![key, arguments]).unwrap();
            let id = connection.last_insert_rowid();
            let half = key.split_at(16).0;
            statement("INSERT INTO keys (half, id) VALUES (?1, ?2)").execute(params![half, id]).unwrap();
            id
        }
        Job::Close { id, answer } => {
            statement("UPDATE calls SET answer = ?2 WHERE id = ?1").execute(params![id, answer]).unwrap();
            *id
        }
    }
}

fn connect(path: &Path) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection.busy_timeout(Duration::from_secs(5)).unwrap();
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(())).unwrap();
    connection.pragma_update(None, "synchronous", "FULL").unwrap();
    connection.pragma_update(None, "cache_size", -(64 << 10)).unwrap();
    connection.pragma_update(None, "wal_autocheckpoint", 64 << 10).unwrap();
    connection
}
