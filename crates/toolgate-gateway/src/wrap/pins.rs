//! What a wrapped server was when it was first used: the definition of each of its tools and the files that are run.
//!
//! The lock stands beside the state as `wrap.lock`. Whatever differs from it is not used before a person accepts it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use toolgate::clock::{Clock as _, Millis, SystemClock};
use toolgate::json::{self, Digest, Limits};

use crate::import::Imported;
use crate::mcp::shown::one_line;
use crate::mcp::upstream::Program;

/// What is pinned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pins {
    files: BTreeMap<PathBuf, FilePin>,
    tools: BTreeMap<String, Digest>,
}

/// A file that is run.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FilePin {
    digest: Digest,
    /// `None` where the file had changed so shortly before that another change could look the same.
    stamp: Option<Stamp>,
}

/// What the file system says of a file. It is read anew only when this has moved: its change time can't be set by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    size: u64,
    inode: u64,
    changed: i64,
    nanos: i64,
}

/// How a tool stands to its pin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Pinned,
    Changed,
    New,
}

/// The file of the lock.
pub(crate) const LOCK: &str = "wrap.lock";
const VERSION: u64 = 1;
const SHOWN_NAME: usize = 120;
/// Seconds after which a further change of a file shows in its change time.
const SETTLED: i64 = 2;
/// Programs that run a script: then the script is what matters.
const INTERPRETERS: [&str; 8] = ["node", "python", "bun", "deno", "ruby", "perl", "sh", "bash"];

impl Pins {
    /// Reads the lock of a folder; `None` where there is none yet. The error is for a person.
    pub(crate) fn read(dir: &Path) -> Result<Option<Self>, String> {
        let path = dir.join(LOCK);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(format!("{} cannot be read: {error}", path.display())),
        };
        let limits = Limits { size: usize::MAX, members: usize::MAX, ..Limits::default() };
        let lock = json::read(&text, &limits).ok().as_ref().and_then(Self::from_lock);
        lock.map(Some)
            .ok_or_else(|| format!("{} is no lock of this version; --repin writes a new one over it", path.display()))
    }

    /// What is to be pinned of a program and its tools.
    pub(crate) fn of(files: &[PathBuf], tools: BTreeMap<String, Digest>) -> Result<Self, String> {
        let files = files.iter().map(|path| Ok((path.clone(), FilePin::of(path)?)));
        Ok(Self { files: files.collect::<Result<_, String>>()?, tools })
    }

    /// Writes the lock of a folder that has none, and gives the one that then stands: another process may have been first.
    pub(crate) fn keep(self, dir: &Path) -> Result<Self, String> {
        let written = self.write(dir)?;
        let linked = fs::hard_link(&written, dir.join(LOCK));
        // Its name was for the writing alone.
        let _ = fs::remove_file(&written);
        match linked {
            Ok(()) => Ok(self),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Self::read(dir)?.ok_or_else(|| "the lock is gone again".to_owned())
            }
            Err(error) => Err(unwritten(dir, &error)),
        }
    }

    /// Writes the lock of a folder in the place of the one that stands.
    pub(crate) fn replace(&self, dir: &Path) -> Result<(), String> {
        let written = self.write(dir)?;
        fs::rename(written, dir.join(LOCK)).map_err(|error| unwritten(dir, &error))
    }

    fn write(&self, dir: &Path) -> Result<PathBuf, String> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|_| "the system gives no random bytes".to_owned())?;
        let path = dir.join(format!(".{LOCK}.{:016x}", u64::from_ne_bytes(random)));
        let write = || {
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
            let text = serde_json::to_string_pretty(&self.to_lock()).unwrap_or_default();
            file.write_all(text.as_bytes())?;
            file.write_all(b"\n")?;
            file.sync_all()
        };
        match write() {
            Ok(()) => Ok(path),
            Err(error) => {
                let _ = fs::remove_file(&path);
                Err(unwritten(dir, &error))
            }
        }
    }

    /// Holds the files of a program to their pins. Says which one is not what it was, or is not pinned at all.
    pub(crate) fn check_files(&self, files: &[PathBuf]) -> Result<(), String> {
        let now: BTreeSet<&PathBuf> = files.iter().collect();
        if now != self.files.keys().collect() {
            return Err(format!("the command no longer runs {}", listed(self.files.keys())));
        }
        for (path, pin) in &self.files {
            let unmoved = pin.stamp.is_some() && Stamp::of(path).ok() == pin.stamp;
            let same = unmoved || FilePin::of(path)?.digest == pin.digest;
            if !same {
                return Err(format!("{} is not the file that was pinned", path.display()));
            }
        }
        Ok(())
    }

    /// How a tool stands to its pin.
    pub(crate) fn standing(&self, tool: &Imported) -> Standing {
        match self.tools.get(&tool.name) {
            Some(digest) if *digest == tool.digest => Standing::Pinned,
            Some(_) => Standing::Changed,
            None => Standing::New,
        }
    }

    /// The names that are pinned.
    pub(crate) fn tools(&self) -> impl Iterator<Item = &String> {
        self.tools.keys()
    }

    fn to_lock(&self) -> Value {
        let files = self.files.iter().map(|(path, FilePin { digest, stamp })| {
            let stamp = stamp.map(|Stamp { size, inode, changed, nanos }| json!([size, inode, changed, nanos]));
            json!({ "path": path.to_string_lossy(), "sha256": digest.hex(), "stamp": stamp })
        });
        let files: Vec<Value> = files.collect();
        let tools: Map<String, Value> =
            self.tools.iter().map(|(name, digest)| (name.clone(), Value::from(digest.hex()))).collect();
        json!({ "version": VERSION, "files": files, "tools": tools })
    }

    fn from_lock(lock: &Value) -> Option<Self> {
        if lock.get("version")?.as_u64()? != VERSION {
            return None;
        }
        let file = |file: &Value| {
            let stamp = match file.get("stamp")?.as_array().map(Vec::as_slice) {
                None => None,
                Some([size, inode, changed, nanos]) => Some(Stamp {
                    size: size.as_u64()?,
                    inode: inode.as_u64()?,
                    changed: changed.as_i64()?,
                    nanos: nanos.as_i64()?,
                }),
                Some(_) => return None,
            };
            let digest = file.get("sha256")?.as_str()?.parse().ok()?;
            Some((PathBuf::from(file.get("path")?.as_str()?), FilePin { digest, stamp }))
        };
        let tool = |(name, digest): (&String, &Value)| Some((name.clone(), digest.as_str()?.parse().ok()?));
        Some(Self {
            files: lock.get("files")?.as_array()?.iter().map(file).collect::<Option<_>>()?,
            tools: lock.get("tools")?.as_object()?.iter().map(tool).collect::<Option<_>>()?,
        })
    }
}

/// The files whose content is pinned: the program, and the script that an interpreter was given. What these load in turn is
/// not covered, nor what a package runner fetches.
pub(crate) fn files_of(program: &Program) -> Result<Vec<PathBuf>, String> {
    let path = program.path().ok_or_else(|| {
        let name = program.command.first().map_or("", String::as_str);
        format!("there is no program {}", one_line(name, SHOWN_NAME))
    })?;
    let mut files = vec![path];
    let name = program.command.first().map(Path::new).and_then(Path::file_stem).map(|name| name.to_string_lossy());
    let plain = name.unwrap_or_default();
    // python3 and python3.11 are python.
    let plain = plain.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    if INTERPRETERS.contains(&plain) {
        let script = program.command.iter().skip(1).find(|word| !word.starts_with('-')).map(PathBuf::from);
        let script = script.map(|script| program.directory.as_ref().map_or(script.clone(), |dir| dir.join(&script)));
        if let Some(script) = script.filter(|script| script.is_file()) {
            files.push(std::path::absolute(&script).unwrap_or(script));
        }
    }
    Ok(files)
}

impl FilePin {
    fn of(path: &Path) -> Result<Self, String> {
        let pin = || {
            let stamp = Stamp::of(path)?;
            let old = stamp.changed.saturating_add(SETTLED) < seconds(SystemClock.now());
            Ok(Self { digest: Digest::of_reader(File::open(path)?)?, stamp: Some(stamp).filter(|_| old) })
        };
        pin().map_err(|error: io::Error| format!("{} cannot be read: {error}", path.display()))
    }
}

impl Stamp {
    fn of(path: &Path) -> io::Result<Self> {
        let about = fs::metadata(path)?;
        Ok(Self { size: about.size(), inode: about.ino(), changed: about.ctime(), nanos: about.ctime_nsec() })
    }
}

fn seconds(now: Millis) -> i64 {
    i64::try_from(now.0 / 1000).unwrap_or(i64::MAX)
}

fn unwritten(dir: &Path, error: &io::Error) -> String {
    format!("{} cannot be written: {error}", dir.join(LOCK).display())
}

fn listed<'a>(paths: impl Iterator<Item = &'a PathBuf>) -> String {
    paths.map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]
mod tests {
    use super::*;
    use crate::import::import;
    use crate::mcp::upstream::Environment;

    fn tools(descriptions: &[(&str, &str)]) -> Vec<Imported> {
        let raw: Vec<Vec<u8>> = descriptions
            .iter()
            .map(|(name, description)| {
                json!({"name": name, "description": description, "inputSchema": {"type": "object"}}).to_string().into()
            })
            .collect();
        import(&raw, &[]).tools
    }

    fn pins(files: &[PathBuf], tools: &[Imported]) -> Pins {
        Pins::of(files, tools.iter().map(|tool| (tool.name.clone(), tool.digest)).collect()).unwrap()
    }

    fn program(words: &[&str]) -> Program {
        Program {
            command: words.iter().map(|&word| word.to_owned()).collect(),
            directory: None,
            environment: Environment::Inherited,
        }
    }

    #[test]
    fn any_difference_of_a_definition_shows() {
        let pins = pins(&[], &tools(&[("a", "Does."), ("b", "Does.")]));
        let now = tools(&[("a", "Does."), ("b", "Does. "), ("c", "Does.")]);
        let standings: Vec<Standing> = now.iter().map(|tool| pins.standing(tool)).collect();
        assert_eq!(standings, [Standing::Pinned, Standing::Changed, Standing::New]);
        let more = json!({"name": "a", "description": "Does.", "inputSchema": {"type": "object"}, "annotations": {}});
        let more = import(&[more.to_string().into_bytes()], &[]).tools;
        assert_eq!(pins.standing(&more[0]), Standing::Changed, "every member counts");
    }

    #[test]
    fn a_lock_is_read_back_and_the_first_one_stands() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Pins::read(dir.path()), Ok(None));
        let file = dir.path().join("server");
        fs::write(&file, "v1").unwrap();
        let first = pins(&[file], &tools(&[("a", "One.")]));
        let second = pins(&[], &tools(&[("a", "Two.")]));
        assert_eq!(first.clone().keep(dir.path()).unwrap(), first);
        assert_eq!(second.clone().keep(dir.path()).unwrap(), first, "another process was first");
        second.replace(dir.path()).unwrap();
        assert_eq!(Pins::read(dir.path()), Ok(Some(second)));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "nothing is left of the writing");
    }

    #[test]
    fn what_is_no_lock_of_this_version_is_told() {
        let dir = tempfile::tempdir().unwrap();
        for text in
            ["", "{}", r#"{"version":2,"files":[],"tools":{}}"#, r#"{"version":1,"files":[],"tools":{"a":"x"}}"#]
        {
            fs::write(dir.path().join(LOCK), text).unwrap();
            assert!(Pins::read(dir.path()).unwrap_err().contains("no lock of this version"), "{text}");
        }
    }

    #[test]
    fn a_file_is_what_it_was_or_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("server");
        fs::write(&file, "v1").unwrap();
        let files = [file.clone()];
        let pins = pins(&files, &[]);
        assert_eq!(pins.check_files(&files), Ok(()));
        fs::write(&file, "v2").unwrap();
        assert!(pins.check_files(&files).unwrap_err().contains("is not the file that was pinned"));
        fs::write(&file, "v1").unwrap();
        assert_eq!(pins.check_files(&files), Ok(()), "written again, and the same");
        assert!(pins.check_files(&[]).unwrap_err().contains("no longer runs"));
    }

    #[test]
    fn the_script_of_an_interpreter_is_a_file_that_is_run() {
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("server.py");
        fs::write(&script, "").unwrap();
        let named = script.to_str().unwrap();
        let files = files_of(&program(&["sh", "-e", named, "data.txt"])).unwrap();
        assert_eq!((files.len(), &files[1]), (2, &script));
        assert_eq!(files_of(&program(&["ls", named])).unwrap().len(), 1, "an argument of any other program is its own");
        assert!(files_of(&program(&["no-such-program-anywhere"])).is_err());
    }
}
