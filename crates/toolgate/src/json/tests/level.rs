//! One level of a text, its values left as they are.

use super::*;

#[test]
fn a_broken_call_leaves_the_message_around_it_readable() {
    let message =
        br#" {"id" : 1 , "\u006dethod": "tools/call", "calls": [ {"a":1,"a":2} , {"b":"\ud800"}, {"c":1e999} ,["x
"]] } "#;
    let members = members(message, &Limits::default()).unwrap();
    let names: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["id", "method", "calls"]);
    assert_eq!(members[0].1, b"1");
    assert_eq!(members[1].1, br#""tools/call""#);

    let codes: Vec<FlawCode> = items(members[2].1, &Limits::default())
        .unwrap()
        .into_iter()
        .map(|item| read(item, &Limits::default()).unwrap_err().code)
        .collect();
    use FlawCode::*;
    assert_eq!(codes, [DuplicateKey, LoneSurrogate, Number, ControlCharacter]);
}

#[test]
fn one_level_is_strict_about_itself_and_about_structure() {
    let code = |text: &str| members(text.as_bytes(), &Limits::default()).unwrap_err().code;
    assert_eq!(code(r#"{"id": 1, "\u0069d": 2}"#), FlawCode::DuplicateKey);
    assert_eq!(code(r#"{"a": [1,]}"#), FlawCode::Syntax);
    assert_eq!(code(r#"{"a": "\x"}"#), FlawCode::Syntax);
    assert_eq!(code(r#"{"a": {"b" 1}}"#), FlawCode::Syntax);
    assert_eq!(code(r#"{"a": {"b": 1}"#), FlawCode::Truncated);
    assert_eq!(code(r#"{"a": 1} x"#), FlawCode::TrailingData);
    assert_eq!(code("[1]"), FlawCode::NotObject);
    assert_eq!(code("[1"), FlawCode::Truncated);

    let many: Vec<String> = (0..100).map(|n| format!("\"k{n}\":{n}")).collect();
    let text = format!("{{{},\"\\u006b50\":0}}", many.join(","));
    assert_eq!(code(&text), FlawCode::DuplicateKey);

    let flaw = items(b"{\"a\": 1}", &Limits::default()).unwrap_err();
    assert_eq!(flaw.message, "expected an array, found an object");
    assert!(items(b" [ ] ", &Limits::default()).unwrap().is_empty());
}
