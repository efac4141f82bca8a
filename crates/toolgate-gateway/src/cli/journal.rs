//! What is told beside the answer while nobody waits for it: a stderr that is not read must never hold up a call.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use toolgate::Gate;

use super::{Failure, Output};

/// What is told.
#[derive(Debug)]
pub(crate) enum Said {
    /// What somebody may want to know.
    Note(String),
    /// What is done, and what of it is not as it should be.
    Warning(String),
    /// What was not done. Whoever says it goes on.
    Failure(Failure),
}

/// Where it goes. It never blocks.
pub(crate) type Say = Arc<dyn Fn(Said) + Send + Sync>;

enum Entry {
    Said(Said),
    /// Tells once everything before it was written.
    Mark(SyncSender<()>),
}

/// Entries that wait to be written; more are dropped.
const MOST_ENTRIES: usize = 1024;
const LAST_ENTRIES: Duration = Duration::from_millis(200);

static JOURNAL: OnceLock<SyncSender<Entry>> = OnceLock::new();

/// Where everything goes that comes from other programs or at any time.
pub(crate) fn journal() -> Say {
    let sender = entries().clone();
    // A full queue means that stderr is not read: then nobody would see it.
    Arc::new(move |said| drop(sender.try_send(Entry::Said(said))))
}

/// Looks after the ledger of a gate that stands for a while, and tells when that fails.
pub(super) fn keep(gate: &Gate) {
    let say = journal();
    gate.keep(move |error| say(Said::Warning(format!("the ledger could not be looked after: {error}"))));
}

/// Waits a little until what was said is written, before the process ends.
pub(crate) fn flush() {
    let Some(sender) = JOURNAL.get() else { return };
    let (mark, marked) = sync_channel(1);
    if sender.try_send(Entry::Mark(mark)).is_ok() {
        let _ = marked.recv_timeout(LAST_ENTRIES);
    }
}

fn entries() -> &'static SyncSender<Entry> {
    JOURNAL.get_or_init(|| {
        let (sender, receiver) = sync_channel(MOST_ENTRIES);
        std::thread::spawn(move || write(&receiver));
        sender
    })
}

fn write(entries: &Receiver<Entry>) {
    let mut output = Output::new();
    while let Ok(entry) = entries.recv() {
        match entry {
            Entry::Said(Said::Note(text)) => output.note(&text),
            Entry::Said(Said::Warning(text)) => output.warning(&text),
            Entry::Said(Said::Failure(failure)) => {
                output.error(&failure);
            }
            Entry::Mark(mark) => drop(mark.send(())),
        }
    }
}

#[cfg(test)]
impl Said {
    /// The text without the word before it.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Note(text) | Self::Warning(text) => text,
            Self::Failure(failure) => failure.message(),
        }
    }
}
