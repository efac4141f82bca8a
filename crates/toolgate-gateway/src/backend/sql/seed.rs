//! Making a database of its seed, once, however many processes start at once.

use std::collections::hash_map::RandomState;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, Hasher};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use super::trouble::{in_our_words, words};
use crate::state::make_folder;

/// A database in the making; what is left of it goes when it is dropped.
struct Draft(PathBuf);

/// Makes the database `path` of the SQL in `seed`, unless another does so first. The error is for the operator.
///
/// INVARIANT (whole or absent): a file appears under the name `path` only when all of it is there, and is never replaced.
pub(super) fn create(path: &Path, seed: &Path) -> Result<(), String> {
    let sql = read(seed)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    make_folder(folder).map_err(|error| format!("cannot make its folder: {}", error.kind()))?;
    let draft = Draft::beside(path)?;
    draft.fill(&sql).map_err(|error| format!("the seed is wrong: {}", in_our_words(&error)))?;
    let published = File::open(&draft.0).and_then(|file| file.sync_all()).and_then(|()| {
        // A link, because a rename would replace what another process has made and perhaps written to already.
        match fs::hard_link(&draft.0, path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            linked => linked,
        }
    });
    published.map_err(|error| format!("cannot write the file: {}", error.kind()))?;
    // The name must outlive a crash as much as what is committed under it. Not every system can sync a folder.
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
    Ok(())
}

/// A database in memory that several connections share. It is there for as long as this is.
#[derive(Debug)]
pub(super) struct Rehearsal {
    name: String,
    /// It ends with its last connection, and the others come and go.
    _first: Connection,
}

impl Rehearsal {
    /// The database that the seed would make.
    pub(super) fn of(seed: &Path) -> Result<Self, String> {
        let name = format!("file:rehearsal-{}?mode=memory&cache=shared", unique());
        let first = connect(&name).map_err(|error| words(&error))?;
        first.execute_batch(&read(seed)?).map_err(|error| format!("the seed is wrong: {}", in_our_words(&error)))?;
        Ok(Self { name, _first: first })
    }

    /// Another connection to it.
    pub(super) fn connect(&self) -> rusqlite::Result<Connection> {
        connect(&self.name)
    }
}

fn connect(name: &str) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(name, flags)?;
    connection.execute_batch("pragma foreign_keys = on")?;
    Ok(connection)
}

/// A part of a name that nobody else uses.
fn unique() -> String {
    format!("{:016x}", RandomState::new().build_hasher().finish())
}

/// The database that the seed would make, in memory.
pub(super) fn rehearse(seed: &Path) -> Result<Connection, String> {
    let connection = Connection::open_in_memory().map_err(|error| words(&error))?;
    connection.execute_batch(&read(seed)?).map_err(|error| format!("the seed is wrong: {}", in_our_words(&error)))?;
    Ok(connection)
}

fn read(seed: &Path) -> Result<String, String> {
    fs::read_to_string(seed).map_err(|error| match error.kind() {
        ErrorKind::NotFound => "there is no seed file".to_owned(),
        _ => "the seed file cannot be read as text".to_owned(),
    })
}

impl Draft {
    /// A new file of a name that nobody else uses.
    fn beside(path: &Path) -> Result<Self, String> {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{}.new", unique()));
        let path = PathBuf::from(name);
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(_) => Ok(Self(path)),
            Err(error) => Err(format!("cannot write in its folder: {}", error.kind())),
        }
    }

    fn fill(&self, sql: &str) -> rusqlite::Result<()> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.0, flags)?;
        connection.execute_batch("pragma journal_mode = memory; pragma synchronous = off; pragma foreign_keys = on")?;
        connection.execute_batch(sql)?;
        // Now, because each connection would otherwise have to lock out all others to change it.
        connection.execute_batch("pragma journal_mode = wal")?;
        connection.close().map_err(|(_, error)| error)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        for suffix in ["", "-wal", "-shm", "-journal"] {
            let mut name = self.0.clone().into_os_string();
            name.push(suffix);
            // What cannot be removed is in nobody's way: the name is used once.
            let _ = fs::remove_file(name);
        }
    }
}
