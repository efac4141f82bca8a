//! A folder for the tools of an MCP server, as the server describes them on that day: a contract and its schemas for each,
//! a policy that lets people read, and the lock that pins what was imported.

use std::fmt::Write;
use std::path::Path;

use serde_json::Value;
use toolgate::contract::Access;

use super::{NewFile, NewFolder};
use crate::import::{Import, Imported, Quarantined};
use crate::mcp::shown::one_line;

/// A server whose tools are imported.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Server<'a> {
    /// What the folder calls it.
    pub(crate) name: &'a str,
    pub(crate) command: &'a [String],
    /// Where it runs.
    pub(crate) directory: &'a Path,
}

/// The folder of a server's tools.
pub(crate) fn imported(server: Server<'_>, import: &Import) -> NewFolder {
    let mut files = vec![
        file("toolgate.toml", settings(server)),
        file("toolgate.lock", lock(server.name, import)),
        file(".gitignore", "/state/\n".to_owned()),
    ];
    for tool in &import.tools {
        files.push(file(format!("tools/{}.toml", tool.name), contract(server.name, tool)));
    }
    for tool in &import.tools {
        for schema in SCHEMAS {
            if let Some(document) = tool.keys.get(schema) {
                let text = serde_json::to_string_pretty(document).unwrap_or_default() + "\n";
                files.push(file(format!("tools/{}.{schema}.json", tool.name), text));
            }
        }
    }
    files.push(file("policies/reads.cedar", READS.to_owned()));
    files.push(file("policies/writes.cedar", writes(import)));
    if let Some(cases) = cases(import) {
        files.push(file("cases/writes.jsonl", cases));
    }
    NewFolder { files }
}

/// Everything that the server wrote and a model would read, a line for each text, and what was decided about each tool.
pub(crate) fn review(import: &Import) -> Vec<String> {
    let mut lines = Vec::new();
    for tool in &import.tools {
        lines.push(format!("{}  {}", tool.name, word(tool.access)));
        lines.extend(tool.notes.iter().map(|note| format!("  note: {note}")));
        for key in ["description", "input", "output"] {
            if let Some(value) = tool.keys.get(key) {
                texts(value, key, &mut lines);
            }
        }
    }
    lines.extend(left_out(import));
    lines
}

/// The tools that are not in the folder, and why.
pub(crate) fn left_out(import: &Import) -> Vec<String> {
    let line = |Quarantined { name, reason }: &Quarantined| format!("{name}  left out: {reason}");
    import.quarantined.iter().map(line).collect()
}

const SCHEMAS: [&str; 2] = ["input", "output"];

const READS: &str = "\
// Whoever has the role user may call what the server says only reads. That is the server's own word: look at `effect`
// in tools/, and make a write of what you doubt.
@id(\"reads\")
permit (principal in Role::\"user\", action in Action::\"read\", resource);
";

fn file(path: impl Into<String>, text: String) -> NewFile {
    NewFile { path: path.into().into(), text: text.into() }
}

fn word(access: Access) -> &'static str {
    match access {
        Access::Read => "read",
        Access::Write => "write",
    }
}

fn settings(Server { name, command, directory }: Server<'_>) -> String {
    let words: Vec<String> = command.iter().map(|word| quoted(word)).collect();
    format!(
        "\
store = \"sqlite:state/toolgate.db\" # what was asked, approved and done; made on first use

[upstreams.{name}] # started when the first of its tools is called
command = [{}]
cwd = {}
# env = {{ NAME = \"value\" }} # of ours it gets no variables but those that any program needs

[identity]
kind = \"local\" # the people are listed here; --as USER@TENANT says who is asking
default = \"local@local\"
user = [{{ name = \"local\", tenant = \"local\", roles = [\"user\"] }}]
",
        words.join(", "),
        quoted(&directory.to_string_lossy()),
    )
}

fn lock(name: &str, import: &Import) -> String {
    let mut text = format!(
        "\
# The digest of each tool's definition as it was imported. A tool that the server defines otherwise today is off, until
# somebody has looked at what changed and pins it here anew: `toolgate init NEW --from mcp --review -- CMD` shows it as it
# is now.
[{name}]
"
    );
    for Imported { name, digest, .. } in &import.tools {
        let _ = writeln!(text, "{} = \"{digest}\"", quoted(name));
    }
    text
}

fn contract(server: &str, tool: &Imported) -> String {
    let mut text = String::new();
    for note in &tool.notes {
        let _ = writeln!(text, "# {note}");
    }
    let said = tool.keys.get("description").and_then(Value::as_str).unwrap_or_default();
    let _ = writeln!(text, "description = {}", prose(said));
    let _ = writeln!(text, "effect = \"{}\"", word(tool.access));
    text.push_str("imported = true # the server's own words and schemas, pinned in toolgate.lock\n");
    if let Some(members) = tool.keys.get("allow_identity_members").and_then(Value::as_array) {
        let members: Vec<String> = members.iter().filter_map(Value::as_str).map(quoted).collect();
        let _ = writeln!(text, "allow_identity_members = [{}]", members.join(", "));
    }
    for schema in SCHEMAS.into_iter().filter(|schema| tool.keys.contains_key(*schema)) {
        let _ = writeln!(text, "{schema} = {{ file = {} }}", quoted(&format!("{}.{schema}.json", tool.name)));
    }
    text.push_str(match tool.access {
        Access::Read => "",
        Access::Write => WRITE,
    });
    let _ = write!(text, "\n[backend]\nkind = \"mcp\"\nupstream = {}\n", quoted(server));
    text.push_str(match tool.access {
        Access::Read => "",
        Access::Write => FAILED,
    });
    text
}

/// What an operator may know of a tool, and nobody else can.
const FAILED: &str = "
# That the server reports a failure (isError) is no proof that nothing was done, so the outcome is then unknown, and the
# same call again is refused with `outcome_unknown`. If you know that this tool has done nothing where it reports a
# failure, say so. The model then reads this message in the place of the tool's own words.
#
# [errors.tool_error]
# code = \"failed\"
# message = \"The tool reports that it failed. Nothing was done.\"
# effect = \"none\"
";

/// Nobody knows what a write of somebody else's server acts on.
const WRITE: &str = "
[once] # the same call again is a repeat, unless another write came between
scope = \"run\"
repeat = \"after_other\"
retain = \"2m\"

[lane] # the writes of a run come one after the other
scope = \"run\"
";

fn writes(import: &Import) -> String {
    let example = import.tools.iter().find(|tool| tool.access == Access::Write);
    let name = example.map_or("write_file", |tool| tool.name.as_str());
    format!(
        "\
// Nobody may write yet. Say tool by tool who may:
//
// @id(\"{name}\")
// permit (principal in Role::\"user\", action == Action::\"{name}\", resource);
//
// and, if each call needs the user's own yes (@approvers(\"manager\") would be another person with that role):
//
// @id(\"{name}.confirm\")
// @message(\"This needs your yes.\")
// @approvers(\"self\")
// forbid (principal, action == Action::\"{name}\", resource) unless {{ context.approved }};
"
    )
}

/// What the policies come to: nobody even sees the writes.
fn cases(import: &Import) -> Option<String> {
    let writes = import.tools.iter().filter(|tool| tool.access == Access::Write);
    let case = |tool: &Imported| {
        let name = Value::from(tool.name.as_str());
        format!("{{\"case\": \"nobody may write yet\", \"tool\": {name}, \"expect\": \"unknown_tool\"}}\n")
    };
    Some(writes.map(case).collect::<String>()).filter(|cases| !cases.is_empty())
}

/// A text of TOML on one line.
fn quoted(text: &str) -> String {
    // The escapes of JSON are TOML's too; what TOML wants escaped beside them is DEL.
    Value::from(text).to_string().replace('\u{7f}', "\\u007F")
}

/// A text of TOML, over several lines where it has some.
fn prose(text: &str) -> String {
    let plain = |c: char| c == '\n' || c == '\t' || !c.is_control();
    if !text.contains('\n') || !text.chars().all(plain) {
        return quoted(text);
    }
    let escaped = text.replace('\\', "\\\\").replace("\"\"\"", "\"\"\\\"");
    format!("\"\"\"\n{escaped}\"\"\"")
}

/// The longest text that is shown whole.
const MOST_SHOWN: usize = 4000;

fn texts(value: &Value, at: &str, lines: &mut Vec<String>) {
    match value {
        Value::String(text) => lines.push(format!("  {at}: {}", one_line(text, MOST_SHOWN))),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                texts(item, &format!("{at}/{index}"), lines);
            }
        }
        Value::Object(members) => {
            for (name, value) in members {
                texts(value, &format!("{at}/{}", one_line(name, MOST_SHOWN)), lines);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::import::import;

    fn folder(definitions: &[Value]) -> (NewFolder, Import) {
        let raw: Vec<Vec<u8>> = definitions.iter().map(|definition| definition.to_string().into_bytes()).collect();
        let import = import(&raw, &[]);
        let command = ["run".to_owned(), "a \"b\" \\ c".to_owned()];
        let server = Server { name: "desk", command: &command, directory: Path::new("/here") };
        (imported(server, &import), import)
    }

    fn tool(name: &str, description: &str) -> Value {
        let schema = json!({ "type": "object", "properties": { "user_id": { "type": "string", "title": "Who" } } });
        json!({ "name": name, "description": description, "inputSchema": schema })
    }

    fn table(folder: &NewFolder, path: &str) -> toml::Table {
        let file = folder.files.iter().find(|file| file.path == path).unwrap();
        file.text.parse().unwrap_or_else(|error| panic!("{path}: {error}\n{}", file.text))
    }

    #[test]
    fn texts_of_a_server_stand_in_toml_as_they_are() {
        for said in [
            "plain",
            "two\nlines",
            "\nblank first",
            "a \"quoted\" word",
            "\"\"\"\nends \"\"\"\"",
            "tab\tand \\ back\n\\",
        ] {
            let (folder, import) = folder(&[tool("a.b", said)]);
            assert_eq!(import.quarantined, []);
            assert_eq!(table(&folder, "tools/a.b.toml")["description"].as_str(), Some(said));
        }
    }

    #[test]
    fn what_is_suggested_for_a_write_that_reports_a_failure_is_a_contract() {
        let (folder, _) = folder(&[tool("keep", "Keeps.")]);
        let file = folder.files.iter().find(|file| file.path == "tools/keep.toml").unwrap();
        let (before, suggested) = file.text.split_once("# [errors.tool_error]").unwrap();
        let text = format!("{before}[errors.tool_error]{}", suggested.replace("\n# ", "\n"));
        let table: toml::Table = text.parse().unwrap();
        let mut keys = serde_json::to_value(table).unwrap();
        keys["input"] = json!({ "type": "object", "properties": { "user_id": { "type": "string" } } });
        let contract = toolgate::contract::Contract::parse("keep", &keys);
        assert!(contract.is_ok(), "{:?}", contract.err());
        assert_eq!(keys["errors"]["tool_error"]["effect"], "none");
    }

    #[test]
    fn the_folder_says_what_was_decided_and_pins_what_was_seen() {
        let (folder, import) = folder(&[tool("look", "Looks."), json!({ "name": "look at", "inputSchema": {} })]);
        let contract = table(&folder, "tools/look.toml");
        assert_eq!(contract["effect"].as_str(), Some("write"), "nothing says that it only reads");
        assert_eq!(contract["allow_identity_members"][0].as_str(), Some("user_id"));
        assert_eq!(contract["backend"]["upstream"].as_str(), Some("desk"));
        assert_eq!(table(&folder, "toolgate.lock")["desk"]["look"].as_str(), Some(&*import.tools[0].digest.hex()));
        let command = &table(&folder, "toolgate.toml")["upstreams"]["desk"]["command"];
        assert_eq!(command[1].as_str(), Some("a \"b\" \\ c"));
        let review = review(&import);
        for line in ["look  write", "  description: Looks.", "  input/properties/user_id/title: Who"] {
            assert!(review.iter().any(|found| found == line), "`{line}` in {review:#?}");
        }
        assert!(review.last().unwrap().starts_with("look at  left out: "), "{review:#?}");
    }
}
