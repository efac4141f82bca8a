//! `json-test-suite/parsing.jsonl`: texts of all kinds, as the arguments of a call.

use data_encoding::BASE64;
use serde_json::{Value, json};

use super::{Verdict, admit, rows, verdicts};

#[test]
fn a_text_is_admitted_as_arguments_if_it_is_an_object_of_strict_json() {
    let texts = rows("json-test-suite/parsing.jsonl");
    let contract = json!({ "name": "any", "effect": "read", "open": true, "input": {} });
    let case = |text: &Value| json!({ "id": text["name"], "contract": contract, "input_base64": text["base64"] });
    let answers = admit(&texts.iter().map(case).collect::<Vec<_>>());
    let mut wrong = Vec::new();
    for (text, answer) in texts.iter().zip(&answers) {
        let found = verdicts(answer);
        let right = match (text["expect"].as_str().unwrap(), &found[0]) {
            ("accept", Verdict::Admitted) => true,
            // Arguments are an object, with each member once and with numbers that can be kept.
            ("accept", Verdict::Refused { problems, .. }) => {
                ["not_object", "double_encoded", "duplicate_key", "number"].contains(&problems[0].0.as_str())
            }
            ("reject" | "either", Verdict::Refused { code, .. }) => code == "invalid_json",
            // Blank arguments are an empty object.
            ("reject", Verdict::Admitted) => answer["calls"][0]["arguments"] == json!({}) && is_blank(text),
            _ => false,
        };
        if !right {
            wrong.push(format!("{}: {} but {found:?}", text["name"], text["expect"]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn is_blank(text: &Value) -> bool {
    BASE64.decode(text["base64"].as_str().unwrap().as_bytes()).unwrap().trim_ascii().is_empty()
}
