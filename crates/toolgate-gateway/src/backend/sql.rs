//! The `sql` backend: one prepared statement over an SQLite file. Values are bound, never written into the text; a read
//! runs in a read-only transaction, a write in one of its own that is committed whole or not at all.
//!
//! ```text
//! Context -> Values \
//!                    perform: take a connection | begin | bind, step, rows to JSON | commit -> Answer
//! contract -> Plan  /                 ends by itself at the deadline: Watch
//! ```

mod database;
mod inspect;
mod rows;
mod seed;
mod transaction;
mod trouble;
mod values;
mod watch;

use std::sync::Arc;

use tokio::sync::oneshot;
use toolgate::backend::{Answer, Backend, Context, Dispatch, Found, Late, Looking, Lookup, Running};
use toolgate::contract::{Access, Contract};
use toolgate::fields::{Fields, Problems, nearest};
use toolgate::refusal::Effect;
use toolgate::schema::Problem;

pub(crate) use database::{Databases, Place};

use database::{Database, Mode};
use trouble::Trouble;
use values::Values;
use watch::Watch;

/// Runs the tool of one contract.
pub(super) struct Sql {
    plan: Arc<Plan>,
}

/// What the contract says, resolved.
struct Plan {
    database: Arc<Database>,
    statement: String,
    rows: Rows,
    access: Access,
}

/// How many rows there may be, and what is made of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rows {
    /// One: it is the result.
    One,
    /// Up to this many: the result is `{"rows": [...]}`.
    Many(u32),
}

const MAX_ROWS: u32 = 1000;

impl Sql {
    /// Reads the rest of the `backend` table of a contract.
    pub(super) fn read(
        mut table: Fields<'_>,
        reads: bool,
        databases: &Databases,
        problems: &mut Problems,
    ) -> Option<Self> {
        let database = table.needed("database", problems).and_then(|name| {
            let database = databases.get(name);
            if database.is_none() {
                let hint = nearest(name, databases.names()).unwrap_or_else(|| match databases.names().next() {
                    None => format!("declare it under [databases.{name}] in toolgate.toml"),
                    Some(_) => format!("known: {}", databases.names().collect::<Vec<_>>().join(", ")),
                });
                problems.hinted(table.place("database"), "unknown_database", "there is no such database", Some(hint));
            }
            database
        });
        let statement = table.needed("statement", problems).map(str::to_owned);
        let many = table.word("rows", &[("one", false), ("many", true)], false, problems);
        let bounded = table.raw("max_rows").is_some();
        let max_rows = table.count("max_rows", MAX_ROWS, problems);
        if bounded && !many {
            let hint = Some("rows = \"many\"".to_owned());
            problems.hinted(
                table.place("max_rows"),
                "rows",
                "a bound on rows is for a statement that gives many",
                hint,
            );
        }
        table.end(problems);
        Some(Self {
            plan: Arc::new(Plan {
                database: database?,
                statement: statement?,
                rows: if many { Rows::Many(max_rows) } else { Rows::One },
                access: if reads { Access::Read } else { Access::Write },
            }),
        })
    }

    /// Works where it may block. Whoever waits may go: the work ends by itself at its deadline, or with the commit that it
    /// had begun by then, and that is told later.
    async fn perform(&self, mode: Mode, context: Context) -> Result<Vec<u8>, Trouble> {
        let plan = Arc::clone(&self.plan);
        let late = context.late();
        let (tell, told) = oneshot::channel();
        let mut told = Told { told, late: late.clone() };
        tokio::task::spawn_blocking(move || {
            let ended = plan.perform(mode, &Values::of(&context), &Watch::of(&context));
            if let (Err(ended), Some(late)) = (tell.send(ended), late) {
                late.answer(answer(mode, ended));
            }
        });
        let ended = (&mut told.told).await;
        told.late = None;
        ended.unwrap_or(Err(Trouble::Lost))
    }
}

/// Waits for what becomes of a statement. What has come and was not looked at when the wait was given up is told later.
struct Told {
    told: oneshot::Receiver<Result<Vec<u8>, Trouble>>,
    late: Option<Late>,
}

impl Drop for Told {
    fn drop(&mut self) {
        self.told.close();
        if let (Some(late), Ok(ended)) = (&self.late, self.told.try_recv()) {
            late.answer(answer(Mode::Write, ended));
        }
    }
}

/// How a run ends.
fn answer(mode: Mode, ended: Result<Vec<u8>, Trouble>) -> Answer {
    let effect = match mode {
        Mode::Read => Effect::None,
        Mode::Write => Effect::Done,
    };
    match ended {
        Ok(text) => Answer { effect, outcome: Ok(text) },
        Err(trouble) => Answer::failed(trouble.effect(), trouble.into_failure()),
    }
}

impl Backend for Sql {
    fn run(&self, dispatch: Dispatch) -> Running<'_> {
        let mode = match self.plan.access {
            Access::Read => Mode::Read,
            Access::Write => Mode::Write,
        };
        Box::pin(async move { answer(mode, self.perform(mode, dispatch.into_context()).await) })
    }

    fn upstream(&self) -> Option<&str> {
        Some(self.plan.database.shared())
    }

    fn look(&self, lookup: Lookup) -> Looking<'_> {
        Box::pin(async move {
            match self.perform(Mode::Read, lookup.into_context()).await {
                Ok(text) => Found::Found(text),
                Err(Trouble::NoRow) => Found::Absent,
                Err(trouble) => Found::Failed(trouble.into_failure().detail),
            }
        })
    }

    fn signals(&self) -> Option<Vec<&str>> {
        Some(trouble::SIGNALS.to_vec())
    }

    fn check(&self, contract: &Contract) -> Vec<Problem> {
        inspect::inspect(&self.plan, &contract.input().members())
    }
}

impl Plan {
    /// Runs the statement once. While the database is locked it is tried again: nothing has happened then.
    fn perform(&self, mode: Mode, values: &Values<'_>, watch: &Watch) -> Result<Vec<u8>, Trouble> {
        watch.patiently(|| {
            self.database.with(mode, watch, |connection| match mode {
                Mode::Read => transaction::read(connection, self, values),
                Mode::Write => transaction::write(connection, self, values, watch),
            })
        })
    }
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::disallowed_methods,
    reason = "a test may panic"
)]
mod tests;
