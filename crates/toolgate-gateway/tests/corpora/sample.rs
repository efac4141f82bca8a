//! Arguments that fit a schema, where a row needs some and names none.

use serde_json::{Map, Value, json};

/// Arguments with every required member; those of another number differ wherever the schema lets them.
pub(super) fn arguments(schema: &Value, number: usize) -> Map<String, Value> {
    required(schema).map(|(name, member)| (name.to_owned(), value(member, number))).collect()
}

/// Arguments with these values, in the order of the required members.
pub(super) fn valued(schema: &Value, values: &[String]) -> Map<String, Value> {
    let members: Vec<_> = required(schema).collect();
    assert_eq!(members.len(), values.len(), "a value for each member: {values:?}");
    let typed = |(&(name, member), value): (&(&str, &Value), &String)| match member["type"].as_str() {
        Some("integer" | "number") => (name.to_owned(), serde_json::from_str(value).unwrap()),
        _ => (name.to_owned(), json!(value)),
    };
    members.iter().zip(values).map(typed).collect()
}

/// The first required member that is a whole number.
pub(super) fn first_integer(schema: &Value) -> Option<String> {
    required(schema).find(|(_, member)| member["type"] == "integer").map(|(name, _)| name.to_owned())
}

fn required(schema: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let names = schema["required"].as_array().into_iter().flatten();
    names.map(|name| name.as_str().unwrap()).map(|name| (name, &schema["properties"][name]))
}

fn value(schema: &Value, number: usize) -> Value {
    match schema["type"].as_str() {
        Some("integer" | "number") => {
            let least = schema["minimum"].as_u64().or_else(|| Some(schema["exclusiveMinimum"].as_u64()? + 1));
            json!(least.unwrap_or(0) + u64::try_from(number).unwrap())
        }
        Some("boolean") => json!(number % 2 == 1),
        _ => match (schema["enum"].as_array(), schema["pattern"].as_str()) {
            (Some(values), _) => values[number % values.len()].clone(),
            (None, Some(pattern)) => json!(matching(pattern)),
            (None, None) => json!(format!("value {number}")),
        },
    }
}

/// The shortest text of a pattern that is a row of characters and classes, each with how often it stands.
fn matching(pattern: &str) -> String {
    let mut text = String::new();
    let mut rest = pattern.trim_start_matches('^').trim_end_matches('$').chars().peekable();
    while let Some(c) = rest.next() {
        let c = match c {
            '[' => {
                let class: String = rest.by_ref().take_while(|c| *c != ']').collect();
                class.chars().next().expect("a class with something in it")
            }
            '\\' => match rest.next() {
                Some('d') => '0',
                Some('w') => 'a',
                other => other.expect("something is escaped"),
            },
            other => other,
        };
        let least = match rest.peek() {
            Some('*' | '?') => {
                rest.next();
                0
            }
            Some('+') => {
                rest.next();
                1
            }
            Some('{') => {
                let bounds: String = rest.by_ref().skip(1).take_while(|c| *c != '}').collect();
                bounds.split(',').next().unwrap().parse().unwrap()
            }
            _ => 1,
        };
        text.extend(std::iter::repeat_n(c, least));
    }
    text
}

#[test]
fn arguments_fit_the_schema_that_they_are_made_for() {
    let schema = json!({
        "properties": {
            "a": { "type": "string", "pattern": "^acc_[0-9]{2,6}x?$" },
            "n": { "type": "integer", "exclusiveMinimum": 4 },
            "s": { "type": "string" }
        },
        "required": ["a", "n", "s"]
    });
    for number in 0..3 {
        let fits = jsonschema::is_valid(&schema, &Value::Object(arguments(&schema, number)));
        assert!(fits, "{:?}", arguments(&schema, number));
    }
    assert_ne!(arguments(&schema, 0), arguments(&schema, 1));
    let given = ["acc_77".to_owned(), "9".to_owned(), "7".to_owned()];
    assert_eq!(Value::Object(valued(&schema, &given)), json!({ "a": "acc_77", "n": 9, "s": "7" }));
}
