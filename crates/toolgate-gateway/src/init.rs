//! A new gate folder: what stands in it, and how it is written, whole or not at all.

mod imported;
mod story;

use std::borrow::Cow;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

pub(crate) use imported::{Server, imported, left_out, review};
pub(crate) use story::{FIRST_CALL, WORDS, story};

/// A gate folder that is not written yet.
#[derive(Debug)]
pub(crate) struct NewFolder {
    /// In the order in which they are shown.
    files: Vec<NewFile>,
}

/// A file of it.
#[derive(Debug)]
struct NewFile {
    /// Below the folder, with `/` between its parts.
    path: Cow<'static, str>,
    text: Cow<'static, str>,
}

/// Why a folder was not written. Nothing is left of it.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotWritten {
    /// Something is there already.
    #[error("the folder {} is not empty; nothing was written", .0.display())]
    NotEmpty(PathBuf),
    /// The path is taken by something else.
    #[error("{} is no folder; nothing was written", .0.display())]
    NotAFolder(PathBuf),
    /// The system refuses it.
    #[error("{} cannot be written ({why}); nothing was written", path.display())]
    Refused {
        /// What could not be written.
        path: PathBuf,
        /// What the system says.
        why: ErrorKind,
    },
}

/// How wide a line is shown.
const COLUMNS: usize = 100;

/// What was made so far. INVARIANT (all or nothing): it goes when this is dropped, unless it was kept.
#[derive(Debug, Default)]
struct Made {
    folders: Vec<PathBuf>,
    files: Vec<PathBuf>,
}

impl NewFolder {
    /// The paths of its files, below it.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|file| &*file.path)
    }

    /// How it looks when it is named `name`: a line for each folder, with the files in it.
    pub(crate) fn tree(&self, name: &str) -> Vec<String> {
        let mut folders: Vec<(String, Vec<&str>)> = vec![(format!("{}/", name.trim_end_matches('/')), Vec::new())];
        for path in self.paths() {
            let (folder, file) = match path.rsplit_once('/') {
                Some((folder, file)) => (format!("  {folder}/"), file),
                None => (format!("{}/", name.trim_end_matches('/')), path),
            };
            match folders.iter_mut().find(|(known, _)| *known == folder) {
                Some((_, files)) => files.push(file),
                None => folders.push((folder, vec![file])),
            }
        }
        let width = folders.iter().map(|(folder, _)| folder.chars().count()).max().unwrap_or(0);
        let room = COLUMNS.saturating_sub(width + 2);
        folders.iter().map(|(folder, files)| format!("{folder:width$}  {}", listed(files, room))).collect()
    }

    /// Whether `dir` could take it: there is nothing, or an empty folder.
    pub(crate) fn fits(dir: &Path) -> Result<(), NotWritten> {
        match fs::read_dir(dir).map(|mut entries| entries.next().is_none()) {
            Ok(true) => Ok(()),
            Ok(false) => Err(NotWritten::NotEmpty(dir.to_owned())),
            Err(error) => match error.kind() {
                ErrorKind::NotFound => Ok(()),
                ErrorKind::NotADirectory => Err(NotWritten::NotAFolder(dir.to_owned())),
                why => Err(NotWritten::Refused { path: dir.to_owned(), why }),
            },
        }
    }

    /// Writes it to `dir`, which is made where it is not there.
    pub(crate) fn write(&self, dir: &Path) -> Result<(), NotWritten> {
        Self::fits(dir)?;
        let mut made = Made::default();
        made.folder(dir)?;
        for NewFile { path, text } in &self.files {
            let path = dir.join(&**path);
            made.folder(path.parent().unwrap_or(dir))?;
            made.file(path, text)?;
        }
        made.keep();
        Ok(())
    }
}

impl Made {
    /// Makes a folder and those around it, as far as they are not there.
    fn folder(&mut self, path: &Path) -> Result<(), NotWritten> {
        if path.as_os_str().is_empty() || path.is_dir() {
            return Ok(());
        }
        if let Some(parent) = path.parent() {
            self.folder(parent)?;
        }
        fs::create_dir(path).map_err(|error| refused(path, &error))?;
        self.folders.push(path.to_owned());
        Ok(())
    }

    /// Makes a file that is not there.
    fn file(&mut self, path: PathBuf, text: &str) -> Result<(), NotWritten> {
        let made = OpenOptions::new().write(true).create_new(true).open(&path);
        let mut file = made.map_err(|error| refused(&path, &error))?;
        self.files.push(path.clone());
        file.write_all(text.as_bytes()).map_err(|error| refused(&path, &error))
    }

    fn keep(mut self) {
        self.files.clear();
        self.folders.clear();
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        // What cannot be removed was not in anybody's way before either; folders that somebody else uses stay.
        for file in &self.files {
            let _ = fs::remove_file(file);
        }
        for folder in self.folders.iter().rev() {
            let _ = fs::remove_dir(folder);
        }
    }
}

/// As many names as there is room for, and how many there are besides.
fn listed(names: &[&str], room: usize) -> String {
    let whole = names.join("  ");
    if whole.chars().count() <= room {
        return whole;
    }
    let mut shown = String::new();
    let mut left = names.len();
    // Room for the longest end that there can be.
    let room = room.saturating_sub("and 1000 more".len());
    for name in names {
        if shown.chars().count() + name.chars().count() + 2 > room {
            break;
        }
        shown.push_str(name);
        shown.push_str("  ");
        left -= 1;
    }
    format!("{shown}and {left} more")
}

fn refused(path: &Path, error: &std::io::Error) -> NotWritten {
    NotWritten::Refused { path: path.to_owned(), why: error.kind() }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    fn folder(files: &[(&'static str, &'static str)]) -> NewFolder {
        let file = |(path, text): &(&'static str, &'static str)| NewFile { path: (*path).into(), text: (*text).into() };
        NewFolder { files: files.iter().map(file).collect() }
    }

    fn is_empty(dir: &Path) -> bool {
        fs::read_dir(dir).unwrap().next().is_none()
    }

    #[test]
    fn a_tree_has_a_line_for_each_folder() {
        let new = folder(&[("a.toml", ""), ("b.sql", ""), ("tools/one.toml", ""), ("tools/two.toml", ""), ("c/d", "")]);
        let lines = ["shop/     a.toml  b.sql", "  tools/  one.toml  two.toml", "  c/      d"];
        assert_eq!(new.tree("shop/"), lines);
    }

    #[test]
    fn of_many_files_a_line_shows_some_and_counts_the_others() {
        let names: Vec<String> = (0..50).map(|n| format!("a_long_name_{n}.toml")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let line = listed(&names, 80);
        assert!(line.chars().count() <= 80 && line.ends_with("and 47 more"), "{line}");
        assert_eq!(listed(&names, 4), "and 50 more", "where there is no room, the number is still told");
    }

    #[test]
    fn it_is_written_where_there_is_nothing_or_an_empty_folder() {
        let place = tempfile::tempdir().unwrap();
        let new = folder(&[("a", "1"), ("b/c", "2")]);
        for dir in [place.path().to_owned(), place.path().join("b/deep/er")] {
            new.write(&dir).unwrap();
            assert_eq!(fs::read_to_string(dir.join("b/c")).unwrap(), "2");
        }
        assert_eq!(new.write(place.path()), Err(NotWritten::NotEmpty(place.path().to_owned())));
        assert_eq!(new.write(&place.path().join("a")), Err(NotWritten::NotAFolder(place.path().join("a"))));
    }

    #[test]
    fn nothing_is_left_of_what_could_not_be_written_whole() {
        let place = tempfile::tempdir().unwrap();
        let clash = folder(&[("a", "1"), ("b/c", "2"), ("a/d", "3")]);
        for dir in [place.path().to_owned(), place.path().join("new/er")] {
            assert!(matches!(clash.write(&dir), Err(NotWritten::Refused { .. })));
            assert!(is_empty(place.path()), "{}", dir.display());
        }
    }
}
