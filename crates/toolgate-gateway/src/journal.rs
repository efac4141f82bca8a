//! Lines beside the answer that nobody waits for: a stderr that is not read must never hold up a call.

use std::io::Write;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::Value;
use toolgate::schema::inert;

/// Where lines for a person go. It never blocks.
pub(crate) type Say = Arc<dyn Fn(&str) + Send + Sync>;

enum Entry {
    Line(String),
    /// Tells once everything before it was written.
    Mark(SyncSender<()>),
}

/// Lines that wait to be written; more are dropped.
const MOST_LINES: usize = 1024;
const LAST_LINES: Duration = Duration::from_millis(200);

static JOURNAL: OnceLock<SyncSender<Entry>> = OnceLock::new();

/// Where lines go that come from other programs or at any time.
pub(crate) fn journal() -> Say {
    let sender = entries().clone();
    // A full queue means that stderr is not read: then nobody would see the line.
    Arc::new(move |line| drop(sender.try_send(Entry::Line(line.to_owned()))))
}

/// Waits a little until what was said is written, before the process ends.
pub(crate) fn flush() {
    let Some(sender) = JOURNAL.get() else { return };
    let (mark, marked) = sync_channel(1);
    if sender.try_send(Entry::Mark(mark)).is_ok() {
        let _ = marked.recv_timeout(LAST_LINES);
    }
}

fn entries() -> &'static SyncSender<Entry> {
    JOURNAL.get_or_init(|| {
        let (sender, receiver) = sync_channel(MOST_LINES);
        std::thread::spawn(move || write(&receiver));
        sender
    })
}

fn write(entries: &Receiver<Entry>) {
    while let Ok(entry) = entries.recv() {
        match entry {
            // There is nowhere left to say that stderr is gone.
            Entry::Line(line) => drop(writeln!(std::io::stderr(), "{}", visible(&line))),
            Entry::Mark(mark) => drop(mark.send(())),
        }
    }
}

/// The text without what could move the cursor, hide or reorder it.
pub(crate) fn visible(text: &str) -> String {
    match inert(Value::from(text)) {
        Value::String(text) => text,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => String::new(),
    }
}
