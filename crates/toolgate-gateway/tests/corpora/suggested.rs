//! Policies are suggested for the tools of real servers, and what is suggested loads.

use std::process::{Command, Output};

use super::mcp_tools::servers;

/// A server that lists what a file says.
const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/upstreams/described.py");

fn toolgate(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_toolgate")).args(words).output().unwrap()
}

#[test]
fn policies_that_are_suggested_for_the_tools_of_a_real_server_load() {
    let desk = tempfile::tempdir().unwrap();
    for (place, server) in servers().iter().filter(|server| !server.tools.is_empty()).enumerate() {
        let [tools, dir] = ["tools", "dir"].map(|name| desk.path().join(format!("{name}_{place}")));
        std::fs::write(&tools, serde_json::Value::from(server.tools.clone()).to_string()).unwrap();
        let [tools, dir] = [&tools, &dir].map(|path| path.to_str().unwrap());
        let made = toolgate(&["init", dir, "--from", "mcp", "--", "python3", SERVER, tools]);
        assert!(made.status.success(), "{}: {made:?}", server.id);
        let suggested = toolgate(&["check", dir, "--suggest-policies"]);
        assert!(suggested.status.success(), "{}: {suggested:?}", server.id);
        // The cases of the new folder say that nobody may write yet.
        for folder in ["policies", "cases"] {
            let folder = std::path::Path::new(dir).join(folder);
            if folder.is_dir() {
                std::fs::remove_dir_all(folder).unwrap();
            }
        }
        let policies = std::path::Path::new(dir).join("policies");
        std::fs::create_dir(&policies).unwrap();
        std::fs::write(policies.join("suggested.cedar"), &suggested.stdout).unwrap();
        let checked = toolgate(&["check", dir]);
        assert!(checked.status.success(), "{}: {checked:?}", server.id);
    }
}
