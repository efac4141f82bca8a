//! Building a gate: everything is checked before there is one, and every problem is told at once.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::task::TaskTracker;

use super::keeper::Keeper;
use super::late::Desk;
use super::notice::{Notice, Tell, Teller};
use super::recorder::Recorder;
use super::{Gate, Line, records};
use crate::catalogue::Catalogue;
use crate::clock::{Clock, Given, SystemClock};
use crate::contract::{Contract, Registry, Tool, ToolFault};
use crate::facts::Facts;
use crate::guards::{Guards, Refusals};
use crate::json::Limits;
use crate::ledger::{Asking, Store, StoreError};
use crate::modes::Modes;
use crate::policy::{Absent, ApprovalSugar, FactShape, NamedRole, Policies, PolicyFault, PolicySource, PolicyTool};
use crate::recovery::Recovery;
use crate::redaction::{Kept, Redaction};
use crate::session::{Session, Standing};
use crate::stage::admit::Admit;
use crate::stage::inform::Inform;
use crate::stage::permit::Permit;
use crate::stage::reserve::Reserve;
use crate::stage::run::Run;
use crate::stage::settle::Settle;
use crate::stoppage::View;

/// What a gate is built from. Tools, policies and a store must be given; everything else has a default that is safe.
pub struct Builder {
    tools: Vec<Tool>,
    policies: Vec<(String, String)>,
    store: Option<OpenStore>,
    clock: Given,
    standing: Option<Arc<dyn Standing>>,
    limits: Limits,
    asked_for: Duration,
    granted_for: Duration,
    asking: Asking,
    kept: Kept,
    modes: Modes,
    guards: Guards,
    tell: Option<Arc<Tell>>,
}

/// Opens the store, once everything else is known to be right.
type OpenStore = Box<dyn Fn() -> Result<Store, StoreError> + Send + Sync>;

/// A gate whose contracts and policies are right, and which has opened nothing yet.
pub struct Prepared {
    registry: Arc<Registry>,
    policies: Arc<Policies>,
    catalogue: Arc<Catalogue>,
    store: OpenStore,
    clock: Given,
    standing: Option<Arc<dyn Standing>>,
    limits: Limits,
    asked_for: Duration,
    granted_for: Duration,
    asking: Asking,
    kept: Kept,
    modes: Modes,
    guards: Guards,
    tell: Option<Arc<Tell>>,
}

/// Why there is no gate.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// No store was given, so nothing could be promised of writes.
    #[error("a gate needs a store: Store::sqlite(path), or Store::memory() where nothing must survive the process")]
    NoStore,
    /// The store cannot be opened or written.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// Contracts or policies are wrong.
    #[error("{}", Listed { tools, policies })]
    Faults {
        /// What is wrong with contracts.
        tools: Vec<ToolFault>,
        /// What is wrong with policies.
        policies: Vec<PolicyFault>,
    },
}

/// A gate without the tools that have faults.
#[derive(Debug)]
pub struct Sound {
    /// The gate, to be opened.
    pub gate: Prepared,
    /// What is wrong with the contracts of the tools that it does without.
    pub tools: Vec<ToolFault>,
    /// What is wrong with the key `approval` of such a contract, which is a policy.
    pub approvals: Vec<PolicyFault>,
}

const HOUR: Duration = Duration::from_secs(3600);
const ASKING: Asking = Asking { most_of_user: 20, most_of_tenant: 200, tell: false };

impl Default for Builder {
    fn default() -> Self {
        Self {
            tools: Vec::new(),
            policies: Vec::new(),
            store: None,
            clock: Given::wall(Arc::new(SystemClock)),
            standing: None,
            limits: Limits::default(),
            asked_for: HOUR,
            granted_for: HOUR,
            asking: ASKING,
            kept: Kept::default(),
            modes: Modes::default(),
            guards: Guards::default(),
            tell: None,
        }
    }
}

impl Builder {
    /// Declares a tool.
    #[must_use]
    pub fn tool(mut self, tool: Tool) -> Self {
        self.tools.push(tool);
        self
    }

    /// Adds policies in the Cedar language. Without a permit nothing is permitted.
    #[must_use]
    pub fn policy(self, text: impl Into<String>) -> Self {
        let name = format!("policy {}", self.policies.len() + 1);
        self.policy_file(name, text)
    }

    /// Adds policies in the Cedar language, with the name that faults call them by.
    #[must_use]
    pub fn policy_file(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.policies.push((name.into(), text.into()));
        self
    }

    /// Where actions, approvals and records are kept.
    #[must_use]
    pub fn store(self, store: Store) -> Self {
        self.open_store(move || Ok(store.clone()))
    }

    /// Opens the store once contracts and policies are known to be right, so that a gate with faults leaves nothing.
    #[must_use]
    pub fn open_store(mut self, open: impl Fn() -> Result<Store, StoreError> + Send + Sync + 'static) -> Self {
        self.store = Some(Box::new(open));
        self
    }

    /// A clock that is taken at its word, but never before the latest moment that the store has seen. Without one the
    /// gate's time is that of the machine, which nobody can set: see [`clock`](crate::clock).
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Given::Whole(clock);
        self
    }

    /// The clock on the wall, by which the gate's time begins and is slowly corrected; the operating system's if not set.
    #[must_use]
    pub fn wall_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Given::wall(clock);
        self
    }

    /// The clocks of a machine that a test moves.
    #[cfg(test)]
    pub(super) fn machine(mut self, machine: Arc<dyn crate::clock::Ruler>) -> Self {
        self.clock = Given::Machine(machine);
        self
    }

    /// The source that lists people's roles today. Without one an approver counts with the roles of their approval.
    #[must_use]
    pub fn standing(mut self, standing: Arc<dyn Standing>) -> Self {
        self.standing = Some(standing);
        self
    }

    /// The bounds of argument texts.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// How long a pending approval can be answered, and how long a grant can be used; an hour each if not set.
    #[must_use]
    pub fn approvals_expire(mut self, asked_for: Duration, granted_for: Duration) -> Self {
        self.asked_for = asked_for;
        self.granted_for = granted_for;
        self
    }

    /// How many approvals may be pending of one person and of one tenant; 20 and 200 if not set. The call that would be
    /// one more is refused as `limit_reached`, and nobody is asked.
    #[must_use]
    pub fn approvals_pending(mut self, of_user: usize, of_tenant: usize) -> Self {
        self.asking = Asking { most_of_user: of_user, most_of_tenant: of_tenant, ..self.asking };
        self
    }

    /// Keeps of each approval that it is still to be told of, for whoever takes them from the store and tells somebody
    /// outside: see [`Store::untold`]. Without it nothing is kept.
    #[must_use]
    pub fn approvals_are_told(mut self) -> Self {
        self.asking.tell = true;
        self
    }

    /// Whether records hold the arguments, raw texts and facts of calls, or digests of them alone.
    #[must_use]
    pub fn kept(mut self, kept: Kept) -> Self {
        self.kept = kept;
        self
    }

    /// Only observes what policies say: what they would refuse is on record, and the call goes on. A contract that says
    /// `mode = "enforce"` is held to all the same, and so is everything that no policy says: who is asking, contracts,
    /// another tenant's resource, facts, limits and the ledger.
    #[must_use]
    pub fn observe(mut self) -> Self {
        self.modes = Modes::Observed;
        self
    }

    /// Holds calls to the policies whatever contracts and [`Builder::observe`] said, as one that tries policies does.
    #[must_use]
    pub fn enforce(mut self) -> Self {
        self.modes = Modes::AlwaysEnforced;
        self
    }

    /// What ends a run that only tries doors: [`Guards::default`] if not set, nothing with [`Guards::off`].
    #[must_use]
    pub fn guards(mut self, guards: Guards) -> Self {
        self.guards = guards;
        self
    }

    /// Who hears, while the gate stands, of what its operator must mend; at most once a minute of one tool. It must not
    /// block: the call that it is of waits for it.
    #[must_use]
    pub fn tell(mut self, tell: impl Fn(&Notice) + Send + Sync + 'static) -> Self {
        self.tell = Some(Arc::new(tell));
        self
    }

    /// Everything that is wrong, where some contracts could not even be read: `unread` names their tools. Nothing is
    /// opened.
    pub fn check(self, unread: &[String]) -> Result<(), BuildError> {
        examine(self.tools, &self.policies, unread).map(drop)
    }

    /// The gate, or everything that is wrong.
    pub fn build(self) -> Result<Gate, BuildError> {
        Ok(self.prepare()?.open()?)
    }

    /// What is left to do once everything is known to be right: to open the store.
    pub fn prepare(mut self) -> Result<Prepared, BuildError> {
        let (registry, policies) = examine(std::mem::take(&mut self.tools), &self.policies, &[])?;
        self.prepared(registry, policies)
    }

    /// The gate of the tools whose contracts hold, for a server that must stay up: a tool with faults is set aside, and
    /// with it each that rests on it. `unread` names tools whose contracts could not even be read. Faults of policies
    /// are faults of the gate all the same; what a policy says of tools that are set aside, and of no other, goes with
    /// them.
    pub fn prepare_without_faulty(mut self, unread: &[String]) -> Result<Sound, BuildError> {
        let (mut registry, mut faults) = Registry::build(std::mem::take(&mut self.tools), unread);
        let mut approvals: Vec<PolicyFault> = Vec::new();
        let mut aside: BTreeSet<String> = unread.iter().cloned().chain(faults.iter().map(|f| f.tool.clone())).collect();
        let policies = loop {
            registry.rest_on(&mut aside, &mut faults);
            let wide = vocabulary(&registry, &absent(&registry, &faults, unread));
            let narrow = vocabulary(&registry, &aside);
            // A policy of many tools may name what only one of those has that are set aside. Where their contracts
            // can be read it is held to them as well: for the tools that are there it means the same.
            let compiled = compile(&self.policies, &wide, Absent::SetAside(&aside));
            match compiled.or_else(|_| compile(&self.policies, &narrow, Absent::SetAside(&aside))) {
                Ok(policies) => break policies,
                Err(wrong) => {
                    let (own, others): (Vec<_>, Vec<_>) = wrong.into_iter().partition(|fault| fault.tool().is_some());
                    if own.is_empty() {
                        return Err(BuildError::Faults { tools: faults, policies: others });
                    }
                    // Each round takes a tool out of the narrow vocabulary, so this ends.
                    aside.extend(own.iter().filter_map(PolicyFault::tool).map(str::to_owned));
                    approvals.extend(own);
                }
            }
        };
        registry.set_aside(&aside);
        Ok(Sound { gate: self.prepared(registry, policies)?, tools: faults, approvals })
    }

    fn prepared(self, registry: Registry, policies: Policies) -> Result<Prepared, BuildError> {
        let (registry, policies) = (Arc::new(registry), Arc::new(policies));
        Ok(Prepared {
            catalogue: Arc::new(Catalogue::new(Arc::clone(&registry), Arc::clone(&policies), self.modes)),
            registry,
            policies,
            store: self.store.ok_or(BuildError::NoStore)?,
            clock: self.clock,
            standing: self.standing,
            limits: self.limits,
            asked_for: self.asked_for,
            granted_for: self.granted_for,
            asking: self.asking,
            kept: self.kept,
            modes: self.modes,
            guards: self.guards,
            tell: self.tell,
        })
    }
}

impl Prepared {
    /// The tools that this session may see, by name.
    pub fn tools(&self, session: &Session) -> Vec<&Contract> {
        self.catalogue.of(session).collect()
    }

    /// All contracts, by name, whoever may see them.
    pub fn contracts(&self) -> impl Iterator<Item = &Contract> {
        self.registry.iter().map(|tool| &*tool.contract)
    }

    /// What of its contracts holds and is probably not meant, each by itself and beside the others.
    pub fn warnings(&self) -> Vec<ToolFault> {
        self.registry.warnings()
    }

    /// The tools whose policies are only observed, by name.
    pub fn observed(&self) -> impl Iterator<Item = &Contract> {
        self.catalogue.observed()
    }

    /// What of its policies holds and is probably not meant.
    pub fn policy_warnings(&self) -> Vec<PolicyFault> {
        doubted(&self.registry, &self.policies)
    }

    /// The roles that its policies name, for whoever knows who has which.
    pub fn named_roles(&self) -> &[NamedRole] {
        self.policies.roles()
    }

    /// Opens the store, and with it the gate.
    pub fn open(&self) -> Result<Gate, StoreError> {
        let store = (self.store)()?;
        let (registry, policies) = (Arc::clone(&self.registry), Arc::clone(&self.policies));
        let clock = self.clock.over(store.water()?);
        let facts = Facts::new(Arc::clone(&registry), Arc::clone(&clock));
        let redaction = Redaction::new(store.key().clone(), self.kept);
        let scribe = Arc::new(records::Entries::new(&registry, &redaction));
        let recovery = Recovery::new(store.clone(), Arc::clone(&registry), facts.clone(), Arc::clone(&clock), scribe);
        let keeper = Keeper::new(store.clone(), recovery.clone(), Arc::clone(&registry), Arc::clone(&clock));
        let stops = View::new(store.clone());
        let (tasks, recorder) = (TaskTracker::new(), Arc::new(Recorder::new(store.clone())));
        let settle = Settle::new(store.clone(), Arc::clone(&clock));
        let desk = Arc::new(Desk::new(settle.clone(), Arc::clone(&recorder), tasks.clone(), redaction.clone()));
        let line = Line {
            admit: Admit::new(Arc::clone(&self.catalogue), self.limits, redaction.clone()),
            inform: Inform::new(
                store.clone(),
                facts,
                recovery.clone(),
                Arc::clone(&policies),
                Arc::clone(&clock),
                stops.clone(),
                policies.tracked().or(registry.tracked()),
            ),
            permit: Permit::new(
                Arc::clone(&policies),
                self.standing.clone(),
                Arc::clone(&clock),
                self.asked_for,
                self.modes,
            ),
            reserve: Reserve::new(store.clone(), self.standing.clone(), Arc::clone(&clock), redaction.clone()),
            run: Run::new(&registry, desk, Arc::clone(&clock)),
            settle,
            refusals: Refusals::new(self.guards.bound(), store.clone(), Arc::clone(&clock)),
            registry,
            policies,
            catalogue: Arc::clone(&self.catalogue),
            recovery,
            redaction,
            stops,
            store,
            clock,
            granted_for: self.granted_for,
            asking: self.asking,
            answered: Notify::new(),
            teller: Teller::new(self.tell.clone()),
        };
        Ok(Gate {
            line: Arc::new(line),
            tasks,
            recorder,
            keeper: Arc::new(keeper),
            closing: Arc::new(AtomicBool::new(false)),
        })
    }
}

/// The tools and the policies, or every fault of both.
fn examine(
    tools: Vec<Tool>,
    texts: &[(String, String)],
    unread: &[String],
) -> Result<(Registry, Policies), BuildError> {
    let (registry, faults) = Registry::build(tools, unread);
    let absent = absent(&registry, &faults, unread);
    match compile(texts, &vocabulary(&registry, &absent), Absent::Faulty(&absent)) {
        Ok(policies) if faults.is_empty() => Ok((registry, policies)),
        compiled => Err(BuildError::Faults { tools: faults, policies: compiled.err().unwrap_or_default() }),
    }
}

/// The tools that policies cannot be held to: those whose contracts could not be read or parsed, and those with a fact
/// of which nothing is known.
fn absent(registry: &Registry, faults: &[ToolFault], unread: &[String]) -> BTreeSet<String> {
    let unparsed = faults.iter().map(|fault| &fault.tool).filter(|tool| registry.get(tool).is_none());
    // A contract that rests on another one holds only with it.
    let known = |tool: &str| registry.get(tool).is_some_and(|tool| tool.contract.output.is_some());
    let contracts = registry.iter().map(|tool| &*tool.contract);
    let shaky = contracts.filter(|contract| contract.facts.values().any(|fact| !known(&fact.tool)));
    unread.iter().chain(unparsed).chain(shaky.map(|contract| &contract.name)).cloned().collect()
}

/// What is to be doubted in the policies, unless a contract says that it is meant.
pub(super) fn doubted(registry: &Registry, policies: &Policies) -> Vec<PolicyFault> {
    let is_meant = |tool: &String, member: &String| {
        registry.get(tool).is_some_and(|tool| tool.contract.meant_otherwise.contains(member))
    };
    let doubts = policies.doubts().iter().filter(|doubt| match &doubt.unless_meant {
        Some((tools, member)) => !tools.iter().all(|tool| is_meant(tool, member)),
        None => true,
    });
    let mut faults: Vec<PolicyFault> = doubts.map(|doubt| doubt.fault.clone()).collect();
    faults.sort();
    faults
}

fn vocabulary<'a>(registry: &'a Registry, without: &BTreeSet<String>) -> Vec<PolicyTool<'a>> {
    let contracts = registry.iter().map(|tool| &*tool.contract).filter(|contract| !without.contains(&contract.name));
    contracts.map(|contract| policy_tool(registry, contract)).collect()
}

fn compile(
    texts: &[(String, String)],
    tools: &[PolicyTool<'_>],
    absent: Absent<'_>,
) -> Result<Policies, Vec<PolicyFault>> {
    let sources: Vec<PolicySource<'_>> = texts.iter().map(|(name, text)| PolicySource { name, text }).collect();
    Policies::compile(&sources, tools, absent)
}

fn policy_tool<'a>(registry: &'a Registry, contract: &'a Contract) -> PolicyTool<'a> {
    let own = contract.resource.as_ref().map(|resource| resource.fact.as_str());
    let shape = |(name, fact): (&'a String, &'a crate::contract::Fact)| {
        let output = registry.get(&fact.tool)?.contract.output.as_ref()?.document();
        Some(FactShape { name, output, required: own == Some(name) })
    };
    PolicyTool {
        name: &contract.name,
        write: contract.is_write(),
        tags: &contract.tags,
        groups: registry.get(&contract.name).map_or(&[], |tool| tool.groups.as_slice()),
        input: contract.input.document(),
        facts: contract.facts.iter().filter_map(shape).collect(),
        resource: contract.resource.as_ref().map(|resource| resource.kind.as_str()),
        approval: contract.approval.as_ref().map(|rule| ApprovalSugar {
            when: &rule.when,
            approvers: rule.approvers.clone(),
            message: rule.message.as_deref(),
        }),
        requires: &contract.requires,
        sink: contract.labels.sink.as_deref(),
        labels: &contract.labels.result,
    }
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prepared").finish_non_exhaustive()
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("tools", &self.tools).finish_non_exhaustive()
    }
}

/// Every fault, a line each.
struct Listed<'a> {
    tools: &'a [ToolFault],
    policies: &'a [PolicyFault],
}

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.tools.len() + self.policies.len();
        write!(f, "{count} fault{} in contracts and policies", if count == 1 { "" } else { "s" })?;
        for ToolFault { tool, problem } in self.tools {
            write!(f, "\n{tool}{}: {}", problem.at, problem.message)?;
            if let Some(hint) = &problem.hint {
                write!(f, " ({hint})")?;
            }
        }
        for fault in self.policies {
            write!(f, "\n{fault}")?;
        }
        Ok(())
    }
}
