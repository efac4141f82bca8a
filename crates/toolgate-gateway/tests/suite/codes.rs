//! Every fault that is told has a code with a page: read from the sources, so that no new one is forgotten.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::door::{Run, toolgate};

/// Functions that note a fault, and which of their arguments is its code.
const NOTES: [(&str, usize); 7] = [
    (".note(", 1),
    (".hinted(", 1),
    (".problem(", 1),
    ("fault(", 1),
    ("Finding::of_file(", 1),
    ("Finding::at(", 1),
    ("Finding::at_offset(", 1),
];

fn sources() -> Vec<(PathBuf, String)> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for name in ["toolgate", "toolgate-gateway"] {
        gather(&crates.join(name).join("src"), &mut files);
    }
    files
}

fn gather(folder: &Path, files: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let is_test = path.file_stem().is_some_and(|stem| stem == "tests" || stem == "suite");
        if path.is_dir() && !is_test {
            gather(&path, files);
        } else if path.extension().is_some_and(|ending| ending == "rs") && !is_test {
            let text = fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]\n#[allow").next().unwrap().to_owned();
            files.push((path, code));
        }
    }
}

/// The arguments of a call, from behind its bracket.
fn arguments(text: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let (mut depth, mut quoted, mut escaped) = (0, false, false);
    for c in text.chars() {
        let inside = depth > 0 || quoted;
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '(' | '[' | '{' if !quoted => depth += 1,
            ')' | ']' | '}' if !inside => break,
            ')' | ']' | '}' if !quoted => depth -= 1,
            ',' if !inside => {
                found.push(String::new());
                continue;
            }
            _ => {}
        }
        found.last_mut().unwrap().push(c);
    }
    found.iter().map(|argument| argument.trim().to_owned()).collect()
}

/// The codes that the sources name as texts.
fn codes() -> BTreeSet<String> {
    let mut codes = BTreeSet::new();
    for (_, text) in sources() {
        for (note, place) in NOTES {
            for (at, _) in text.match_indices(note) {
                let arguments = arguments(&text[at + note.len()..]);
                let code = arguments.get(place).and_then(|code| code.strip_prefix('"')?.strip_suffix('"'));
                let named = |code: &&str| code.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
                codes.extend(code.filter(named).map(str::to_owned));
            }
        }
        for (at, _) in text.match_indices("code: \"") {
            codes.insert(text[at + 7..].split('"').next().unwrap().to_owned());
        }
    }
    codes
}

#[test]
fn every_code_that_a_fault_is_noted_with_has_a_page() {
    let codes = codes();
    for known in ["unknown_key", "template", "not_toml", "unknown_database", "parameter", "additional_property"] {
        assert!(codes.contains(known), "{known} was not found: {codes:?}");
    }
    let unexplained: Vec<&String> =
        codes.iter().filter(|code| Run::of(&mut toolgate(&["explain", code]), "").exit != Some(0)).collect();
    assert!(unexplained.is_empty(), "no page for {unexplained:?}");
}

#[test]
fn nobody_says_error_or_warning_but_the_one_place_that_adds_the_code() {
    for (path, text) in sources() {
        for word in ["\"error: ", "\"warning: ", "\"hint: ", "\"next: "] {
            let by_hand = text.contains(word) && !text.contains(&format!("strip_prefix({word}"));
            assert!(!by_hand, "{word}..\" in {}", path.display());
        }
    }
}

#[test]
fn an_unknown_code_suggests_the_nearest() {
    for (word, near) in
        [("rule_faild", "rule_failed"), ("unknown_kay", "unknown_key"), ("store_fialed", "store_failed")]
    {
        let run = Run::of(&mut toolgate(&["explain", word]), "");
        assert_eq!(run.exit, Some(2));
        assert_eq!(run.stderr, format!("error[unknown_code]: there is no such code\nhint: did you mean {near}?\n"));
    }
}
