//! A gate is a folder. Everything in it is read and checked before there is a gate, and every fault is told at once.

mod finding;
mod located;
mod reader;
mod settings;

use std::path::Path;
use std::sync::Arc;

use toolgate::Gate;
use toolgate::gate::{BuildError, Builder};
use toolgate::ledger::{Store, StoreError};

use crate::backend::Databases;
use crate::identity::Identity;

pub use finding::Finding;
pub(crate) use located::Located;
use reader::{Reader, Source};
use settings::{Settings, StoreAt};

/// A gate that was loaded from a folder.
#[derive(Debug)]
pub struct Loaded {
    /// The gate.
    pub gate: Gate,
    /// Where its people come from.
    pub identity: Identity,
    /// Whether the operator at the command line may answer approvals as another person.
    pub operator_speaks: bool,
    /// The tools that it does without: only what is loaded to serve has any.
    pub set_aside: Vec<SetAside>,
}

/// A tool that is set aside, because its contract has faults or rests on one that has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetAside {
    /// The name of the tool.
    pub tool: String,
    /// What is wrong, at least one.
    pub findings: Vec<Finding>,
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

/// What a gate is loaded for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To answer one command, and to read what became of calls: the store is opened. A fault anywhere and there is no
    /// gate.
    Run,
    /// To answer calls for as long as it may be: the store is opened. A tool with faults is set aside.
    Serve,
    /// To look at what it is: the store is left alone. A fault anywhere and there is no gate.
    Look,
}

/// Loads the gate of a folder.
pub fn load(dir: &Path, purpose: Purpose) -> Result<Loaded, LoadError> {
    load_with(dir, purpose, |builder| builder)
}

/// Loads the gate of a folder for a server. One bad tool is set aside and named, and the others serve, unless `strict`.
pub fn load_for_serving(dir: &Path, strict: bool) -> Result<Loaded, LoadError> {
    load(dir, if strict { Purpose::Run } else { Purpose::Serve })
}

/// Loads the gate of a folder, with what the folder cannot say, such as another clock, said to the builder.
pub fn load_with(dir: &Path, purpose: Purpose, adjust: impl FnOnce(Builder) -> Builder) -> Result<Loaded, LoadError> {
    let mut reader = Reader::of(dir);
    let settings = reader.settings();
    let databases = settings.as_ref().map(|settings| settings.databases.clone()).unwrap_or_default();
    let sources = reader.contracts();
    let policies = reader.policies();
    if let Some(Settings { identity: Identity::Tokens(tokens), .. }) = &settings {
        reader.findings.extend(tokens.faults());
    }
    let databases = Databases::new(dir, databases);
    let mut builder = Gate::builder();
    for tool in reader.tools(&sources, &databases) {
        builder = builder.tool(tool);
    }
    match purpose {
        Purpose::Run | Purpose::Look => reader.databases(&databases),
        // Tools of other databases serve on; each tool of one that cannot be opened tells so itself.
        Purpose::Serve => {}
    }
    for Source { file, text, .. } in &policies {
        builder = builder.policy_file(file.to_string_lossy(), text);
    }
    let may_be_built = match purpose {
        Purpose::Serve => reader.findings.is_empty(),
        Purpose::Run | Purpose::Look => reader.findings.is_empty() && reader.of_tools.is_empty(),
    };
    let built = match settings.filter(|_| may_be_built) {
        Some(settings) => {
            let people = Arc::new(settings.identity.clone());
            let store = if purpose == Purpose::Look { StoreAt::Memory } else { settings.store };
            builder = builder
                .standing(people)
                .approvals_expire(settings.asked_for, settings.granted_for)
                .open_store(store.opener(dir));
            let Settings { identity, operator_speaks, .. } = settings;
            let loaded = |gate| Loaded { gate, identity, operator_speaks, set_aside: Vec::new() };
            match purpose {
                Purpose::Run | Purpose::Look => adjust(builder).build().map(|gate| Some(loaded(gate))),
                Purpose::Serve => adjust(builder).build_without_faulty(&reader.unread).map(|sound| {
                    reader.faults(&sources, sound.tools, &policies, sound.approvals);
                    Some(loaded(sound.gate))
                }),
            }
        }
        // There will be no gate, but what is wrong with the rest is told all the same.
        None => builder.check(&reader.unread).map(|()| None),
    };
    match built {
        Ok(Some(loaded)) => Ok(Loaded { set_aside: reader.set_aside(), ..loaded }),
        Ok(None) => Err(reader.end()),
        Err(BuildError::Store(error)) => Err(LoadError::Store(error)),
        Err(BuildError::NoStore) => Err(LoadError::Findings(vec![Finding::of_file(SETTINGS, "no store")])),
        Err(BuildError::Faults { tools, policies: wrong }) => {
            reader.faults(&sources, tools, &policies, wrong);
            Err(reader.end())
        }
    }
}

/// Opens the store of a folder, whatever is wrong with its contracts: evidence is needed most when something is.
pub fn open_store(dir: &Path) -> Result<Store, LoadError> {
    let mut reader = Reader::of(dir);
    match reader.settings() {
        Some(settings) if settings.store.exists(dir) => Ok(settings.store.opener(dir)()?),
        Some(_) => {
            let message = "there is no store yet: nothing has been called";
            Err(LoadError::Findings(vec![Finding::of_file(SETTINGS, message)]))
        }
        None => Err(reader.end()),
    }
}

/// Where the people of a folder come from, whatever is wrong with its contracts.
pub fn identity(dir: &Path) -> Result<Identity, LoadError> {
    let mut reader = Reader::of(dir);
    match reader.settings() {
        Some(settings) if reader.findings.is_empty() => Ok(settings.identity),
        Some(_) | None => Err(reader.end()),
    }
}

/// The file of the folder's settings.
const SETTINGS: &str = "toolgate.toml";
