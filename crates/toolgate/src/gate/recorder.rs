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

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::disallowed_methods,
    reason = "a test may panic"
)]
mod tests {
    use std::sync::mpsc as channel;
    use std::thread;

    use serde_json::{Map, Value, json};

    use super::*;
    use crate::approval::{Approval, ApprovalState};
    use crate::audit::Kind;
    use crate::call::Ref;
    use crate::clock::Millis;
    use crate::json::Digest;
    use crate::session::Principal;

    fn record(number: usize) -> Record {
        Record::new(Kind::Read, Millis(1), Ref::fresh(), Map::from_iter([("n".to_owned(), json!(number))]))
    }

    /// Keeps the store in one transaction until the sender says that it may end.
    fn hold(store: &Store) -> (channel::Sender<()>, thread::JoinHandle<()>) {
        let approval = Approval {
            id: "apr_1".into(),
            tool: "tool".into(),
            requester: Principal::new("local", "alice"),
            tenant: "acme".into(),
            preview: String::new(),
            arguments: Value::Null,
            leniencies: Vec::new(),
            call_digest: Digest::of(b""),
            slice: Digest::of(b""),
            reasons: Vec::new(),
            state: ApprovalState::Pending,
            created_at: Millis(0),
            expires_at: Millis(10),
        };
        let (begun, begins) = channel::channel();
        let (end, ends) = channel::channel::<()>();
        let store = store.clone();
        let held = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let waits = move |_: &Approval| {
                begun.send(()).unwrap();
                let _ = ends.recv();
                record(0)
            };
            runtime.block_on(store.propose(approval, 1, Box::new(waits), Millis(1))).unwrap();
        });
        begins.recv().unwrap();
        (end, held)
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_slow_store_makes_the_next_record_wait_and_none_is_lost() {
        let store = Store::memory();
        let recorder = Arc::new(Recorder::new(store.clone()));
        let (end, held) = hold(&store);
        let mut put = 0;
        let waiting = loop {
            let (recorder, number) = (Arc::clone(&recorder), put);
            let mut task = tokio::spawn(async move { recorder.put(record(number)).await });
            put += 1;
            if timeout_at(Instant::now() + Duration::from_millis(300), &mut task).await.is_err() {
                break task;
            }
            assert!(put <= BUFFER + BATCH, "more than the buffer holds was taken");
        };
        assert!(put > BUFFER, "the buffer takes what it has room for: {put}");
        assert!(!waiting.is_finished() && recorder.ready().is_ok());

        end.send(()).unwrap();
        waiting.await.unwrap();
        held.join().unwrap();
        recorder.flush().await.unwrap();
        let records = store.tail(usize::MAX).await.unwrap();
        let mut numbers: Vec<u64> =
            records.iter().filter(|sealed| sealed.body.contains("\"kind\":\"read\"")).map(number).collect();
        numbers.sort_unstable();
        // What keeps the store leaves a record as well.
        numbers.remove(0);
        assert_eq!(numbers, (0..put as u64).collect::<Vec<_>>());
        assert!(store.verify(None).await.unwrap().is_ok());
    }

    fn number(sealed: &crate::audit::Sealed) -> u64 {
        let body: Value = serde_json::from_str(&sealed.body).unwrap();
        body["n"].as_u64().unwrap()
    }

    #[tokio::test]
    async fn a_record_that_cannot_be_written_any_more_stops_the_gate() {
        let recorder = Arc::new(Recorder::new(Store::memory()));
        let other = Arc::clone(&recorder);
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            runtime.block_on(other.put(record(1)));
        })
        .join()
        .unwrap();
        recorder.put(record(2)).await;
        assert!(matches!(recorder.ready(), Err(Fault::Record(_))));
    }
}
