//! Whatever is sent: what is right is never touched, and what is spoiled in a known way is read as it was.

use super::*;

/// Every leniency, for a contract whose places take them.
fn generous() -> Value {
    let item = json!({ "type": "object", "properties": {
        "n": { "type": "integer" }, "on": { "type": "boolean" }, "word": { "enum": ["up", "down"] } },
        "required": ["n"], "additionalProperties": false });
    keys(
        &[
            "integer_as_string",
            "boolean_as_string",
            "json_as_string",
            "null_as_absent",
            "trim",
            "code_fence",
            "trailing_token",
            "near_tool_name",
        ],
        json!({
            "n": { "type": "integer" }, "x": { "type": "number" }, "on": { "type": "boolean" }, "word": { "enum": ["up", "down"] },
            "text": { "type": "string" }, "either": { "type": ["integer", "string", "null"] },
            "items": { "type": "array", "items": item.clone() }, "one": item,
        }),
    )
}

/// Arguments that are right.
fn right() -> impl Strategy<Value = Value> {
    let word = || prop_oneof![Just(json!("up")), Just(json!("down"))];
    let item = || {
        (any::<i64>(), proptest::option::of(any::<bool>()), proptest::option::of(word())).prop_map(|(n, on, word)| {
            let mut item = json!({ "n": n });
            if let Some(on) = on {
                item["on"] = json!(on);
            }
            if let Some(word) = word {
                item["word"] = word;
            }
            item
        })
    };
    let either = prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::from),
        "[0-9 a-z\\[\\]{}\"]{0,6}".prop_map(Value::from)
    ];
    let text = prop_oneof!["[0-9]{1,4}", "(true|false|null)", " {0,2}[a-z\\[\\]{}\"]{0,6} {0,2}"].prop_map(Value::from);
    let member = |name: &'static str, value: BoxedStrategy<Value>| {
        proptest::option::of(value).prop_map(move |value| value.map(|value| (name.to_owned(), value)))
    };
    (
        member("n", any::<i64>().prop_map(Value::from).boxed()),
        member("x", any::<u64>().prop_map(Value::from).boxed()),
        member("on", any::<bool>().prop_map(Value::from).boxed()),
        member("word", word().boxed()),
        member("text", text.boxed()),
        member("either", either.boxed()),
        member("items", proptest::collection::vec(item(), 0..4).prop_map(Value::from).boxed()),
        member("one", item().boxed()),
    )
        .prop_map(|(a, b, c, d, e, f, g, h)| [a, b, c, d, e, f, g, h].into_iter().flatten().collect())
}

/// Writes places of right arguments otherwise, as models do; `dice` says which.
fn spoiled(value: &Value, name: &str, dice: &mut dyn FnMut() -> bool) -> Value {
    let spoil = !matches!(name, "text" | "either");
    match value {
        Value::Object(members) => {
            let mut members: serde_json::Map<String, Value> =
                members.iter().map(|(name, value)| (name.clone(), spoiled(value, name, dice))).collect();
            if !name.is_empty() && !members.contains_key("on") && dice() {
                members.insert("on".into(), Value::Null);
            }
            let whole = Value::Object(members);
            if !name.is_empty() && dice() { Value::from(whole.to_string()) } else { whole }
        }
        Value::Array(items) => {
            let whole = Value::from(items.iter().map(|item| spoiled(item, "item", dice)).collect::<Vec<_>>());
            if dice() { Value::from(format!(" {whole}\n")) } else { whole }
        }
        Value::Number(_) | Value::Bool(_) if spoil && dice() => Value::from(value.to_string()),
        Value::String(word) if spoil && dice() => Value::from(format!("\t{word} ")),
        other => other.clone(),
    }
}

proptest! {
    #[test]
    fn what_is_right_is_never_touched(arguments in right()) {
        let taken = admit(&generous(), &arguments.to_string()).unwrap();
        prop_assert!(taken.leniencies().is_empty());
        prop_assert_eq!(Value::Object(taken.members().clone()), arguments);
    }

    #[test]
    fn what_is_spoiled_in_the_named_ways_is_read_as_it_was_meant(arguments in right(), seed: u64, fenced: bool) {
        let mut state = seed | 1;
        let mut dice = || {
            state ^= state << 13; state ^= state >> 7; state ^= state << 17;
            state.is_multiple_of(3)
        };
        let sent = spoiled(&arguments, "", &mut dice);
        let text = if fenced { format!("```json\n{sent}\n```</tool_call>") } else { sent.to_string() };
        let taken = admit(&generous(), &text).unwrap();
        prop_assert_eq!(Value::Object(taken.members().clone()), arguments.clone());
        prop_assert_eq!(taken.digest(), admit(&generous(), &arguments.to_string()).unwrap().digest());
        prop_assert_eq!(taken.leniencies().is_empty(), sent == arguments && !fenced);
        // Without the leniencies the very same call is refused, unless it was right.
        let strict = with(generous(), json!({ "lenient": [] }));
        prop_assert_eq!(admit(&strict, &text).is_ok(), sent == arguments && !fenced);
    }
}
