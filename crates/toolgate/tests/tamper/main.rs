//! A real record is edited in a thousand ways, one at a time, and each is named by its place.

#![cfg(feature = "sqlite")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::disallowed_methods,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    missing_docs,
    reason = "a test may panic"
)]

mod chance;
mod edits;
mod file;
mod log;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use toolgate::audit::checkpoint::{Checkpoint, PublicKey, SigningKey};
use toolgate::audit::verify::{Checkpoints, Report, Row, Verifier};
use toolgate::clock::Millis;
use toolgate::ledger::Store;

use chance::Chance;
use edits::{Edit, Found};
use log::Log;

/// What looks at an edited copy: the record's checkpoints, kept elsewhere.
struct Witness {
    lines: String,
    key: PublicKey,
    runtime: tokio::runtime::Runtime,
}

impl Witness {
    /// Keeps a checkpoint after every `every` entries, and of the last one.
    fn of(log: &Log, every: usize) -> Self {
        let key = SigningKey::in_file(&log.folder.path().join("checkpoints.key")).unwrap();
        let last = log.records.len();
        let signed = log
            .records
            .iter()
            .filter(|record| (record.seq as usize).is_multiple_of(every) || record.seq as usize == last);
        let line = |record: &toolgate::audit::Sealed| {
            let head = toolgate::audit::Head { seq: record.seq, hash: record.hash };
            format!("{}\n", Checkpoint::sign(&key, log.records[0].hash, head, Millis(record.seq)))
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        Self { lines: signed.map(line).collect(), key: key.public(), runtime }
    }

    fn verifier(&self) -> Verifier {
        Verifier::new().checkpoints(Some(Checkpoints::read(self.lines.as_bytes(), Some(self.key)).unwrap()))
    }

    /// What is found of a copy, or why it cannot be opened.
    fn look(&self, file: &Path) -> Result<Report, String> {
        self.runtime.block_on(async {
            let store = Store::sqlite_to_read(file).map_err(|error| error.to_string())?;
            store.examine(self.verifier()).await.map_err(|error| error.to_string())
        })
    }
}

#[test]
fn an_edit_of_any_row_is_named_by_its_place() {
    let log = Log::make();
    let witness = Witness::of(&log, 23);
    assert!(witness.look(&log.file).unwrap().holds(), "as it was written it holds");
    let mut chance = Chance::seeded(0x70_6f_6c_65);
    let (mut tried, mut missed) = (BTreeMap::<&str, usize>::new(), Vec::new());
    for round in 0..1100 {
        let edit = Edit::any(&mut chance, &log);
        let copy = log.copy();
        edit.make(&copy);
        let report = witness.look(copy.path());
        match Found::in_report(&report) {
            found if edit.expects(&found) => *tried.entry(edit.name()).or_default() += 1,
            found => missed.push(format!("round {round}: {edit:?}: {found:?}")),
        }
    }
    assert!(missed.is_empty(), "{} of 1100 missed:\n{}", missed.len(), missed.join("\n"));
    assert!(tried.len() >= Edit::NAMES.len() && tried.values().all(|count| *count >= 15), "{tried:?}");
}

#[test]
fn a_bit_that_flips_anywhere_in_the_file_changes_no_record_unseen() {
    let log = Log::make();
    let witness = Witness::of(&log, 23);
    let mut chance = Chance::seeded(7);
    let bytes = std::fs::read(&log.file).unwrap();
    let (mut seen, mut harmless) = (0, 0);
    for _ in 0..120 {
        let copy = log.copy();
        let (at, bit) = (chance.below(bytes.len()), chance.below(8));
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << bit;
        std::fs::write(copy.path(), &flipped).unwrap();
        if witness.look(copy.path()).is_ok_and(|report| report.holds()) {
            let still = file::records(copy.path());
            assert_eq!(still.as_ref(), Ok(&log.records), "byte {at}, bit {bit}: what it holds is not what was written");
            harmless += 1;
        } else {
            seen += 1;
        }
    }
    assert!(seen > 40, "most of the file is the record: {seen} were seen, {harmless} changed none of it");
}

#[test]
fn an_export_is_verified_like_the_store_it_came_from() {
    let log = Log::make();
    let witness = Witness::of(&log, 23);
    let lines: Vec<String> = log.records.iter().map(toolgate::audit::Sealed::line).collect();
    let look = |lines: &[String], partial: bool| {
        let mut verifier = witness.verifier().partial(partial);
        let rows = lines.iter().enumerate().map(|(at, line)| Row::parse(line.as_bytes(), at as u64 + 1));
        rows.for_each(|row| verifier.row(&row));
        verifier.end()
    };
    assert_eq!(look(&lines, false), witness.look(&log.file).unwrap());
    let mut chance = Chance::seeded(99);
    for _ in 0..50 {
        let (at, bit) = (chance.below(lines.len()), chance.below(7));
        let mut edited = lines.clone();
        let mut bytes = std::mem::take(&mut edited[at]).into_bytes();
        let byte = chance.below(bytes.len());
        bytes[byte] ^= 1 << bit;
        let Ok(line) = String::from_utf8(bytes) else { continue };
        edited[at] = line;
        let found = look(&edited, false);
        assert!(!found.holds(), "line {}, byte {byte}, bit {bit}: {}", at + 1, edited[at]);
    }
    let some: Vec<String> = lines.iter().step_by(3).cloned().collect();
    assert!(look(&some, true).holds() && !look(&some, false).holds());
}

#[test]
fn the_log_has_all_that_a_gate_records_by_itself() {
    let log = Log::make();
    let kinds: BTreeSet<String> = log.records.iter().map(log::kind).collect();
    for kind in
        ["intent", "outcome", "read", "refusal", "replay", "dry_run", "proposal", "decision", "lost", "reconciled"]
    {
        assert!(kinds.contains(kind), "{kind}: {kinds:?}");
    }
    assert!(log.records.len() >= 200, "{}", log.records.len());
}
