//! What a file says at each moment, without reading it each time.

use std::fs::{File, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::file::{read_text, unreadable};
use crate::cli::{Failure, FailureCode, Said, Say};
use crate::config::Finding;

/// A file that is read again whenever it is another one.
pub(super) struct Watched<T> {
    name: PathBuf,
    path: PathBuf,
    kind: Kind<T>,
    seen: Mutex<Option<Seen<T>>>,
    /// It never blocks, so that it may be called under the lock.
    say: Say,
}

/// What a file is, and what is said where it cannot be read.
pub(super) struct Kind<T> {
    /// Reads the text of the file of this name.
    pub(super) parse: fn(&Path, &str) -> Result<T, Vec<Finding>>,
    /// What it says where there has been no file yet; `None` where there must be one.
    pub(super) absent: Option<fn() -> T>,
    /// The code of a file that cannot be read.
    pub(super) code: FailureCode,
    /// What that means for whoever asks.
    pub(super) without: &'static str,
    /// What is said once it can be read again.
    pub(super) again: &'static str,
}

/// What was read, and of which file.
struct Seen<T> {
    stamp: Stamp,
    /// Held, so that no other file can get the number of this one.
    _file: Option<File>,
    /// INVARIANT (fails closed): without it nobody is admitted.
    read: Option<Arc<T>>,
    /// Why there is none.
    trouble: Option<Finding>,
}

/// Which file it is, and which of its states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stamp {
    /// There is no file.
    None,
    /// A file in one state: device, number, length, and when content and attributes last changed.
    File { device: u64, number: u64, length: u64, changed: [i64; 4] },
    /// It could not be looked at, so that nothing can be told of it later.
    Unknown,
}

impl<T> Watched<T> {
    pub(super) fn new(name: &Path, path: &Path, kind: Kind<T>, say: Say) -> Self {
        Self { name: name.to_owned(), path: path.to_owned(), kind, seen: Mutex::new(None), say }
    }

    /// What it says now; `None` where that cannot be known. That is told on stderr, once for each reason.
    pub(super) fn now(&self) -> Option<Arc<T>> {
        let stamp = self.stamp();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(seen) = seen.as_ref().filter(|seen| stamp != Stamp::Unknown && seen.stamp == stamp) {
            return seen.read.clone();
        }
        let now = self.read(seen.as_ref().is_some_and(|seen| seen.stamp != Stamp::None));
        let told = seen.as_ref().and_then(|seen| seen.trouble.as_ref());
        if now.trouble.as_ref() != told {
            (self.say)(match &now.trouble {
                Some(trouble) => Said::Failure(self.failure(trouble)),
                None => Said::Note(self.kind.again.into()),
            });
        }
        seen.insert(now).read.clone()
    }

    /// `was_there` tells whether there was a file before: one that is gone is no empty one.
    fn read(&self, was_there: bool) -> Seen<T> {
        let opened = File::open(&self.path).and_then(|file| {
            let stamp = Stamp::of(&file.metadata()?);
            Ok((stamp, read_text(&file)?, file))
        });
        let unread = |finding| (Stamp::Unknown, None, Err(vec![finding]));
        let (stamp, file, read) = match (opened, self.kind.absent.filter(|_| !was_there)) {
            (Ok((stamp, text, file)), _) => (stamp, Some(file), (self.kind.parse)(&self.name, &text)),
            (Err(error), Some(absent)) if error.kind() == ErrorKind::NotFound => (Stamp::None, None, Ok(absent())),
            (Err(error), None) if error.kind() == ErrorKind::NotFound && was_there => {
                unread(Finding::of_file(&self.name, "unreadable", "the file was there and is gone"))
            }
            (Err(error), _) => unread(unreadable(&self.name, &error)),
        };
        match read {
            Ok(read) => Seen { stamp, _file: file, read: Some(Arc::new(read)), trouble: None },
            Err(findings) => Seen { stamp, _file: file, read: None, trouble: findings.into_iter().next() },
        }
    }

    /// What a person is told of a file that cannot be read.
    fn failure(&self, trouble: &Finding) -> Failure {
        let Finding { code, message, hint, .. } = trouble;
        let told = format!("{}: {}: {code}: {message}", self.kind.without, trouble.place());
        let failure = Failure::new(self.kind.code, told);
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }

    fn stamp(&self) -> Stamp {
        match std::fs::metadata(&self.path) {
            Ok(metadata) => Stamp::of(&metadata),
            Err(error) if error.kind() == ErrorKind::NotFound => Stamp::None,
            Err(_) => Stamp::Unknown,
        }
    }
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self::File {
            device: metadata.dev(),
            number: metadata.ino(),
            length: metadata.len(),
            changed: [metadata.mtime(), metadata.mtime_nsec(), metadata.ctime(), metadata.ctime_nsec()],
        }
    }
}
