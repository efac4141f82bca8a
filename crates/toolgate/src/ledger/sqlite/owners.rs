//! Who is alive: each process holds the lock of its owner file for as long as it runs, and the system lets go of the
//! lock however the process ends.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::{Transaction, params};
use ulid::Ulid;

use super::super::rows::Stored;
use super::super::{Owner, StoreError};

/// The lock that this process holds.
pub(super) struct OwnerLock {
    owner: Owner,
    folder: PathBuf,
    /// INVARIANT (alive): open, and so locked, until the process ends.
    _file: File,
}

/// Enters this process, and forgets those that have ended and left nothing open.
///
/// Within the write transaction: of all that happens in the folder, only a name that was never written to the database
/// could be mistaken for a dead one, and no two processes are here at once.
pub(super) fn enter(transaction: &Transaction<'_>, folder: PathBuf) -> Stored<OwnerLock> {
    let lock = OwnerLock::take(folder).map_err(|_| {
        StoreError::Broken(
            "its folder of owners, beside it, cannot be used; it must be possible to make and lock files there".into(),
        )
    })?;
    transaction.execute("INSERT INTO owners (id) VALUES (?1)", params![lock.owner.0])?;

    let idle = "SELECT id FROM owners WHERE id <> ?1 AND id NOT IN (SELECT owner FROM entries WHERE state = 'open')";
    let mut idle = transaction.prepare(idle)?;
    let idle = idle.query_map(params![lock.owner.0], |row| row.get(0).map(Owner))?.collect::<Result<Vec<_>, _>>()?;
    for owner in idle.iter().filter(|owner| is_dead(&lock.folder, owner)) {
        transaction.execute("DELETE FROM owners WHERE id = ?1", params![owner.0])?;
        remove(&lock.folder.join(&owner.0));
    }
    for name in lock.other_names() {
        let known = "SELECT EXISTS (SELECT 1 FROM owners WHERE id = ?1)";
        let known: bool = transaction.query_row(known, params![name.0], |row| row.get(0))?;
        if !known && is_dead(&lock.folder, &name) {
            remove(&lock.folder.join(&name.0));
        }
    }
    Ok(lock)
}

impl OwnerLock {
    fn take(folder: PathBuf) -> io::Result<Self> {
        fs::create_dir_all(&folder)?;
        let owner = Owner(Ulid::generate().to_string());
        let file = File::create_new(folder.join(&owner.0))?;
        file.try_lock()?;
        Ok(Self { owner, folder, _file: file })
    }

    pub(super) fn owner(&self) -> &Owner {
        &self.owner
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The names of all other owner files.
    fn other_names(&self) -> Vec<Owner> {
        let Ok(files) = fs::read_dir(&self.folder) else { return Vec::new() };
        let names = files.flatten().filter_map(|file| file.file_name().into_string().ok());
        names.filter(|name| is_name(name) && *name != self.owner.0).map(Owner).collect()
    }
}

impl Drop for OwnerLock {
    fn drop(&mut self) {
        remove(&self.folder.join(&self.owner.0));
    }
}

/// Those of these owners that are dead.
pub(super) fn dead(folder: &Path, mut owners: Vec<Owner>) -> Vec<Owner> {
    owners.retain(|owner| is_dead(folder, owner));
    owners
}

/// Whether the file of this owner is gone or its lock is free. Where that cannot be told the owner counts as alive: its
/// entries then wait for the end of their leases.
fn is_dead(folder: &Path, owner: &Owner) -> bool {
    if !is_name(&owner.0) {
        return true;
    }
    match File::options().read(true).write(true).open(folder.join(&owner.0)) {
        Ok(file) => match file.try_lock() {
            Ok(()) => true,
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => false,
        },
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// Whether this can be the name of an owner; never a path that leads elsewhere.
fn is_name(name: &str) -> bool {
    Ulid::from_string(name).is_ok()
}

/// A file that stays is removed by whoever opens the store next.
fn remove(path: &Path) {
    let _ = fs::remove_file(path);
}
