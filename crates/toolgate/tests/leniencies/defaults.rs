//! Defaults, which only `fill_defaults` fills in.

use super::*;

#[test]
fn defaults_are_filled_in_only_where_the_contract_says_so() {
    let properties = json!({
        "limit": { "type": "integer", "default": 20 },
        "query": { "type": "string", "default": "never, since it is required" },
        "sort": { "anyOf": [{ "enum": ["up", "down"] }, { "type": "null" }], "default": null },
        "page": { "type": "object", "default": { "size": 5, "at": 0 }, "properties": {
            "size": { "type": "integer", "default": 10 }, "at": { "type": "integer", "default": 0 } } },
        "filter": { "type": "object", "properties": { "deep": { "type": "boolean", "default": false } } },
    });
    let mut silent = keys(&["null_as_absent"], properties);
    silent["input"]["required"] = json!(["query"]);
    let sent = json!({ "query": "a", "filter": {} });
    assert_taken(&silent, sent.clone(), sent.clone(), &[]);
    let filling = with(silent, json!({ "fill_defaults": true }));
    let used = ["/limit", "/page", "/sort", "/filter/deep"].map(|at| format!("fill_defaults at {at}"));
    let (arguments, by) = taken(&filling, sent);
    assert_eq!(
        arguments,
        json!({ "query": "a", "filter": { "deep": false }, "limit": 20, "sort": null, "page": { "size": 5, "at": 0 } })
    );
    assert_eq!(
        {
            let mut by = by;
            by.sort();
            by
        },
        {
            let mut used = used.to_vec();
            used.sort();
            used
        }
    );
    // An object that is there has what it lacks filled in; what is there is left alone; an absent object is not made.
    let (arguments, by) = taken(&filling, json!({ "query": "a", "limit": 1, "sort": "up", "page": { "at": 3 } }));
    assert_eq!(arguments, json!({ "query": "a", "limit": 1, "sort": "up", "page": { "at": 3, "size": 10 } }));
    assert_eq!(by, ["fill_defaults at /page/size"]);
    assert_eq!(refused(&filling, json!({})), ["/query"]);
    // What a leniency left out is absent.
    let (arguments, by) = taken(&filling, json!({ "query": "a", "limit": null, "page": {}, "sort": null }));
    assert_eq!(arguments["limit"], 20);
    assert!(by.contains(&"null_as_absent at /limit".to_owned()) && by.contains(&"fill_defaults at /limit".to_owned()));
    // The filled value is part of what makes two calls equal.
    let short = admit(&filling, r#"{"query":"a"}"#).unwrap();
    let whole = admit(&filling, r#"{"query":"a","limit":20,"sort":null,"page":{"size":5,"at":0}}"#).unwrap();
    assert_eq!(short.digest(), whole.digest());
}

#[test]
fn a_default_that_does_not_fit_is_a_fault_or_is_left_out() {
    let wrong =
        with(keys(&[], json!({ "n": { "type": "integer", "default": "20" } })), json!({ "fill_defaults": true }));
    assert_eq!(faults(&wrong)[0].0, "/input/properties/n/default");
    let line =
        with(keys(&[], json!({ "t": { "type": "string", "default": "a\nb" } })), json!({ "fill_defaults": true }));
    assert_eq!(faults(&line)[0].0, "/input/properties/t/default");
    let part = json!({ "page": { "default": {}, "properties": { "size": { "default": 10 } } } });
    let part = with(keys(&[], part), json!({ "fill_defaults": true }));
    assert_eq!(faults(&part), [("/input/properties/page/default".to_owned(), "write the whole value".to_owned())]);
    // Alone each is an annotation, and neither is a fault.
    assert!(Contract::parse("tool", &keys(&[], json!({ "n": { "type": "integer", "default": "20" } }))).is_ok());
    // By id or by name: the default of the other one would not hold beside it.
    let input = json!({
        "properties": { "id": { "type": "integer", "default": 1 }, "name": { "type": "string" }, "n": { "default": 3 } },
        "oneOf": [{ "required": ["id"] }, { "required": ["name"] }],
    });
    let either = with(keys(&[], json!({})), json!({ "input": input, "fill_defaults": true }));
    assert_eq!(
        taken(&either, json!({ "name": "a" })),
        (json!({ "name": "a", "n": 3 }), vec!["fill_defaults at /n".to_owned()])
    );
}
