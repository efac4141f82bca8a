//! The list as it is on the disk at each moment, without reading it each time.

use std::fs::{File, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::list::{List, read_text, unreadable};
use crate::cli::{Failure, FailureCode, Said, Say};
use crate::config::Finding;

/// A file of tokens that is read again whenever it is another one.
pub(super) struct Watched {
    name: PathBuf,
    path: PathBuf,
    seen: Mutex<Option<Seen>>,
    /// It never blocks, so that it may be called under the lock.
    say: Say,
}

/// What was read, and of which file.
struct Seen {
    stamp: Stamp,
    /// Held, so that no other file can get the number of this one.
    _file: Option<File>,
    /// INVARIANT (fails closed): without a list nobody is admitted.
    list: Option<Arc<List>>,
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

impl Watched {
    pub(super) fn new(name: &Path, path: &Path, say: Say) -> Self {
        Self { name: name.to_owned(), path: path.to_owned(), seen: Mutex::new(None), say }
    }

    /// The list as it is now; `None` where it cannot be known. That is told on stderr, once for each reason.
    pub(super) fn list(&self) -> Option<Arc<List>> {
        let stamp = self.stamp();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(seen) = seen.as_ref().filter(|seen| stamp != Stamp::Unknown && seen.stamp == stamp) {
            return seen.list.clone();
        }
        let now = self.read(seen.as_ref().is_some_and(|seen| seen.stamp != Stamp::None));
        let told = seen.as_ref().and_then(|seen| seen.trouble.as_ref());
        if now.trouble.as_ref() != told {
            (self.say)(match &now.trouble {
                Some(trouble) => Said::Failure(nobody_admitted(trouble)),
                None => Said::Note("the tokens can be read again".into()),
            });
        }
        seen.insert(now).list.clone()
    }

    /// `was_there` tells whether there was a file before: one that is gone is no list without tokens.
    fn read(&self, was_there: bool) -> Seen {
        let opened = File::open(&self.path).and_then(|file| {
            let stamp = Stamp::of(&file.metadata()?);
            Ok((stamp, read_text(&file)?, file))
        });
        let (stamp, file, list) = match opened {
            Ok((stamp, text, file)) => (stamp, Some(file), List::parse(&self.name, &text)),
            Err(error) if error.kind() == ErrorKind::NotFound && !was_there => (Stamp::None, None, Ok(List::default())),
            Err(error) if error.kind() == ErrorKind::NotFound => (
                Stamp::Unknown,
                None,
                Err(vec![Finding::of_file(&self.name, "unreadable", "the file was there and is gone")]),
            ),
            Err(error) => (Stamp::Unknown, None, Err(vec![unreadable(&self.name, &error)])),
        };
        match list {
            Ok(list) => Seen { stamp, _file: file, list: Some(Arc::new(list)), trouble: None },
            Err(findings) => Seen { stamp, _file: file, list: None, trouble: findings.into_iter().next() },
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

/// What a person is told of a list that cannot be read.
fn nobody_admitted(trouble: &Finding) -> Failure {
    let Finding { code, message, hint, .. } = trouble;
    let told = format!("nobody is admitted by token: {}: {code}: {message}", trouble.place());
    let failure = Failure::new(FailureCode::TokensUnreadable, told);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
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
