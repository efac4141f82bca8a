//! The JSON-Schema-Test-Suite, whole: our own reading of a document loses no verdict of the engine's, and the engine
//! misses none that is not listed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::*;

const DRAFTS: [(&str, &str); 5] = [
    ("draft4", "http://json-schema.org/draft-04/schema#"),
    ("draft6", "http://json-schema.org/draft-06/schema#"),
    ("draft7", "http://json-schema.org/draft-07/schema#"),
    ("draft2019-09", "https://json-schema.org/draft/2019-09/schema"),
    ("draft2020-12", "https://json-schema.org/draft/2020-12/schema"),
];

/// Why a document is refused at load. A kind that no longer occurs fails the run.
const REFUSED: [(Author, &str, &str); 13] = [
    (Author::Operator, "refers to outside of this document", OUTSIDE),
    (Author::SomebodyElse, "refers to outside of this document", OUTSIDE),
    (Author::Operator, "a schema inside the document has no address of its own", OUTSIDE),
    (Author::SomebodyElse, "a schema inside the document has no address of its own", OUTSIDE),
    (Author::Operator, "refers to nothing in this document", OUTSIDE),
    (Author::SomebodyElse, "refers to nothing in this document", OUTSIDE),
    (Author::Operator, "this anchor stands in the document twice", "one name, one schema; addresses do not part them"),
    (
        Author::SomebodyElse,
        "this anchor stands in the document twice",
        "one name, one schema; addresses do not part them",
    ),
    (Author::Operator, "unknown draft of JSON Schema", "vocabularies are those of the draft"),
    (Author::SomebodyElse, "unknown draft of JSON Schema", "vocabularies are those of the draft"),
    (Author::Operator, "unknown keyword", "a misspelt keyword would not hold"),
    (Author::Operator, "unknown format", "a format that cannot be checked would not hold"),
    (Author::Operator, "ignored beside $ref in this draft", "what is ignored would not hold"),
];
const OUTSIDE: &str = "references stay inside the document";

/// Where a verdict is another one than the suite's.
const DIFFERENT: [(&str, &str); 3] = [
    ("format.json", "formats are asserted"),
    ("optional/format/idn-email.json", "the engine lacks the format; an imported document's is passed over"),
    ("optional/format/idn-hostname.json", "the engine lacks the format; an imported document's is passed over"),
];

/// What came of the documents of one draft, read as one author's.
#[derive(Default)]
struct Tally {
    held: usize,
    verdicts: usize,
    refused: BTreeMap<String, usize>,
    different: BTreeMap<String, usize>,
}

#[test]
fn every_schema_of_the_suite_gives_its_verdicts_or_is_refused_for_a_listed_reason() {
    let Some(root) = suite() else { return };
    let mut wrong = Vec::new();
    let mut tallies = Vec::new();
    for (draft, uri) in DRAFTS {
        for author in [Author::Operator, Author::SomebodyElse] {
            let mut tally = Tally::default();
            for file in files(&root.join(draft)) {
                let name = file.strip_prefix(root.join(draft)).unwrap().to_string_lossy().into_owned();
                let groups: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
                for group in groups {
                    let mut document = group["schema"].clone();
                    if let Value::Object(top) = &mut document {
                        top.entry("$schema").or_insert_with(|| json!(uri));
                    }
                    tally.judge(&name, &document, author, &group, &mut wrong);
                }
            }
            println!("{draft:>12} {author:?}: {} documents held, {} verdicts", tally.held, tally.verdicts);
            for (what, count) in tally.refused.iter().chain(&tally.different) {
                println!("{count:>18} {what}");
            }
            tallies.push((author, tally));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for (author, message, _why) in REFUSED {
        let occurs = tallies.iter().any(|(of, tally)| *of == author && tally.refused.contains_key(message));
        assert!(occurs, "nothing is refused any more with {message:?} as {author:?}");
    }
    for (file, why) in DIFFERENT {
        assert!(tallies.iter().any(|(_, tally)| tally.different.contains_key(file)), "{file} no longer differs: {why}");
    }
}

impl Tally {
    fn judge(&mut self, file: &str, document: &Value, author: Author, group: &Value, wrong: &mut Vec<String>) {
        let what = format!("{file}: {}", group["description"]);
        let schema = match Schema::of_results(document, author) {
            Ok(schema) => schema,
            Err(faults) => {
                for SchemaFault { at, message, .. } in faults {
                    let listed = REFUSED.iter().any(|(of, listed, _)| *of == author && *listed == message);
                    match listed {
                        true => *self.refused.entry(message).or_default() += 1,
                        false => wrong.push(format!("{what}: refused at {at}: {message}")),
                    }
                }
                return;
            }
        };
        self.held += 1;
        let arguments = Schema::of_arguments(document, author, Undeclared::Refused).ok();
        for test in group["tests"].as_array().unwrap() {
            let (value, valid) = (&test["data"], test["valid"].as_bool().unwrap());
            let what = format!("{what}: {}", test["description"]);
            let told = problems::of(&schema, value);
            if told.is_empty() != schema.holds(value) {
                wrong.push(format!("{what}: {told:?}"));
            }
            match schema.holds(value) == valid {
                true => self.verdicts += 1,
                false if DIFFERENT.iter().any(|(listed, _)| *listed == file) => {
                    *self.different.entry(file.to_owned()).or_default() += 1;
                    continue;
                }
                false => wrong.push(format!("{what}: should be {valid}")),
            }
            if let (Some(arguments), true) = (&arguments, value.is_object()) {
                wrong.extend(as_arguments(arguments, value, valid).map(|why| format!("{what}: as arguments: {why}")));
            }
        }
    }
}

/// As arguments a document means the same, but for what our own layer says of undeclared members and characters.
fn as_arguments(schema: &Schema, value: &Value, valid: bool) -> Option<String> {
    let ours = |problem: &Problem| match problem.code.as_str() {
        "additional_property" => problem.at.matches('/').count() == 1,
        "control_character" => true,
        _ => false,
    };
    let told = schema.problems(value);
    match (valid, told.is_empty()) {
        (true, true) | (false, false) => None,
        (true, false) => (!told.list.iter().all(ours)).then(|| format!("{told:?}")),
        (false, true) => Some("valid".to_owned()),
    }
}

/// The tests of the suite, at `$TOOLGATE_CORPORA` or beside the checkout.
fn suite() -> Option<PathBuf> {
    let named = std::env::var_os("TOOLGATE_CORPORA").map(PathBuf::from);
    let beside = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpora"));
    Some(named.or_else(|| beside.is_dir().then_some(beside))?.join("json-schema-test-suite/tests"))
}

/// The files below a folder, sorted.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.into_iter().flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// INVARIANT (nothing unread): what the engine holds values to, our walk has read. Of each keyword that a draft does
/// not know and nobody reads there, the engine takes no notice either.
#[test]
fn the_engine_holds_values_to_no_keyword_that_was_not_read() {
    let drafts = DRAFTS.map(|(_, uri)| (uri, keywords::draft_named(uri).unwrap()));
    let names: std::collections::BTreeSet<&str> =
        drafts.iter().flat_map(|(_, draft)| keywords::names(*draft)).collect();
    let arguments = [
        json!(false),
        json!(true),
        json!(1),
        json!("x"),
        json!("#"),
        json!("#/nowhere"),
        json!({ "a": false }),
        json!([false]),
        json!({ "a": ["b"] }),
        json!(["b"]),
        json!({ "type": "null" }),
        json!({ "^": false }),
        json!([]),
    ];
    let values =
        [json!({ "a": 1 }), json!([1, 1]), json!("text"), json!(2.5), json!(null), json!(true), json!({}), json!([])];
    for (uri, draft) in drafts {
        for name in &names {
            if keywords::shape(name, draft).is_some() || keywords::dropped(name, draft).is_some() || *name == "$schema"
            {
                continue;
            }
            for beside in [json!({}), json!({ "prefixItems": [true] }), json!({ "contains": true })] {
                for argument in &arguments {
                    let mut document = json!({ "$schema": uri, *name: argument });
                    document.as_object_mut().unwrap().extend(beside.as_object().unwrap().clone());
                    let Ok(engine) =
                        compile::Engine { draft, author: Author::SomebodyElse, matching: Default::default() }
                            .options()
                            .build(&document)
                    else {
                        continue;
                    };
                    document.as_object_mut().unwrap().remove(*name);
                    let without = jsonschema::options().with_draft(draft).build(&document).unwrap();
                    for value in &values {
                        assert_eq!(
                            engine.is_valid(value),
                            without.is_valid(value),
                            "{name} of {uri}: {argument} on {value}"
                        );
                    }
                }
            }
        }
    }
}
