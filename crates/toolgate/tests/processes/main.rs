//! Several processes on one ledger: each story starts this test binary again, once for each process.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a test may panic, and start processes"
)]

mod clocks;
mod consent;
mod killed;
mod process;
mod racing;
mod spending;

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// The folder that the processes of a story share.
struct Shared(TempDir);

impl Shared {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// What was done outside, a line each.
    fn effects(&self) -> Vec<String> {
        fs::read_to_string(effects(self.path())).unwrap_or_default().lines().map(str::to_owned).collect()
    }
}

/// The file that every effect is a line of.
fn effects(folder: &Path) -> PathBuf {
    folder.join("effects")
}
