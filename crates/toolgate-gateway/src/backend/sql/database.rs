//! The databases of a gate: opened on first use, created from their seed where they are not there, a few connections
//! kept of each.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags};

use super::seed;
use super::trouble::{Trouble, words};
use super::watch::Watch;

/// The databases that contracts may name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Databases(Arc<BTreeMap<String, Arc<Database>>>);

/// Where a database is, relative to the folder of the gate: `[databases.NAME]` of `toolgate.toml`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The SQLite file.
    pub(crate) path: PathBuf,
    /// A file of SQL that makes the database where there is none.
    pub(crate) seed: Option<PathBuf>,
}

/// One database.
#[derive(Debug)]
pub(super) struct Database {
    path: PathBuf,
    /// What all tools of it share a budget of repeats under.
    shared: String,
    seed: Option<PathBuf>,
    /// Whether what the seed makes, in memory, stands for the file.
    rehearsed: bool,
    /// INVARIANT (made once): set where the file was seen; one that is gone since is never made anew, for an empty
    /// balance would look like a full one.
    seen: AtomicBool,
    /// Whether a contract names it.
    named: AtomicBool,
    /// Whether it was told already, at the place where it is declared, that it cannot be opened.
    told: AtomicBool,
    readers: Mutex<Vec<Connection>>,
    writers: Mutex<Vec<Connection>>,
    /// What the seed made, where it stands for the file.
    rehearsal: Mutex<Option<seed::Rehearsal>>,
}

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// It can only read.
    Read,
    Write,
}

/// How long a database may keep a start waiting.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// Idle connections that are kept for each mode.
const IDLE: usize = 4;
/// Steps of SQLite's machine between two looks at the watch: far less than a millisecond.
const STEPS: i32 = 1000;

impl Databases {
    /// The databases of the gate in `folder`, by name. Nothing is opened yet.
    pub(crate) fn new(folder: &Path, places: impl IntoIterator<Item = (String, Place)>) -> Self {
        Self::of(folder, places, false)
    }

    /// The same, but where there is a seed, what it makes stands for the file: the same data every time, in memory.
    pub(crate) fn rehearsed(folder: &Path, places: impl IntoIterator<Item = (String, Place)>) -> Self {
        Self::of(folder, places, true)
    }

    fn of(folder: &Path, places: impl IntoIterator<Item = (String, Place)>, rehearsed: bool) -> Self {
        let databases = places.into_iter().map(|(name, Place { path, seed })| {
            let seed = seed.map(|seed| folder.join(seed));
            (name, Arc::new(Database::new(folder.join(path), seed, rehearsed)))
        });
        Self(Arc::new(databases.collect()))
    }

    pub(super) fn get(&self, name: &str) -> Option<Arc<Database>> {
        let database = self.0.get(name).cloned()?;
        database.named.store(true, Ordering::Relaxed);
        Some(database)
    }

    /// The databases that contracts name and that cannot be opened, each with the key of its declaration that is at
    /// fault and why. The tools that use them do not tell it again.
    pub(crate) fn faults(&self) -> Vec<(String, &'static str, String)> {
        let named = self.0.iter().filter(|(_, database)| database.named.load(Ordering::Relaxed));
        let faulty = named.filter_map(|(name, database)| {
            let watch = Watch::new(Instant::now() + PATIENCE, || false);
            let look = |connection: &mut Connection| {
                let count = connection.query_row("select count(*) from sqlite_schema", [], |_| Ok(()));
                count.map_err(|error| Trouble::of(&error))
            };
            let Err(Trouble::Unopenable(why)) = watch.patiently(|| database.rehearse(&watch, look)) else {
                return None;
            };
            database.told.store(true, Ordering::Relaxed);
            let key = if database.seed.is_some() && !database.path.exists() { "seed" } else { "path" };
            Some((name.clone(), key, why))
        });
        faulty.collect()
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

impl Database {
    pub(super) fn new(path: PathBuf, seed: Option<PathBuf>, rehearsed: bool) -> Self {
        let [seen, named, told] = [(); 3].map(|()| AtomicBool::new(false));
        let (readers, writers, rehearsal) = (Mutex::default(), Mutex::default(), Mutex::default());
        let shared = format!("sql/{}", path.display());
        Self { path, shared, seed, rehearsed, seen, named, told, readers, writers, rehearsal }
    }

    pub(super) fn shared(&self) -> &str {
        &self.shared
    }

    /// Keeps a connection that runs this just before each commit, which it takes back where that is `true`.
    #[cfg(test)]
    pub(super) fn hook(&self, hook: impl FnMut() -> bool + Send + 'static) {
        let watch = Watch::new(Instant::now() + PATIENCE, || false);
        let Ok(mut connection) = self.open(Mode::Write, &watch) else { return };
        let hooked = connection.commit_hook(Some(hook)).is_ok();
        self.writers.lock().unwrap_or_else(PoisonError::into_inner).extend(hooked.then_some(connection));
    }

    /// Whether it was told already that it cannot be opened.
    pub(super) fn is_told(&self) -> bool {
        self.told.load(Ordering::Relaxed)
    }

    /// Works with a connection that shows how the database is or, where it is not there yet, how its seed would make it.
    pub(super) fn rehearse<T>(
        &self,
        watch: &Watch,
        work: impl FnOnce(&mut Connection) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        match &self.seed {
            Some(seed) if !self.rehearsed && !self.path.exists() => {
                let mut connection = seed::rehearse(seed).map_err(|why| self.unmade(seed, &why))?;
                work(&mut connection)
            }
            Some(_) | None => self.with(Mode::Read, watch, work),
        }
    }

    fn unmade(&self, seed: &Path, why: &str) -> Trouble {
        Trouble::Unopenable(format!("cannot make the database {} of {}: {why}", self.path.display(), seed.display()))
    }

    /// Works with a connection under the watch. What is not committed afterwards is rolled back.
    pub(super) fn with<T>(
        &self,
        mode: Mode,
        watch: &Watch,
        work: impl FnOnce(&mut Connection) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        let idle = self.idle(mode).lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut connection = match idle {
            Some(connection) => connection,
            None => self.open(mode, watch)?,
        };
        let ended = watched(&mut connection, watch).and_then(|()| work(&mut connection));
        self.take_back(mode, connection);
        match ended {
            // SQLite only tells that it was interrupted; the watch tells why.
            Err(Trouble::TimedOut) => Err(watch.check().err().unwrap_or(Trouble::TimedOut)),
            ended => ended,
        }
    }

    /// Keeps a connection for the next one. One that cannot roll back is closed, which does.
    fn take_back(&self, mode: Mode, mut connection: Connection) {
        if unwatched(&mut connection).is_err() {
            return;
        }
        let clean = connection.is_autocommit() || connection.execute_batch("rollback").is_ok();
        let mut idle = self.idle(mode).lock().unwrap_or_else(PoisonError::into_inner);
        if clean && idle.len() < IDLE {
            idle.push(connection);
        }
    }

    fn idle(&self, mode: Mode) -> &Mutex<Vec<Connection>> {
        match mode {
            Mode::Read => &self.readers,
            Mode::Write => &self.writers,
        }
    }

    fn open(&self, mode: Mode, watch: &Watch) -> Result<Connection, Trouble> {
        match &self.seed {
            Some(seed) if self.rehearsed => self.open_rehearsal(mode, seed),
            None if self.rehearsed && mode == Mode::Write => {
                let path = self.path.display();
                Err(Trouble::Unopenable(format!("the database {path} has no seed, so a write cannot be rehearsed")))
            }
            Some(_) | None => self.open_file(mode, watch),
        }
    }

    /// A connection to what the seed makes, which all connections share, and which goes with the first of them.
    fn open_rehearsal(&self, mode: Mode, seed: &Path) -> Result<Connection, Trouble> {
        let mut rehearsal = self.rehearsal.lock().unwrap_or_else(PoisonError::into_inner);
        let made = match rehearsal.take() {
            Some(made) => made,
            None => seed::Rehearsal::of(seed).map_err(|why| self.unmade(seed, &why))?,
        };
        let opened = rehearsal.insert(made).connect().map_err(|error| Trouble::of(&error))?;
        if mode == Mode::Read {
            opened.execute_batch("pragma query_only = on").map_err(|error| Trouble::of(&error))?;
        }
        Ok(opened)
    }

    fn open_file(&self, mode: Mode, watch: &Watch) -> Result<Connection, Trouble> {
        if !self.path.exists() {
            let path = self.path.display();
            if self.seen.load(Ordering::SeqCst) {
                return Err(Trouble::Unopenable(format!("the database {path} was there and is gone")));
            }
            let Some(seed) = &self.seed else {
                let text = format!("there is no database {path}, and no seed to make it of");
                return Err(Trouble::Unopenable(text));
            };
            seed::create(&self.path, seed).map_err(|why| self.unmade(seed, &why))?;
        }
        self.seen.store(true, Ordering::SeqCst);
        let (access, pragmas) = match mode {
            Mode::Read => (OpenFlags::SQLITE_OPEN_READ_ONLY, "pragma query_only = on"),
            Mode::Write => (
                OpenFlags::SQLITE_OPEN_READ_WRITE,
                "pragma journal_mode = wal; pragma synchronous = full; pragma foreign_keys = on",
            ),
        };
        let opened = Connection::open_with_flags(&self.path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX).and_then(|c| {
            c.busy_timeout(watch.slice())?;
            c.execute_batch(pragmas)?;
            Ok(c)
        });
        opened.map_err(|error| match Trouble::of(&error) {
            Trouble::Busy => Trouble::Busy,
            _ => Trouble::Unopenable(format!("cannot open the database {}: {}", self.path.display(), words(&error))),
        })
    }
}

/// Lets the watch end what runs on the connection, and bounds how long it waits for a lock.
fn watched(connection: &mut Connection, watch: &Watch) -> Result<(), Trouble> {
    let asked = watch.clone();
    connection
        .busy_timeout(watch.slice())
        .and_then(|()| connection.progress_handler(STEPS, Some(move || asked.check().is_err())))
        .map_err(|error| Trouble::of(&error))
}

/// Takes the watch away: what follows runs to its end.
pub(super) fn unwatched(connection: &mut Connection) -> Result<(), Trouble> {
    connection.progress_handler(0, None::<fn() -> bool>).map_err(|error| Trouble::of(&error))
}
