//! A server starts with a bad tool in its folder: the tool is set aside and named, and the others serve.

use serde_json::{Value, json};
use toolgate::{Call, Reply};
use toolgate_gateway::config::{self, Finding, LoadError, Loaded, Purpose};

use super::refund;
use crate::folder::Folder;

const BAD_SYNTAX: (&str, &str) = ("effect = \"read\"", "effect = read");
const BAD_SCHEMA: (&str, &str) = ("pattern =", "patern =");
const BAD_OUTPUT: (&str, &str) = ("[output]\ntype = \"object\"", "[output]\ntype = \"objekt\"");
const BAD_STATEMENT: (&str, &str) = ("statement = \"\"\"\nselect", "statement = \"\"\"\nselekt");
const BAD_DATABASE: (&str, &str) = ("database = \"shop\"", "database = \"shpo\"");
const BAD_KEY: (&str, &str) = ("[backend]\nkind", "[bakend]\nkind");
const BAD: [(&str, &str); 6] = [BAD_SYNTAX, BAD_SCHEMA, BAD_OUTPUT, BAD_STATEMENT, BAD_DATABASE, BAD_KEY];

fn faulty(faults: &[(&str, (&str, &str))]) -> Folder {
    let folder = Folder::shop();
    for (tool, (from, to)) in faults {
        folder.edit(&format!("tools/{tool}.toml"), from, to);
    }
    folder
}

fn served(folder: &Folder) -> Loaded {
    config::load(folder.path(), Purpose::Serve).unwrap_or_else(|error| panic!("{}", listed(&findings(error))))
}

fn findings(error: LoadError) -> Vec<Finding> {
    match error {
        LoadError::Findings(findings) => findings,
        LoadError::NoStore => panic!("there is no store"),
        LoadError::Store(error) => panic!("{error}"),
    }
}

fn refused(folder: &Folder) -> Vec<Finding> {
    findings(config::load(folder.path(), Purpose::Serve).expect_err("no gate"))
}

fn listed(findings: &[Finding]) -> String {
    findings.iter().map(|finding| format!("{finding}\n")).collect()
}

/// The names of the tools that are set aside, each with what is told of it.
fn aside(loaded: &Loaded) -> Vec<(&str, String)> {
    loaded.set_aside.iter().map(|one| (one.tool.as_str(), listed(&one.findings))).collect()
}

fn names<'a>(aside: &[(&'a str, String)]) -> Vec<&'a str> {
    aside.iter().map(|(tool, _)| *tool).collect()
}

/// What somebody sees.
fn visible(loaded: &Loaded, user: &str) -> Vec<String> {
    let session = loaded.identity.session(Some(user)).unwrap();
    loaded.gate.tools(&session).iter().map(|tool| tool.name().to_owned()).collect()
}

fn call(loaded: &Loaded, tool: &str, arguments: &Value) -> Reply {
    let session = loaded.identity.session(Some("alice@acme")).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(loaded.gate.call(Call::new("call_1", tool, arguments.to_string()), &session)).unwrap()
}

fn code(reply: &Reply) -> &str {
    reply.code().map_or("", |code| code.as_str())
}

const ALL: [&str; 5] = ["create_refund", "find_refund", "get_order", "get_refund_status", "read_document"];

#[test]
fn one_bad_tool_is_named_and_the_others_serve() {
    for bad in BAD {
        let folder = faulty(&[("read_document", bad)]);
        let loaded = served(&folder);
        let aside = aside(&loaded);
        assert_eq!(names(&aside), ["read_document"], "{bad:?}");
        assert!(aside[0].1.lines().any(|line| line.starts_with("tools/read_document.toml:")), "{aside:?}");
        assert_eq!(visible(&loaded, "alice@acme"), ALL[..4]);
        assert!(call(&loaded, "get_order", &json!({"order_id": "ord_4821"})).is_ok());
        assert!(call(&loaded, "create_refund", &refund("ord_4821", 100)).is_ok());
        assert_eq!(code(&call(&loaded, "read_document", &json!({"document_id": "doc-a"}))), "unknown_tool");
    }
}

#[test]
fn who_is_strict_and_who_runs_one_command_gets_no_gate() {
    let folder = faulty(&[("read_document", BAD_SCHEMA), ("get_order", BAD_SYNTAX)]);
    let told = findings(config::load(folder.path(), Purpose::Run).expect_err("no gate"));
    for purpose in [Purpose::Run, Purpose::Look] {
        assert_eq!(findings(config::load(folder.path(), purpose).expect_err("no gate")), told);
    }
    for tool in ["read_document", "get_order"] {
        assert!(listed(&told).contains(&format!("tools/{tool}.toml:")), "{}", listed(&told));
    }
    assert!(!folder.join("state/toolgate.db").exists());
}

#[test]
fn a_sound_folder_sets_nothing_aside() {
    let loaded = served(&Folder::shop());
    assert_eq!(aside(&loaded), []);
    assert_eq!(visible(&loaded, "alice@acme"), ALL);
}

#[test]
fn a_tool_goes_with_the_facts_that_it_rests_on() {
    for bad in BAD {
        let folder = faulty(&[("get_order", bad)]);
        let loaded = served(&folder);
        let aside = aside(&loaded);
        assert_eq!(names(&aside), ["create_refund", "get_order"], "{bad:?}");
        let why = &aside[0].1;
        assert!(why.starts_with("tools/create_refund.toml:"), "{why}");
        assert!(why.contains("rests on `get_order`, which has faults"), "{why}");
        assert_eq!(visible(&loaded, "alice@acme"), ["find_refund", "get_refund_status", "read_document"]);
        assert_eq!(code(&call(&loaded, "create_refund", &refund("ord_4821", 100))), "unknown_tool");
        assert_eq!(folder.number("select count(*) from refunds"), 0);
    }
}

#[test]
fn a_write_goes_with_the_tool_that_reconciles_it() {
    let folder = faulty(&[("find_refund", BAD_STATEMENT)]);
    let loaded = served(&folder);
    let aside = aside(&loaded);
    assert_eq!(names(&aside), ["create_refund", "find_refund"]);
    assert!(aside[0].1.contains("reconcile.tool: this tool rests on `find_refund`"), "{aside:?}");
}

#[test]
fn two_bad_files_are_two_tools_set_aside_each_with_all_of_its_faults() {
    let folder = faulty(&[("read_document", BAD_SCHEMA), ("read_document", BAD_DATABASE), ("find_refund", BAD_SYNTAX)]);
    let loaded = served(&folder);
    let aside = aside(&loaded);
    assert_eq!(names(&aside), ["create_refund", "find_refund", "read_document"]);
    assert!(aside[2].1.contains("patern") && aside[2].1.contains("did you mean shop?"), "{}", aside[2].1);
    assert!(call(&loaded, "get_order", &json!({"order_id": "ord_4821"})).is_ok());
}

#[test]
fn a_bad_schema_file_is_a_fault_of_its_tool() {
    let folder = Folder::shop();
    folder.edit(
        "tools/read_document.toml",
        "[input]\nrequired = [\"document_id\"]\n\n[input.properties]\ndocument_id",
        "input = { file = \"read_document.json\" }\n[other]\ndocument_id",
    );
    folder.write("tools/read_document.json", "{\"properties\": }");
    let aside_of =
        |loaded: &Loaded| aside(loaded).iter().map(|(tool, why)| format!("{tool}: {why}")).collect::<String>();
    let told = aside_of(&served(&folder));
    assert!(told.starts_with("read_document: tools/read_document.json:1:"), "{told}");
    std::fs::remove_file(folder.join("tools/read_document.json")).unwrap();
    assert!(aside_of(&served(&folder)).contains("there is no such file"));
}

#[test]
fn a_bad_approval_is_a_fault_of_its_tool() {
    for when in ["context.input.amount_cents > ", "context.input.amount > 5000"] {
        let folder = Folder::shop();
        folder.edit("tools/create_refund.toml", "context.input.amount_cents > 5000", when);
        let loaded = served(&folder);
        let aside = aside(&loaded);
        assert_eq!(names(&aside), ["create_refund"], "{when}");
        let told = aside[0].1.lines().next().unwrap();
        assert!(told.starts_with("tools/create_refund.toml:7:1: cedar_") && told.contains(": approval"), "{aside:?}");
        assert_eq!(visible(&loaded, "alice@acme").len(), 4);
    }
}

#[test]
fn a_file_that_is_no_contract_stands_in_nobodys_way() {
    let folder = Folder::shop();
    std::fs::copy(folder.join("tools/get_order.toml"), folder.join("tools/get_order.toml~")).unwrap();
    std::fs::rename(folder.join("tools/read_document.toml"), folder.join("tools/read_document.tml")).unwrap();
    let loaded = served(&folder);
    assert_eq!(names(&aside(&loaded)), ["get_order.toml~", "read_document"]);
    assert_eq!(visible(&loaded, "alice@acme"), ALL[..4]);
}

#[test]
fn policies_that_name_a_tool_that_is_set_aside_hold_for_the_others() {
    for bad in BAD {
        let folder = faulty(&[("read_document", bad)]);
        folder.write(
            "policies/more.cedar",
            r#"
            permit (principal in Role::"clerk", action == Action::"read_document", resource)
            when { context.input.document_id like "doc-*" };
            @id("no.documents") @message("Not this one.")
            forbid (principal, action == Action::"read_document", resource)
            when { context.facts.document.title == "x" };
            permit (principal in Role::"clerk", action in [Action::"read_document"], resource);
            permit (principal in Role::"manager", action, resource == Tool::"read_document");
            @id("no.orders") @message("Not these.")
            forbid (principal, action in [Action::"get_order", Action::"read_document"], resource)
            unless { principal in Role::"manager" };
            "#,
        );
        let loaded = served(&folder);
        assert_eq!(names(&aside(&loaded)), ["read_document"], "{bad:?}");
        let reply = call(&loaded, "get_order", &json!({"order_id": "ord_4821"}));
        assert_eq!(reply.refusal().and_then(|refusal| refusal.rule_id()), Some("no.orders"), "{bad:?}: {reply:?}");
        assert!(call(&loaded, "create_refund", &refund("ord_4821", 100)).is_ok());
    }
}

#[test]
fn a_forbid_over_many_tools_is_never_lost_with_one_of_them() {
    let forbid = r#"
        @id("no.reading") @message("Not now.")
        forbid (principal, action in Action::"read", resource)
        unless { context.input has document_id && context.input.document_id == "doc-a" };
    "#;
    // Its contract can be read, so what the policy says of it can be known.
    let readable = faulty(&[("read_document", BAD_STATEMENT)]);
    readable.write("policies/more.cedar", forbid);
    let loaded = served(&readable);
    let reply = call(&loaded, "get_order", &json!({"order_id": "ord_4821"}));
    assert_eq!(reply.refusal().and_then(|refusal| refusal.rule_id()), Some("no.reading"));
    // It cannot, and nobody knows what the forbid means: better no gate than one without it.
    let unreadable = faulty(&[("read_document", BAD_SYNTAX)]);
    unreadable.write("policies/more.cedar", forbid);
    let told = listed(&refused(&unreadable));
    assert!(told.contains("policies/more.cedar:4:") && told.contains("tools/read_document.toml:3:"), "{told}");
}

#[test]
fn faults_of_settings_and_of_policies_are_faults_of_the_gate() {
    for (file, from, to) in [
        ("toolgate.toml", "store =", "stroe ="),
        ("policies/reads.cedar", "permit (principal in", "permit principal in"),
        ("policies/reads.cedar", "Action::\"read\"", "Action::\"raed\""),
        ("policies/refunds.cedar", "context.facts.order.left_cents }", "context.facts.order.let_cents }"),
    ] {
        let folder = faulty(&[("read_document", BAD_SCHEMA)]);
        folder.edit(file, from, to);
        let told = listed(&refused(&folder));
        assert!(told.lines().any(|line| line.starts_with(&format!("{file}:"))), "{told}");
        assert!(told.contains("tools/read_document.toml:"), "all at once: {told}");
        assert!(!folder.join("state/toolgate.db").exists());
    }
}

#[test]
fn nobody_is_sent_to_a_tool_that_is_set_aside() {
    let folder = faulty(&[("read_document", BAD_SCHEMA)]);
    let errors =
        "[errors]\nno_row = { code = \"none\", message = \"None.\", instead = \"read_document\" }\n\n[backend]";
    folder.edit(
        "tools/find_refund.toml",
        "[errors]\nno_row = { code = \"not_found\", message = \"There is no refund under this key.\" }\n\n[backend]",
        errors,
    );
    let reply = call(&served(&folder), "find_refund", &json!({"key": "k"}));
    assert_eq!(code(&reply), "tool_failed");
    assert!(!serde_json::to_string(&reply).unwrap().contains("read_document"), "{reply:?}");
}

#[test]
fn the_tools_of_a_database_that_cannot_be_opened_go_and_those_of_another_stay() {
    let folder = faulty(&[("read_document", ("database = \"shop\"", "database = \"archive\""))]);
    folder.edit(
        "toolgate.toml",
        "[identity]",
        "[databases.archive]\npath = \"state/archive.db\"\nseed = \"archive.sql\"\n\n[identity]",
    );
    let loaded = served(&folder);
    let aside = aside(&loaded);
    assert_eq!(names(&aside), ["read_document"]);
    assert!(aside[0].1.contains("there is no seed file"), "{aside:?}");
    assert!(call(&loaded, "create_refund", &refund("ord_4821", 100)).is_ok());
}
