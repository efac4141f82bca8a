//! How the command behaves in a shell: exits, colour, the next step, and where it finds its folder.

use std::process::Command;

use serde_json::json;
use toolgate_gateway::cli::Exit;

use super::{killed, refund, tokens};
use crate::door::{self, Run, toolgate};
use crate::folder::Folder;

/// One way for a command to end.
struct Ending {
    exit: Exit,
    folder: Folder,
    words: Vec<String>,
}

impl Ending {
    fn new(exit: Exit, folder: Folder, words: &[&str]) -> Self {
        let dir = folder.path().to_str().unwrap().to_owned();
        let words = words.iter().map(|word| word.replace("DIR", &dir)).collect();
        Self { exit, folder, words }
    }

    fn words<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        self.words.iter().map(String::as_str).chain(more.iter().copied()).collect()
    }
}

/// A story for each exit code.
fn endings() -> Vec<Ending> {
    let broken = Folder::shop();
    std::fs::create_dir(broken.join("state")).unwrap();
    broken.write("state/toolgate.db", &"not a database, but longer than the header of one. ".repeat(100));
    let large = refund("ord_1001", 8000).to_string();
    let doubtful = refund("ord_4821", 1500).to_string();
    let look = |order: &str| json!({ "order_id": order }).to_string();
    vec![
        Ending::new(Exit::Ok, Folder::shop(), &["check", "DIR"]),
        Ending::new(Exit::Fault, broken, &["call", "DIR", "get_order", &look("ord_4821")]),
        Ending::new(Exit::Usage, Folder::shop(), &["tools", "DIR", "--as", "nobody@acme"]),
        Ending::new(Exit::Refused, Folder::shop(), &["call", "DIR", "get_order", &look("ord_0000")]),
        Ending::new(Exit::Pending, Folder::shop(), &["call", "DIR", "create_refund", &large]),
        Ending::new(Exit::Unknown, killed::in_doubt(), &["call", "DIR", "create_refund", &doubtful]),
    ]
}

/// What a command shows on a terminal, both streams as they come.
fn on_a_terminal(words: &[&str], variables: &[(&str, &str)], stdin: &str) -> (String, Option<i32>) {
    let quoted: Vec<String> = words.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect();
    let line = format!("'{}' {} {stdin}", env!("CARGO_BIN_EXE_toolgate"), quoted.join(" "));
    let mut script = Command::new("script");
    script.args(["-qec", &line, "/dev/null"]).env_remove("TOOLGATE_DIR").env("TERM", "xterm").env("SHELL", "/bin/sh");
    script.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE").envs(variables.iter().copied());
    let output = script.stdin(std::process::Stdio::null()).output().expect("script, of util-linux, gives a terminal");
    (String::from_utf8(output.stdout).unwrap().replace('\r', ""), output.status.code())
}

#[test]
fn each_exit_code_has_a_story_that_ends_with_it() {
    let endings = endings();
    assert_eq!(endings.iter().map(|ending| ending.exit).collect::<Vec<_>>(), Exit::ALL);
    for ending in endings {
        let run = Run::of(&mut toolgate(&ending.words(&[])), "");
        assert_eq!(run.exit, Some(i32::from(ending.exit.number())), "{:?}: {run:?}", ending.words);
        if matches!(ending.exit, Exit::Fault | Exit::Usage) {
            let first = run.stderr.lines().next().unwrap();
            assert!(first.starts_with("error[") && first.contains("]: "), "{first}");
            assert!(run.stderr.lines().any(|line| line.starts_with("hint: ")), "{}", run.stderr);
        }
    }
}

#[test]
fn the_table_of_exit_codes_is_the_one_that_commands_end_by() {
    let table: String = Exit::ALL.iter().map(|exit| format!("{}  {}\n", exit.number(), exit.meaning())).collect();
    assert_eq!(Run::of(&mut toolgate(&["help", "exit-codes"]), "").stdout, table);
}

#[test]
fn colour_is_for_a_terminal_that_wants_it_and_never_in_json() {
    for ending in endings() {
        let exit = Some(i32::from(ending.exit.number()));
        let quiet = [
            on_a_terminal(&ending.words(&[]), &[("NO_COLOR", "1")], ""),
            on_a_terminal(&ending.words(&[]), &[("TERM", "dumb")], ""),
            on_a_terminal(&ending.words(&["--color", "never"]), &[], ""),
            on_a_terminal(&ending.words(&["--json"]), &[], ""),
            on_a_terminal(&ending.words(&["--json", "--color", "always"]), &[], ""),
        ];
        for (shown, ended) in quiet {
            assert!(!shown.contains('\x1b') && !shown.is_empty(), "{:?}: {shown:?}", ending.words);
            assert_eq!(ended, exit, "{:?}: {shown}", ending.words);
        }
        let (colored, _) = on_a_terminal(&ending.words(&[]), &[], "");
        assert!(colored.contains("\x1b["), "{:?}: {colored:?}", ending.words);
        // Without a terminal: `Run` fails at any escape sequence.
        Run::of(&mut toolgate(&ending.words(&[])), "");
        Run::of(&mut toolgate(&ending.words(&["--json"])), "");
        assert!(ending.folder.path().is_dir());
    }
    let mut forced = toolgate(&["--color", "always", "chek"]);
    let output = forced.env("NO_COLOR", "1").output().unwrap();
    assert!(String::from_utf8(output.stderr).unwrap().starts_with("\x1b[1;31merror[usage]\x1b[0m: "));
}

#[test]
fn a_person_at_a_terminal_is_told_the_next_step_once_and_a_script_never() {
    let folder = Folder::shop();
    let dir = folder.path().to_str().unwrap();
    let pending = door::call(folder.path(), "alice@acme", "create_refund", &refund("ord_1001", 8000));
    assert!(!pending.stderr.contains("next: "), "{pending:?}");
    let id = pending.json()["error"]["approval"]["id"].as_str().unwrap().to_owned();
    let refused = door::call(folder.path(), "alice@acme", "get_order", &json!({ "order_id": "ord_0000" })).json();
    let reference = refused["error"]["ref"].as_str().unwrap();
    let message = format!("< '{dir}/message.json'");
    let guarded = tokens::shop();
    let guarded = guarded.path().to_str().unwrap();
    let desk = tempfile::tempdir().unwrap();
    let new = desk.path().join("new").to_str().unwrap().to_owned();
    let commands: [(&[&str], &str); 12] = [
        (&["init", &new], ""),
        (&["token", "new", guarded, "--as", "mia@acme"], ""),
        (&["check", dir], ""),
        (&["tools", dir], ""),
        (&["call", dir, "get_order", r#"{"order_id":"ord_4821"}"#], ""),
        (&["call", dir, "get_order", r#"{"order_id":"ord_4821"}"#, "--dry-run"], ""),
        (&["exec", dir, "--from", "openai-chat"], &message),
        (&["approvals", dir, "list"], ""),
        (&["approvals", dir, "show", &id], ""),
        (&["approvals", dir, "approve", &id, "--as", "mia@acme"], ""),
        (&["audit", dir, "verify"], ""),
        (&["why", dir, reference], ""),
    ];
    for (words, stdin) in commands {
        let (shown, _) = on_a_terminal(words, &[("NO_COLOR", "1")], stdin);
        let next = shown.lines().filter(|line| line.starts_with("next: ")).count();
        assert_eq!(next, 1, "{words:?}:\n{shown}");
        assert!(shown.lines().last().unwrap().starts_with("next: "), "{words:?}:\n{shown}");
    }
}

#[test]
fn the_folder_is_named_or_in_the_environment_or_the_one_we_are_in() {
    let folder = Folder::shop();
    let elsewhere = tempfile::tempdir().unwrap();
    let dir = folder.path().to_str().unwrap();
    let looked = door::call(folder.path(), "alice@acme", "get_order", &json!({ "order_id": "ord_4821" })).json();
    let reference = looked["ref"].as_str().unwrap();
    let message = json!({ "role": "assistant", "tool_calls": [] }).to_string();
    let commands: [(&str, &[&str]); 8] = [
        ("tools", &[]),
        ("check", &["-v"]),
        ("exec", &["--from", "openai-chat"]),
        ("call", &["get_order"]),
        ("call", &["get_order", r#"{"order_id":"ord_4821"}"#]),
        ("approvals", &["list"]),
        ("audit", &["verify"]),
        ("why", &[reference]),
    ];
    for (command, rest) in commands {
        let named: Vec<&str> = [command, dir].into_iter().chain(rest.iter().copied()).collect();
        let short: Vec<&str> = [command].into_iter().chain(rest.iter().copied()).collect();
        let runs = [
            ("", Run::of(toolgate(&named).current_dir(&elsewhere), &message)),
            (" (TOOLGATE_DIR)", Run::of(toolgate(&short).current_dir(&elsewhere).env("TOOLGATE_DIR", dir), &message)),
            (" (the working folder)", Run::of(toolgate(&short).current_dir(folder.path()), &message)),
        ];
        let [(_, first), ..] = &runs;
        for (by, run) in &runs {
            assert_eq!(run.exit, first.exit, "{short:?}{by}: {run:?}");
            assert!(!run.stderr.contains("error["), "{short:?}{by}: {run:?}");
            assert!(command != "check" || run.stderr.starts_with("checking ") && run.stderr.contains(by), "{run:?}");
        }
        let nowhere = Run::of(toolgate(&short).current_dir(&elsewhere), &message);
        assert_eq!(nowhere.exit, Some(2), "{short:?}: {nowhere:?}");
        assert!(nowhere.stderr.starts_with("error[no_folder]: "), "{nowhere:?}");
    }
    let gone = Run::of(toolgate(&["check"]).env("TOOLGATE_DIR", "/no/such/folder"), "");
    assert!(gone.stderr.starts_with("error[no_such_folder]: there is no folder /no/such/folder (TOOLGATE_DIR)"));
    let tool_alone = Run::of(toolgate(&["call", dir]).current_dir(&elsewhere), "");
    assert!(tool_alone.stderr.starts_with("error[usage]: the name of a tool is missing"), "{tool_alone:?}");
}

#[test]
fn a_dry_run_says_so_first_and_leaves_nothing() {
    let folder = Folder::shop();
    let dir = folder.path().to_str().unwrap();
    let out = folder.join("pages");
    let message = std::fs::read_to_string(folder.join("message.json")).unwrap();
    let pending = door::call(folder.path(), "alice@acme", "create_refund", &refund("ord_1001", 8000)).json();
    let id = pending["error"]["approval"]["id"].as_str().unwrap();
    let refund = refund("ord_4821", 100).to_string();
    let new = folder.join("new");
    let commands: [&[&str]; 6] = [
        &["init", new.to_str().unwrap(), "--dry-run"],
        &["approvals", dir, "approve", id, "--as", "mia@acme", "--dry-run"],
        &["approvals", dir, "deny", id, "--as", "mia@acme", "--dry-run"],
        &["call", dir, "create_refund", &refund, "--dry-run"],
        &["exec", dir, "--from", "openai-chat", "--dry-run"],
        &["man", "--out", out.to_str().unwrap(), "--dry-run"],
    ];
    for words in commands {
        let run = Run::of(&mut toolgate(words), &message);
        assert_eq!(run.exit, Some(0), "{run:?}");
        assert!(run.stderr.starts_with("dry run: "), "{run:?}");
    }
    assert_eq!(folder.number("select count(*) from refunds"), 0);
    assert!(!out.exists() && !new.exists());
    let show = Run::of(&mut toolgate(&["approvals", dir, "show", id, "--json"]), "");
    assert_eq!(show.json()["state"], "pending");
    let mine = Run::of(&mut toolgate(&["approvals", dir, "approve", id, "--as", "alice@acme", "--dry-run"]), "");
    assert_eq!(mine.exit, Some(3));
    assert!(mine.stderr.contains("error[approval_not_yours]: "), "{mine:?}");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    use std::process::Stdio;
    let mut command = toolgate(&["schema", "contract"]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let ended = child.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), ended.stderr.as_slice()), (Some(0), &b""[..]));
}

#[test]
fn what_looks_needs_no_store_and_makes_none() {
    let folder = Folder::shop();
    let dir = folder.path().to_str().unwrap();
    let listed = Run::of(&mut toolgate(&["approvals", dir, "list", "--json"]), "");
    assert_eq!((listed.exit, listed.json()), (Some(0), json!([])));
    let verified = Run::of(&mut toolgate(&["audit", dir, "verify"]), "");
    assert_eq!(verified.exit, Some(2));
    assert!(verified.stderr.starts_with("error[no_store]: "), "{verified:?}");
    assert!(!folder.join("state/toolgate.db").exists());
}

#[test]
fn a_copy_of_the_record_is_verified_without_the_right_to_write_it() {
    let folder = Folder::shop();
    let looked = door::call(folder.path(), "alice@acme", "get_order", &json!({ "order_id": "ord_4821" }));
    let state = folder.join("state");
    let before = std::fs::read_dir(&state).unwrap().count();
    let dir = folder.path().to_str().unwrap();
    let reference = looked.json()["ref"].as_str().unwrap().to_owned();
    let read_only = |yes: bool| {
        let mut rights = std::fs::metadata(&state).unwrap().permissions();
        std::os::unix::fs::PermissionsExt::set_mode(&mut rights, if yes { 0o555 } else { 0o755 });
        std::fs::set_permissions(&state, rights).unwrap();
    };
    read_only(true);
    let commands: [&[&str]; 4] = [
        &["audit", dir, "verify", "--json"],
        &["audit", dir, "tail", "--json"],
        &["why", dir, &reference, "--json"],
        &["approvals", dir, "list", "--json"],
    ];
    for words in commands {
        let run = Run::of(&mut toolgate(words), "");
        assert_eq!(run.exit, Some(0), "{words:?}: {run:?}");
    }
    read_only(false);
    let owners = std::fs::read_dir(state.join("toolgate.db.owners")).unwrap().count();
    assert_eq!(owners, 0, "a look enters no owner");
    assert!(std::fs::read_dir(&state).unwrap().count() >= before);
}
