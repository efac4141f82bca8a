//! What is read, and what is refused: by code, place and words.

use serde_json::json;

use super::*;

#[test]
fn a_refund_reads_as_it_was_sent() {
    let text = r#" {"order_id": "ord_1", "amount_cents": 2500, "lines": [{"sku": "a\u0041\n\ud83e\udd5d/", "rate": -0.25}, []], "note": null, "full": false} "#;
    assert_eq!(
        try_read(text).unwrap(),
        json!({"order_id": "ord_1", "amount_cents": 2500, "lines": [{"sku": "aA\n🥝/", "rate": -0.25}, []], "note": null, "full": false})
    );
}

#[test]
fn every_escape_is_understood() {
    assert_eq!(
        try_read(r#""\"\\\/\b\f\n\r\t\u00e9\u0000\uD834\udd1e é""#).unwrap(),
        json!("\"\\/\u{8}\u{c}\n\r\té\0\u{1D11E} é")
    );
}

#[test]
fn blank_arguments_are_an_empty_object_and_blank_text_is_no_value() {
    for blank in ["", " ", "\r\n\t ", "{}", " { } "] {
        assert_eq!(try_arguments(blank).unwrap(), Map::new());
    }
    refused(" ", FlawCode::Truncated, 1, "unexpected end");
    refused_arguments("\u{c}", FlawCode::Syntax, 0, "unexpected character U+000C");
}

#[test]
fn arguments_that_are_no_object_are_named_by_their_kind() {
    refused_arguments(" null", FlawCode::NotObject, 1, "expected an object, found null");
    refused_arguments("[{}]", FlawCode::NotObject, 0, "expected an object, found an array");
    refused_arguments("7", FlawCode::NotObject, 0, "expected an object, found a number");
    refused_arguments("true", FlawCode::NotObject, 0, "expected an object, found a boolean");
    refused_arguments("\"Oslo\"", FlawCode::NotObject, 0, "expected an object, found a string");
    refused_arguments("\"{city}\"", FlawCode::NotObject, 0, "expected an object, found a string");
    refused_arguments(r#""{\"city\": \"Oslo\"}""#, FlawCode::DoubleEncoded, 0, "string that holds the object");
}

#[test]
fn each_syntax_error_is_named_where_it_stands() {
    for (text, offset, words) in [
        (r#"{"a": 1,}"#, 8, "trailing comma"),
        ("[1, ]", 4, "trailing comma"),
        ("[1,,2]", 3, "extra comma"),
        (r#"{"a":1,,"b":2}"#, 7, "extra comma"),
        ("[,1]", 1, "missing value"),
        (r#"{"a":}"#, 5, "missing value"),
        (r#"{"a":,}"#, 5, "missing value"),
        ("{,}", 1, "missing member name"),
        ("{:1}", 1, "missing member name"),
        ("{{}}", 1, "missing member name"),
        (r#"{"a" 1}"#, 5, "missing colon"),
        (r#"{"a"}"#, 4, "missing colon"),
        (r#"{"a", 1}"#, 4, "missing colon"),
        (r#"{"a": 1 "b": 2}"#, 8, "missing comma"),
        (r#"["a" "b"]"#, 5, "missing comma"),
        (r#"{"a": "say "hi" now"}"#, 12, "missing comma or unescaped quotation mark"),
        ("{'a': 1}", 1, "single quotes"),
        ("['a']", 1, "single quotes"),
        ("[\u{201C}a\u{201D}]", 1, "curly quotes"),
        ("{a: 1}", 1, "unquoted member name"),
        ("{1: 1}", 1, "unquoted member name"),
        ("[Oslo]", 1, "unquoted text"),
        ("[truth]", 1, "unquoted text"),
        ("[truely]", 1, "unquoted text"),
        ("[nullnull]", 1, "unquoted text"),
        ("[1, // one\n 2]", 4, "comment"),
        ("[1 /* one */]", 3, "comment"),
        ("# note\n{}", 0, "comment"),
        (r#"{"a" /* */: 1}"#, 5, "comment"),
        ("{/**/}", 1, "comment"),
        ("[NaN]", 1, "the word NaN"),
        ("[Infinity]", 1, "the word Infinity"),
        ("[-Infinity]", 1, "the word Infinity"),
        ("[None]", 1, "the word None"),
        ("[True]", 1, "the word True"),
        ("[FALSE]", 1, "the word FALSE"),
        ("[undefined]", 1, "the word undefined"),
        ("[+5]", 1, "number with a plus sign"),
        ("[.5]", 1, "number with a missing digit"),
        ("[5.]", 1, "number with a missing digit"),
        ("[1e]", 1, "number with a missing digit"),
        ("[1e+]", 1, "number with a missing digit"),
        ("[-]", 1, "number with a missing digit"),
        ("[007]", 1, "number with a leading zero"),
        ("[-01]", 1, "number with a leading zero"),
        ("[0x1F4]", 1, "hexadecimal number"),
        ("[1.2.3]", 1, "malformed number"),
        ("[12px]", 1, "malformed number"),
        ("[1_000]", 1, "malformed number"),
        ("{\"a\": 1, \\n\"b\": 2}", 9, "backslash outside a string"),
        ("[1\\n]", 2, "backslash outside a string"),
        (r#"["\q"]"#, 2, "unknown escape in a string"),
        (r#"["\'"]"#, 2, "unknown escape in a string"),
        (r#"["\u00g0"]"#, 2, "incomplete \\u escape"),
        (r#"["\u+123"]"#, 2, "incomplete \\u escape"),
        ("[1}", 2, "} where the open bracket is ["),
        (r#"{"a": 1]"#, 7, "] where the open bracket is {"),
        ("]", 0, "missing value"),
        ("Here you go: {}", 0, "text before the value"),
        (" <think>done</think> {}", 1, "text before the value"),
        ("Oslo", 0, "unquoted text"),
        ("\u{FEFF}{}", 0, "byte order mark"),
        ("[\u{b}]", 1, "unexpected character U+000B"),
        ("[*]", 1, "unexpected character *"),
    ] {
        refused(text, FlawCode::Syntax, offset, words);
    }
}

#[test]
fn each_other_refusal_has_its_own_code() {
    use FlawCode::*;
    for (text, code, offset, words) in [
        (r#"{"a": "#, Truncated, 6, "unexpected end"),
        (r#"{"a"#, Truncated, 3, "unexpected end inside a string"),
        (r#"{"a""#, Truncated, 4, "unexpected end"),
        (r#"{"a": 1"#, Truncated, 7, "unexpected end"),
        (r#"{"a": 1,"#, Truncated, 8, "unexpected end"),
        ("[1.", Truncated, 3, "unexpected end"),
        ("[fals", Truncated, 1, "unexpected end"),
        (r#"["\"#, Truncated, 2, "unexpected end inside a string"),
        (r#"["\u00"#, Truncated, 2, "unexpected end inside a string"),
        ("{} {}", TrailingData, 3, "second value"),
        ("{}Checking the forecast", TrailingData, 2, "text after the value"),
        ("{}}", TrailingData, 2, "text after the value"),
        (r#"{"a": 1, "a": 1}"#, DuplicateKey, 9, "duplicate member \"a\""),
        (r#"[{"iban": 1, "\u0069ban": 2}]"#, DuplicateKey, 13, "duplicate member \"iban\""),
        ("[\"a\nb\"]", ControlCharacter, 3, "raw line feed in a string"),
        ("{\"\u{1f}\": 1}", ControlCharacter, 2, "raw character U+001F in a string"),
        (r#"["a\ud800b"]"#, LoneSurrogate, 3, "half of a surrogate pair"),
        (r#"["\udc00\ud800"]"#, LoneSurrogate, 2, "half of a surrogate pair"),
        (r#"["\ud800\u0041"]"#, LoneSurrogate, 2, "half of a surrogate pair"),
        ("```json\n{}\n```", CodeFence, 0, "code fence"),
        ("Here you go:\n```json\n{}\n```", CodeFence, 13, "code fence"),
        ("the answer:\n```\n{}\n```", CodeFence, 12, "code fence"),
        ("{}\n```", CodeFence, 3, "code fence"),
        ("[1e400]", Number, 1, "number that cannot be kept exactly"),
    ] {
        refused(text, code, offset, words);
    }
}

#[test]
fn of_two_flaws_the_first_in_the_text_is_told() {
    use FlawCode::*;
    for (text, code, offset) in [
        (r#"{"a": 1, "a": 2, "b": NaN}"#, DuplicateKey, 9),
        (r#"{"a": 1, "a": 2, "b": "#, DuplicateKey, 9),
        (r#"{"a": 1, "a": 2, "b": {"c": 1, "c": 2}}"#, DuplicateKey, 9),
        (r#"{"a": 1, "b": {"c": 1, "c": 2}, "a": 2}"#, DuplicateKey, 23),
        (r#"[{"a": 1, "a": 2}, [1,]]"#, DuplicateKey, 10),
        (r#"{"a": 1, "b": [1, 1e999], "a": 2}"#, Number, 18),
        // A name is repeated once it has a value.
        (r#"{"a": 1, "a": NaN}"#, Syntax, 14),
        (r#"{"a": 1, "a": "#, Truncated, 14),
    ] {
        let flaw = try_read(text).unwrap_err();
        assert_eq!((flaw.code, flaw.offset), (code, offset), "{text}");
    }
}

#[test]
fn a_fence_inside_a_string_is_only_text() {
    assert_eq!(try_arguments(r#"{"code": "```"}"#).unwrap()["code"], "```");
    refused(r#"{"code": "```",}"#, FlawCode::Syntax, 15, "trailing comma");
}

#[test]
fn bytes_that_are_not_utf8_are_refused_at_their_offset() {
    for (bytes, offset) in
        [(&b"{\"account\":\"\xc0\xaf\"}"[..], 12), (b"\xff\xfe{\0}\0", 0), (b"[\"\xed\xa0\x80\"]", 2), (b"[1] \xe9", 4)]
    {
        let flaw = read(bytes, &Limits::default()).unwrap_err();
        assert_eq!((flaw.code, flaw.offset), (FlawCode::Syntax, offset), "{flaw}");
        assert_eq!(flaw.message, "bytes that are not UTF-8");
    }
}

#[test]
fn a_place_is_told_in_lines_and_characters() {
    let flaw = try_read(r#"{"a": 1,}"#).unwrap_err();
    assert_eq!(flaw.to_string(), "trailing comma at line 1 column 9");

    let flaw = try_read("{\n  \"é🥝\": x\n}").unwrap_err();
    assert_eq!((flaw.line, flaw.column, flaw.offset), (2, 9, 14));
}

#[test]
fn a_flaw_shows_no_value_and_only_short_plain_names() {
    let long = "n".repeat(65);
    for name in [long.as_str(), "pässword", "tab\\t", "quote\\\""] {
        let flaw = try_read(&format!(r#"{{"{name}": 1, "{name}": 1}}"#)).unwrap_err();
        assert_eq!(flaw.message, "duplicate member");
    }
    for text in ["[hunter2]", "[\"hunter2\" hunter2]", "{hunter2: 1}", "[1hunter2]", "hunter2"] {
        let flaw = try_read(text).unwrap_err();
        assert!(!flaw.to_string().contains("hunter2"), "{flaw}");
    }
}

#[test]
fn hints_say_how_to_mend_it() {
    let hint = |text: &str| try_arguments(text).unwrap_err().hint();
    assert_eq!(hint("```{}```"), Some("send the JSON alone, without ``` around it"));
    assert_eq!(hint(r#""{}""#), Some("send the object itself, not a string that holds it"));
    assert_eq!(hint("{'a': 1}"), Some("use double quotes"));
    assert_eq!(hint("[*]"), None);
}
