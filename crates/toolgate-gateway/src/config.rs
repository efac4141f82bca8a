//! A gate is a folder. Everything in it is read and checked before there is a gate, and every fault is told at once.

#[cfg(test)]
mod agreement;
mod audit;
mod checkpoints;
mod finding;
mod guards;
mod located;
mod reader;
mod settings;
mod webhook;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolgate::Gate;
use toolgate::contract::Mode;
use toolgate::fault::Fault;
use toolgate::fields::nearest;
use toolgate::gate::{BuildError, Builder, PolicyFault, Prepared};
use toolgate::json::Limits;
use toolgate::ledger::{Store, StoreError};

use crate::backend::{Databases, Means, Upstreams};
use crate::beside::Beside;
use crate::checkpoints::Keeper;
use crate::cli::{Said, journal};
use crate::http;
use crate::identity::Identity;
use crate::messenger::Messenger;

pub(crate) use checkpoints::{Checkpoints, To};
pub(crate) use finding::FAULTS;
pub use finding::Finding;
pub(crate) use located::Located;
pub(crate) use reader::is_inside;
use reader::{Reader, Source};
use settings::{Settings, StoreAt};
pub(crate) use webhook::{Secret, Webhook};

/// A gate that was loaded from a folder.
#[derive(Debug)]
pub struct Loaded {
    /// The gate.
    pub gate: Gate,
    /// Where its people come from.
    pub identity: Identity,
    /// Where it listens, and how much it takes.
    pub http: http::Settings,
    /// Whether the operator at the command line may answer approvals as another person.
    pub operator_speaks: bool,
    /// The tools that it does without: only what is loaded to serve has any.
    pub set_aside: Vec<SetAside>,
    /// What of the folder holds and is probably not meant.
    pub warnings: Vec<Finding>,
    /// The servers that its tools are asked of.
    pub(crate) upstreams: Upstreams,
    /// What keeps checkpoints of its record, and tells of its approvals.
    pub(crate) keeper: Arc<Beside>,
}

impl Loaded {
    /// Lets what runs come to its end, and ends the servers that were started.
    pub async fn finish(&self) -> Result<(), Fault> {
        let finished = self.gate.finish().await;
        self.upstreams.close().await;
        keep_the_end(&self.keeper).await;
        finished
    }
}

/// Writes the last checkpoint and tells of the last approvals, once all is on record.
pub(crate) async fn keep_the_end(keeper: &Arc<Beside>) {
    let keeper = Arc::clone(keeper);
    // A thread that cannot be had has nothing to wait for.
    let _ = tokio::task::spawn_blocking(move || keeper.finish()).await;
}

/// A folder that was read and checked. Nothing of its gate is opened yet.
#[derive(Debug)]
pub struct Ready {
    /// The gate, to be opened.
    pub gate: Prepared,
    /// Where its people come from.
    pub identity: Identity,
    /// Where it listens, and how much it takes.
    pub http: http::Settings,
    /// Whether the operator at the command line may answer approvals as another person.
    pub operator_speaks: bool,
    /// The tools that it does without: only what is loaded to serve has any.
    pub set_aside: Vec<SetAside>,
    /// What of the folder holds and is probably not meant.
    pub warnings: Vec<Finding>,
    /// The servers that its tools are asked of.
    pub(crate) upstreams: Upstreams,
    /// What keeps checkpoints of its record, and tells of its approvals.
    pub(crate) keeper: Arc<Beside>,
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
    /// Nothing has been called yet, so there is nothing to look at.
    #[error("there is no store yet: nothing has been called")]
    NoStore,
    /// The store cannot be opened or written.
    #[error("{0}")]
    Store(#[from] StoreError),
}

/// What a gate is loaded for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To answer one command: the store is opened, and made if it is not there. A fault anywhere and there is no gate.
    Run,
    /// To answer calls for as long as it may be: the store is opened. A tool with faults is set aside.
    Serve,
    /// To read what became of calls: the store is opened and never written. One that is not there yet is empty.
    Read,
    /// To look at what it is: the store is left alone. A fault anywhere and there is no gate.
    Look,
    /// To judge cases: the store and what has a seed are made anew, in memory, and nothing lasts.
    Rehearse,
}

/// Loads the gate of a folder.
pub fn load(dir: &Path, purpose: Purpose) -> Result<Loaded, LoadError> {
    load_with(dir, purpose, |builder| builder)
}

/// Loads the gate of a folder, with what the folder cannot say, such as another clock, said to the builder.
pub fn load_with(dir: &Path, purpose: Purpose, adjust: impl FnOnce(Builder) -> Builder) -> Result<Loaded, LoadError> {
    loaded(ready_with(dir, purpose, Some(Path::new(POLICIES)), adjust)?)
}

/// Loads the gate that a folder would be with the policies of another one, to look at what they would say. The store is
/// left alone.
pub(crate) fn load_to_review(dir: &Path, policies: &Path) -> Result<Loaded, LoadError> {
    // A path that the folder's own is put before stays as it is only where it begins at the root.
    let policies = std::path::absolute(policies).unwrap_or_else(|_| policies.to_owned());
    loaded(ready_with(dir, Purpose::Look, Some(&policies), |builder| builder)?)
}

/// Loads the gate that a folder would be without any policies, whatever is wrong with those that it has. The store is
/// left alone.
pub(crate) fn load_without_policies(dir: &Path) -> Result<Loaded, LoadError> {
    loaded(ready_with(dir, Purpose::Look, None, |builder| builder)?)
}

fn loaded(ready: Ready) -> Result<Loaded, LoadError> {
    let Ready { gate, identity, http, operator_speaks, set_aside, warnings, upstreams, keeper } = ready;
    Ok(Loaded { gate: gate.open()?, identity, http, operator_speaks, set_aside, warnings, upstreams, keeper })
}

/// Reads and checks a folder for a server, and leaves it as it is: its gate is opened by whoever needs it.
pub fn ready(dir: &Path, strict: bool) -> Result<Ready, LoadError> {
    let purpose = if strict { Purpose::Run } else { Purpose::Serve };
    ready_with(dir, purpose, Some(Path::new(POLICIES)), |builder| builder)
}

fn ready_with(
    dir: &Path,
    purpose: Purpose,
    policies: Option<&Path>,
    adjust: impl FnOnce(Builder) -> Builder,
) -> Result<Ready, LoadError> {
    let mut reader = Reader::of(dir);
    let settings = reader.settings();
    let databases = settings.as_ref().map(|settings| settings.databases.clone()).unwrap_or_default();
    let lock = reader.lock(settings.as_ref());
    let upstreams = settings.as_ref().map(|settings| settings.upstreams(dir, &lock)).unwrap_or_default();
    let databases = match purpose {
        Purpose::Run | Purpose::Serve | Purpose::Read | Purpose::Look => Databases::new(dir, databases),
        Purpose::Rehearse => Databases::rehearsed(dir, databases),
    };
    let means = Means { databases, upstreams, contracts: dir.join(reader::CONTRACTS) };
    let sources = reader.contracts();
    let policies = policies.map(|folder| reader.policies(folder)).unwrap_or_default();
    if let Some(settings) = &settings {
        reader.findings.extend(settings.identity.faults());
    }
    match (purpose, &settings) {
        // These tell of approvals, and what they tell is signed.
        (Purpose::Run | Purpose::Serve, Some(settings)) => {
            let unsigned = unsigned(&mut reader, settings);
            reader.findings.extend(unsigned);
        }
        (Purpose::Run | Purpose::Serve, None) | (Purpose::Read | Purpose::Look | Purpose::Rehearse, _) => {}
    }
    let mut builder = Gate::builder();
    for tool in reader.tools(&sources, &means) {
        builder = builder.tool(tool);
    }
    match purpose {
        Purpose::Run | Purpose::Read | Purpose::Look | Purpose::Rehearse => reader.databases(&means.databases),
        // Tools of other databases serve on; each tool of one that cannot be opened tells so itself.
        Purpose::Serve => {}
    }
    for Source { file, text, .. } in &policies {
        builder = builder.policy_file(file.to_string_lossy(), text);
    }
    let may_be_built = match purpose {
        Purpose::Serve => reader.findings.is_empty(),
        Purpose::Run | Purpose::Read | Purpose::Look | Purpose::Rehearse => {
            reader.findings.is_empty() && reader.of_tools.is_empty()
        }
    };
    let built = match settings.filter(|_| may_be_built) {
        Some(settings) => {
            let people = Arc::new(settings.identity.clone());
            let (store, kept, told) = match purpose {
                Purpose::Run | Purpose::Serve => {
                    let store = settings.store.opener(dir, StoreAt::open);
                    (store, settings.checkpoints.clone(), settings.webhook.clone())
                }
                Purpose::Read => (settings.store.opener(dir, StoreAt::open_to_read), None, None),
                Purpose::Look | Purpose::Rehearse => (StoreAt::Memory.opener(dir, StoreAt::open), None, None),
            };
            if told.is_some() {
                builder = builder.approvals_are_told();
            }
            let keeper = Keeper::new(kept, journal());
            let keeper = Arc::new(Beside::new(keeper, Messenger::new(told, journal())));
            let store = attended(store, Arc::clone(&keeper));
            if purpose == Purpose::Run || purpose == Purpose::Serve {
                let say = journal();
                builder = builder.tell(move |notice| say(Said::Warning(notice.to_string())));
            }
            builder = builder
                .standing(people)
                .limits(settings.arguments.over(Limits::default()))
                .approvals_expire(settings.asked_for, settings.granted_for)
                .approvals_pending(settings.pending.0, settings.pending.1)
                .kept(settings.kept)
                .guards(settings.guards)
                .open_store(store);
            builder = match (purpose, settings.mode) {
                // Cases say what policies are to do once they hold.
                (Purpose::Rehearse, _) => builder.enforce(),
                (Purpose::Run | Purpose::Serve | Purpose::Read | Purpose::Look, Mode::Observe) => builder.observe(),
                (Purpose::Run | Purpose::Serve | Purpose::Read | Purpose::Look, Mode::Enforce) => builder,
            };
            let observed = match settings.mode {
                Mode::Observe => reader.of_setting("mode", "observed", OBSERVED, ENFORCE),
                Mode::Enforce => None,
            };
            let Settings { identity, http, operator_speaks, .. } = settings;
            let upstreams = means.upstreams;
            let ready = |gate: Prepared| {
                let mut warnings = reader::warnings(&sources, gate.warnings(), &policies, doubts(&gate, &identity));
                warnings.extend(observed);
                warnings.extend(identity.warning().map(|told| Finding::of_file(SETTINGS, "development", told)));
                Ready { gate, identity, http, operator_speaks, set_aside: Vec::new(), warnings, upstreams, keeper }
            };
            match purpose {
                Purpose::Run | Purpose::Read | Purpose::Look | Purpose::Rehearse => {
                    adjust(builder).prepare().map(|gate| Some(ready(gate)))
                }
                Purpose::Serve => adjust(builder).prepare_without_faulty(&reader.unread).map(|sound| {
                    reader.faults(&sources, sound.tools, &policies, sound.approvals);
                    Some(ready(sound.gate))
                }),
            }
        }
        // There will be no gate, but what is wrong with the rest is told all the same.
        None => builder.check(&reader.unread).map(|()| None),
    };
    match built {
        Ok(Some(ready)) => Ok(Ready { set_aside: reader.set_aside(), ..ready }),
        Ok(None) => Err(reader.end()),
        Err(BuildError::Store(error)) => Err(LoadError::Store(error)),
        Err(BuildError::NoStore) => Err(LoadError::Findings(vec![Finding::of_file(SETTINGS, "required", "no store")])),
        Err(BuildError::Faults { tools, policies: wrong }) => {
            reader.faults(&sources, tools, &policies, wrong);
            Err(reader.end())
        }
    }
}

/// What of the policies is probably not meant, and which of their roles nobody has, where the folder lists its people.
fn doubts(gate: &Prepared, identity: &Identity) -> Vec<PolicyFault> {
    let mut doubts = gate.policy_warnings();
    if let Identity::Local(_) = identity {
        let has = identity.people().roles;
        let lacking = gate.named_roles().iter().filter(|named| !has.contains(&named.role));
        doubts.extend(lacking.map(|named| PolicyFault {
            hint: nearest(&named.role, has.iter().map(String::as_str)),
            ..named.nobody.clone()
        }));
    }
    doubts
}

/// What is wrong with the secret by which approvals are told, where a folder names one. Only who tells needs it, and a check
/// says so before.
pub(crate) fn webhook_fault(dir: &Path) -> Option<Finding> {
    let mut reader = Reader::of(dir);
    let settings = reader.settings()?;
    unsigned(&mut reader, &settings)
}

fn unsigned(reader: &mut Reader<'_>, settings: &Settings) -> Option<Finding> {
    let missing = settings.webhook.as_ref()?.secret().err()?;
    let hint = "set it where the gate runs; approvals are told to nobody without it";
    reader.of_setting("approvals/webhook/secret", "no_secret", &missing.to_string(), hint)
}

/// Opens a store, of which checkpoints are kept and approvals are told from then on.
fn attended(
    open: impl Fn() -> Result<Store, StoreError> + Send + Sync + 'static,
    keeper: Arc<Beside>,
) -> impl Fn() -> Result<Store, StoreError> + Send + Sync + 'static {
    move || {
        let store = open()?;
        keeper.attend(&store)?;
        Ok(store)
    }
}

/// Where checkpoints of the record of a folder are kept, whatever is wrong with its contracts.
pub(crate) fn checkpoints(dir: &Path) -> Result<Option<Checkpoints>, LoadError> {
    let mut reader = Reader::of(dir);
    match reader.settings() {
        Some(settings) => Ok(settings.checkpoints),
        None => Err(reader.end()),
    }
}

/// Opens the store of a folder to look at it, whatever is wrong with its contracts: evidence is needed most when
/// something is.
pub fn open_store(dir: &Path) -> Result<Store, LoadError> {
    let mut reader = Reader::of(dir);
    match reader.settings() {
        Some(settings) if settings.store.exists(dir) => Ok(settings.store.open_to_read(dir)?),
        Some(_) => Err(LoadError::NoStore),
        None => Err(reader.end()),
    }
}

/// Opens the store of a folder to change it, whatever is wrong with its contracts.
pub fn open_store_to_write(dir: &Path) -> Result<Store, LoadError> {
    let mut reader = Reader::of(dir);
    match reader.settings() {
        Some(_) if !reader.findings.is_empty() => Err(reader.end()),
        Some(settings) if settings.store.exists(dir) => Ok(settings.store.open(dir)?),
        Some(_) => Err(LoadError::NoStore),
        None => Err(reader.end()),
    }
}

/// Opens the store of a folder to change it, and makes it if it is not there, whatever is wrong with its contracts.
pub(crate) fn open_store_at_once(dir: &Path) -> Result<Store, LoadError> {
    let mut reader = Reader::of(dir);
    match reader.settings() {
        Some(settings) if reader.findings.is_empty() => Ok(settings.store.open(dir)?),
        Some(_) | None => Err(reader.end()),
    }
}

/// The names of the tools of a folder, sorted, whatever is wrong with their contracts.
pub(crate) fn tool_names(dir: &Path) -> Vec<String> {
    let mut reader = Reader::of(dir);
    let read = reader.contracts();
    let mut names: Vec<String> = read.iter().map(Source::tool).chain(reader.unread).collect();
    names.sort();
    names
}

/// The names of the tools of a folder whose contracts surely mark nothing as secret or personal, whatever else is wrong
/// with them.
pub(crate) fn unmarked_tools(dir: &Path) -> BTreeSet<String> {
    let unmarked = |source: &Source| !["x-secret", "x-personal"].iter().any(|mark| source.text.contains(mark));
    Reader::of(dir).contracts().iter().filter(|source| unmarked(source)).map(Source::tool).collect()
}

/// The cases of a folder, a file and its text each, and what is wrong with the files themselves.
pub(crate) fn cases(dir: &Path) -> (Vec<(PathBuf, String)>, Vec<Finding>) {
    let mut reader = Reader::of(dir);
    let sources = reader.cases();
    (sources.into_iter().map(|Source { file, text, .. }| (file, text)).collect(), reader.findings)
}

/// Where the people of a folder come from, whatever is wrong with its contracts.
pub fn identity(dir: &Path) -> Result<Identity, LoadError> {
    let mut reader = Reader::of(dir);
    match reader.settings() {
        Some(settings) if reader.findings.is_empty() => Ok(settings.identity),
        Some(_) | None => Err(reader.end()),
    }
}

/// What is told of a gate whose policies are only observed, and what to do.
const OBSERVED: &str = "policies refuse no call: what they would have refused is only on record";
const ENFORCE: &str = "say mode = \"enforce\" once `toolgate audit DIR observed` shows what is meant";

/// The file of the folder's settings.
const SETTINGS: &str = "toolgate.toml";
/// The folder of the policies.
const POLICIES: &str = "policies";
/// The file of what was imported.
const LOCK: &str = "toolgate.lock";
