//! `toolgate audit verify`: whether the record holds, by itself and against what was kept elsewhere.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use toolgate::audit::checkpoint::{PublicKey, SigningKey};
use toolgate::audit::verify::{Checkpoints, Compared, Report, Row, Verifier};
use toolgate::json::Digest;

use crate::cli::color::Style;
use crate::cli::failure::FailureCode;
use crate::cli::patience::patiently;
use crate::cli::{Exit, Failure, Output, open_store, told};
use crate::config::{self, To};
use crate::shown::with;

/// Tell whether the record holds, and where not
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  toolgate audit shop verify\n  \
                  toolgate audit shop verify --checkpoints kept.jsonl --public-key HEX",
    after_long_help = "It reads alone, needs no key of the gate, and works on a copy. Where [audit.checkpoints] names a \
                       file, the record is held against that file if no other is named."
)]
pub(super) struct Verify {
    /// A head that was kept elsewhere: the record must still hold it, so that a cut at the end shows
    #[arg(long, value_name = "HASH")]
    head: Option<Digest>,
    /// Checkpoints that were kept elsewhere: the record must agree with each
    #[arg(long, value_name = "FILE")]
    checkpoints: Option<PathBuf>,
    /// The key that signed them, as `toolgate audit key` printed it
    #[arg(long, value_name = "HEX")]
    public_key: Option<PublicKey>,
    /// Lines of `toolgate audit export`, in place of the store
    #[arg(long, value_name = "FILE")]
    export: Option<PathBuf>,
    /// The export was filtered: records may be missing, and each that is there must fit its own hash
    #[arg(long, requires = "export")]
    filtered: bool,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

/// What is wrong, in the words of the answer.
struct Wrong {
    what: &'static str,
    record: Option<u64>,
    line: Option<u64>,
    text: String,
}

/// Why there are no checkpoints to hold the record against.
enum Absent {
    /// The folder says that they are in this file, and it is not there.
    Gone(PathBuf),
    /// The folder sends them to an address.
    Sent,
    /// Nobody keeps any.
    Unkept,
}

/// The longest line of an export: a record holds arguments and facts, which are bounded.
const LONGEST_LINE: u64 = 256 << 20;

impl Verify {
    pub(super) fn is_of_an_export(&self) -> bool {
        self.export.is_some()
    }

    pub(super) async fn run(self, dir: &Path, output: &mut Output) -> Result<Exit, Failure> {
        let (checkpoints, absent) = match self.kept(dir, output)? {
            Ok(checkpoints) => (Some(checkpoints), None),
            Err(absent) => (None, Some(absent)),
        };
        let verifier = Verifier::new().kept(self.head).checkpoints(checkpoints).partial(self.filtered);
        let report = match &self.export {
            Some(file) => examine(file, verifier).map_err(|error| unreadable(file, &error))?,
            None => {
                let store = open_store(dir, output)?;
                patiently("following the chain", store.examine(verifier), output).await?
            }
        };
        let unseen = self.unseen(&report, absent.as_ref());
        let mut wrong = wrong(&report);
        if let Some(Absent::Gone(file)) = absent
            && report.head.seq > 0
        {
            wrong.push(gone(&file));
        }
        if self.json {
            output.json(&answer(&report, &wrong, &unseen));
        }
        match wrong.split_first() {
            Some(_) if self.json => Ok(Exit::Refused),
            Some((first, others)) => {
                others.iter().for_each(|wrong| output.warning(&wrong.text));
                Err(Failure::new(FailureCode::RecordBroken, format!("the record does not hold: {}", first.text)))
            }
            None if self.json => Ok(Exit::Ok),
            None => {
                self.tell(&report, &unseen, dir, output);
                Ok(Exit::Ok)
            }
        }
    }

    /// The checkpoints that were named, or else those of the folder.
    fn kept(&self, dir: &Path, output: &mut Output) -> Result<Result<Checkpoints, Absent>, Failure> {
        let own = match config::checkpoints(dir) {
            Ok(own) => own,
            // An export needs no folder.
            Err(_) if self.export.is_some() => None,
            Err(error) => return Err(told(error, dir, output)),
        };
        let file = match (&self.checkpoints, own.as_ref().map(|own| &own.to)) {
            (Some(file), _) => file.clone(),
            (None, Some(To::File(file))) if file.exists() => file.clone(),
            (None, Some(To::File(file))) => return Ok(Err(Absent::Gone(file.clone()))),
            (None, Some(To::Url(_))) => return Ok(Err(Absent::Sent)),
            (None, None) => return Ok(Err(Absent::Unkept)),
        };
        // Of a folder whose key is at hand it is known which one it is; verification makes none.
        let key_file = own.map(|own| own.key).filter(|file| file.exists());
        let known = || SigningKey::in_file(&key_file?).ok().map(|key| key.public());
        let expected = self.public_key.or_else(known);
        let lines = File::open(&file).and_then(|opened| Checkpoints::read(BufReader::new(opened), expected));
        lines.map(Ok).map_err(|error| unreadable(&file, &error))
    }

    /// What this verification cannot show.
    fn unseen(&self, report: &Report, absent: Option<&Absent>) -> Vec<String> {
        let mut unseen = Vec::new();
        let end = report.head.seq;
        if self.filtered && report.unvouched > 0 {
            unseen.push(format!(
                "whether {} of the {} records are as they were written: whoever made them anew made their hashes too, and \
                 no checkpoint is of them, or of a record that follows them without a gap",
                report.unvouched, report.seen
            ));
        }
        match report.checkpoints.as_ref().and_then(|compared| compared.last) {
            Some((last, at)) if self.filtered => {
                unseen.push(format!(
                    "records that a filter left out; the last checkpoint is of entry {}, {at}",
                    last.seq
                ));
            }
            Some((last, at)) => unseen.push(format!(
                "records that were cut off, or added, behind entry {}, of which the last checkpoint is ({at})",
                last.seq
            )),
            None if self.head.is_some() => {
                unseen.push("records that were cut off behind the head that was kept".into())
            }
            None if absent.is_some() => unseen.push(format!(
                "records that were cut off behind entry {end}, or a record that was made anew as a whole: nothing that \
                 was kept elsewhere was named"
            )),
            None => {}
        }
        if let Some(Absent::Sent) = absent {
            unseen.push(
                "whether the checkpoints agree: this folder sends them to an address; fetch their lines from there, and \
                 name them with --checkpoints FILE"
                    .into(),
            );
        }
        if report.checkpoints.as_ref().is_some_and(|compared| compared.key.is_some() && !compared.key_was_expected) {
            unseen.push("checkpoints of another signer: no --public-key was named, so the file is believed".into());
        }
        unseen
    }

    fn tell(&self, report: &Report, unseen: &[String], dir: &Path, output: &mut Output) {
        let head = report.head;
        let held = match self.filtered {
            true => format!(
                "{} records that are there fit their hashes, and {} of them what was kept elsewhere; the last is {}, head {}",
                report.seen,
                report.seen.saturating_sub(report.unvouched),
                head.seq,
                head.hash
            ),
            false if head.seq == 1 => format!("1 record, head {}", head.hash),
            false => format!("{} records, head {}", head.seq, head.hash),
        };
        output.labelled(Style::Good, "ok", &held);
        if let Some(Compared { agreed, key: Some(key), last: Some((last, at)), .. }) = &report.checkpoints {
            let agree = if *agreed == 1 { "checkpoint agrees" } else { "checkpoints agree" };
            output.line(&format!("{agreed} {agree}, the last of record {} at {at}, key {key}", last.seq));
        }
        unseen.iter().for_each(|text| output.note(&format!("not seen: {text}")));
        if report.checkpoints.is_none() && self.head.is_none() {
            output.note("keep the head elsewhere: `verify --head HASH` later shows whether the end was cut off");
        }
        if self.export.is_none() {
            output.next(&format!("toolgate audit {} verify --head {}", dir.display(), head.hash));
        }
    }
}

/// Shows every line of an export to a verifier.
fn examine(file: &Path, mut verifier: Verifier) -> std::io::Result<Report> {
    let mut lines = BufReader::new(File::open(file)?);
    let (mut line, mut number) = (Vec::new(), 0);
    loop {
        line.clear();
        let mut bounded = std::io::Read::take(&mut lines, LONGEST_LINE);
        if bounded.read_until(b'\n', &mut line)? == 0 {
            return Ok(verifier.end());
        }
        number += 1;
        verifier.row(&Row::parse(line.strip_suffix(b"\n").unwrap_or(&line), number));
    }
}

fn wrong(report: &Report) -> Vec<Wrong> {
    let broken = report.broken.iter().map(|broken| Wrong {
        what: broken.what.code(),
        record: Some(broken.seq),
        line: None,
        text: broken.to_string(),
    });
    let mismatches = report.checkpoints.iter().flat_map(|compared| &compared.mismatches);
    let mismatches = mismatches.map(|mismatch| Wrong {
        what: mismatch.what.code(),
        record: mismatch.what.seq(),
        line: Some(mismatch.line).filter(|line| *line > 0),
        text: mismatch.to_string(),
    });
    broken.chain(mismatches).collect()
}

/// Checkpoints that should be there: whoever cuts the record would take them away as well.
fn gone(file: &Path) -> Wrong {
    let text = format!(
        "its checkpoints are not there: {} was taken away, or not made yet; name a copy with --checkpoints FILE",
        file.display()
    );
    Wrong { what: "no_checkpoint", record: None, line: None, text }
}

fn answer(report: &Report, wrong: &[Wrong], unseen: &[String]) -> Value {
    let checkpoints = report.checkpoints.as_ref().map(|compared| {
        let last = compared.last.map(|(head, at)| json!({ "record": head.seq, "at": at.to_string() }));
        let Compared { lines, agreed, others, key, .. } = compared;
        json!({ "lines": lines, "agreed": agreed, "others": others, "key": key, "last": last })
    });
    let answer = json!({
        "ok": wrong.is_empty(),
        "records": report.head.seq,
        "head": report.head.hash,
        "checkpoints": checkpoints,
        "unseen": unseen,
    });
    let Some(first) = wrong.first() else { return answer };
    let problem = |Wrong { what, record, line, text }: &Wrong| json!({ "what": what, "record": record, "line": line, "message": text });
    let answer = with(answer, "problem", json!(first.text));
    let answer = with(answer, "record", json!(first.record));
    with(answer, "problems", wrong.iter().map(problem).collect::<Vec<_>>())
}

fn unreadable(file: &Path, error: &std::io::Error) -> Failure {
    Failure::new(FailureCode::UnreadableInput, format!("{} cannot be read: {error}", file.display()))
}
