//! What is offered at one time, and what is off and why: a gate in memory, from one list of the server.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value, json};
use tokio::sync::OnceCell;
use tokio::time::Instant;
use toolgate::contract::Access;
use toolgate::gate::{BuildError, Prepared};
use toolgate::guards::Guards;
use toolgate::ledger::StoreError;
use toolgate::session::Session;
use toolgate::{Gate, Tool};

use super::pins::{Pins, Standing};
use super::policy::Writes;
use super::state::State;
use super::status::{STATUS, Status};
use crate::backend::mcp::{Compare, Connections, Mcp, Results};
use crate::import::{Import, Imported, Quarantined};
use crate::mcp::upstream::{Clearance, Mark, Upstream};

/// A gate over the tools of one list.
pub(super) struct Desk {
    prepared: Arc<Prepared>,
    gate: OnceCell<Gate>,
    pub(super) offer: Offer,
    /// The connection that calls may use: the one that was compared.
    clearance: Clearance,
}

/// What there is, for a person to see.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Offer {
    pub(super) offered: Vec<Offered>,
    pub(super) off: Vec<Quarantined>,
    /// What the person said that fits no tool.
    pub(super) remarks: Vec<String>,
}

/// A tool that can be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Offered {
    pub(super) name: String,
    pub(super) access: Access,
    pub(super) notes: Vec<String>,
}

/// What every desk is made with.
#[derive(Clone)]
pub(super) struct Makings {
    pub(super) upstream: Upstream,
    pub(super) state: Arc<State>,
    pub(super) writes: Writes,
    pub(super) session: Session,
    pub(super) status: Arc<Status>,
    pub(super) compare: Compare,
}

/// What of a list can be used, and what not.
pub(super) struct Sorted {
    kept: Vec<Imported>,
    off: Vec<Quarantined>,
}

/// How long a call may take. A write that is cut off is unknown, so this is long; a client has patience of its own.
const DEADLINE: &str = "5m";
const MAX_RESULT: &str = "1MB";

impl Sorted {
    /// Sorts a list. `off_for_good` are names that were not what was pinned before, in this process: they stay off.
    pub(super) fn of(import: Import, pins: &Pins, off_for_good: &mut BTreeMap<String, String>) -> Self {
        let Import { tools, quarantined: mut off } = import;
        let mut kept = Vec::new();
        for tool in tools {
            let reason = match pins.standing(&tool) {
                Standing::Pinned => None,
                Standing::Changed => Some("its definition is not the one that was pinned; --repin accepts it"),
                Standing::New => Some("it was not there when the tools were pinned; --repin accepts it"),
            };
            if let Some(reason) = reason {
                off_for_good.entry(tool.name.clone()).or_insert_with(|| reason.to_owned());
            }
            match off_for_good.get(&tool.name) {
                None => kept.push(tool),
                Some(reason) => off.push(Quarantined { name: tool.name, reason: reason.clone() }),
            }
        }
        let listed: BTreeSet<&str> = kept.iter().map(|tool| tool.name.as_str()).collect();
        let told: BTreeSet<&str> = off.iter().map(|off| off.name.as_str()).collect();
        let gone = pins.tools().filter(|name| !listed.contains(name.as_str()) && !told.contains(name.as_str()));
        let gone: Vec<Quarantined> = gone
            .map(|name| Quarantined { name: name.clone(), reason: "the server does not list it at present".to_owned() })
            .collect();
        off.extend(gone);
        Self { kept, off }
    }
}

impl Desk {
    /// The desk before anything was listed: it tells its status and no more.
    pub(super) fn bare(makings: &Makings) -> Result<Self, String> {
        Self::new(makings, Sorted { kept: Vec::new(), off: Vec::new() })
    }

    /// The desk of a list. Its contracts and policies are compiled, which takes a while.
    pub(super) fn new(makings: &Makings, sorted: Sorted) -> Result<Self, String> {
        let Sorted { kept: mut tools, mut off } = sorted;
        let clearance = Clearance::default();
        // A tool that cannot be judged is set aside; the others are not held up by it.
        let prepared = loop {
            match prepare(makings, &tools, &clearance) {
                Ok(prepared) => break prepared,
                Err(BuildError::Faults { tools: faults, policies }) => {
                    let before = tools.len();
                    let faults = faults.into_iter().map(|fault| (fault.tool, fault.problem.message));
                    let of_policies =
                        policies.iter().filter_map(|fault| Some((fault.tool()?.to_owned(), fault.message.clone())));
                    for (name, reason) in faults.chain(of_policies) {
                        if let Some(index) = tools.iter().position(|tool| tool.name == name) {
                            tools.remove(index);
                            off.push(Quarantined { name, reason });
                        }
                    }
                    if tools.len() == before {
                        let why = policies.first().map(ToString::to_string).unwrap_or_default();
                        return Err(format!("no gate can be made over its tools: {why}"));
                    }
                }
                Err(error @ (BuildError::NoStore | BuildError::Store(_))) => return Err(error.to_string()),
            }
        };
        let visible: BTreeSet<&str> = prepared.tools(&makings.session).iter().map(|tool| tool.name()).collect();
        let (shown, hidden): (Vec<Imported>, Vec<Imported>) =
            tools.into_iter().partition(|tool| visible.contains(tool.name.as_str()));
        let remarks = remarks(&makings.writes, &shown, &hidden);
        off.extend(hidden.into_iter().map(|tool| {
            let mut reason = "it writes, and is not permitted".to_owned();
            if let Some(note) = tool.notes.first() {
                reason = format!("{reason} ({note})");
            }
            Quarantined { name: tool.name, reason }
        }));
        off.sort_by(|a, b| a.name.cmp(&b.name));
        let offered = shown.into_iter().map(|Imported { name, access, notes, .. }| Offered { name, access, notes });
        let offer = Offer { offered: offered.collect(), off, remarks };
        drop(visible);
        Ok(Self { prepared: Arc::new(prepared), gate: OnceCell::new(), offer, clearance })
    }

    /// Lets calls use the connection of this mark, which was compared just now.
    pub(super) fn clear(&self, mark: Mark, until: Instant) {
        self.clearance.grant(mark, until);
    }

    /// Keeps calls back until there was a comparison.
    pub(super) fn suspend(&self) {
        self.clearance.withdraw();
    }

    /// Whether the server was compared, not too long ago, and has told of no change since.
    pub(super) fn stands(&self, upstream: &Upstream) -> bool {
        self.clearance.stands(upstream).is_some()
    }

    /// The definitions of what is offered.
    pub(super) fn definitions(&self, session: &Session) -> Vec<Value> {
        self.prepared.tools(session).into_iter().map(toolgate::wire::mcp::definition).collect()
    }

    /// The gate, opened by the first call.
    pub(super) async fn gate(&self) -> Result<&Gate, StoreError> {
        let opened = self.gate.get_or_try_init(|| async {
            let prepared = Arc::clone(&self.prepared);
            // It waits for a disk, and perhaps for another process.
            let opened = tokio::task::spawn_blocking(move || prepared.open()).await;
            let gate: Gate = opened.unwrap_or_else(|lost| Err(StoreError::Broken(lost.to_string())))?;
            // A store that fails in this fails the next call too, and loudly.
            gate.keep(|_| {});
            Ok(gate)
        });
        opened.await
    }

    /// The gate, if a call has opened it.
    pub(super) fn opened(&self) -> Option<&Gate> {
        self.gate.get()
    }
}

fn prepare(makings: &Makings, tools: &[Imported], clearance: &Clearance) -> Result<Prepared, BuildError> {
    let names: BTreeSet<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let state = Arc::clone(&makings.state);
    let builder = Gate::builder()
        .policy_file("wrap.cedar", makings.writes.policy(&state.confirm("ID"), Some(&names)))
        .tool(Tool::new(STATUS, super::status::contract(), Arc::clone(&makings.status) as _))
        // One process for one person: there are no doors of others to try.
        .guards(Guards::off())
        .open_store(move || state.store());
    tools.iter().fold(builder, |builder, tool| builder.tool(governed(tool, makings, clearance))).prepare()
}

/// The contract of an imported tool. All writes of the run are in one order, and a repeat of one is the same action while
/// nothing else was written.
fn governed(tool: &Imported, makings: &Makings, clearance: &Clearance) -> Tool {
    let mut keys: Map<String, Value> = tool.keys.clone();
    keys.insert("deadline".to_owned(), json!(DEADLINE));
    keys.insert("max_result".to_owned(), json!(MAX_RESULT));
    keys.insert("backend".to_owned(), json!({ "kind": "mcp", "upstream": "wrapped" }));
    if tool.access == Access::Write {
        keys.insert("once".to_owned(), json!({ "scope": "run", "repeat": "after_other", "retain": "2m" }));
        keys.insert("lane".to_owned(), json!({ "scope": "run" }));
    }
    let results = if keys.contains_key("output") { Results::Structured } else { Results::Content };
    let over = Connections::Cleared(clearance.clone(), Arc::clone(&makings.compare));
    let mcp = Mcp::new(makings.upstream.clone(), tool.name.clone(), tool.access, results, over);
    Tool::new(tool.name.clone(), keys, Arc::new(mcp))
}

/// What was said of names that does not fit.
fn remarks(writes: &Writes, shown: &[Imported], hidden: &[Imported]) -> Vec<String> {
    let Writes::Named(names) = writes else { return Vec::new() };
    let remark = |name: &String| {
        let tool = shown.iter().chain(hidden).find(|tool| tool.name == *name);
        match tool.map(|tool| tool.access) {
            Some(Access::Write) => None,
            Some(Access::Read) => Some(format!("--allow names {name}, which only reads and is offered in any case")),
            None => Some(format!("--allow names {name}, and no such tool can be offered")),
        }
    };
    names.iter().filter_map(remark).collect()
}
