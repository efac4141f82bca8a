//! A gate is a folder. Everything in it is read and checked before there is a gate, and every fault is told at once.

mod finding;
mod located;
mod settings;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};
use toolgate::contract::Contract;
use toolgate::fields::Problems;
use toolgate::gate::{BuildError, Builder, PolicyFault};
use toolgate::json::{self, Limits};
use toolgate::ledger::{Store, StoreError};
use toolgate::schema::Problem;
use toolgate::{Gate, Tool};

use crate::backend::{self, Databases};
use crate::http;
use crate::identity::Identity;

pub use finding::Finding;
use located::Located;
use settings::{Settings, StoreAt};

/// A gate that was loaded from a folder.
#[derive(Debug)]
pub struct Loaded {
    /// The gate.
    pub gate: Gate,
    /// Where its people come from.
    pub identity: Identity,
    /// Where it listens, and how much it takes.
    pub http: http::Settings,
}

/// Why a folder gives no gate.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The folder has faults.
    #[error("{} fault{} in the gate folder", .0.len(), if .0.len() == 1 { "" } else { "s" })]
    Findings(Vec<Finding>),
    /// The store cannot be opened or written.
    #[error("{0}")]
    Store(#[from] StoreError),
}

/// A file of the folder, with its text and its places.
struct Source {
    file: PathBuf,
    text: String,
    located: Option<Located>,
}

/// A folder while it is read.
struct Reader<'a> {
    dir: &'a Path,
    findings: Vec<Finding>,
    /// The tools whose contracts could not be read.
    unread: Vec<String>,
}

/// What a gate is loaded for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To answer calls and to read what became of them: the store is opened.
    Run,
    /// To look at what it is: the store is left alone.
    Look,
}

/// Loads the gate of a folder.
pub fn load(dir: &Path, purpose: Purpose) -> Result<Loaded, LoadError> {
    load_with(dir, purpose, |builder| builder)
}

/// Loads the gate of a folder, with what the folder cannot say, such as another clock, said to the builder.
pub fn load_with(dir: &Path, purpose: Purpose, adjust: impl FnOnce(Builder) -> Builder) -> Result<Loaded, LoadError> {
    let mut reader = Reader { dir, findings: Vec::new(), unread: Vec::new() };
    let settings = reader.settings();
    let databases = settings.as_ref().map(|settings| settings.databases.clone()).unwrap_or_default();
    let sources = reader.contracts();
    let policies = reader.policies();
    let mut builder = Gate::builder();
    for tool in reader.tools(&sources, &Databases::new(dir, databases)) {
        builder = builder.tool(tool);
    }
    for Source { file, text, .. } in &policies {
        builder = builder.policy_file(file.to_string_lossy(), text);
    }
    let built = match settings.filter(|_| reader.findings.is_empty()) {
        Some(settings) => {
            let people = Arc::new(settings.identity.clone());
            let store = if purpose == Purpose::Run { settings.store } else { StoreAt::Memory };
            builder = builder
                .standing(people)
                .approvals_expire(settings.asked_for, settings.granted_for)
                .open_store(store.opener(dir));
            adjust(builder).build().map(|gate| Some(Loaded { gate, identity: settings.identity, http: settings.http }))
        }
        // There will be no gate, but what is wrong with the rest is told all the same.
        None => builder.check(&reader.unread).map(|()| None),
    };
    match built {
        Ok(Some(loaded)) => Ok(loaded),
        Ok(None) => Err(reader.end()),
        Err(BuildError::Store(error)) => Err(LoadError::Store(error)),
        Err(BuildError::NoStore) => Err(LoadError::Findings(vec![Finding::of_file(SETTINGS, "no store")])),
        Err(BuildError::Faults { tools, policies: wrong }) => {
            for fault in tools {
                let source = sources.iter().find(|source| source.tool_name() == fault.tool);
                reader.problem(source, fault.problem);
            }
            for fault in wrong {
                reader.policy_fault(policies.iter().chain(&sources), &fault);
            }
            Err(reader.end())
        }
    }
}

/// Opens the store of a folder, whatever is wrong with its contracts: evidence is needed most when something is.
pub fn open_store(dir: &Path) -> Result<Store, LoadError> {
    let mut reader = Reader { dir, findings: Vec::new(), unread: Vec::new() };
    match reader.settings() {
        Some(settings) if settings.store.exists(dir) => Ok(settings.store.opener(dir)()?),
        Some(_) => {
            let message = "there is no store yet: nothing has been called";
            Err(LoadError::Findings(vec![Finding::of_file(SETTINGS, message)]))
        }
        None => Err(reader.end()),
    }
}

/// The file of the folder's settings.
const SETTINGS: &str = "toolgate.toml";

impl Source {
    /// The name of the tool whose contract this file is: the name of the file.
    fn tool_name(&self) -> String {
        stem(&self.file)
    }
}

impl Reader<'_> {
    fn settings(&mut self) -> Option<Settings> {
        let source = self.read_toml(Path::new(SETTINGS))?;
        let located = source.located.as_ref()?;
        let mut problems = Problems::default();
        let settings = Settings::read(&located.table, &mut problems);
        for problem in problems.0 {
            self.problem(Some(&source), problem);
        }
        Some(settings)
    }

    /// The contracts, in the order of their names. A folder without tools is a gate without tools.
    fn contracts(&mut self) -> Vec<Source> {
        let files = self.files("tools", "toml").unwrap_or_default();
        let mut sources = Vec::new();
        for file in files {
            match self.read_toml(&file) {
                Some(source) => sources.push(source),
                None => self.unread.push(stem(&file)),
            }
        }
        sources
    }

    /// The policies. An empty folder denies all; a missing one is a fault, since nobody could have meant it.
    fn policies(&mut self) -> Vec<Source> {
        let Some(files) = self.files("policies", "cedar") else {
            let hint = "make the folder policies/; while it is empty, every call is denied";
            let finding = Finding::of_file("policies", "there is no folder `policies`");
            self.findings.push(finding.hint(Some(hint.into())));
            return Vec::new();
        };
        files.iter().filter_map(|file| self.read_text(file)).collect()
    }

    fn tools(&mut self, sources: &[Source], databases: &Databases) -> Vec<Tool> {
        let mut tools = Vec::new();
        for source in sources {
            let Some(located) = &source.located else { continue };
            let mut keys = located.table.clone();
            let mut whole = true;
            for key in ["input", "output"] {
                whole &= self.inline_schema(source, key, &mut keys);
            }
            if !whole {
                self.unread.push(source.tool_name());
                continue;
            }
            match backend::make(&keys, databases) {
                Ok(backend) => tools.push(Tool::new(source.tool_name(), keys, backend)),
                Err(problems) => {
                    // The rest of the contract is told all the same.
                    self.unread.push(source.tool_name());
                    let contract = Contract::parse(&source.tool_name(), &Value::Object(keys));
                    for problem in problems.into_iter().chain(contract.err().unwrap_or_default()) {
                        self.problem(Some(source), problem);
                    }
                }
            }
        }
        tools
    }

    /// Puts the schema of `{ file = "NAME.json" }` in its place. Returns whether it could be read.
    fn inline_schema(&mut self, source: &Source, key: &str, keys: &mut Map<String, Value>) -> bool {
        let Some(Value::Object(table)) = keys.get(key) else { return true };
        let (Some(Value::String(name)), 1) = (table.get("file"), table.len()) else { return true };
        let file = source.file.parent().unwrap_or(Path::new("")).join(name);
        if !is_inside(name) {
            let message = "a schema file is named relative to the contract, and stands in the same folder or below";
            let problem =
                Problem { at: format!("/{key}/file"), code: "format".into(), message: message.into(), hint: None };
            self.problem(Some(source), problem);
            return false;
        }
        let Some(schema) = self.read_text(&file) else { return false };
        match json::read(schema.text.as_bytes(), &Limits::default()) {
            Ok(value) => {
                keys.insert(key.to_owned(), value);
                true
            }
            Err(flaw) => {
                let message = format!("no strict JSON: {}", flaw.message);
                let finding = Finding::at(&schema.file, &schema.text, flaw.line, flaw.column, message);
                self.findings.push(finding.hint(flaw.hint().map(str::to_owned)));
                false
            }
        }
    }

    /// The files of a folder, sorted; `None` where there is no such folder. What is passed over would be missed: a
    /// policy that nobody reads forbids nothing.
    fn files(&mut self, folder: &str, ending: &str) -> Option<Vec<PathBuf>> {
        let entries = match std::fs::read_dir(self.dir.join(folder)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
            Err(error) => {
                self.findings.push(Finding::of_file(folder, format!("the folder cannot be read: {error}")));
                return Some(Vec::new());
            }
        };
        let mut files = Vec::new();
        for entry in entries {
            let file = match entry {
                Ok(entry) => Path::new(folder).join(entry.file_name()),
                Err(error) => {
                    self.findings.push(Finding::of_file(folder, format!("the folder cannot be read: {error}")));
                    continue;
                }
            };
            let kind = file.extension().map(|found| found.to_string_lossy().into_owned());
            // A contract's schemas stand beside it.
            let beside = ["md", "json"].iter().any(|known| kind.as_deref() == Some(known));
            let hidden = file.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
            if kind.as_deref() == Some(ending) && self.dir.join(&file).is_file() {
                files.push(file);
            } else if !beside && !hidden {
                let message = format!("this is no file `NAME.{ending}`, and would not be read");
                self.findings.push(Finding::of_file(file, message).hint(Some("rename it, or move it away".into())));
            }
        }
        files.sort();
        Some(files)
    }

    fn read_toml(&mut self, file: &Path) -> Option<Source> {
        let source = self.read_text(file)?;
        match Located::parse(&source.text) {
            Ok(located) => Some(Source { located: Some(located), ..source }),
            Err(faults) => {
                for fault in faults {
                    self.findings.push(Finding::at_offset(file, &source.text, fault.offset, fault.message));
                }
                None
            }
        }
    }

    fn read_text(&mut self, file: &Path) -> Option<Source> {
        match std::fs::read_to_string(self.dir.join(file)) {
            Ok(text) => Some(Source { file: file.to_owned(), text, located: None }),
            Err(error) => {
                let message = match error.kind() {
                    std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
                    std::io::ErrorKind::InvalidData => "the file is not UTF-8".to_owned(),
                    std::io::ErrorKind::PermissionDenied => "the file may not be read".to_owned(),
                    _ => format!("the file cannot be read: {error}"),
                };
                self.findings.push(Finding::of_file(file, message));
                None
            }
        }
    }

    fn problem(&mut self, source: Option<&Source>, problem: Problem) {
        let named = match problem.at.as_str() {
            "" => problem.message,
            at => format!("{}: {}", at.trim_start_matches('/').replace('/', "."), problem.message),
        };
        let finding = match source {
            Some(source) => {
                let offset = source.located.as_ref().map_or(0, |located| located.offset(&problem.at));
                Finding::at_offset(&source.file, &source.text, offset, named)
            }
            None => Finding::of_file("tools", named),
        };
        self.findings.push(finding.hint(problem.hint));
    }

    fn policy_fault<'s>(&mut self, sources: impl Iterator<Item = &'s Source>, fault: &PolicyFault) {
        let mut sources = sources;
        let source = sources.find(|source| source.file.to_string_lossy() == fault.source);
        let finding = match source {
            Some(source) if fault.line > 0 => {
                Finding::at(&source.file, &source.text, fault.line, fault.column, fault.message.clone())
            }
            // The policy comes from the contract's key `approval`.
            Some(source) => {
                let offset = source.located.as_ref().map_or(0, |located| located.offset("/approval"));
                Finding::at_offset(&source.file, &source.text, offset, fault.message.clone())
            }
            None => Finding::of_file(&fault.source, fault.message.clone()),
        };
        self.findings.push(finding.hint(fault.hint.clone()));
    }

    fn end(mut self) -> LoadError {
        self.findings.sort();
        self.findings.dedup();
        LoadError::Findings(self.findings)
    }
}

fn stem(file: &Path) -> String {
    file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Whether a relative path stays below where it starts.
fn is_inside(path: &str) -> bool {
    Path::new(path).components().all(|part| matches!(part, std::path::Component::Normal(_)))
}
