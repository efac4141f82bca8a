//! The folder of a gate whose writes are counted outside of it, and what may change in it without changing any action.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::json;
use tempfile::TempDir;

/// What stands between the gate and its backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Between {
    Nothing,
    /// A process that cuts the connection once in a while.
    Wire,
}

/// A gate folder that goes away with this.
pub(crate) struct Folder {
    dir: TempDir,
}

/// One effect, as the backend wrote it down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Effect {
    pub(crate) receipt: String,
    pub(crate) key: String,
}

/// How long a write may take: a lease outlasts it by five seconds, and only then is an absent effect no effect.
const DEADLINE: &str = "2s";

/// The tools that write: the second one's actions may not overlap, and hold their lane while nobody knows.
pub(crate) const WRITES: [&str; 2] = ["put", "put_in_turn"];

impl Folder {
    pub(crate) fn new(between: Between) -> Self {
        let folder = Self { dir: tempfile::tempdir().unwrap() };
        for part in ["tools", "policies", "state"] {
            fs::create_dir(folder.join(part)).unwrap();
        }
        let (log, pid, cuts) = (folder.log(), folder.text("state/backend.pid"), folder.cuts());
        let backend = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/crash/backend.py");
        let mut command = vec![python(), "-S".into(), "-I".into(), backend.into()];
        match between {
            Between::Nothing => command.extend(["serve".into(), log, pid]),
            Between::Wire => command.extend(["wire".into(), log, pid, cuts]),
        }
        let settings = format!(
            "store = \"sqlite:state/toolgate.db\"\n\n[identity]\nkind = \"local\"\ndefault = \"carol@acme\"\n\n\
             [[identity.user]]\nname = \"carol\"\ntenant = \"acme\"\nroles = []\n\n\
             [upstreams.effects]\npinned = false\ncommand = {}\n",
            json!(command)
        );
        fs::write(folder.join("toolgate.toml"), settings).unwrap();
        fs::write(folder.join("policies/all.cedar"), "permit (principal, action, resource);\n").unwrap();
        fs::write(folder.join("tools/find.toml"), find()).unwrap();
        folder.describe(0);
        folder
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    fn join(&self, file: &str) -> PathBuf {
        self.dir.path().join(file)
    }

    fn text(&self, file: &str) -> String {
        self.join(file).to_str().unwrap().to_owned()
    }

    fn log(&self) -> String {
        self.text("state/effects.log")
    }

    fn cuts(&self) -> String {
        self.text("state/cuts.log")
    }

    /// Changes what changes no action: the words of the contracts, and a policy about something else.
    pub(crate) fn edit(&self, round: usize) {
        self.describe(round);
        let policy = format!(
            "@id(\"unrelated.{round}\")\nforbid (principal, action == Action::\"find\", resource)\n\
                              when {{ context.input.key == \"{round}\" }};\n"
        );
        fs::write(self.join("policies/unrelated.cedar"), policy).unwrap();
    }

    fn describe(&self, round: usize) {
        for tool in WRITES {
            fs::write(self.join(&format!("tools/{tool}.toml")), write(tool, round)).unwrap();
        }
    }

    /// The process of the backend that was started last.
    pub(crate) fn backend(&self) -> Option<u32> {
        fs::read_to_string(self.join("state/backend.pid")).ok()?.parse().ok()
    }

    /// How often the connection was cut so far.
    pub(crate) fn times_cut(&self) -> usize {
        fs::read_to_string(self.cuts()).map_or(0, |text| text.lines().count())
    }

    /// What happened outside, by identity.
    pub(crate) fn effects(&self) -> BTreeMap<String, Vec<Effect>> {
        let mut effects: BTreeMap<String, Vec<Effect>> = BTreeMap::new();
        for line in fs::read_to_string(self.log()).unwrap().lines() {
            let [identity, key, receipt] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
            let effect = Effect { receipt: receipt.into(), key: key.into() };
            effects.entry(identity.to_owned()).or_default().push(effect);
        }
        effects
    }

    /// The ledger of the folder, while no gate has it open.
    pub(crate) fn ledger(&self) -> PathBuf {
        self.join("state/toolgate.db")
    }
}

fn write(tool: &str, round: usize) -> String {
    let lane = if tool == "put" { "" } else { "[lane]\nkey = [\"{account}\"]\n\n" };
    format!(
        r#"description = "Put something down. The words of round {round}."
effect = "write"
deadline = "{DEADLINE}"
input = {{ properties = {{ identity = {{ type = "string", maxLength = 60 }}, account = {{ type = "integer" }} }}, required = ["identity", "account"] }}
output = {{ type = "object", properties = {{ identity = {{ type = "string" }}, receipt = {{ type = "string" }} }}, required = ["identity", "receipt"] }}

{lane}[reconcile]
tool = "find"
args = {{ key = "{{idempotency_key}}" }}
done = "/receipt"
absent_after = "0s"

[backend]
kind = "mcp"
upstream = "effects"
tool = "put"
meta = {{ "test/key" = "{{idempotency_key}}" }}
"#
    )
}

fn find() -> &'static str {
    r#"description = "Find what was put down under a key."
effect = "read"
input = { properties = { key = { type = "string", maxLength = 128 } }, required = ["key"] }
output = { type = "object", properties = { identity = { type = "string" }, receipt = { type = "string" } } }

[backend]
kind = "mcp"
upstream = "effects"
"#
}

/// The interpreter itself: what stands in the path may be a script that looks for it.
fn python() -> String {
    static PYTHON: OnceLock<String> = OnceLock::new();
    let find = || {
        let told = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().unwrap();
        String::from_utf8(told.stdout).unwrap().trim().to_owned()
    };
    PYTHON.get_or_init(find).clone()
}
