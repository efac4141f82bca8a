//! What a scenario expects: a pattern that is a part of what must be found.

use std::collections::BTreeMap;

use serde_json::Value;

/// Values that earlier steps kept, by name.
pub(crate) type Saved = BTreeMap<String, Value>;

/// Everything at which `found` does not fit `pattern`, a line each.
///
/// An object fits member by member, and `"absent": [names]` in it names members that must not be there. An array fits by
/// index and length. `"~text"` is a string that contains the text, `"$name"` a value that was kept.
pub(crate) fn differences(pattern: &Value, found: &Value, saved: &Saved) -> Vec<String> {
    let mut differences = Vec::new();
    compare(pattern, found, "", saved, &mut differences);
    differences
}

/// The text with every `$name` that stands for all of it replaced by what was kept.
pub(crate) fn resolved(text: &str, saved: &Saved) -> String {
    match text.strip_prefix('$') {
        Some(name) => match saved.get(name) {
            Some(Value::String(kept)) => kept.clone(),
            Some(other) => other.to_string(),
            None => panic!("nothing was kept as {name}"),
        },
        None => text.to_owned(),
    }
}

fn compare(pattern: &Value, found: &Value, at: &str, saved: &Saved, differences: &mut Vec<String>) {
    let mut differ = |what: String| differences.push(format!("at `{at}`: {what}"));
    match (pattern, found) {
        (Value::Object(wanted), Value::Object(members)) => {
            for name in wanted.get("absent").and_then(Value::as_array).into_iter().flatten() {
                if members.contains_key(name.as_str().expect("`absent` lists names")) {
                    differ(format!("{name} should not be there"));
                }
            }
            for (name, wanted) in wanted.iter().filter(|(name, _)| *name != "absent") {
                match members.get(name) {
                    Some(member) => compare(wanted, member, &format!("{at}/{name}"), saved, differences),
                    None => differences.push(format!("at `{at}`: `{name}` is missing, expected {wanted}")),
                }
            }
        }
        (Value::Array(wanted), Value::Array(items)) => {
            if wanted.len() != items.len() {
                return differ(format!("expected {} items, found {}: {found}", wanted.len(), items.len()));
            }
            for (index, (wanted, item)) in wanted.iter().zip(items).enumerate() {
                compare(wanted, item, &format!("{at}/{index}"), saved, differences);
            }
        }
        (Value::String(wanted), _) => {
            let fits = match (wanted.strip_prefix('~'), wanted.strip_prefix('$')) {
                (Some(part), _) => found.as_str().is_some_and(|text| text.contains(part)),
                (None, Some(name)) => saved.get(name).expect("a value that was kept") == found,
                (None, None) => pattern == found,
            };
            if !fits {
                differ(format!("expected {pattern}, found {found}"));
            }
        }
        _ if pattern == found => {}
        _ => differ(format!("expected {pattern}, found {found}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fits(pattern: Value, found: Value) -> bool {
        let saved = Saved::from([("ref".to_owned(), json!("01J"))]);
        differences(&pattern, &found, &saved).is_empty()
    }

    #[test]
    fn a_pattern_is_a_part_of_what_is_found() {
        let found =
            json!({"ok": false, "error": {"code": "rule_failed", "message": "Only 2000 are left"}, "n": [1, 2]});
        assert!(fits(json!({"error": {"message": "~2000", "absent": ["approval"]}}), found.clone()));
        assert!(fits(json!({"n": [1, 2]}), found.clone()));
        assert!(fits(json!({"first": "$ref"}), json!({"first": "01J"})));
        for wrong in [
            json!({"ok": true}),
            json!({"error": {"absent": ["message"]}}),
            json!({"error": {"message": "2000"}}),
            json!({"error": {"message": "~3000"}}),
            json!({"n": [1]}),
            json!({"n": [2, 1]}),
            json!({"more": null}),
            json!({"ok": "$ref"}),
            json!({"error": []}),
        ] {
            assert!(!fits(wrong.clone(), found.clone()), "{wrong}");
        }
    }
}
