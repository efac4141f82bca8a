//! `toolgate ledger`: the actions of a gate, and an operator's word on those of which nobody knows what became.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use serde_json::Value;
use toolgate::clock::Millis;
use toolgate::gate::{NotRuled, Ruling};
use toolgate::json::{self, Limits};
use toolgate::ledger::{ActionState, Listed, NotNamed, Store, Wanted};
use toolgate::schema::Problem;

use super::failure::FailureCode;
use super::patience::patiently;
use super::why;
use super::{Exit, Failure, Output, find_folder, load, open_store};
use crate::config::{self, Loaded, Purpose};
use crate::shown::{self, Names};

/// Look at actions, and say what became of unknown ones.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  toolgate ledger shop list --unknown\n  toolgate ledger shop resolve 3f9a1c04 done --why 'paid, see bank'"
)]
pub(super) struct Ledger {
    /// The gate folder
    dir: Option<PathBuf>,
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the actions of all tenants, newest first
    #[command(after_help = "Example:\n  toolgate ledger shop list --unknown")]
    #[command(group = ArgGroup::new("standing").args(["unknown", "open", "state"]))]
    List(List),
    /// Show one action and what the record tells of it
    #[command(after_help = "Example:\n  toolgate ledger shop show 3f9a1c04")]
    Show {
        /// Its key, at least 8 digits of it, or the `ref` of a call
        key: String,
        /// Print one line of JSON
        #[arg(long)]
        json: bool,
    },
    /// Say what became of an action that is unknown
    #[command(after_help = "Example:\n  toolgate ledger shop resolve 3f9a1c04 none --why 'the bank has none'")]
    Resolve(Resolve),
}

#[derive(Debug, Args)]
struct List {
    /// Those of which nobody knows what became
    #[arg(long)]
    unknown: bool,
    /// Those that may be running
    #[arg(long)]
    open: bool,
    /// Those in this state: open, unknown, done or failed
    #[arg(long, value_name = "STATE", value_parser = state)]
    state: Option<ActionState>,
    /// Those of one tool
    #[arg(long, value_name = "TOOL")]
    tool: Option<String>,
    /// Those of one tenant
    #[arg(long, value_name = "TENANT")]
    tenant: Option<String>,
    /// How many
    #[arg(short = 'n', long, default_value_t = 20)]
    count: usize,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct Resolve {
    /// Its key, at least 8 digits of it, or the `ref` of a call
    key: String,
    /// What became of it
    #[arg(value_enum, value_name = "done|none", hide_possible_values = true)]
    outcome: Outcome,
    /// How you know: it stands on the record
    #[arg(long, value_name = "TEXT")]
    why: String,
    /// What the tool would have answered, where it is done and that is known
    #[arg(long, value_name = "JSON")]
    result: Option<String>,
    /// Speak as a user whom the folder lists, not as yourself
    #[arg(long = "as", value_name = "USER@TENANT")]
    user: Option<String>,
    /// Tell whether it could be said, and say nothing
    #[arg(long)]
    dry_run: bool,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

/// What an operator found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Outcome {
    /// It happened
    Done,
    /// It did not happen
    None,
}

/// How long a reason may be, in characters.
const LONGEST_WHY: usize = 1000;

/// How many digits of a key a list shows: enough to name it.
const SHOWN_DIGITS: usize = 12;

fn state(text: &str) -> Result<ActionState, String> {
    let names = || ActionState::ALL.map(ActionState::as_str).join(", ");
    ActionState::parse(text).ok_or_else(|| format!("known: {}", names()))
}

impl Ledger {
    pub(super) async fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let dir = find_folder(self.dir)?;
        match self.action {
            Action::List(list) => list.run(&dir, output).await,
            Action::Show { key, json } => {
                let store = open_store(&dir, output)?;
                let namer = Namer::of(&store, &dir);
                let action = named(&store, &key, &dir).await?;
                let history = store.history_of(&action).await?;
                let records = &history.records;
                if json {
                    let records: Vec<Value> = records.iter().map(why::body).collect();
                    output.json(&shown::with(namer.shown(&action), "records", records));
                } else {
                    let sent_as =
                        records.iter().rev().find_map(|record| Some(why::sent_as(&why::body(record))?.to_owned()));
                    show(&action, &namer, sent_as.as_deref(), output);
                    records.iter().for_each(|record| why::show(record, output));
                }
                if !history.whole {
                    output.note("only a part of the record was looked through: later attempts may stand in the rest");
                }
                output.next(&advice(&action, &namer, &dir));
                Ok(Exit::Ok)
            }
            Action::Resolve(resolve) => resolve.run(&dir, output).await,
        }
    }
}

impl List {
    async fn run(self, dir: &Path, output: &mut Output) -> Result<Exit, Failure> {
        let store = open_store(dir, output)?;
        let namer = Namer::of(&store, dir);
        let state = match (self.unknown, self.open) {
            (true, _) => Some(ActionState::Unknown),
            (_, true) => Some(ActionState::Open),
            (false, false) => self.state,
        };
        let wanted = Wanted { state, tenant: self.tenant, tool: self.tool };
        let actions = patiently("looking through the ledger", found(&store, wanted, self.count), output).await?;
        match self.json {
            true => output.json(&actions.iter().map(|action| namer.shown(action)).collect::<Vec<Value>>()),
            false => actions.iter().for_each(|action| output.line(&namer.summary(action))),
        }
        if let Some(action) = actions.iter().find(|action| action.state == ActionState::Unknown) {
            output.next(&format!("toolgate ledger {} show {}", dir.display(), namer.short(action)));
        }
        Ok(Exit::Ok)
    }
}

/// The newest actions that are wanted: as many pages as it takes.
async fn found(store: &Store, wanted: Wanted, count: usize) -> Result<Vec<Listed>, Failure> {
    let (mut found, mut before) = (Vec::new(), None);
    while found.len() < count {
        let page = store.ledger(wanted.clone(), before, count - found.len()).await?;
        found.extend(page.items);
        before = page.next;
        if before.is_none() {
            break;
        }
    }
    Ok(found)
}

impl Resolve {
    async fn run(self, dir: &Path, output: &mut Output) -> Result<Exit, Failure> {
        let ruling = self.ruling()?;
        let why = self.why.trim();
        if why.is_empty() || why.chars().count() > LONGEST_WHY {
            let message = format!("--why says how you know what became of it, in 1 to {LONGEST_WHY} characters");
            return Err(Failure::usage(message));
        }
        // Somebody must be able to speak of an action while the contract of another tool has faults.
        let purpose = if self.dry_run { Purpose::Read } else { Purpose::Serve };
        let loaded = load(dir, purpose, output)?;
        let resolved = self.resolve(&loaded, &ruling, why, dir).await;
        loaded.finish().await?;
        let (action, speaker) = resolved?;
        let namer = Namer::of(loaded.gate.store(), dir);
        if self.dry_run {
            output.note("dry run: nothing is resolved");
        }
        match self.json {
            true => output.json(&namer.shown(&action)),
            false => output.line(&namer.summary(&action)),
        }
        if !self.dry_run {
            output.note(&format!("recorded as the word of {speaker}"));
            output.next(&format!("toolgate ledger {} show {}", dir.display(), namer.short(&action)));
        }
        Ok(Exit::Ok)
    }

    /// The action as it is now, and who said so.
    async fn resolve(
        &self,
        loaded: &Loaded,
        ruling: &Ruling,
        why: &str,
        dir: &Path,
    ) -> Result<(Listed, String), Failure> {
        let gate = &loaded.gate;
        if !self.dry_run {
            // What a dead process left open is unknown from now on, and can be spoken of.
            gate.sweep().await?;
        }
        let action = named(gate.store(), &self.key, dir).await?;
        let namer = Namer::of(gate.store(), dir);
        let by = loaded.identity.speaker(self.user.as_deref(), &action.tenant, loaded.operator_speaks)?;
        let resolved = match self.dry_run {
            true => gate.dry_rule(action.key, ruling).await,
            false => gate.rule(action.key, ruling, why, &by).await,
        };
        let action = resolved.map_err(|not| refused(not, &namer.short(&action), dir))?;
        Ok((action, format!("{}@{}", by.principal().subject, by.tenant())))
    }

    fn ruling(&self) -> Result<Ruling, Failure> {
        match (self.outcome, &self.result) {
            (Outcome::None, None) => Ok(Ruling::NotDone),
            (Outcome::None, Some(_)) => {
                Err(Failure::usage("--result is of an action that is done").hint("say `done`, or leave --result away"))
            }
            (Outcome::Done, None) => Ok(Ruling::Done { result: None }),
            (Outcome::Done, Some(text)) => match json::read(text.as_bytes(), &Limits::default()) {
                Ok(value) => Ok(Ruling::Done { result: Some(value) }),
                Err(flaw) => Err(Failure::usage(format!("--result is no strict JSON: {flaw}"))),
            },
        }
    }
}

/// The action that a text names.
async fn named(store: &Store, key: &str, dir: &Path) -> Result<Listed, Failure> {
    store.action(key).await?.map_err(|not| {
        let code = match not {
            NotNamed::Missing => FailureCode::UnknownAction,
            NotNamed::Ambiguous => FailureCode::AmbiguousKey,
        };
        Failure::new(code, not.to_string()).hint(format!("toolgate ledger {} list", dir.display()))
    })
}

/// Why an operator's word does not count, and what to do.
fn refused(not: NotRuled, key: &str, dir: &Path) -> Failure {
    let dir = dir.display();
    let message = not.to_string();
    match not {
        NotRuled::Missing => {
            Failure::new(FailureCode::UnknownAction, message).hint(format!("toolgate ledger {dir} list"))
        }
        NotRuled::Running { .. } => {
            Failure::new(FailureCode::NotUnknown, message).hint(format!("toolgate ledger {dir} show {key}"))
        }
        NotRuled::Known { .. } => {
            Failure::new(FailureCode::NotUnknown, message).hint(format!("toolgate ledger {dir} show {key}"))
        }
        NotRuled::Sought { .. } => {
            Failure::new(FailureCode::BeingReconciled, message).hint(format!("toolgate ledger {dir} show {key}"))
        }
        NotRuled::Unfit { problems, .. } => {
            let told: Vec<String> = problems.iter().map(problem).collect();
            Failure::new(FailureCode::ResultUnfit, message).hint(match told.is_empty() {
                true => "leave --result away, if what came of it is not known".to_owned(),
                false => told.join("; "),
            })
        }
        NotRuled::NoContract { .. } => Failure::new(FailureCode::ResultUnfit, message)
            .hint(format!("toolgate check {dir}, or leave --result away")),
        NotRuled::Store(error) => error.into(),
    }
}

fn problem(problem: &Problem) -> String {
    format!("{} {}", if problem.at.is_empty() { "the result:" } else { &problem.at }, problem.message)
}

/// What actions are named by. INVARIANT (no plain digest of what is hidden): one of a tool that may mark its arguments is
/// named by the `ref` that opened it.
struct Namer {
    store: Store,
    unmarked: BTreeSet<String>,
}

impl Namer {
    fn of(store: &Store, dir: &Path) -> Self {
        Self { store: store.clone(), unmarked: config::unmarked_tools(dir) }
    }

    fn names(&self, action: &Listed) -> Names {
        Names::of(action, !self.unmarked.contains(&action.tool), &self.store)
    }

    /// The beginning of the key, or the `ref`.
    fn short(&self, action: &Listed) -> String {
        match self.unmarked.contains(&action.tool) {
            true => action.key.hex().chars().take(SHOWN_DIGITS).collect(),
            false => action.first.as_str().to_owned(),
        }
    }

    /// An action for programs.
    fn shown(&self, action: &Listed) -> Value {
        shown::with(shown::action(action, &self.names(action)), "next", next(action))
    }

    /// An action in a line. Nothing stands right behind a moment, so that it can be copied.
    fn summary(&self, action: &Listed) -> String {
        let time = |at: Option<Millis>| at.map_or_else(|| "-".to_owned(), |at| at.to_string());
        let lease = action.lease_end.map_or_else(String::new, |end| format!(", lease until {end}"));
        format!(
            "{}  {:7} {} by {}@{} since {}{lease}; {}",
            self.short(action),
            action.state,
            action.tool,
            action.principal.subject,
            action.tenant,
            time(since(action)),
            next(action),
        )
    }
}

/// Since when the action stands as it does, as far as it is known.
fn since(action: &Listed) -> Option<Millis> {
    action.at.or_else(|| action.first.given_at())
}

/// What there is to do about an action.
fn next(action: &Listed) -> &'static str {
    match (action.state, action.claimed_until) {
        (ActionState::Open, _) => {
            "it is running, or its process is gone: serve, mcp, an equal call or `ledger resolve` finds that out"
        }
        (ActionState::Unknown, Some(_)) => "somebody looks for it, or did: wait, or look at the backend and resolve it",
        (ActionState::Unknown, None) => {
            "look at the backend, then resolve it; with [reconcile] an equal call looks too, unless it was erased"
        }
        (ActionState::Done, _) => "nothing: an equal call is answered with what is stored, or told that it was done",
        (ActionState::Failed, _) => "nothing: an equal call runs",
    }
}

fn advice(action: &Listed, namer: &Namer, dir: &Path) -> String {
    let dir = dir.display();
    match action.state {
        ActionState::Unknown => {
            format!("toolgate ledger {dir} resolve {} done|none --why TEXT", namer.short(action))
        }
        ActionState::Open | ActionState::Done | ActionState::Failed => {
            format!("toolgate why {dir} {}", action.first)
        }
    }
}

fn show(action: &Listed, namer: &Namer, sent_as: Option<&str>, output: &mut Output) {
    output.line(&namer.summary(action));
    let names = namer.names(action);
    let mut line = |name: &str, value: &str| output.line(&format!("  {name:13} {value}"));
    line("ledger key", &names.key);
    if let Some(sent_as) = sent_as {
        line("sent as", sent_as);
    }
    line("run", &action.run);
    line("attempt", &action.attempt.to_string());
    line("first ref", action.first.as_str());
    line("args digest", names.args_digest.as_deref().unwrap_or("not shown"));
    if let Some(approval) = &action.approval {
        line("approval", approval);
    }
    if let Some(effect) = action.effect {
        line("effect", effect.as_str());
    }
    if let Some(until) = action.claimed_until {
        line("looked for", &format!("until {until}"));
    }
}
