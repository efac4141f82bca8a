//! What rows tell in words or in steps, built by the kind of what they tell.

use serde_json::{Value, json};

/// "a message with N tool calls": how many.
pub(super) fn count_of_calls(told: &str) -> Option<usize> {
    let (count, _) = told.strip_prefix("a message with ")?.split_once(" tool calls")?;
    count.parse().ok()
}

/// "contracts A and B exist": their names.
pub(super) fn two_contracts(told: &str) -> Option<[&str; 2]> {
    let (_, told) = told.split_once("contracts ")?;
    let (first, second) = told.strip_suffix(" exist")?.split_once(" and ")?;
    Some([first, second])
}

/// "tools: [A, B]  # a remark": the names of contracts that are loaded together.
pub(super) fn loaded_together(told: &str) -> Option<Vec<&str>> {
    let (names, _) = told.strip_prefix("tools: [")?.split_once(']')?;
    Some(names.split(", ").collect())
}

/// "delta index N id ID name NAME arguments 'TEXT'", a step each: a recorded stream of `openai-chat`.
pub(super) fn stream(steps: &[Value]) -> Option<Value> {
    let chunk = |step: &Value| {
        let (before, arguments) = match step.as_str()?.split_once(" arguments '") {
            Some((before, quoted)) => (before, quoted.strip_suffix('\'')?),
            None => (step.as_str()?, ""),
        };
        let ["delta", "index", index, "id", id, "name", name] = before.split(' ').collect::<Vec<_>>()[..] else {
            return None;
        };
        let index: u64 = index.parse().ok()?;
        let call = json!({ "index": index, "id": id, "function": { "name": name, "arguments": arguments } });
        Some(json!({ "choices": [{ "index": 0, "delta": { "tool_calls": [call] } }] }))
    };
    let chunks = steps.iter().map(chunk).collect::<Option<Vec<Value>>>()?;
    Some(json!({ "stream": chunks }))
}

/// "$defs d0..dN, each d(i) = {.. d(i+1) ..}, dN = {..}; root = {.. d0 ..}; ...", in the loose spelling of objects: the
/// contract's schema, in which the root is the one member `value`.
pub(super) fn chained_schema(told: &str) -> Option<Value> {
    let (last, told) = told.strip_prefix("$defs d0..d")?.split_once(", each d(i) = ")?;
    let (each, told) = told.split_once(&format!(", d{last} = "))?;
    let (end, told) = told.split_once("; root = ")?;
    let root = told.split(';').next()?;
    let last: usize = last.parse().ok()?;
    let chain = (0..last).map(|i| (format!("d{i}"), each.replace("d(i+1)", &format!("d{}", i + 1))));
    let defs = chain.chain([(format!("d{last}"), end.to_owned())]);
    let defs = defs.map(|(name, told)| Some((name, object(&told)?))).collect::<Option<serde_json::Map<_, _>>>()?;
    Some(json!({ "properties": { "value": object(root)? }, "$defs": defs }))
}

/// "KEY: VALUE", a line each, as lines of TOML; `None` for a text with more than keys and words.
pub(super) fn toml_lines(told: &str) -> Option<String> {
    let line = |line: &str| {
        let (key, value) = line.split_once(": ")?;
        let is_word = !value.contains(['&', '*', '[', '{', '"']);
        is_word.then(|| format!("\"{key}\" = \"{value}\"\n"))
    };
    told.lines().map(line).collect()
}

/// An object whose words have no quotes; the target of a `$ref` is a name in `$defs`.
fn object(told: &str) -> Option<Value> {
    let mut text = String::new();
    let mut word = String::new();
    for c in told.chars() {
        if c.is_alphanumeric() || c == '$' {
            word.push(c);
            continue;
        }
        let is_literal = serde_json::from_str::<Value>(&word).is_ok();
        let target = text.ends_with("\"$ref\":");
        match (word.is_empty(), is_literal, target) {
            (true, ..) => {}
            (false, true, _) => text.push_str(&word),
            (false, false, true) => text.push_str(&format!("\"#/$defs/{word}\"")),
            (false, false, false) => text.push_str(&format!("\"{word}\"")),
        }
        word.clear();
        text.extend((c != ' ').then_some(c));
    }
    serde_json::from_str(&text).ok()
}

#[test]
fn a_schema_that_is_told_in_words_is_the_one_that_is_meant() {
    let told = "$defs d0..d2, each d(i) = {anyOf:[{$ref:d(i+1)},{$ref:d(i+1)}]}, d2 = {type:integer, minimum:10}; \
                root = {$ref:d0}; small";
    let twice = |name: &str| json!({ "anyOf": [{ "$ref": name }, { "$ref": name }] });
    let defs = json!({
        "d0": twice("#/$defs/d1"), "d1": twice("#/$defs/d2"), "d2": { "type": "integer", "minimum": 10 },
    });
    let schema = json!({ "properties": { "value": { "$ref": "#/$defs/d0" } }, "$defs": defs });
    assert_eq!(chained_schema(told), Some(schema));
}

#[test]
fn a_stream_that_is_told_in_steps_has_a_chunk_for_each() {
    let steps = [json!("delta index 0 id a name t"), json!("delta index 1 id b name u arguments '{\"n\":1}'")];
    let message = stream(&steps).unwrap();
    let call = |index: usize| &message["stream"][index]["choices"][0]["delta"]["tool_calls"][0];
    assert_eq!(call(0)["function"], json!({ "name": "t", "arguments": "" }));
    assert_eq!(*call(1), json!({ "index": 1, "id": "b", "function": { "name": "u", "arguments": "{\"n\":1}" } }));
    assert_eq!(stream(&[json!("send one request")]), None);
}
