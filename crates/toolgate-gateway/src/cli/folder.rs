//! Where the gate folder is, and what is in it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use toolgate::ledger::Store;

use super::failure::FailureCode;
use super::{Failure, Output};
use crate::config::{self, LoadError, Loaded, Purpose, SetAside};
use crate::identity::Identity;

/// A gate folder that a command works on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Folder {
    pub(super) path: PathBuf,
    pub(super) found: FoundBy,
}

/// What named the folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FoundBy {
    Argument,
    Environment,
    WorkingFolder,
}

/// The file that makes a folder a gate.
pub(super) const SETTINGS: &str = "toolgate.toml";

impl Folder {
    /// The folder that was named, else `$TOOLGATE_DIR`, else the working folder if it is one.
    pub(super) fn find(named: Option<PathBuf>) -> Result<Self, Failure> {
        #[expect(clippy::disallowed_methods, reason = "the command line is the room of the environment")]
        let environment = std::env::var_os("TOOLGATE_DIR").filter(|value| !value.is_empty()).map(PathBuf::from);
        let here = || Path::new(SETTINGS).is_file().then(|| PathBuf::from("."));
        let of = |found: FoundBy| move |path: PathBuf| Self { path, found };
        let folder = named.map(of(FoundBy::Argument)).or_else(|| environment.map(of(FoundBy::Environment)));
        let folder = folder.or_else(|| here().map(of(FoundBy::WorkingFolder))).ok_or_else(|| {
            Failure::new(FailureCode::NoFolder, "no gate folder: none was named, and there is no toolgate.toml here")
                .hint("name a folder that holds toolgate.toml, or set TOOLGATE_DIR")
        })?;
        must_exist(&folder.path, folder.found)?;
        Ok(folder)
    }

    /// Of words that may begin with a folder: the folder, and the words that are left. The first word is the folder if
    /// all `most` are given, or if it is one that holds a gate.
    pub(super) fn of_words<const N: usize>(words: [Option<String>; N]) -> Result<(Self, [Option<String>; N]), Failure> {
        let leads = match words.first() {
            Some(Some(first)) => words.iter().all(Option::is_some) || is_gate(first.as_ref()),
            Some(None) | None => false,
        };
        if !leads {
            return Ok((Self::find(None)?, words));
        }
        let mut rest = words;
        let named = rest.first_mut().and_then(Option::take);
        rest.rotate_left(1);
        Ok((Self::find(named.map(PathBuf::from))?, rest))
    }
}

impl FoundBy {
    /// Who named it, behind its path.
    pub(super) fn in_brackets(self) -> &'static str {
        match self {
            Self::Argument => "",
            Self::Environment => " (TOOLGATE_DIR)",
            Self::WorkingFolder => " (the working folder)",
        }
    }
}

fn must_exist(path: &Path, found: FoundBy) -> Result<(), Failure> {
    let message = || format!("there is no folder {}{}", path.display(), found.in_brackets());
    if path.is_dir() { Ok(()) } else { Err(Failure::new(FailureCode::NoSuchFolder, message())) }
}

/// Whether a word names a folder that holds a gate.
fn is_gate(word: &OsStr) -> bool {
    Path::new(word).join(SETTINGS).is_file()
}

/// The path of the folder that was named, else `$TOOLGATE_DIR`, else the working folder if it is one.
pub(super) fn find_folder(named: Option<PathBuf>) -> Result<PathBuf, Failure> {
    Folder::find(named).map(|folder| folder.path)
}

/// Loads the gate of a folder; its faults go to stderr, all at once.
pub(super) fn load(dir: &Path, purpose: Purpose, output: &mut Output) -> Result<Loaded, Failure> {
    must_exist(dir, FoundBy::Argument)?;
    config::load(dir, purpose).map_err(|error| told(error, dir, output))
}

/// Opens the store of a folder, to look at it.
pub(super) fn open_store(dir: &Path, output: &mut Output) -> Result<Store, Failure> {
    must_exist(dir, FoundBy::Argument)?;
    config::open_store(dir).map_err(|error| told(error, dir, output))
}

/// Opens the store of a folder, to change it.
pub(super) fn open_store_to_write(dir: &Path, output: &mut Output) -> Result<Store, Failure> {
    must_exist(dir, FoundBy::Argument)?;
    config::open_store_to_write(dir).map_err(|error| told(error, dir, output))
}

/// Opens the store of a folder to change it, and makes it if it is not there.
pub(super) fn open_store_at_once(dir: &Path, output: &mut Output) -> Result<Store, Failure> {
    must_exist(dir, FoundBy::Argument)?;
    config::open_store_at_once(dir).map_err(|error| told(error, dir, output))
}

pub(super) fn told(error: LoadError, dir: &Path, output: &mut Output) -> Failure {
    match error {
        LoadError::Findings(findings) => {
            findings.iter().for_each(|finding| output.finding(finding));
            Failure::new(FailureCode::FolderFaults, format!("{}; nothing was run", counted(findings.len(), dir)))
                .hint(format!("toolgate check {}", dir.display()))
        }
        LoadError::NoStore => Failure::new(FailureCode::NoStore, "there is no store yet: nothing has been called"),
        LoadError::Store(error) => error.into(),
    }
}

/// Names every tool that a server does without, and why.
pub(super) fn tell_set_aside(set_aside: &[SetAside], output: &mut Output) {
    for SetAside { tool, findings } in set_aside {
        output.warning(&format!("the tool {tool} is set aside, and the others are served:"));
        findings.iter().for_each(|finding| output.finding(finding));
    }
}

/// Says what is out of the ordinary about who is admitted.
pub(super) fn warn_of(identity: &Identity, output: &mut Output) {
    if let Some(told) = identity.warning() {
        output.warning(told);
    }
}

/// How many faults a folder has.
pub(super) fn counted(faults: usize, dir: &Path) -> String {
    let plural = if faults == 1 { "fault" } else { "faults" };
    format!("{faults} {plural} in {}", dir.display())
}
