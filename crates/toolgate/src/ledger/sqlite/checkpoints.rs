//! Copying the log back into the file, so that no commit has to wait for that.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;

use super::super::rows::Stored;
use super::PATIENCE;
use super::worker::{join, start};

/// After about this many written jobs the log is worth copying back.
const JOBS: usize = 256;

/// A log of more pages than this is written from its beginning again: while others write it is never copied to its end.
const PAGES: i64 = 16 << 10;

/// How long the writer may have to wait for that. Who reads an old moment holds it up, and it is tried again.
const WAIT: Duration = Duration::from_millis(100);

/// How long to wait before what was erased is tried to be cut from the log again.
const AGAIN: Duration = Duration::from_secs(1);

/// A thread that makes checkpoints, and when they are due. Dropped, it ends.
pub(super) struct Checkpoints {
    /// `None` only while it is dropped.
    nudges: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
    /// Jobs written since the last nudge.
    written: Cell<usize>,
    /// Whether the log holds what was erased.
    stained: Arc<AtomicBool>,
}

/// How far a checkpoint goes.
#[derive(Clone, Copy)]
enum Extent {
    /// As far as nobody has to wait.
    Passive,
    /// To the end, so that the log begins anew.
    Restart,
    /// To the end, and nothing of the log is left.
    Truncate,
}

/// What a checkpoint did.
pub(super) struct Made {
    /// The length of the log.
    pages: i64,
    /// Whether it went as far as was asked.
    whole: bool,
}

impl Checkpoints {
    pub(super) fn new(connection: Connection, stained: Arc<AtomicBool>) -> Stored<Self> {
        connection.busy_timeout(WAIT)?;
        let (nudges, nudged) = sync_channel(1);
        let flag = Arc::clone(&stained);
        let thread = start("ledger-checkpoints", move || run(&connection, &nudged, &flag))?;
        Ok(Self { nudges: Some(nudges), thread: Some(thread), written: Cell::new(0), stained })
    }

    /// Counts what was written; now and then a checkpoint is due.
    pub(super) fn count(&self, jobs: usize) {
        let written = self.written.get() + jobs;
        if written < JOBS {
            self.written.set(written);
        } else {
            self.written.set(0);
            self.nudge();
        }
    }

    /// Cuts the log, which still holds what was just erased, before anybody is told that it was. Where somebody reads an old moment of it for long it is
    /// left to the thread, which goes on trying.
    pub(super) fn leave_no_trace(&self, writing: &Connection) {
        if !cut(writing).is_ok_and(|made| made.whole) {
            self.stained.store(true, Ordering::SeqCst);
            self.nudge();
        }
    }

    /// Asks for a checkpoint; one that is already asked for will do.
    fn nudge(&self) {
        if let Some(nudges) = &self.nudges {
            let _ = nudges.try_send(());
        }
    }
}

impl Drop for Checkpoints {
    fn drop(&mut self) {
        self.nudges = None;
        join(self.thread.take());
    }
}

/// One that fails is made up for by the next, or by the writer when the log has grown too long.
fn run(connection: &Connection, nudges: &Receiver<()>, stained: &AtomicBool) {
    loop {
        let nudged = if stained.load(Ordering::SeqCst) {
            nudges.recv_timeout(AGAIN)
        } else {
            nudges.recv().map_err(|_| RecvTimeoutError::Disconnected)
        };
        let ended = nudged == Err(RecvTimeoutError::Disconnected);
        if stained.load(Ordering::SeqCst) {
            if checkpoint(connection, Extent::Truncate).is_ok_and(|made| made.whole) {
                stained.store(false, Ordering::SeqCst);
            }
        } else if !ended && checkpoint(connection, Extent::Passive).is_ok_and(|made| made.pages > PAGES) {
            let _ = checkpoint(connection, Extent::Restart);
        }
        if ended {
            return;
        }
    }
}

/// Copies the log to its end and leaves nothing of it, if that can be done at once.
pub(super) fn cut(writing: &Connection) -> rusqlite::Result<Made> {
    writing.busy_timeout(WAIT)?;
    let made = checkpoint(writing, Extent::Truncate);
    writing.busy_timeout(PATIENCE)?;
    made
}

fn checkpoint(connection: &Connection, extent: Extent) -> rusqlite::Result<Made> {
    let sql = match extent {
        Extent::Passive => "PRAGMA wal_checkpoint(PASSIVE)",
        Extent::Restart => "PRAGMA wal_checkpoint(RESTART)",
        Extent::Truncate => "PRAGMA wal_checkpoint(TRUNCATE)",
    };
    connection.query_row(sql, [], |row| Ok(Made { whole: !row.get::<_, bool>(0)?, pages: row.get(1)? }))
}
