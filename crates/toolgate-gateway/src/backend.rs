//! What the `backend` table of a contract names: a statement over a database, a tool of an MCP server, or answers that
//! the folder itself holds.

mod fixed;
pub(crate) mod mcp;
mod sql;

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Map, Value};
use toolgate::backend::Backend;
use toolgate::contract::Access;
use toolgate::fields::{Fields, Problems, nearest};
use toolgate::schema::Problem;

pub(crate) use mcp::Upstreams;
pub(crate) use sql::{Databases, Place};

use fixed::Fixed;
use mcp::{Governed, Mcp, Results};
use sql::Sql;

/// The kinds of backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Sql,
    Mcp,
    Fixed,
}

/// What the folder has for backends, by name.
#[derive(Debug)]
pub(crate) struct Means {
    pub(crate) databases: Databases,
    pub(crate) upstreams: Upstreams,
    /// Where the contracts stand, and the recordings beside them.
    pub(crate) contracts: PathBuf,
}

const KINDS: &[(&str, Kind)] = &[("sql", Kind::Sql), ("mcp", Kind::Mcp), ("fixed", Kind::Fixed)];

/// What runs the tool of a contract, or everything that is wrong with its `backend` table.
pub(crate) fn make(name: &str, contract: &Map<String, Value>, means: &Means) -> Result<Arc<dyn Backend>, Vec<Problem>> {
    let mut problems = Problems::default();
    let made = read(name, contract, means, &mut problems);
    match made {
        Some(backend) if problems.0.is_empty() => Ok(backend),
        _ => Err(problems.0),
    }
}

fn read(name: &str, contract: &Map<String, Value>, means: &Means, problems: &mut Problems) -> Option<Arc<dyn Backend>> {
    let mut contract = Fields::of(contract, "");
    if contract.raw("backend").is_none() {
        let hint = "[backend] with a kind, a database and a statement".to_owned();
        problems.hinted("/backend", "required", "`backend` is missing: nothing would run", Some(hint));
    }
    let reads = contract.raw("effect").is_some_and(|effect| effect == "read");
    let governed = Governed {
        name,
        access: if reads { Access::Read } else { Access::Write },
        results: if contract.raw("output").is_some() { Results::Structured } else { Results::Content },
        imported: contract.raw("imported").is_some_and(|imported| *imported == Value::Bool(true)),
    };
    let mut table = contract.table("backend", problems)?;
    let at = table.place("kind");
    let kind = table.needed("kind", problems)?;
    match KINDS.iter().find(|(known, _)| *known == kind) {
        Some((_, Kind::Sql)) => Some(Arc::new(Sql::read(table, reads, &means.databases, problems)?)),
        Some((_, Kind::Mcp)) => Some(Arc::new(Mcp::read(table, governed, &means.upstreams, problems)?)),
        Some((_, Kind::Fixed)) => Some(Arc::new(Fixed::read(table, &means.contracts, problems)?)),
        None => {
            let names = || KINDS.iter().map(|(known, _)| *known);
            let message = format!("this version has backends of kind {}", names().collect::<Vec<_>>().join(", "));
            problems.hinted(at, "enum", message, nearest(kind, names()));
            None
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]
mod tests {
    use serde_json::json;

    use super::*;

    /// What is wrong with `backend`, a line each: place, message, hint.
    fn faults(backend: Value) -> Vec<String> {
        let shop = Place { path: "shop.db".into(), seed: None };
        let databases = Databases::new("".as_ref(), [("shop".to_owned(), shop)]);
        let contract = json!({"effect": "read", "backend": backend});
        let means = Means { databases, upstreams: Upstreams::default(), contracts: PathBuf::new() };
        let Err(problems) = make("tool", contract.as_object().unwrap(), &means) else { return Vec::new() };
        problems.into_iter().map(|p| format!("{}: {} ({})", p.at, p.message, p.hint.unwrap_or_default())).collect()
    }

    #[test]
    fn a_table_that_says_all_that_is_needed_is_a_backend() {
        let many = json!({"kind": "sql", "database": "shop", "statement": "select 1", "rows": "many", "max_rows": 5});
        assert_eq!(faults(json!({"kind": "sql", "database": "shop", "statement": "select 1"})), [""; 0]);
        assert_eq!(faults(many), [""; 0]);
    }

    #[test]
    fn a_kind_that_this_version_does_not_have_is_a_fault() {
        let message = "this version has backends of kind sql, mcp, fixed";
        assert_eq!(faults(json!({"kind": "http"})), [format!("/backend/kind: {message} ()")]);
        assert_eq!(faults(json!({"kind": "slq"})), [format!("/backend/kind: {message} (did you mean sql?)")]);
        assert_eq!(faults(json!({"kind": 1})), ["/backend/kind: expected a text, got a number ()"]);
        assert_eq!(faults(json!({})), ["/backend/kind: `kind` is missing ()"]);
        assert_eq!(faults(json!("sql")), ["/backend: expected a table, got a text ()"]);
    }

    #[test]
    fn every_wrong_key_is_told_at_once() {
        let found = faults(json!({
            "kind": "sql", "database": "shpo", "statment": "select 1", "rows": "all",
        }));
        assert_eq!(
            found,
            [
                "/backend/database: there is no such database (did you mean shop?)",
                "/backend/rows: expected one of: one, many ()",
                "/backend/statment: unknown key (did you mean statement?)",
            ]
        );
    }

    #[test]
    fn a_bound_on_rows_is_for_many() {
        let bounded = |rows, bound| json!({"kind": "sql", "database": "shop", "statement": "select 1", "rows": rows, "max_rows": bound});
        let at_one = "/backend/max_rows: a bound on rows is for a statement that gives many (rows = \"many\")";
        assert_eq!(faults(bounded("one", 5)), [at_one]);
        assert_eq!(faults(bounded("many", 0)), ["/backend/max_rows: expected a whole number from 1, got less ()"]);
    }
}
