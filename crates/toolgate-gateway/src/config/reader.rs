//! A gate folder, read file by file: what each says, and what is wrong with it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use toolgate::Tool;
use toolgate::contract::ToolFault;
use toolgate::fields::{Problems, nearest};
use toolgate::gate::PolicyFault;
use toolgate::json::{self, Limits};
use toolgate::schema::Problem;

use super::located::Located;
use super::settings::Settings;
use super::{Finding, LOCK, LoadError, SETTINGS, SetAside};
use crate::backend::mcp::pins::{self, Lock};
use crate::backend::{self, Databases, Means};

/// The folder of the contracts.
pub(super) const CONTRACTS: &str = "tools";

/// A file of the folder, with its text and its places.
pub(super) struct Source {
    pub(super) file: PathBuf,
    pub(super) text: String,
    located: Option<Located>,
}

impl Source {
    /// The name of the tool, where it is the file of one.
    pub(super) fn tool(&self) -> String {
        stem(&self.file)
    }
}

/// The files of a folder.
#[derive(Default)]
struct Files {
    /// Those with the right ending, sorted.
    named: Vec<PathBuf>,
    /// What is told of the others.
    others: Vec<Finding>,
}

/// A folder while it is read.
pub(super) struct Reader<'a> {
    dir: &'a Path,
    /// What is wrong with the folder, its settings and its policies.
    pub(super) findings: Vec<Finding>,
    /// What is wrong with contracts, by tool.
    pub(super) of_tools: BTreeMap<String, Vec<Finding>>,
    /// The tools whose contracts could not be read.
    pub(super) unread: Vec<String>,
}

impl Source {
    /// The name of the tool whose contract this file is: the name of the file.
    fn tool_name(&self) -> String {
        stem(&self.file)
    }
}

impl<'a> Reader<'a> {
    pub(super) fn of(dir: &'a Path) -> Self {
        Self { dir, findings: Vec::new(), of_tools: BTreeMap::new(), unread: Vec::new() }
    }

    pub(super) fn settings(&mut self) -> Option<Settings> {
        let source = self.read_toml(Path::new(SETTINGS))?;
        let located = source.located.as_ref()?;
        let mut problems = Problems::default();
        let settings = Settings::read(self.dir, &located.table, &mut problems);
        self.findings.extend(problems.0.into_iter().map(|problem| located_problem(&source, problem)));
        Some(settings)
    }

    /// What `toolgate.lock` pins, by server and tool; nothing where there is no such file.
    pub(super) fn lock(&mut self, settings: Option<&Settings>) -> Lock {
        // One that is there and cannot be read is a fault.
        match self.dir.join(LOCK).symlink_metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Lock::new(),
            Ok(_) | Err(_) => {}
        }
        let Some(source) = self.read_toml(Path::new(LOCK)) else { return Lock::new() };
        let Some(located) = &source.located else { return Lock::new() };
        let mut problems = Problems::default();
        let pins = pins::read(&located.table, &mut problems);
        if let Some(settings) = settings {
            for server in pins.keys().filter(|server| settings.upstream_names().all(|name| name != *server)) {
                let hint = nearest(server, settings.upstream_names());
                problems.hinted(format!("/{server}"), "unknown", "there is no such upstream", hint);
            }
        }
        self.findings.extend(problems.0.into_iter().map(|problem| located_problem(&source, problem)));
        pins
    }

    /// The contracts, in the order of their names. A folder without tools is a gate without tools.
    pub(super) fn contracts(&mut self) -> Vec<Source> {
        let Files { named, others } = self.files(CONTRACTS, "toml").unwrap_or_default();
        let known: Vec<String> = named.iter().map(|file| stem(file)).collect();
        for finding in others {
            // What is not read is no tool, or, beside the file of one, nothing of it.
            let tool = stem(&finding.file);
            if known.contains(&tool) {
                let file = finding.file.file_name().unwrap_or_default().to_string_lossy().into_owned();
                self.of_tools.entry(file).or_default().push(finding);
            } else {
                self.of_tools.entry(tool.clone()).or_default().push(finding);
                self.unread.push(tool);
            }
        }
        let mut sources = Vec::new();
        for file in named {
            match self.of_tool(&stem(&file), |reader| reader.read_toml(&file)) {
                Some(source) => sources.push(source),
                None => self.unread.push(stem(&file)),
            }
        }
        sources
    }

    /// Whatever is found meanwhile is of this tool.
    fn of_tool<T>(&mut self, tool: &str, read: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.findings.len();
        let read = read(self);
        let found = self.findings.split_off(before);
        if !found.is_empty() {
            self.of_tools.entry(tool.to_owned()).or_default().extend(found);
        }
        read
    }

    /// The files of cases, in the order of their names.
    pub(super) fn cases(&mut self) -> Vec<Source> {
        let Files { named, others } = self.files("cases", "jsonl").unwrap_or_default();
        self.findings.extend(others);
        named.iter().filter_map(|file| self.read_text(file)).collect()
    }

    /// The policies, in their folder. An empty one denies all; a missing one is a fault, since nobody could have meant it.
    pub(super) fn policies(&mut self, folder: &Path) -> Vec<Source> {
        let Some(Files { named, others }) = self.files(folder, "cedar") else {
            let hint = "make the folder policies/; while it is empty, every call is denied";
            let finding = Finding::of_file("policies", "no_policies", "there is no folder `policies`");
            self.findings.push(finding.hint(Some(hint.into())));
            return Vec::new();
        };
        self.findings.extend(others);
        named.iter().filter_map(|file| self.read_text(file)).collect()
    }

    pub(super) fn tools(&mut self, sources: &[Source], means: &Means) -> Vec<Tool> {
        let mut tools = Vec::new();
        for source in sources {
            let Some(located) = &source.located else { continue };
            let mut keys = located.table.clone();
            let tool = source.tool_name();
            let whole = self.of_tool(&tool, |reader| {
                let inlined = ["input", "output"].map(|key| reader.inline_schema(source, key, &mut keys));
                inlined.iter().all(|inlined| *inlined)
            });
            if !whole {
                self.unread.push(tool);
                continue;
            }
            tools.push(match backend::make(&tool, &keys, means) {
                Ok(backend) => {
                    let upstream = upstream_of(&keys).map(|upstream| format!("upstream:{upstream}"));
                    upstream.into_iter().fold(Tool::new(tool, keys, backend), Tool::group)
                }
                Err(problems) => Tool::broken(tool, keys, problems),
            });
        }
        tools
    }

    /// Databases that cannot be opened, each told once, where it is declared.
    pub(super) fn databases(&mut self, databases: &Databases) {
        let faults = databases.faults();
        if faults.is_empty() {
            return;
        }
        // It was read a moment ago, and what is wrong with it is told.
        let before = self.findings.len();
        let source = self.read_toml(Path::new(SETTINGS));
        self.findings.truncate(before);
        for (name, key, message) in faults {
            let at = format!("/databases/{}/{key}", name.replace('~', "~0").replace('/', "~1"));
            let problem = Problem { at, code: "open".into(), message, hint: None };
            self.findings.extend(source.as_ref().map(|source| located_problem(source, problem)));
        }
    }

    /// What is to be known of a key of the settings.
    pub(super) fn of_setting(&mut self, key: &str, code: &'static str, message: &str, hint: &str) -> Option<Finding> {
        // It was read a moment ago, and what is wrong with it is told.
        let before = self.findings.len();
        let source = self.read_toml(Path::new(SETTINGS));
        self.findings.truncate(before);
        let (at, message, hint) = (format!("/{key}"), message.to_owned(), Some(hint.to_owned()));
        source.map(|source| located_problem(&source, Problem { at, code: code.into(), message, hint }))
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
            self.findings.push(located_problem(source, problem));
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
                let finding =
                    Finding::at(&schema.file, flaw.code.as_str(), &schema.text, flaw.line, flaw.column, message);
                self.findings.push(finding.hint(flaw.hint().map(str::to_owned)));
                false
            }
        }
    }

    /// The files of a folder, sorted; `None` where there is no such folder. What is passed over would be missed: a
    /// policy that nobody reads forbids nothing.
    fn files(&mut self, folder: impl AsRef<Path>, ending: &str) -> Option<Files> {
        let folder = folder.as_ref();
        let entries = match std::fs::read_dir(self.dir.join(folder)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
            Err(error) => {
                self.findings.push(Finding::of_file(
                    folder,
                    "unreadable",
                    format!("the folder cannot be read: {error}"),
                ));
                return Some(Files::default());
            }
        };
        let mut files = Files::default();
        for entry in entries {
            let file = match entry {
                Ok(entry) => folder.join(entry.file_name()),
                Err(error) => {
                    self.findings.push(Finding::of_file(
                        folder,
                        "unreadable",
                        format!("the folder cannot be read: {error}"),
                    ));
                    continue;
                }
            };
            let kind = file.extension().map(|found| found.to_string_lossy().into_owned());
            // A contract's schemas and recordings stand beside it.
            let beside = ["md", "json", "jsonl"].iter().any(|known| kind.as_deref() == Some(known));
            let hidden = file.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
            if kind.as_deref() == Some(ending) && self.dir.join(&file).is_file() {
                files.named.push(file);
            } else if !beside && !hidden {
                let message = format!("this is no file `NAME.{ending}`, and would not be read");
                files.others.push(
                    Finding::of_file(file, "stray_file", message).hint(Some("rename it, or move it away".into())),
                );
            }
        }
        files.named.sort();
        Some(files)
    }

    fn read_toml(&mut self, file: &Path) -> Option<Source> {
        let source = self.read_text(file)?;
        match Located::parse(&source.text) {
            Ok(located) => Some(Source { located: Some(located), ..source }),
            Err(faults) => {
                for fault in faults {
                    self.findings.push(Finding::at_offset(file, "not_toml", &source.text, fault.offset, fault.message));
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
                self.findings.push(Finding::of_file(file, "unreadable", message));
                None
            }
        }
    }

    /// Notes the faults that the builder told, each at its tool or at the policies.
    pub(super) fn faults(
        &mut self,
        sources: &[Source],
        tools: Vec<ToolFault>,
        policies: &[Source],
        wrong: Vec<PolicyFault>,
    ) {
        let contract = |tool: &str| sources.iter().find(|source| source.tool_name() == tool);
        for ToolFault { tool, problem } in tools {
            let finding = match contract(&tool) {
                Some(source) => located_problem(source, problem),
                None => Finding::of_file(CONTRACTS, problem.code, problem.message).hint(problem.hint),
            };
            self.of_tools.entry(tool).or_default().push(finding);
        }
        for fault in wrong {
            match located_fault(sources, policies, fault) {
                (Some(tool), finding) => self.of_tools.entry(tool).or_default().push(finding),
                (None, finding) => self.findings.push(finding),
            }
        }
    }

    /// The tools with faults.
    pub(super) fn set_aside(self) -> Vec<SetAside> {
        let sorted = |mut findings: Vec<Finding>| {
            findings.sort();
            findings.dedup();
            findings
        };
        self.of_tools.into_iter().map(|(tool, findings)| SetAside { tool, findings: sorted(findings) }).collect()
    }

    pub(super) fn end(self) -> LoadError {
        let mut findings: Vec<Finding> =
            self.findings.into_iter().chain(self.of_tools.into_values().flatten()).collect();
        findings.sort();
        findings.dedup();
        LoadError::Findings(findings)
    }
}

/// What of the contracts and the policies holds and is probably not meant, each at its place.
pub(super) fn warnings(
    sources: &[Source],
    warnings: Vec<ToolFault>,
    policies: &[Source],
    doubts: Vec<PolicyFault>,
) -> Vec<Finding> {
    let of_policies = doubts.into_iter().map(|doubt| located_fault(sources, policies, doubt).1);
    let mut findings: Vec<Finding> = warnings
        .into_iter()
        .map(|ToolFault { tool, problem }| match sources.iter().find(|source| source.tool_name() == tool) {
            Some(source) => located_problem(source, problem),
            None => Finding::of_file("tools", problem.code, problem.message).hint(problem.hint),
        })
        .chain(of_policies)
        .collect();
    findings.sort();
    findings.dedup();
    findings
}

/// What is said of a policy with its place, and the tool whose contract it comes from: by the key `approval`.
fn located_fault(sources: &[Source], policies: &[Source], fault: PolicyFault) -> (Option<String>, Finding) {
    let code = fault.code.as_str();
    if let Some(source) = fault.tool().and_then(|tool| sources.iter().find(|source| source.tool_name() == tool)) {
        let offset = source.located.as_ref().map_or(0, |located| located.offset("/approval"));
        let finding = Finding::at_offset(&source.file, code, &source.text, offset, fault.message);
        return (Some(source.tool_name()), finding.hint(fault.hint));
    }
    let source = policies.iter().find(|source| source.file.to_string_lossy() == fault.source);
    let finding = match source {
        Some(source) => Finding::at(&source.file, code, &source.text, fault.line, fault.column, fault.message),
        None => Finding::of_file(fault.source, code, fault.message),
    };
    (None, finding.hint(fault.hint))
}

/// The server whose tool a contract names.
fn upstream_of(keys: &Map<String, Value>) -> Option<&str> {
    let backend = keys.get("backend").filter(|backend| backend.get("kind").is_some_and(|kind| kind == "mcp"))?;
    backend.get("upstream")?.as_str()
}

/// A problem with the place at which it stands.
fn located_problem(source: &Source, problem: Problem) -> Finding {
    let message = match problem.at.as_str() {
        "" => problem.message,
        at => format!("{}: {}", at.trim_start_matches('/').replace('/', "."), problem.message),
    };
    let offset = source.located.as_ref().map_or(0, |located| located.offset(&problem.at));
    Finding::at_offset(&source.file, problem.code, &source.text, offset, message).hint(problem.hint)
}

fn stem(file: &Path) -> String {
    file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Whether a relative path stays below where it starts.
pub(crate) fn is_inside(path: &str) -> bool {
    Path::new(path).components().all(|part| matches!(part, std::path::Component::Normal(_)))
}
