//! The folder that a wrapped command has in the user's state: a small gate folder, so that `toolgate approvals`, `why` and
//! `audit` read it like any other.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::state::make_folder;
use serde_json::json;
use toolgate::json::{Digest, canonical};
use toolgate::ledger::{Store, StoreError};

/// The folder of one command.
#[derive(Debug)]
pub(crate) struct State {
    dir: PathBuf,
    store: Mutex<Option<Store>>,
}

const STORE: &str = "toolgate.db";
const SETTINGS: &str = "\
# What a wrapped MCP server did, and what waits for you. `toolgate wrap` made this folder.
#   toolgate approvals THIS_FOLDER list
#   toolgate why THIS_FOLDER REF
#   toolgate audit THIS_FOLDER verify
store = \"sqlite:toolgate.db\"

[identity]
kind = \"local\"
default = \"local@local\"

[[identity.user]]
name = \"local\"
tenant = \"local\"
";

impl State {
    /// The folder `dir`. It is left alone until it is needed.
    pub(crate) fn new(dir: PathBuf) -> Self {
        Self { dir, store: Mutex::default() }
    }

    /// Where the folder of a command is, if nobody names another one.
    pub(crate) fn default_dir(command: &[String]) -> Option<PathBuf> {
        let absolute = |path: PathBuf| path.is_absolute().then_some(path);
        let state = variable("XDG_STATE_HOME").and_then(absolute);
        let state = state.or_else(|| variable("HOME").and_then(absolute).map(|home| home.join(".local/state")))?;
        let digest = Digest::of(canonical(&json!(command)).as_bytes()).hex();
        Some(state.join("toolgate/wrap").join(digest.get(..32)?))
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// The command that says yes to an approval.
    pub(crate) fn confirm(&self, approval: &str) -> String {
        format!("toolgate approvals {} approve {approval}", quoted(&self.dir.to_string_lossy()))
    }

    /// Makes the folder where it is not there yet. The error is for a person.
    pub(crate) fn make(&self) -> Result<(), String> {
        let trouble = |error| format!("the state folder {} cannot be made: {error}", self.dir.display());
        make_folder(&self.dir.join("policies")).map_err(trouble)?;
        let settings = self.dir.join("toolgate.toml");
        match std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(settings) {
            Ok(mut file) => file.write_all(SETTINGS.as_bytes()).map_err(trouble),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(trouble(error)),
        }
    }

    /// The store, opened by whoever needs it first.
    pub(crate) fn store(&self) -> Result<Store, StoreError> {
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(store) = &*store {
            return Ok(store.clone());
        }
        self.make().map_err(StoreError::Broken)?;
        let opened = Store::sqlite(self.dir.join(STORE))?;
        *store = Some(opened.clone());
        Ok(opened)
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+' | '@' | ':' | ',' | '=');
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[expect(clippy::disallowed_methods, reason = "the state of a person is where their environment says")]
fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;
    use crate::config::{self, Purpose};

    #[test]
    fn the_folder_is_a_gate_folder_and_made_once() {
        let folder = tempfile::tempdir().unwrap();
        let state = State::new(folder.path().join("deep/er"));
        state.make().unwrap();
        state.make().unwrap();
        let loaded = config::load(state.dir(), Purpose::Run).unwrap();
        let session = loaded.identity.session(None).unwrap();
        assert_eq!((session.principal().subject.as_str(), session.tenant()), ("local", "local"));
    }

    #[test]
    fn a_command_has_one_folder_and_another_one_another() {
        let dir = |words: &[&str]| State::default_dir(&words.iter().map(|&w| w.to_owned()).collect::<Vec<_>>());
        assert_eq!(dir(&["a", "b"]), dir(&["a", "b"]));
        assert_ne!(dir(&["a", "b"]), dir(&["a b"]));
    }

    #[test]
    fn a_word_reaches_a_shell_as_it_is() {
        assert_eq!(quoted("/home/a/.local/state"), "/home/a/.local/state");
        assert_eq!(quoted("it's $HOME"), r"'it'\''s $HOME'");
        assert_eq!(quoted(""), "''");
    }
}
