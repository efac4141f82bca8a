//! The file on the disk: one writer at a time, and for its readers whole at every moment.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

use crate::config::Finding;
use crate::state::make_folder;
use toolgate::json::Digest;

/// A new file beside another one; what is left of it goes when it is dropped.
struct Draft(PathBuf);

/// The largest file that is read, in bytes.
const SIZE: u64 = 64 * 1024 * 1024;

/// Keeps all others from changing the file at `path`, until it is dropped. It makes the folder where there is none.
pub(super) fn lock(path: &Path) -> io::Result<File> {
    let folder = folder_of(path);
    make_folder(folder)?;
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(beside(path, ".lock"))?;
    give(&file, folder);
    file.lock()?;
    Ok(file)
}

/// Puts `text` in the place of the file at `path`.
///
/// INVARIANT (whole or as before): a reader finds the old file or the new one, after a crash too.
pub(super) fn replace(path: &Path, text: &str) -> io::Result<()> {
    // Where the name is a link, the file behind it is meant.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let draft = Draft(beside(&path, &format!(".{}.new", random()?)));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft.0)?;
    give(&file, if path.exists() { &path } else { folder_of(&path) });
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&draft.0, &path)?;
    // The name must outlive a crash as much as what stands under it. Not every system can sync a folder.
    let _ = File::open(folder_of(&path)).and_then(|folder| folder.sync_all());
    Ok(())
}

/// Gives a file to the owner of what stands at `path`: root makes a token that the server, which is not root, reads.
fn give(file: &File, path: &Path) {
    if let (Ok(own), Ok(theirs)) = (file.metadata(), fs::metadata(path))
        && own.uid() != theirs.uid()
    {
        // Only root may. The others own what they make, and whoever cannot read it says so.
        let _ = fchown(file, Some(theirs.uid()), Some(theirs.gid()));
    }
}

/// The text of an open file.
pub(super) fn read_text(file: &File) -> io::Result<String> {
    let mut text = String::new();
    let read = file.take(SIZE + 1).read_to_string(&mut text)?;
    let fits = u64::try_from(read).is_ok_and(|read| read <= SIZE);
    if fits { Ok(text) } else { Err(ErrorKind::FileTooLarge.into()) }
}

/// What is wrong with a file that cannot be read, which findings call `name`.
pub(super) fn unreadable(name: &Path, error: &io::Error) -> Finding {
    let message = match error.kind() {
        ErrorKind::InvalidData => "the file is not UTF-8".to_owned(),
        ErrorKind::PermissionDenied => "the file may not be read".to_owned(),
        ErrorKind::FileTooLarge => "the file is larger than 64 MB".to_owned(),
        kind => format!("the file cannot be read: {kind}"),
    };
    Finding::of_file(name, "unreadable", message)
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn random() -> io::Result<String> {
    let mut bits = [0; 32];
    getrandom::fill(&mut bits).map_err(io::Error::other)?;
    Ok(Digest::from(bits).hex().chars().take(16).collect())
}

impl Drop for Draft {
    fn drop(&mut self) {
        // Once it has its name it is not here any more.
        let _ = fs::remove_file(&self.0);
    }
}
