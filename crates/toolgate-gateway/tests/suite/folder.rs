//! A copy of an example's folder, to be worked in.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, Row};
use serde_json::Value;
use tempfile::TempDir;

use crate::scenario::GateName;

/// A gate folder that goes away with this.
pub(crate) struct Folder {
    dir: TempDir,
}

/// Where the examples are.
const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");

impl Folder {
    pub(crate) fn of(gate: GateName) -> Self {
        let name = match gate {
            GateName::Shop => "shop",
            GateName::RefundOrder => "refund_order",
            GateName::Lab => panic!("the lab is no folder"),
        };
        let dir = tempfile::tempdir().unwrap();
        copy(&Path::new(EXAMPLES).join(name), dir.path());
        Self { dir }
    }

    pub(crate) fn shop() -> Self {
        Self::of(GateName::Shop)
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn join(&self, file: &str) -> PathBuf {
        self.dir.path().join(file)
    }

    /// Replaces the one place where `from` stands in a file.
    pub(crate) fn edit(&self, file: &str, from: &str, to: &str) {
        let path = self.join(file);
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert_eq!(text.matches(from).count(), 1, "`{from}` must stand once in {file}");
        fs::write(path, text.replace(from, to)).unwrap();
    }

    pub(crate) fn write(&self, file: &str, text: &str) {
        fs::write(self.join(file), text).unwrap();
    }

    /// The database of the example. Before its first use there is only its seed, and that is what is shown then.
    pub(crate) fn database(&self) -> Connection {
        let settings: toml::Table = fs::read_to_string(self.join("toolgate.toml")).unwrap().parse().unwrap();
        let databases = settings["databases"].as_table().unwrap();
        let (_, place) = databases.iter().next().expect("a database");
        let path = self.join(place["path"].as_str().unwrap());
        if path.exists() {
            return Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE).unwrap();
        }
        let memory = Connection::open_in_memory().unwrap();
        memory.execute_batch(&fs::read_to_string(self.join(place["seed"].as_str().unwrap())).unwrap()).unwrap();
        memory
    }

    /// What a query over the example's database gives, a list for each row.
    pub(crate) fn rows(&self, sql: &str) -> Value {
        let database = self.database();
        let mut statement = database.prepare(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        let columns = statement.column_count();
        let list = |row: &Row<'_>| (0..columns).map(|index| Ok(json(row.get_ref(index)?))).collect();
        let rows = statement.query_map([], list).unwrap();
        Value::Array(rows.collect::<Result<_, _>>().unwrap())
    }

    /// The one number that a query gives.
    pub(crate) fn number(&self, sql: &str) -> i64 {
        self.database().query_row(sql, [], |row| row.get(0)).unwrap()
    }
}

fn json(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(integer) => Value::from(integer),
        ValueRef::Real(double) => Value::from(double),
        ValueRef::Text(text) => Value::from(String::from_utf8_lossy(text)),
        ValueRef::Blob(_) => panic!("a blob in a row"),
    }
}

/// Copies a folder, without the state that somebody's use of the example left in it.
fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap_or_else(|error| panic!("{}: {error}", from.display())) {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if !entry.file_type().unwrap().is_dir() {
            fs::copy(entry.path(), target).unwrap();
        } else if entry.file_name() != "state" {
            fs::create_dir(&target).unwrap();
            copy(&entry.path(), &target);
        }
    }
}
