//! One statement in one transaction.

use rusqlite::Connection;

use super::database::unwatched;
use super::trouble::{Trouble, words};
use super::values::Values;
use super::watch::Watch;
use super::{Plan, rows};

/// Reads, all of it from one state of the database. The connection can do nothing else.
pub(super) fn read(connection: &mut Connection, plan: &Plan, values: &Values<'_>) -> Result<Vec<u8>, Trouble> {
    execute(connection, "begin deferred")?;
    run(connection, plan, values)
}

/// Writes and commits. Whatever is told before the commit, the caller rolls back.
pub(super) fn write(
    connection: &mut Connection,
    plan: &Plan,
    values: &Values<'_>,
    watch: &Watch,
) -> Result<Vec<u8>, Trouble> {
    execute(connection, "begin immediate")?;
    let result = run(connection, plan, values)?;
    watch.check()?;
    // SQLite asks the watch at the end of a step too, and would report a commit that is done as interrupted.
    unwatched(connection)?;
    commit(connection)?;
    Ok(result)
}

fn run(connection: &Connection, plan: &Plan, values: &Values<'_>) -> Result<Vec<u8>, Trouble> {
    let mut statement = connection.prepare_cached(&plan.statement).map_err(|error| Trouble::of(&error))?;
    for index in 1..=statement.parameter_count() {
        let name = statement.parameter_name(index).and_then(|name| name.strip_prefix(':'));
        let name = name.ok_or_else(|| Trouble::Statement("a parameter has no name".into()))?;
        let value = values.bound(name)?;
        statement.raw_bind_parameter(index, value).map_err(|error| Trouble::of(&error))?;
    }
    rows::collect(&mut statement, plan.rows)
}

/// INVARIANT (proof of none): a failed commit is known to have done nothing only while its transaction is still open,
/// because then it is rolled back.
fn commit(connection: &Connection) -> Result<(), Trouble> {
    connection
        .execute_batch("commit")
        .map_err(|error| if connection.is_autocommit() { Trouble::Commit(words(&error)) } else { Trouble::of(&error) })
}

fn execute(connection: &Connection, statement: &str) -> Result<(), Trouble> {
    connection.execute_batch(statement).map_err(|error| Trouble::of(&error))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use toolgate::refusal::Effect;

    use super::*;

    fn bank() -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        connection
            .execute_batch(
                "pragma foreign_keys = on; create table payer (id integer primary key);
                 create table payment (payer integer references payer deferrable initially deferred);",
            )
            .unwrap();
        connection
    }

    #[test]
    fn a_commit_that_leaves_its_transaction_open_did_nothing() {
        let connection = bank();
        connection.execute_batch("begin immediate; insert into payment values (1)").unwrap();
        let trouble = commit(&connection).unwrap_err();
        assert!(matches!(trouble, Trouble::Constraint(_)), "{trouble}");
        assert_eq!(trouble.effect(), Effect::None);
        assert!(!connection.is_autocommit(), "it is still there to be rolled back");
    }

    #[test]
    fn after_a_commit_that_failed_and_closed_its_transaction_nothing_is_known() {
        let mut connection = bank();
        connection.commit_hook(Some(|| true)).unwrap();
        connection.execute_batch("begin immediate; insert into payer values (1)").unwrap();
        let trouble = commit(&connection).unwrap_err();
        assert!(connection.is_autocommit());
        assert_eq!(trouble.effect(), Effect::Unknown);
    }
}
