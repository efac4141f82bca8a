//! `toolgate.toml`: store, databases, identity, approvals; where the folder listens is read in [`http`].

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use toolgate::contract::Mode;
use toolgate::fields::{Fields, Problems};
use toolgate::gate::Kept;
use toolgate::guards::Guards;
use toolgate::json::Bounds;
use toolgate::ledger::{Store, StoreError};

use super::audit::{Audit, KeyAt};
use super::checkpoints::Checkpoints;
use super::webhook::Webhook;
use crate::backend::mcp::Held;
use crate::backend::mcp::pins::{Lock, Pins};
use crate::backend::{Place, Upstreams};
use crate::http;
use crate::identity::Identity;
use crate::mcp::upstream::{Environment, Program, Upstream};
use crate::state::make_folder;

/// The settings of a folder.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) store: StoreAt,
    pub(super) databases: BTreeMap<String, Place>,
    upstreams: BTreeMap<String, Declared>,
    pub(super) identity: Identity,
    pub(super) http: http::Settings,
    /// The bounds of argument texts, where they are not the default ones.
    pub(super) arguments: Bounds,
    pub(super) asked_for: Duration,
    pub(super) granted_for: Duration,
    pub(super) operator_speaks: bool,
    /// How many approvals may be pending of one person, and of one tenant.
    pub(super) pending: (usize, usize),
    /// Who is told of them.
    pub(super) webhook: Option<Webhook>,
    /// What the record holds of calls.
    pub(super) kept: Kept,
    /// Where the end of its record is kept as well.
    pub(super) checkpoints: Option<Checkpoints>,
    /// Whether policies hold, where a contract does not say it for its tool.
    pub(super) mode: Mode,
    /// What ends a run that only tries doors.
    pub(super) guards: Guards,
}

/// An upstream, as the folder declares it.
#[derive(Debug)]
struct Declared {
    program: Program,
    /// `pinned = false`: that there are no pins is meant.
    unpinned: bool,
}

/// Where the store is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StoreAt {
    /// In the memory of the process, for a gate that is only looked at.
    Memory,
    /// In an SQLite file, with what stands behind a `?` of its URI.
    Sqlite {
        path: PathBuf,
        query: Option<String>,
        /// Where the key is that it is sealed with.
        key: KeyAt,
    },
}

const HOUR: Duration = Duration::from_secs(3600);

impl Settings {
    pub(super) fn read(dir: &Path, table: &Map<String, Value>, problems: &mut Problems) -> Self {
        let mut top = Fields::of(table, "");
        let Audit { kept, key, checkpoints } = Audit::read(dir, &mut top, problems);
        let store = read_store(&mut top, key, problems);
        let databases = read_databases(&mut top, problems);
        let upstreams = read_upstreams(&mut top, problems);
        let identity = match top.raw("identity") {
            Some(Value::Object(identity)) => Identity::read(dir, identity, problems),
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
        let arguments = top.bounds("arguments", problems);
        let mode = top.word("mode", &Mode::WORDS, Mode::Enforce, problems);
        let guards = super::guards::read(&mut top, problems);
        let mut settings = Self {
            store,
            databases,
            upstreams,
            identity,
            http,
            arguments,
            asked_for: HOUR,
            granted_for: HOUR,
            operator_speaks: false,
            pending: (20, 200),
            webhook: None,
            kept,
            checkpoints,
            mode,
            guards,
        };
        if let Some(mut approvals) = top.table("approvals", problems) {
            settings.asked_for = approvals.span("pending_for", HOUR, problems);
            settings.granted_for = approvals.span("granted_for", HOUR, problems);
            settings.operator_speaks = approvals.flag("operator", problems);
            if approvals.raw("operator").is_some() && matches!(settings.identity, Identity::Local(_)) {
                let message = "this folder lists its users, so its operator speaks for each of them already";
                problems.note("/approvals/operator", "local", message);
            }
            let [of_user, of_tenant] = [("pending", 20), ("pending_tenant", 200)]
                .map(|(key, default)| approvals.count(key, default, problems));
            let count = |count| usize::try_from(count).unwrap_or(usize::MAX);
            settings.pending = (count(of_user), count(of_tenant));
            settings.webhook = Webhook::read(dir, &mut approvals, problems);
            if settings.operator_speaks && matches!(settings.identity, Identity::Jwt(_)) {
                let message = "nobody here lists the people of an issuer, so the operator speaks for none of them";
                problems.note("/approvals/operator", "jwt", message);
            }
            approvals.end(problems);
        }
        top.end(problems);
        settings
    }

    /// The servers of the folder `dir`, held to the pins that there are. None is started before it is asked.
    pub(super) fn upstreams(&self, dir: &Path, lock: &Lock) -> Upstreams {
        let upstream = |(name, Declared { program, unpinned }): (&String, &Declared)| {
            let directory = program.directory.as_ref().map_or_else(|| dir.to_owned(), |below| dir.join(below));
            let program = Program { directory: Some(directory), ..program.clone() };
            let say = crate::cli::journal();
            let held = match lock.get(name) {
                Some(pinned) => Held::Pinned(Arc::new(Pins::new(name.clone(), pinned.clone(), Arc::clone(&say)))),
                None if *unpinned => Held::Unpinned,
                None => Held::Unsaid,
            };
            (name.clone(), (Upstream::new(program, say), held))
        };
        Upstreams::new(self.upstreams.iter().map(upstream).collect())
    }

    /// The names of the servers.
    pub(super) fn upstream_names(&self) -> impl Iterator<Item = &str> {
        self.upstreams.keys().map(String::as_str)
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

    /// Opens the store of the folder `dir` in the way of `open`, when it is called.
    pub(super) fn opener(
        &self,
        dir: &Path,
        open: fn(&Self, &Path) -> Result<Store, StoreError>,
    ) -> impl Fn() -> Result<Store, StoreError> + Send + Sync + 'static {
        let (store, dir) = (self.clone(), dir.to_owned());
        move || open(&store, &dir)
    }

    /// Opens the store of the folder `dir`, and makes it if it is not there.
    pub(super) fn open(&self, dir: &Path) -> Result<Store, StoreError> {
        let Self::Sqlite { path, query, key } = self else { return Ok(Store::memory()) };
        if query.is_none()
            && let Some(parent) = dir.join(path).parent()
        {
            make_folder(parent).map_err(|error| {
                StoreError::Broken(format!("the folder {} cannot be made: {error}", parent.display()))
            })?;
        }
        let file = named(&dir.join(path), query.as_deref());
        match key.read(dir)? {
            Some(key) => Store::sqlite_with_key(file, key),
            None => Store::sqlite(file),
        }
    }

    /// Opens the store of the folder `dir` to look at it. One that is not there is empty, and is not made.
    pub(super) fn open_to_read(&self, dir: &Path) -> Result<Store, StoreError> {
        match self {
            Self::Sqlite { path, query, .. } if self.exists(dir) => {
                Store::sqlite_to_read(named(&dir.join(path), query.as_deref()))
            }
            Self::Sqlite { .. } | Self::Memory => Ok(Store::memory()),
        }
    }
}

/// The file as SQLite takes it: a path, or a URI, in which `%`, `?` and `#` of a path would mean something else.
fn named(path: &Path, query: Option<&str>) -> PathBuf {
    let Some(query) = query else { return path.to_owned() };
    let escaped = path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    format!("file:{escaped}?{query}").into()
}

fn read_store(top: &mut Fields<'_>, key: KeyAt, problems: &mut Problems) -> StoreAt {
    const DEFAULT: &str = "state/toolgate.db";
    let Some(text) = top.text("store", problems) else {
        return StoreAt::Sqlite { path: DEFAULT.into(), query: None, key };
    };
    let Some(rest) = text.strip_prefix("sqlite:").filter(|rest| !rest.is_empty()) else {
        let message = "expected \"sqlite:PATH\": what a folder's gate did must outlive its process";
        problems.hinted("/store", "format", message, Some(format!("store = \"sqlite:{DEFAULT}\"")));
        return StoreAt::Memory;
    };
    match rest.split_once('?') {
        Some((path, query)) => StoreAt::Sqlite { path: path.into(), query: Some(query.to_owned()), key },
        None => StoreAt::Sqlite { path: rest.into(), query: None, key },
    }
}

fn read_databases(top: &mut Fields<'_>, problems: &mut Problems) -> BTreeMap<String, Place> {
    let mut databases = BTreeMap::new();
    for (name, mut fields) in top.tables("databases", problems) {
        let path = fields.needed("path", problems).map(PathBuf::from);
        let seed = fields.text("seed", problems).map(PathBuf::from);
        fields.end(problems);
        if let Some(path) = path {
            databases.insert(name.clone(), Place { path, seed });
        }
    }
    databases
}

fn read_upstreams(top: &mut Fields<'_>, problems: &mut Problems) -> BTreeMap<String, Declared> {
    let mut upstreams = BTreeMap::new();
    for (name, mut fields) in top.tables("upstreams", problems) {
        let command = fields.texts("command", problems);
        if command.first().is_none_or(|program| program.trim().is_empty()) {
            let hint = "command = [\"program\", \"argument\"]".to_owned();
            problems.hinted(fields.place("command"), "required", "`command` names no program", Some(hint));
        }
        let directory = fields.text("cwd", problems).map(PathBuf::from);
        let listed = read_variables(&mut fields, problems);
        let unpinned = fields.raw("pinned").is_some() && !fields.flag("pinned", problems);
        fields.end(problems);
        let program = Program { command, directory, environment: Environment::Listed(listed) };
        upstreams.insert(name.clone(), Declared { program, unpinned });
    }
    upstreams
}

fn read_variables(fields: &mut Fields<'_>, problems: &mut Problems) -> BTreeMap<String, String> {
    let mut variables = BTreeMap::new();
    let Some(table) = fields.table("env", problems) else { return variables };
    for (name, value) in table.entries() {
        if name.is_empty() || name.contains(['=', '\0']) {
            problems.note(table.place(name), "pattern", "a variable has a name without `=`");
        }
        match value {
            Value::String(value) => {
                variables.insert(name.clone(), value.clone());
            }
            _ => problems.note(table.place(name), "type", "expected a text"),
        }
    }
    variables
}
