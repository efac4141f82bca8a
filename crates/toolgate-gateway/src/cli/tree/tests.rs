//! What holds for every command that there is: nobody lists them here.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may panic")]

use std::collections::BTreeSet;

use super::*;
use crate::cli::schema::PUBLISHED;

/// Commands whose stdout belongs to a protocol.
const PROTOCOLS: [&str; 2] = ["mcp", "wrap"];

const LINES: usize = 24;

/// The commands of the tree with the words that lead to them.
fn commands(command: &Command, words: &str) -> Vec<(String, Command)> {
    let below = command.get_subcommands().flat_map(|below| {
        let words = format!("{words} {}", below.get_name());
        commands(below, words.trim())
    });
    std::iter::once((words.to_owned(), command.clone())).chain(below).collect()
}

fn all() -> Vec<(String, Command)> {
    let mut tree = tree();
    tree.build();
    commands(&tree, "")
}

/// Those that do something.
fn leaves() -> Vec<(String, Command)> {
    let leaves = all().into_iter().filter(|(_, command)| !command.has_subcommands());
    leaves.filter(|(words, _)| !PROTOCOLS.contains(&words.as_str())).collect()
}

fn flags(command: &Command) -> Vec<String> {
    let long = command.get_arguments().filter_map(|argument| argument.get_long());
    long.map(|long| format!("--{long}")).collect()
}

fn assert_one_screen(words: &str, help: &str) {
    let widest = help.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(help.lines().count() <= LINES && widest <= WIDTH, "`{words} -h`: {widest} columns\n{help}");
}

#[test]
fn the_short_help_of_every_command_is_one_screen_and_begins_with_an_example() {
    assert_one_screen("", FRONT);
    for words in [&["toolgate", "-h"][..], &["toolgate", "--color", "never", "-h"]] {
        let asked = Asked::of(&words.iter().map(OsString::from).collect::<Vec<_>>()).unwrap();
        assert!(matches!(asked, Asked::Text(text) if text.to_string() == FRONT), "{words:?}");
    }
    for (words, mut command) in all().into_iter().skip(1) {
        let help = command.render_help().to_string();
        assert_one_screen(&words, &help);
        let example = help.find("Example").unwrap_or_else(|| panic!("`{words} -h` shows no example\n{help}"));
        assert!(example < help.find("Usage:").unwrap(), "`{words} -h` begins with something else\n{help}");
        let manual = command.render_long_help().to_string();
        assert!(manual.len() > help.len(), "`{words} --help` is no longer than -h");
        assert!(manual.contains("toolgate help exit-codes"), "{manual}");
    }
}

#[test]
fn a_gate_folder_is_never_asked_for_where_it_can_be_found() {
    for (words, command) in all() {
        for argument in command.get_arguments().filter(|argument| argument.get_id() == "dir") {
            assert!(!argument.is_required_set(), "`{words}` insists on its folder");
        }
    }
}

#[test]
fn every_command_answers_in_json_and_publishes_its_shape() {
    let leaves: BTreeSet<String> = leaves()
        .into_iter()
        .map(|(words, command)| {
            assert!(flags(&command).contains(&"--json".to_owned()), "`{words}` has no --json");
            words
        })
        .collect();
    let published: BTreeSet<String> =
        PUBLISHED.iter().filter_map(|(name, _)| name.strip_prefix("output ")).map(str::to_owned).collect();
    assert_eq!(leaves, published);
}

#[test]
fn every_flag_is_documented() {
    for (words, command) in all() {
        let mut roff = Vec::new();
        clap_mangen::Man::new(command.clone()).render(&mut roff).unwrap();
        let page = String::from_utf8(roff).unwrap().replace('\\', "");
        for argument in command.get_arguments() {
            let id = argument.get_id();
            assert!(argument.get_help().is_some(), "`{words}`: nothing is said of {id}");
        }
        for flag in flags(&command) {
            assert!(page.contains(&flag), "`{words}`: {flag} is not in its manual");
        }
    }
}

#[test]
fn every_documented_flag_exists() {
    let known: BTreeSet<String> = all().iter().flat_map(|(_, command)| flags(command)).collect();
    let manuals = all().into_iter().map(|(_, mut command)| command.render_long_help().to_string());
    let codes = crate::cli::explain::pages();
    let readmes = ["README.md", "examples/shop/README.md", "examples/refund_order/README.md", "scenarios/README.md"];
    let readmes = readmes.map(|file| {
        let path = format!("{}/../../{file}", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
    });
    let mut seen = 0;
    for text in manuals.chain(codes).chain(readmes) {
        for line in text.lines() {
            let Some((_, command)) = line.split_once("toolgate ") else { continue };
            // What stands behind is the command of somebody else.
            let command = command.split(" -- ").next().unwrap();
            let ends = |c: char| !(c.is_ascii_alphanumeric() || c == '-');
            for word in command.split(ends).filter(|word| word.len() > 2 && word.starts_with("--")) {
                assert!(known.contains(word), "{word} in: {line}");
                seen += 1;
            }
        }
    }
    assert!(seen > 20, "only {seen} flags were found in the texts");
}

#[test]
fn the_scripts_of_four_shells_name_every_command() {
    use clap_complete::Shell;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::PowerShell] {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut tree(), "toolgate", &mut script);
        let script = String::from_utf8(script).unwrap();
        for (words, _) in all().iter().skip(1) {
            let name = words.rsplit(' ').next().unwrap();
            assert!(script.contains(name), "{shell}: `{words}`");
        }
    }
}

#[test]
fn what_is_misspelled_gets_one_suggestion() {
    let hint = |words: &[&str]| {
        let failure = Asked::of(&words.iter().map(OsString::from).collect::<Vec<_>>()).unwrap_err();
        assert_eq!(failure.code(), FailureCode::Usage);
        assert!(!failure.message().contains('\n'), "{}", failure.message());
        failure.advice()
    };
    assert_eq!(hint(&["toolgate", "chek"]), "did you mean check?");
    assert_eq!(hint(&["toolgate", "check", "--jsno"]), "did you mean --json?");
    assert_eq!(hint(&["toolgate", "check", "--color", "alwys"]), "did you mean always?");
    assert_eq!(hint(&["toolgate", "approvals", "lst"]), "did you mean list?");
    assert_eq!(hint(&["toolgate", "approvals", "shop", "aprove", "apr_1"]), "did you mean approve?");
    assert_eq!(hint(&["toolgate", "exec", "--from", "x"]), "toolgate exec -h");
}
