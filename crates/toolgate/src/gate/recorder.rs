//! Records that no transaction of the ledger carries: reads and refusals, in batches. A full buffer slows calls rather
//! than losing a record, and once a batch cannot be written the gate takes no more calls.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use crate::audit::Record;
use crate::fault::Fault;
use crate::ledger::{Store, StoreError};

/// Writes records in batches.
pub(super) struct Recorder {
    store: Store,
    queue: OnceLock<mpsc::Sender<Item>>,
    /// INVARIANT (loud): set once a record was lost; from then on every call is a fault.
    broken: Arc<OnceLock<StoreError>>,
}

enum Item {
    Record(Record),
    Flush(oneshot::Sender<()>),
}

const BUFFER: usize = 1024;
const BATCH: usize = 256;
const TRIES: u32 = 50;
/// How long a record waits for others: a commit a record would cost more than the reads that they are of.
const COMPANY: Duration = Duration::from_millis(5);
const PAUSE: Duration = Duration::from_millis(100);

impl Recorder {
    pub(super) fn new(store: Store) -> Self {
        Self { store, queue: OnceLock::new(), broken: Arc::default() }
    }

    pub(super) async fn put(&self, record: Record) {
        if self.queue().send(Item::Record(record)).await.is_err() {
            self.lost();
        }
    }

    /// Waits until every record that was put is durable.
    pub(super) async fn flush(&self) -> Result<(), Fault> {
        if let Some(queue) = self.queue.get() {
            let (done, flushed) = oneshot::channel();
            if queue.send(Item::Flush(done)).await.is_err() || flushed.await.is_err() {
                self.lost();
            }
        }
        self.ready()
    }

    pub(super) fn ready(&self) -> Result<(), Fault> {
        match self.broken.get() {
            Some(error) => Err(Fault::Record(error.clone())),
            None => Ok(()),
        }
    }

    /// The writer lives on the runtime of the first call; where that has ended, nobody writes any more.
    fn lost(&self) {
        let error = StoreError::Broken("the runtime on which records are written has ended".into());
        let _ = self.broken.set(error);
    }

    fn queue(&self) -> &mpsc::Sender<Item> {
        self.queue.get_or_init(|| {
            let (sender, receiver) = mpsc::channel(BUFFER);
            tokio::spawn(write(self.store.clone(), receiver, Arc::clone(&self.broken)));
            sender
        })
    }
}

async fn write(store: Store, mut queue: mpsc::Receiver<Item>, broken: Arc<OnceLock<StoreError>>) {
    let mut items = Vec::with_capacity(BATCH);
    while queue.recv_many(&mut items, BATCH).await > 0 {
        gather(&mut queue, &mut items).await;
        let mut records = Vec::with_capacity(items.len());
        let mut waiting = Vec::new();
        for item in items.drain(..) {
            match item {
                Item::Record(record) => records.push(record),
                Item::Flush(done) => waiting.push(done),
            }
        }
        if let Err(error) = append(&store, records).await {
            let _ = broken.set(error);
        }
        for done in waiting {
            let _ = done.send(());
        }
    }
}

/// Takes what comes within a moment, unless somebody waits for it.
async fn gather(queue: &mut mpsc::Receiver<Item>, items: &mut Vec<Item>) {
    let until = Instant::now() + COMPANY;
    let awaited = |items: &[Item]| items.iter().any(|item| matches!(item, Item::Flush(_)));
    while items.len() < BATCH && !awaited(items) {
        let before = items.len();
        match timeout_at(until, queue.recv_many(items, BATCH - before)).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    }
}

/// A store that fails is asked again for a while: a lock or a full disk may pass.
async fn append(store: &Store, records: Vec<Record>) -> Result<(), StoreError> {
    if records.is_empty() {
        return Ok(());
    }
    let records: Arc<[Record]> = records.into();
    let mut tries = 0;
    loop {
        match store.append(Arc::clone(&records)).await {
            Err(_) if tries < TRIES => {
                tries += 1;
                tokio::time::sleep(PAUSE).await;
            }
            ended => return ended,
        }
    }
}
