//! **straight line**: what the types make impossible to write. Each probe in `proofs/` is put *inside* a copy of this
//! crate, where everything that the crate can see is visible to it, and must fail to compile with the error that its
//! first line names. (A compile-fail test from outside would prove less: the stages are private to the crate.)

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test may panic, and it runs cargo"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A copy of the crate that takes probes.
struct Copy {
    root: PathBuf,
}

impl Copy {
    fn make() -> Self {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let workspace = here.parent().unwrap().parent().unwrap();
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("proofs");
        let krate = root.join("crates/toolgate");
        let _ = fs::remove_dir_all(&krate);
        for folder in ["src", "benches"] {
            copy_folder(&here.join(folder), &krate.join(folder));
        }
        fs::copy(here.join("Cargo.toml"), krate.join("Cargo.toml")).unwrap();
        fs::copy(workspace.join("Cargo.lock"), root.join("Cargo.lock")).unwrap();
        let manifest = fs::read_to_string(workspace.join("Cargo.toml")).unwrap();
        let alone: String = manifest
            .lines()
            .map(|line| if line.starts_with("members") { "members = [\"crates/toolgate\"]" } else { line })
            .map(|line| format!("{line}\n"))
            .collect();
        fs::write(root.join("Cargo.toml"), alone).unwrap();
        let lib = krate.join("src/lib.rs");
        let text = fs::read_to_string(&lib).unwrap();
        fs::write(&lib, format!("{text}\n#[cfg(test)]\n#[allow(dead_code, missing_docs)]\nmod probe;\n")).unwrap();
        Self { root }
    }

    fn check(&self, probe: &str) -> Output {
        fs::write(self.root.join("crates/toolgate/src/probe.rs"), probe).unwrap();
        Command::new(env!("CARGO"))
            .args(["check", "--offline", "--package", "toolgate", "--lib", "--profile", "test", "--color", "never"])
            .current_dir(&self.root)
            .env("CARGO_TARGET_DIR", self.root.join("target"))
            .env_remove("RUSTFLAGS")
            .output()
            .unwrap()
    }
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy_folder(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}

#[test]
fn the_line_cannot_be_written_otherwise() {
    let copy = Copy::make();
    let sound =
        copy.check("//! A probe that asks for nothing wrong compiles, so what fails below fails for its own reason.\n");
    assert!(sound.status.success(), "{}", String::from_utf8_lossy(&sound.stderr));

    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/proofs");
    let mut probes: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    probes.sort();
    assert!(probes.len() >= 10, "the probes are gone");
    for path in probes {
        let probe = fs::read_to_string(&path).unwrap();
        let expected = probe.strip_prefix("//! ").and_then(|rest| rest.split(':').next()).unwrap();
        let output = copy.check(&probe);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{} compiles", path.display());
        assert!(errors.contains(&format!("error[{expected}]")), "{} fails otherwise:\n{errors}", path.display());
        for error in errors.split("\nerror").filter(|error| error.contains("--> ")) {
            let place = error.lines().find(|line| line.trim_start().starts_with("--> ")).unwrap();
            assert!(place.contains("src/probe.rs"), "{} fails outside the probe:\n{errors}", path.display());
        }
    }
}
