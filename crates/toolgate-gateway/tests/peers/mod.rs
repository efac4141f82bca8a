//! Where the official MCP clients and servers are that tests talk to.

use std::path::{Path, PathBuf};

/// `$TOOLGATE_PEERS`, else `target/peers`, where `install` puts them. Where there are none the test that asks fails,
/// unless `TOOLGATE_WITHOUT_PEERS=1` says that this is meant: then there is nothing to test.
pub(crate) fn peers() -> Option<PathBuf> {
    let named = std::env::var_os("TOOLGATE_PEERS").map(PathBuf::from);
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let installed = named.unwrap_or_else(|| workspace.join("target/peers"));
    if installed.join("py").is_dir() && installed.join("node/node_modules").is_dir() {
        return Some(installed.canonicalize().unwrap());
    }
    let meant = std::env::var_os("TOOLGATE_WITHOUT_PEERS").is_some_and(|value| value == "1");
    assert!(
        meant,
        "the MCP clients and servers are not in {}\nhint: run crates/toolgate-gateway/tests/peers/install, or set \
         TOOLGATE_PEERS to where they are, or set TOOLGATE_WITHOUT_PEERS=1 to do without these tests",
        installed.display()
    );
    None
}
