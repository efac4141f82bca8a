//! What is wrong with a statement, told before anything runs.

use std::collections::BTreeSet;
use std::time::Instant;

use rusqlite::Connection;
use toolgate::contract::Access;
use toolgate::fields::nearest;
use toolgate::schema::Problem;

use super::Plan;
use super::database::PATIENCE;
use super::trouble::{Trouble, in_our_words};
use super::values::{Parameter, RESERVED};
use super::watch::Watch;

/// Everything that is wrong with the statement of a plan whose tool takes `members`.
pub(super) fn inspect(plan: &Plan, members: &[String]) -> Vec<Problem> {
    if plan.database.is_told() {
        return Vec::new();
    }
    let watch = Watch::new(Instant::now() + PATIENCE, || false);
    // A write is not run here, so a connection that cannot write is enough.
    let inspected =
        watch.patiently(|| plan.database.rehearse(&watch, |connection| Ok(compile(connection, plan, members))));
    inspected.unwrap_or_else(|trouble| vec![fault("database", "open", trouble.to_string(), None)])
}

fn compile(connection: &Connection, plan: &Plan, members: &[String]) -> Vec<Problem> {
    let statement = match connection.prepare(&plan.statement) {
        Ok(statement) => statement,
        Err(error) => return vec![not_compiled(&error)],
    };
    let mut problems = Vec::new();
    if statement.column_count() == 0 {
        let hint = Some("a write ends with `returning ...`".to_owned());
        problems.push(fault(
            "statement",
            "columns",
            "the statement returns nothing, so there would be no result",
            hint,
        ));
    }
    if plan.access == Access::Read && !statement.readonly() {
        let message = "the statement writes, and the contract says effect = \"read\"";
        problems.push(fault("statement", "read", message, None));
    }
    let mut names = BTreeSet::new();
    for name in statement.column_names() {
        if !names.insert(name) {
            let hint = Some("name it with `as`".to_owned());
            problems.push(fault("statement", "unique", format!("two columns are called `{name}`"), hint));
        }
    }
    for index in 1..=statement.parameter_count() {
        problems.extend(wrong_parameter(statement.parameter_name(index), plan.access, members));
    }
    problems
}

fn not_compiled(error: &rusqlite::Error) -> Problem {
    let message = match error {
        rusqlite::Error::Empty => "there is no statement".to_owned(),
        rusqlite::Error::MultipleStatement => "there is more than one statement".to_owned(),
        error => match Trouble::of(error) {
            Trouble::Unopenable(why) => {
                return fault("database", "open", format!("cannot open the database: {why}"), None);
            }
            _ => format!("the statement is wrong: {}", in_our_words(error)),
        },
    };
    fault("statement", "statement", message, None)
}

fn wrong_parameter(name: Option<&str>, access: Access, members: &[String]) -> Option<Problem> {
    let wrong = |message: String, hint: Option<String>| Some(fault("statement", "parameter", message, hint));
    let Some(name) = name.and_then(|name| name.strip_prefix(':')) else {
        let hint = Some("write :order_id for the argument order_id".to_owned());
        return wrong("a parameter is not written as a name after a colon".into(), hint);
    };
    let is_member = members.iter().any(|member| member == name);
    match Parameter::named(name) {
        Parameter::Argument(_) if is_member => None,
        Parameter::Argument(_) => {
            let known = || members.iter().map(String::as_str).chain(RESERVED.iter().map(|(name, _)| *name));
            let list = || format!("known: {}", known().collect::<Vec<_>>().join(", "));
            wrong(format!("`:{name}` names no argument"), nearest(name, known()).or_else(|| Some(list())))
        }
        Parameter::IdempotencyKey if access == Access::Read => {
            wrong("a read has no `:idempotency_key`".into(), Some("take the key as an argument".into()))
        }
        Parameter::Tenant
        | Parameter::User
        | Parameter::IdempotencyKey
        | Parameter::Ref
        | Parameter::TraceParent
        | Parameter::TraceState => {
            let message = || format!("`:{name}` is a value of the gate, never the argument of this name");
            is_member.then(|| fault("statement", "parameter", message(), None))
        }
    }
}

fn fault(key: &str, code: &str, message: impl Into<String>, hint: Option<String>) -> Problem {
    Problem { at: format!("/backend/{key}"), code: code.into(), message: message.into(), hint }
}
