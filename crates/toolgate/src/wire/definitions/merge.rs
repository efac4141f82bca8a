//! Two schemas that hold of one value, as one that says no more than both.

use serde_json::{Map, Value};

/// The keywords of an array's items, which mean what they mean together.
const OF_ITEMS: [&str; 2] = ["items", "prefixItems"];

/// Adds to `shown` what `other` says of the same value and it doesn't: of two that say different things the first stands.
pub(super) fn merge(shown: &mut Map<String, Value>, other: Map<String, Value>) {
    let speaks_of_items = OF_ITEMS.iter().any(|keyword| shown.contains_key(*keyword));
    for (keyword, value) in other {
        match (keyword.as_str(), shown.get_mut(&keyword)) {
            (word, _) if speaks_of_items && OF_ITEMS.contains(&word) => {}
            (_, None) => {
                shown.insert(keyword, value);
            }
            ("properties", Some(Value::Object(members))) => {
                if let Value::Object(more) = value {
                    for (name, schema) in more {
                        members.entry(name).or_insert(schema);
                    }
                }
            }
            ("required", Some(Value::Array(names))) => {
                if let Value::Array(more) = value {
                    let new: Vec<Value> = more.into_iter().filter(|name| !names.contains(name)).collect();
                    names.extend(new);
                }
            }
            (_, Some(_)) => {}
        }
    }
}
