//! Which processes hold locks on a file, where the system tells it: for the message that a store stayed locked.

use std::collections::BTreeSet;
use std::path::Path;

/// The ids of the processes that hold a lock on the database, its log or its index. Empty where that cannot be told.
pub(super) fn holders(file: &Path) -> BTreeSet<u32> {
    let Ok(locks) = std::fs::read_to_string("/proc/locks") else { return BTreeSet::new() };
    let inodes: Vec<u64> = ["", "-wal", "-shm"].iter().filter_map(|end| inode(file, end)).collect();
    locks.lines().filter_map(|line| holder(line, &inodes)).filter(|pid| *pid != std::process::id()).collect()
}

/// The process of a line such as `1: POSIX  ADVISORY  WRITE 4242 fd:01:131 120 120`, if it is one that writes to one of
/// the files. A line with `->` waits for a lock and holds none.
fn holder(line: &str, inodes: &[u64]) -> Option<u32> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [_, _, _, "WRITE", pid, place, ..] = words.as_slice() else { return None };
    let inode: u64 = place.rsplit(':').next()?.parse().ok()?;
    inodes.contains(&inode).then(|| pid.parse().ok()).flatten()
}

#[cfg(unix)]
fn inode(file: &Path, end: &str) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(format!("{}{end}", file.display())).ok().map(|found| found.ino())
}

#[cfg(not(unix))]
fn inode(_file: &Path, _end: &str) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_writes_to_one_of_the_files_holds_it() {
        let line = "1: POSIX  ADVISORY  WRITE 4242 fd:01:131 120 120";
        assert_eq!(holder(line, &[7, 131]), Some(4242));
        assert_eq!(holder(line, &[7]), None);
        assert_eq!(holder("1: -> POSIX  ADVISORY  WRITE 4243 fd:01:131 120 120", &[131]), None);
        assert_eq!(holder("2: POSIX  ADVISORY  READ 4244 fd:01:131 128 128", &[131]), None);
        assert_eq!(holder("", &[131]), None);
    }
}
