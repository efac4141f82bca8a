//! `toolgate deny`: an emergency stop of a tool, a tenant or all calls, for a while.

use std::path::Path;
use std::time::Duration;

use clap::Args;
use serde_json::Value;
use toolgate::fields::{nearest, parse_span};
use toolgate::gate::{self, NotLifted, NotStopped};
use toolgate::stoppage::{Stoppage, Target};

use super::failure::FailureCode;
use super::folder::{Folder, open_store_at_once};
use super::{Exit, Failure, Output, open_store, told};
use crate::config::{self, LoadError};
use crate::identity::{Identity, is_tenant};
use crate::shown;

/// Stop a tool, a tenant or all calls for a while
///
/// A stop takes effect on the next call of every process that shares the store: on writes at once, on reads within a
/// second. What runs already runs on. Nothing is reloaded, and no policy is changed.
#[derive(Debug, Args)]
#[command(
    override_usage = "toolgate deny [OPTIONS] [DIR] TOOL|TENANT|all",
    after_help = "Examples:\n  toolgate deny shop create_refund --for 1h --why 'doubled refunds'\n  toolgate deny shop --list",
    after_long_help = "Of two words the first is DIR. One word alone is DIR if it is a folder that holds\ntoolgate.toml, and else a name."
)]
pub(super) struct Deny {
    /// The gate folder
    dir: Option<String>,
    /// A tool, a tenant, or `all`
    name: Option<String>,
    /// Stop this tool; with --tenant in that tenant alone
    #[arg(long, value_name = "TOOL")]
    tool: Option<String>,
    /// Stop this tenant
    #[arg(long, value_name = "TENANT")]
    tenant: Option<String>,
    /// How long, such as 30m or 1h, at most 30d
    #[arg(long = "for", value_name = "SPAN", value_parser = read_span)]
    lasts: Option<Duration>,
    /// Why: it stands on the record, and no caller reads it
    #[arg(long, value_name = "TEXT")]
    why: Option<String>,
    /// List what is stopped
    #[arg(long, conflicts_with_all = ["tool", "tenant", "lasts", "why", "lift", "dry_run"])]
    list: bool,
    /// Lift the stop with this id
    #[arg(long, value_name = "ID", conflicts_with_all = ["tool", "tenant", "lasts", "why"])]
    lift: Option<String>,
    /// Tell what would be stopped or lifted, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

/// The name of all calls.
const ALL: &str = "all";

impl Deny {
    pub(super) async fn run(mut self, output: &mut Output) -> Result<Exit, Failure> {
        let words = [self.dir.take(), self.name.take()];
        let (Folder { path: dir, .. }, [name, _]) = Folder::of_words(words)?;
        match (name, &self.lift) {
            (Some(_), _) if self.list || self.lift.is_some() => {
                Err(Failure::usage("--list and --lift take no name of a tool or a tenant"))
            }
            (None, _) if self.list => self.list(&dir, output).await,
            (None, Some(id)) => self.lift(id, &dir, output).await,
            (name, _) => self.stop(name.as_deref(), &dir, output).await,
        }
    }

    async fn stop(&self, name: Option<&str>, dir: &Path, output: &mut Output) -> Result<Exit, Failure> {
        let target = self.target(name, dir, output)?;
        let example = || format!("toolgate deny {} NAME --for 1h --why TEXT", dir.display());
        let lasts = self.lasts.ok_or_else(|| Failure::usage("say how long: --for").hint(example()))?;
        let why = self.why.as_deref().ok_or_else(|| Failure::usage("say why: --why").hint(example()))?;
        let by = Identity::operator()?;
        if self.dry_run {
            gate::is_fit(lasts, why).map_err(|not| not_stopped(not, dir))?;
            output.note(&format!("dry run: nothing is stopped; it would be {target}"));
            let now = toolgate::clock::Clock::now(&toolgate::clock::SystemClock);
            let would = Would { target: &target, why, until: now.after(lasts).to_string() };
            if self.json {
                output.json(&would.shown(&by));
            }
            return Ok(Exit::Ok);
        }
        let store = open_store_at_once(dir, output)?;
        let stopped = gate::stop(&store, target, lasts, why, &by, gate::time(&store)?).await;
        let stop = stopped.map_err(|not| not_stopped(not, dir))?;
        self.tell(&stop, output);
        output.note("writes are refused from now on, reads within a second; what runs already runs on");
        output.next(&format!("toolgate deny {} --lift {}", dir.display(), stop.id));
        Ok(Exit::Ok)
    }

    async fn list(&self, dir: &Path, output: &mut Output) -> Result<Exit, Failure> {
        // Before anything was called nothing can have been stopped but by this command, which makes the store.
        let standing = match config::open_store(dir) {
            Ok(store) => gate::stops(&store, gate::time(&store)?).await?,
            Err(LoadError::NoStore) => Vec::new(),
            Err(error) => return Err(told(error, dir, output)),
        };
        match self.json {
            true => output.json(&standing.iter().map(|stop| shown::stoppage(stop, true)).collect::<Vec<Value>>()),
            false if standing.is_empty() => output.note("nothing is stopped"),
            false => standing.iter().for_each(|stop| output.line(&summary(stop))),
        }
        Ok(Exit::Ok)
    }

    async fn lift(&self, id: &str, dir: &Path, output: &mut Output) -> Result<Exit, Failure> {
        let missing = || {
            Failure::new(FailureCode::UnknownStop, NotLifted::Missing.to_string())
                .hint(format!("toolgate deny {} --list", dir.display()))
        };
        let by = Identity::operator()?;
        let lifted = if self.dry_run {
            output.note("dry run: nothing is lifted");
            let store = open_store(dir, output)?;
            let standing = gate::stops(&store, gate::time(&store)?).await?;
            standing.into_iter().find(|stop| stop.id == id).ok_or(NotLifted::Missing)
        } else {
            let store = open_store_at_once(dir, output)?;
            gate::lift(&store, id, None, &by, gate::time(&store)?).await
        };
        let stop = lifted.map_err(|not| match not {
            NotLifted::Missing => missing(),
            NotLifted::Store(error) => error.into(),
        })?;
        self.tell(&stop, output);
        if !self.dry_run {
            output.note("lifted: writes pass from now on, reads within a second");
            output.next(&format!("toolgate deny {} --list", dir.display()));
        }
        Ok(Exit::Ok)
    }

    fn tell(&self, stop: &Stoppage, output: &mut Output) {
        match self.json {
            true => output.json(&shown::stoppage(stop, true)),
            false => output.line(&summary(stop)),
        }
    }

    /// What is named, held to what the folder has.
    fn target(&self, name: Option<&str>, dir: &Path, output: &mut Output) -> Result<Target, Failure> {
        let known = Known::of(dir, output)?;
        match (name, self.tool.as_deref(), self.tenant.as_deref()) {
            (Some(_), Some(_), _) | (Some(_), _, Some(_)) => {
                Err(Failure::usage("a name and --tool or --tenant say it twice").hint("leave the name away"))
            }
            (Some(ALL), None, None) => Ok(Target::all()),
            (Some(name), None, None) => known.named(name),
            (None, None, None) => Err(Failure::usage("what is to be stopped? a tool, a tenant, or `all`")
                .hint(format!("toolgate tools {}", dir.display()))),
            (None, tool, tenant) => {
                if let Some(tool) = tool.filter(|tool| !known.has_tool(tool)) {
                    return Err(known.unknown(tool, &known.tools));
                }
                match (tool, tenant, &known.tenants) {
                    (_, Some(tenant), Some(tenants)) if !tenants.iter().any(|one| one == tenant) => {
                        Err(known.unknown(tenant, tenants))
                    }
                    (_, Some(tenant), None) if !is_tenant(tenant) => {
                        Err(Failure::new(FailureCode::UnknownTarget, "no tenant can have this name").hint(
                            "a tenant is named in 1 to 64 of a-z, 0-9, _ and -; upper and lower case are not the same",
                        ))
                    }
                    (tool, tenant, known) => {
                        if tenant.is_some() && known.is_none() {
                            output.note(
                                "not all tenants are known here: nothing tells whether there is one of this name",
                            );
                        }
                        Ok(Target { tool: tool.map(str::to_owned), tenant: tenant.map(str::to_owned) })
                    }
                }
            }
        }
    }
}

/// The names of a folder.
struct Known {
    tools: Vec<String>,
    /// Nothing where not all of them are known.
    tenants: Option<Vec<String>>,
}

impl Known {
    /// Whatever is wrong with the contracts of the folder: what must be stopped may be just what is wrong.
    fn of(dir: &Path, output: &mut Output) -> Result<Self, Failure> {
        let identity = config::identity(dir).map_err(|error| told(error, dir, output))?;
        Ok(Self { tools: config::tool_names(dir), tenants: identity.tenants().map(Vec::from_iter) })
    }

    fn has_tool(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool == name)
    }

    fn named(&self, name: &str) -> Result<Target, Failure> {
        let is_tenant = self.tenants.as_ref().is_some_and(|tenants| tenants.iter().any(|tenant| tenant == name));
        match (self.has_tool(name), is_tenant) {
            (true, false) => Ok(Target::tool(name)),
            (false, true) => Ok(Target::tenant(name)),
            (true, true) => Err(Failure::usage("a tool and a tenant have this name")
                .hint(format!("say --tool {name} or --tenant {name}"))),
            (false, false) => {
                let all: Vec<String> =
                    self.tools.iter().chain(self.tenants.iter().flatten()).cloned().chain([ALL.to_owned()]).collect();
                Err(self.unknown(name, &all))
            }
        }
    }

    fn unknown(&self, name: &str, known: &[String]) -> Failure {
        let failure = Failure::new(FailureCode::UnknownTarget, "no tool and no tenant of the folder has this name");
        match nearest(name, known.iter().map(String::as_str)) {
            Some(near) => failure.hint(near),
            None if self.tenants.is_none() => failure.hint("say --tenant NAME: not all tenants are known here"),
            None => failure.hint(format!("known: {}", known.join(", "))),
        }
    }
}

/// A stop that was not set.
struct Would<'a> {
    target: &'a Target,
    why: &'a str,
    until: String,
}

impl Would<'_> {
    fn shown(&self, by: &toolgate::session::Principal) -> Value {
        serde_json::json!({
            "id": null,
            "tool": self.target.tool,
            "tenant": self.target.tenant,
            "why": self.why,
            "by": by,
            "at": null,
            "until": self.until,
        })
    }
}

/// A stop in a line.
fn summary(stop: &Stoppage) -> String {
    format!("{}  {}  until {} by {}: {}", stop.id, stop.target, stop.until, stop.by, stop.why)
}

fn not_stopped(not: NotStopped, dir: &Path) -> Failure {
    let told = not.to_string();
    match not {
        NotStopped::NoReason | NotStopped::Span => Failure::usage(told),
        // Names were held to the folder, and the store knows none.
        NotStopped::UnknownTool { .. } => Failure::new(FailureCode::UnknownTarget, told),
        NotStopped::TooMany => {
            Failure::new(FailureCode::TooManyStops, told).hint(format!("toolgate deny {} --list", dir.display()))
        }
        NotStopped::Store(error) => error.into(),
    }
}

fn read_span(text: &str) -> Result<Duration, String> {
    let span = parse_span(text).filter(|span| !span.is_zero());
    span.ok_or_else(|| "expected a span of time such as 30m, 1h or 7d".to_owned())
}
