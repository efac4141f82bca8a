//! Folders of what a gate keeps: the arguments and results of every tenant, tokens, data. They are their owner's alone.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// Makes a folder, and those above it, that nobody else may look into. One that is there stays as it is.
pub(crate) fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_new_folder_is_its_owners_and_an_old_one_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let state = folder.path().join("gate/state");
        make_folder(&state).unwrap();
        assert_eq!(mode(&state), 0o700);
        std::fs::set_permissions(&state, PermissionsExt::from_mode(0o750)).unwrap();
        make_folder(&state).unwrap();
        assert_eq!(mode(&state), 0o750);
    }
}
