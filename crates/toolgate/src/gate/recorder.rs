//! Records that no transaction of the ledger carries: reads and refusals, in batches. A full buffer slows calls rather
//! than losing a record; a store that fails is asked until it takes them, and meanwhile the gate takes no calls.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::audit::Record;
use crate::fault::Fault;
use crate::ledger::{Store, StoreError};

/// Writes records in batches.
pub(super) struct Recorder {
    store: Store,
    queue: OnceLock<mpsc::Sender<Item>>,
    trouble: Arc<Trouble>,
}

/// Why records cannot be written.
#[derive(Default)]
struct Trouble {
    known: Mutex<Known>,
    /// Cancelled once nobody waits for the store any longer than a while.
    finishing: CancellationToken,
}

#[derive(Default)]
struct Known {
    /// INVARIANT (loud): while records wait for a store that fails, every call is a fault.
    failing: Option<StoreError>,
    /// The writer lives on the runtime of the first call; where that has ended, nobody writes any more.
    ended: Option<StoreError>,
    /// How many records were given up.
    lost: usize,
}

enum Item {
    Record(Record),
    Flush(oneshot::Sender<()>),
}

const BUFFER: usize = 1024;
const BATCH: usize = 256;
/// How long a record waits for others: a commit a record would cost more than the reads that they are of.
const COMPANY: Duration = Duration::from_millis(5);
const PAUSE: Duration = Duration::from_millis(100);
/// How long the store may fail before the calls hear of it: a lock may pass.
const QUIET: Duration = Duration::from_millis(500);
/// How long a gate that is to end waits for a store that fails.
const PATIENCE: Duration = Duration::from_millis(if cfg!(test) { 300 } else { 5000 });

impl Recorder {
    pub(super) fn new(store: Store) -> Self {
        Self { store, queue: OnceLock::new(), trouble: Arc::default() }
    }

    pub(super) async fn put(&self, record: Record) {
        if self.queue().send(Item::Record(record)).await.is_err() {
            self.trouble.ended(1);
        }
    }

    /// Puts a record for which the store has failed already: until it is written, every call is a fault.
    pub(super) async fn put_loudly(&self, record: Record, error: StoreError) {
        self.trouble.known().failing = Some(error);
        self.put(record).await;
    }

    /// Waits until every record that was put is durable. A store that fails is not waited for without end: what it does
    /// not take by then is lost, and the fault says how much that is.
    pub(super) async fn finish(&self) -> Result<(), Fault> {
        self.finishing();
        if let Some(queue) = self.queue.get() {
            let (done, flushed) = oneshot::channel();
            if queue.send(Item::Flush(done)).await.is_err() || flushed.await.is_err() {
                self.trouble.ended(0);
            }
        }
        self.ready()
    }

    /// From now on a store that fails is given up after a while, so that nobody who ends waits for it for ever.
    pub(super) fn finishing(&self) {
        self.trouble.finishing.cancel();
    }

    pub(super) fn ready(&self) -> Result<(), Fault> {
        let known = self.trouble.known();
        match (&known.failing, &known.ended, known.lost) {
            (None, None, 0) => Ok(()),
            (Some(error), _, 0) | (None, Some(error), 0) => Err(Fault::Record(error.clone())),
            (failing, ended, lost) => {
                let why = failing.as_ref().or(ended.as_ref()).map_or_else(String::new, |error| format!(": {error}"));
                Err(Fault::Record(StoreError::Broken(format!("{lost} records of calls that ended are lost{why}"))))
            }
        }
    }

    fn queue(&self) -> &mpsc::Sender<Item> {
        self.queue.get_or_init(|| {
            let (sender, receiver) = mpsc::channel(BUFFER);
            let writer = Writer { store: self.store.clone(), trouble: Arc::clone(&self.trouble), failing: None };
            tokio::spawn(writer.run(receiver));
            sender
        })
    }
}

impl Trouble {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ended(&self, lost: usize) {
        let mut known = self.known();
        known.ended = Some(StoreError::Broken("the runtime on which records are written has ended".into()));
        known.lost += lost;
    }
}

/// Takes records from the queue and gives them to the store.
struct Writer {
    store: Store,
    trouble: Arc<Trouble>,
    /// Since when the store fails.
    failing: Option<Instant>,
}

impl Writer {
    async fn run(mut self, mut queue: mpsc::Receiver<Item>) {
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
            if !records.is_empty() {
                self.append(records.into(), &queue).await;
            }
            for done in waiting {
                let _ = done.send(());
            }
        }
    }

    /// INVARIANT (nothing lost): the store is asked until it takes the records, unless the gate ends.
    async fn append(&mut self, records: Arc<[Record]>, queue: &mpsc::Receiver<Item>) {
        let mut given_up_at = None;
        loop {
            let Err(error) = self.store.append(Arc::clone(&records)).await else {
                self.failing = None;
                self.trouble.known().failing = None;
                return;
            };
            let now = Instant::now();
            let since = *self.failing.get_or_insert(now);
            if now >= since + QUIET {
                self.trouble.known().failing = Some(error.clone());
            }
            // A gate that was dropped has nobody left who would finish it.
            let finishing = self.trouble.finishing.is_cancelled() || queue.is_closed();
            if finishing && now >= *given_up_at.get_or_insert_with(|| self.patient_until(now)) {
                let mut known = self.trouble.known();
                known.failing = Some(error);
                known.lost += records.len();
                return;
            }
            sleep(PAUSE).await;
        }
    }

    /// What was given up once is not waited for again with each batch.
    fn patient_until(&self, now: Instant) -> Instant {
        if self.trouble.known().lost > 0 { now } else { now + PATIENCE }
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
    use crate::approval::{Approval, ApprovalState, Asked};
    use crate::audit::Kind;
    use crate::call::Ref;
    use crate::clock::Millis;
    use crate::json::Digest;
    use crate::ledger::Asking;
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
            worded: true,
            arguments: Value::Null,
            leniencies: Vec::new(),
            call_digest: Digest::of(b""),
            told_digest: None,
            slice: Digest::of(b""),
            reasons: Vec::new(),
            state: ApprovalState::Pending,
            created_at: Millis(0),
            expires_at: Millis(10),
            asked: Asked::default(),
            edited: None,
            instead: None,
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
            runtime
                .block_on(store.propose(
                    approval,
                    Asking { most_of_user: 1, most_of_tenant: 9, tell: false },
                    Box::new(waits),
                    Millis(1),
                ))
                .unwrap();
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
        recorder.finish().await.unwrap();
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

    #[cfg(feature = "sqlite")]
    mod failing {
        use super::*;

        /// Too long for what is left of a page.
        fn long(number: usize) -> Record {
            let text = "x".repeat(20_000);
            Record::new(Kind::Read, Millis(1), Ref::fresh(), Map::from_iter([("n".to_owned(), json!([number, text]))]))
        }

        async fn fails(recorder: &Recorder) {
            let until = Instant::now() + Duration::from_secs(10);
            while recorder.ready().is_ok() {
                assert!(Instant::now() < until, "nobody heard that the store fails");
                sleep(Duration::from_millis(10)).await;
            }
        }

        #[tokio::test]
        async fn a_store_that_failed_for_a_while_has_every_record_and_the_gate_takes_calls_again() {
            let folder = tempfile::tempdir().unwrap();
            let store = Store::sqlite(folder.path().join("gate.db")).unwrap();
            let recorder = Recorder::new(store.clone());
            store.fill_disk(true).await;
            for number in 0..3 {
                recorder.put(long(number)).await;
            }
            fails(&recorder).await;
            let Err(Fault::Record(StoreError::Broken(why))) = recorder.ready() else { panic!("it is no fault") };
            assert!(why.contains("full"), "{why}");
            recorder.put(long(3)).await;

            store.fill_disk(false).await;
            let until = Instant::now() + Duration::from_secs(10);
            while recorder.ready().is_err() {
                assert!(Instant::now() < until, "the gate does not come back");
                sleep(Duration::from_millis(10)).await;
            }
            recorder.finish().await.unwrap();
            assert_eq!(store.head().await.unwrap().seq, 4);
        }

        #[tokio::test]
        async fn a_gate_that_ends_while_the_store_fails_says_how_many_records_are_lost() {
            let folder = tempfile::tempdir().unwrap();
            let store = Store::sqlite(folder.path().join("gate.db")).unwrap();
            let recorder = Recorder::new(store.clone());
            store.fill_disk(true).await;
            for number in 0..3 {
                recorder.put(long(number)).await;
            }
            let Err(Fault::Record(StoreError::Broken(why))) = recorder.finish().await else { panic!("it is no fault") };
            assert!(why.starts_with("3 records of calls that ended are lost: ") && why.contains("full"), "{why}");
        }

        #[tokio::test]
        async fn a_gate_that_was_dropped_while_the_store_fails_lets_go_of_it() {
            let folder = tempfile::tempdir().unwrap();
            let store = Store::sqlite(folder.path().join("gate.db")).unwrap();
            let recorder = Recorder::new(store.clone());
            store.fill_disk(true).await;
            recorder.put(long(0)).await;
            let trouble = Arc::downgrade(&recorder.trouble);
            drop(recorder);
            let until = Instant::now() + Duration::from_secs(10);
            while trouble.strong_count() > 0 {
                assert!(Instant::now() < until, "the writer lives on");
                sleep(Duration::from_millis(10)).await;
            }
        }
    }
}
