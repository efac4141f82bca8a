//! `toolgate.toml`: store, databases, identity, approvals; where the folder listens is read in [`http`].

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value};
use toolgate::fields::{Fields, Problems};
use toolgate::ledger::{Store, StoreError};

use crate::backend::Place;
use crate::http;
use crate::identity::Identity;

/// The settings of a folder.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) store: StoreAt,
    pub(super) databases: BTreeMap<String, Place>,
    pub(super) identity: Identity,
    pub(super) http: http::Settings,
    pub(super) asked_for: Duration,
    pub(super) granted_for: Duration,
}

/// Where the store is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StoreAt {
    /// In the memory of the process, for a gate that is only looked at.
    Memory,
    /// In an SQLite file, with what stands behind a `?` of its URI.
    Sqlite { path: PathBuf, query: Option<String> },
}

const HOUR: Duration = Duration::from_secs(3600);

impl Settings {
    pub(super) fn read(table: &Map<String, Value>, problems: &mut Problems) -> Self {
        let mut top = Fields::of(table, "");
        let store = read_store(&mut top, problems);
        let databases = read_databases(&mut top, problems);
        let identity = match top.raw("identity") {
            Some(Value::Object(identity)) => Identity::read(identity, problems),
            Some(_) => {
                problems.note("/identity", "type", "expected a table");
                Identity::default()
            }
            None => {
                let hint = "[identity]\nkind = \"local\"";
                problems.hinted(
                    "/identity",
                    "required",
                    "nobody could ask: `[identity]` is missing",
                    Some(hint.into()),
                );
                Identity::default()
            }
        };
        let http = http::Settings::read(&mut top, problems);
        let (asked_for, granted_for) = match top.table("approvals", problems) {
            Some(mut approvals) => {
                let spans =
                    (approvals.span("pending_for", HOUR, problems), approvals.span("granted_for", HOUR, problems));
                approvals.end(problems);
                spans
            }
            None => (HOUR, HOUR),
        };
        top.end(problems);
        Self { store, databases, identity, http, asked_for, granted_for }
    }
}

impl StoreAt {
    /// Whether there is a store in the folder `dir`.
    pub(super) fn exists(&self, dir: &Path) -> bool {
        match self {
            Self::Memory => false,
            Self::Sqlite { path, .. } => dir.join(path).exists(),
        }
    }

    /// Opens the store of the folder `dir`, when it is called.
    pub(super) fn opener(&self, dir: &Path) -> impl FnOnce() -> Result<Store, StoreError> + 'static {
        let (store, dir) = (self.clone(), dir.to_owned());
        move || match store {
            Self::Memory => Ok(Store::memory()),
            Self::Sqlite { path, query } => {
                let path = dir.join(path);
                if query.is_none()
                    && let Some(parent) = path.parent()
                {
                    std::fs::create_dir_all(parent).map_err(|error| {
                        StoreError::Broken(format!("the folder {} cannot be made: {error}", parent.display()))
                    })?;
                }
                match query {
                    None => Store::sqlite(path),
                    Some(query) => Store::sqlite(format!("file:{}?{query}", uri_path(&path))),
                }
            }
        }
    }
}

/// A path as it stands in an SQLite URI: `%`, `?` and `#` would mean something else there.
fn uri_path(path: &Path) -> String {
    path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23")
}

fn read_store(top: &mut Fields<'_>, problems: &mut Problems) -> StoreAt {
    const DEFAULT: &str = "state/toolgate.db";
    let Some(text) = top.text("store", problems) else {
        return StoreAt::Sqlite { path: DEFAULT.into(), query: None };
    };
    let Some(rest) = text.strip_prefix("sqlite:").filter(|rest| !rest.is_empty()) else {
        let message = "expected \"sqlite:PATH\": what a folder's gate did must outlive its process";
        problems.hinted("/store", "format", message, Some(format!("store = \"sqlite:{DEFAULT}\"")));
        return StoreAt::Memory;
    };
    match rest.split_once('?') {
        Some((path, query)) => StoreAt::Sqlite { path: path.into(), query: Some(query.to_owned()) },
        None => StoreAt::Sqlite { path: rest.into(), query: None },
    }
}

fn read_databases(top: &mut Fields<'_>, problems: &mut Problems) -> BTreeMap<String, Place> {
    let mut databases = BTreeMap::new();
    let Some(table) = top.table("databases", problems) else { return databases };
    for (name, value) in table.entries() {
        let at = table.place(name);
        let Value::Object(fields) = value else {
            problems.note(at, "type", "expected a table");
            continue;
        };
        let mut fields = Fields::of(fields, at);
        let path = fields.needed("path", problems).map(PathBuf::from);
        let seed = fields.text("seed", problems).map(PathBuf::from);
        fields.end(problems);
        if let Some(path) = path {
            databases.insert(name.clone(), Place { path, seed });
        }
    }
    databases
}
