use std::fmt::Write;

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn try_read(text: &str) -> Result<Value, Flaw> {
    read(text.as_bytes(), &Limits::default())
}

fn try_arguments(text: &str) -> Result<Map<String, Value>, Flaw> {
    read_arguments(text.as_bytes(), &Limits::default())
}

/// Asserts a refusal by its code, its byte offset and its words.
#[track_caller]
fn refused(text: &str, code: FlawCode, offset: usize, words: &str) {
    let flaw = try_read(text).expect_err(text);
    assert_eq!((flaw.code, flaw.offset, &*flaw.message), (code, offset, words), "{text}");
}

#[track_caller]
fn refused_arguments(text: &str, code: FlawCode, offset: usize, words: &str) {
    let flaw = try_arguments(text).expect_err(text);
    assert_eq!((flaw.code, flaw.offset, &*flaw.message), (code, offset, words), "{text}");
}

// --- reading -------------------------------------------------------------------------------------------

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

// --- bounds --------------------------------------------------------------------------------------------

#[test]
fn depth_counts_open_brackets() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert!(try_read(&nested(64)).is_ok());
    refused(&nested(65), FlawCode::Depth, 64, "more than 64 open brackets");
    assert!(try_read(&format!("[{}]", vec!["[]"; 100].join(","))).is_ok());
    let flaw = members(format!(r#"{{"a": {}}}"#, nested(64)).as_bytes(), &Limits::default()).unwrap_err();
    assert_eq!(flaw.code, FlawCode::Depth);
}

#[test]
fn no_setting_can_exhaust_the_stack() {
    let limits = Limits { depth: usize::MAX, ..Limits::default() };
    let deep = r#"{"a":"#.repeat(511) + "{}" + &"}".repeat(511);
    let bombs = ["[".repeat(100_000), r#"{"a":"#.repeat(100_000), format!("[{}", "[".repeat(100_000))];
    let walk = move || {
        let value = read(deep.as_bytes(), &limits).unwrap();
        assert_eq!(canonical(&value), deep);
        assert_eq!(members(deep.as_bytes(), &limits).unwrap().len(), 1);
        for bomb in bombs {
            assert_eq!(read(bomb.as_bytes(), &limits).unwrap_err().code, FlawCode::Depth);
            assert!(items(bomb.as_bytes(), &limits).is_err());
        }
    };
    // The stack of a thread by default, and of a worker of the runtime.
    let thread = std::thread::Builder::new().stack_size(2 << 20);
    thread.spawn(walk).unwrap().join().unwrap();
}

#[test]
fn huge_texts_are_refused_before_they_are_read_whole() {
    let bombs = [
        (format!(r#"{{"account":"{}"}}"#, "a".repeat(12_000_000)), FlawCode::Size),
        (" ".repeat(12_000_000), FlawCode::Size),
        ("[".repeat(100_000), FlawCode::Depth),
        (r#"{"a":"#.repeat(100_000), FlawCode::Depth),
        (format!("1{}", "0".repeat(900_000)), FlawCode::Number),
        (format!("0.{}1", "0".repeat(900_000)), FlawCode::Number),
        ("1e999999999999999999999999".to_owned(), FlawCode::Number),
        ("-1E-99999999999999999999999".to_owned(), FlawCode::Number),
    ];
    for (bomb, code) in bombs {
        let flaw = read_arguments(bomb.as_bytes(), &Limits::default()).unwrap_err();
        assert_eq!(flaw.code, code);
        // What is too deep is refused where it gets too deep: the rest is not read.
        assert!(code != FlawCode::Depth || flaw.offset <= 65 * r#"{"a":"#.len(), "{}", flaw.offset);
    }
}

#[test]
fn members_are_counted_over_the_whole_text() {
    let object = |count: usize| {
        let mut text = "{".to_owned();
        for n in 0..count {
            let _ = write!(text, "\"k{n}\":0,");
        }
        text.pop();
        text + "}"
    };
    assert_eq!(try_arguments(&object(10_000)).unwrap().len(), 10_000);
    assert_eq!(try_read(&object(10_001)).unwrap_err().code, FlawCode::Members);
    let two = format!("[{},{}]", object(6_000), object(6_000));
    assert_eq!(try_read(&two).unwrap_err().code, FlawCode::Members);
    let level = |text: &str| members(text.as_bytes(), &Limits::default()).map(|members| members.len());
    assert_eq!(level(&object(10_001)).unwrap_err().code, FlawCode::Members);
    assert_eq!(level(&format!(r#"{{"a":{}}}"#, object(10_001))), Ok(1));
}

// --- numbers -------------------------------------------------------------------------------------------

#[test]
fn an_integer_by_value_is_an_integer() {
    for (text, integer) in [
        ("25", "25"),
        ("25.0", "25"),
        ("1e3", "1000"),
        ("1.5E+1", "15"),
        ("2500e-2", "25"),
        ("-0", "0"),
        ("-0.0e5", "0"),
        ("0e999999999999", "0"),
        ("-1.0", "-1"),
        ("18446744073709551615", "18446744073709551615"),
        ("1844674407370955161.5e1", "18446744073709551615"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("-9223372036854775808.000", "-9223372036854775808"),
        ("9007199254740993", "9007199254740993"),
        ("1e19", "10000000000000000000"),
    ] {
        let value = try_read(text).unwrap();
        assert!(value.is_i64() || value.is_u64(), "{text}");
        assert_eq!(canonical(&value), integer, "{text}");
    }
}

#[test]
fn a_decimal_is_kept_only_if_it_prints_back() {
    for (text, printed) in [
        ("0.1", "0.1"),
        ("1.10", "1.1"),
        ("-19.99", "-19.99"),
        ("1e-7", "1e-7"),
        ("10e-8", "1e-7"),
        ("0.000001", "0.000001"),
        ("123456789.123456", "123456789.123456"),
        ("0.30000000000000004", "0.30000000000000004"),
        ("22748039822488.062", "22748039822488.062"),
        ("5e-324", "5e-324"),
        ("2.2250738585072014e-308", "2.2250738585072014e-308"),
        ("1e-320", "1e-320"),
    ] {
        assert_eq!(canonical(&try_read(text).unwrap()), printed, "{text}");
    }
    for text in [
        "0.1000000000000000055",
        "0.1000000000000000055511151231257827",
        "333333333.33333329",
        "4.9e-324",
        "1e-400",
        "9007199254740993.5",
        // As near to its double as the even neighbour, which is the one that is printed.
        "22748039822488.063",
        "18446744073709551616",
        "-9223372036854775809",
        "1e20",
        "-1e19",
        "1e400",
        "123.456e78",
    ] {
        refused(text, FlawCode::Number, 0, "number that cannot be kept exactly");
    }
}

// --- one level -----------------------------------------------------------------------------------------

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

// --- canonical form and digest -------------------------------------------------------------------------

#[test]
fn rfc_8785_sample() {
    let text = r#"{
        "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
        "literals": [null, true, false]
    }"#;
    // Read by serde_json: some of these numbers are more than our reader keeps.
    let value: Value = serde_json::from_str(text).unwrap();
    assert_eq!(
        canonical(&value),
        r#"{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}"#
    );
}

#[test]
fn rfc_8785_sorts_by_utf16_code_units() {
    let text = r#"{"\u20ac": "Euro Sign", "\r": "Carriage Return", "\ufb33": "Hebrew Letter Dalet With Dagesh", "1": "One",
        "\ud83d\ude00": "Emoji: Grinning Face", "\u0080": "Control", "\u00f6": "Latin Small Letter O With Diaeresis"}"#;
    let canonical = canonical(&try_read(text).unwrap());
    let order =
        ["Carriage", "One", "Control", "Latin", "Euro", "Emoji", "Hebrew"].map(|word| canonical.find(word).unwrap());
    assert!(order.is_sorted(), "{canonical}");
    assert!(canonical.starts_with(r#"{"\r":"Carriage Return","1":"One","#));
}

#[test]
fn rfc_8785_prints_doubles_as_ecmascript_does() {
    for (bits, printed) in [
        (0x0000_0000_0000_0000, "0"),
        (0x8000_0000_0000_0000, "0"),
        (0x0000_0000_0000_0001, "5e-324"),
        (0x8000_0000_0000_0001, "-5e-324"),
        (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
        (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
        (0x4340_0000_0000_0000, "9007199254740992"),
        (0xc340_0000_0000_0000, "-9007199254740992"),
        (0x4430_0000_0000_0000, "295147905179352830000"),
        (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
        (0x44b5_2d02_c7e1_4af6, "1e+23"),
        (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
        (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
        (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
        (0x444b_1ae4_d6e2_ef50, "1e+21"),
        (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
        (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
        (0x41b3_de43_5555_5553, "333333333.3333332"),
        (0x41b3_de43_5555_5554, "333333333.33333325"),
        (0x41b3_de43_5555_5555, "333333333.3333333"),
        (0x41b3_de43_5555_5556, "333333333.3333334"),
        (0x41b3_de43_5555_5557, "333333333.33333343"),
        (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
        (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
    ] {
        assert_eq!(canonical(&json!(f64::from_bits(bits))), printed);
    }
}

#[test]
fn control_characters_are_escaped_and_nothing_else_is() {
    let every: String = (0_u8..0x80).map(char::from).chain("\u{80}\u{2028}é😀".chars()).collect();
    assert_eq!(
        canonical(&json!(every)),
        "\"\\u0000\\u0001\\u0002\\u0003\\u0004\\u0005\\u0006\\u0007\\b\\t\\n\\u000b\\f\\r\\u000e\\u000f\
         \\u0010\\u0011\\u0012\\u0013\\u0014\\u0015\\u0016\\u0017\\u0018\\u0019\\u001a\\u001b\\u001c\\u001d\\u001e\\u001f\
         \u{20}!\\\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\\\]^_`abcdefghijklmnopqrstuvwxyz{|}~\u{7f}\
         \u{80}\u{2028}é😀\""
    );
}

#[test]
fn a_digest_has_its_spellings() {
    let digest = Digest::of(b"abc");
    let hex = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(digest.to_string(), hex);
    assert_eq!(format!("{digest:?}"), format!("Digest({hex})"));
    assert_eq!(hex.parse(), Ok(digest));
    assert_eq!(digest.base32(), "xj4bnp4pahh6uqkbidpf3lrceoyagyndsylxvhfucd7wd4qacwwq");
    assert_eq!(Digest::from(*digest.as_bytes()), digest);
    assert_eq!(serde_json::to_value(digest).unwrap(), json!(hex));
    assert_eq!(serde_json::from_value::<Digest>(json!(hex)).unwrap(), digest);
    for wrong in [&hex.to_uppercase(), &hex[2..], "", &format!("{hex}00"), &hex.replace('b', "x")] {
        assert_eq!(wrong.parse::<Digest>(), Err(NotADigest));
    }
}

// --- properties ----------------------------------------------------------------------------------------

fn any_name() -> impl Strategy<Value = String> {
    prop_oneof!["[a-c]{1,2}", "\\PC{0,4}", any::<String>()]
}

/// Values as the reader makes them.
fn any_value() -> impl Strategy<Value = Value> {
    // Integers among the doubles are no values of the reader's.
    let decimal = prop_oneof![any::<f64>(), any::<i32>().prop_map(|cents| f64::from(cents) / 100.0)]
        .prop_map(|double| if double.is_finite() && double.fract() != 0.0 { double } else { 0.5 });
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1000_i64..1000).prop_map(Value::from),
        decimal.prop_map(Value::from),
        any_name().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::hash_map(any_name(), inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Writes a value in one of its many spellings.
struct Scribe<'a> {
    choices: std::iter::Cycle<std::slice::Iter<'a, u8>>,
    out: String,
}

impl Scribe<'_> {
    fn spell(value: &Value, choices: &[u8]) -> String {
        let mut scribe = Scribe { choices: choices.iter().cycle(), out: String::new() };
        scribe.value(value);
        scribe.out
    }

    fn choose(&mut self, of: usize) -> usize {
        usize::from(*self.choices.next().unwrap()) % of
    }

    fn space(&mut self) {
        let space = ["", "", " ", "\n", "\t\r\n "][self.choose(5)];
        self.out.push_str(space);
    }

    fn value(&mut self, value: &Value) {
        self.space();
        match value {
            Value::String(text) => self.string(text),
            Value::Number(number) if !number.is_f64() => {
                let sign = if number.to_string().starts_with('-') { "-" } else { "" };
                let digits = number.to_string().trim_start_matches('-').to_owned();
                let (first, others) = digits.split_at(1);
                let spelling = match self.choose(5) {
                    0 => format!("{sign}{digits}.0"),
                    1 if digits != "0" => format!("{sign}{digits}00E-2"),
                    2 => format!("{sign}{first}.{others}0e+{}", others.len()),
                    3 if digits == "0" => "-0".to_owned(),
                    _ => format!("{sign}{digits}"),
                };
                self.out.push_str(&spelling);
            }
            Value::Number(_) => {
                let printed = canonical(value);
                let (mantissa, exponent) = printed.split_once('e').unwrap_or((&printed, "0"));
                let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
                let exponent: i64 = exponent.parse().unwrap();
                let places = i64::try_from(fraction.len()).unwrap();
                let spelling = match (self.choose(3), whole.trim_start_matches('-')) {
                    (0, digits) if digits != "0" => format!("{whole}{fraction}E{}", exponent - places),
                    (1, _) => format!("{whole}.{fraction}00e{exponent:+}"),
                    _ => printed,
                };
                self.out.push_str(&spelling);
            }
            Value::Array(items) => {
                self.out.push('[');
                for (index, item) in items.iter().enumerate() {
                    self.out.push_str(if index > 0 { "," } else { "" });
                    self.value(item);
                }
                self.space();
                self.out.push(']');
            }
            Value::Object(members) => {
                let mut members: Vec<_> = members.iter().collect();
                let turn = self.choose(members.len().max(1));
                members.rotate_left(turn);
                if self.choose(2) == 0 {
                    members.reverse();
                }
                self.out.push('{');
                for (index, (name, value)) in members.into_iter().enumerate() {
                    self.out.push_str(if index > 0 { "," } else { "" });
                    self.space();
                    self.string(name);
                    self.space();
                    self.out.push(':');
                    self.value(value);
                }
                self.space();
                self.out.push('}');
            }
            other => self.out.push_str(&other.to_string()),
        }
        self.space();
    }

    fn string(&mut self, text: &str) {
        self.out.push('"');
        for character in text.chars() {
            let must = character < ' ' || character == '"' || character == '\\';
            if must || self.choose(4) == 0 {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    let _ = write!(self.out, "\\u{unit:04X}");
                }
            } else {
                self.out.push(character);
            }
        }
        self.out.push('"');
    }
}

proptest! {
    #[test]
    fn reading_the_canonical_form_gives_the_value_back(value in any_value()) {
        let text = canonical(&value);
        prop_assert_eq!(try_read(&text).unwrap(), value);
        prop_assert_eq!(canonical(&try_read(&text).unwrap()), text);
    }

    #[test]
    fn all_spellings_of_a_value_have_one_digest(value in any_value(), choices in prop::collection::vec(any::<u8>(), 1..64)) {
        let text = Scribe::spell(&value, &choices);
        let read = try_read(&text).unwrap();
        prop_assert_eq!(&read, &value, "{}", text);
        let digest = |value: &Value| Digest::of(canonical(value).as_bytes());
        prop_assert_eq!(digest(&read), digest(&value));
    }

    #[test]
    fn a_changed_value_has_another_canonical_form(one in any_value(), other in any_value()) {
        prop_assert_eq!(one == other, canonical(&one) == canonical(&other));
    }

    #[test]
    fn one_level_and_the_whole_agree(value in any_value(), choices in prop::collection::vec(any::<u8>(), 1..64)) {
        let text = Scribe::spell(&value, &choices);
        let read_raw = |raw: &[u8]| read(raw, &Limits::default()).unwrap();
        match &value {
            Value::Object(_) => {
                let parts = members(text.as_bytes(), &Limits::default()).unwrap();
                let whole = parts.into_iter().map(|(name, raw)| (name, read_raw(raw))).collect();
                prop_assert_eq!(Value::Object(whole), value);
            }
            Value::Array(_) => {
                let parts = items(text.as_bytes(), &Limits::default()).unwrap();
                prop_assert_eq!(parts.into_iter().map(read_raw).collect::<Value>(), value);
            }
            _ => prop_assert!(members(text.as_bytes(), &Limits::default()).is_err()),
        }
    }

    #[test]
    fn a_duplicate_is_found_wherever_it_is(name in any_name(), others in prop::collection::hash_set(any_name(), 0..40), at in any::<prop::sample::Index>(), choices in prop::collection::vec(any::<u8>(), 1..64)) {
        let mut names: Vec<String> = others.into_iter().filter(|other| *other != name).collect();
        names.insert(at.index(names.len() + 1), name.clone());
        names.push(name);
        let spelled: Vec<String> = names.iter().map(|name| Scribe::spell(&json!(name), &choices).trim().to_owned() + ":0").collect();
        let text = format!("{{{}}}", spelled.join(","));
        prop_assert_eq!(try_read(&text).unwrap_err().code, FlawCode::DuplicateKey);
        prop_assert_eq!(members(text.as_bytes(), &Limits::default()).unwrap_err().code, FlawCode::DuplicateKey);
    }

    #[test]
    fn integers_are_exactly_those_of_64_bits(mantissa in any::<i128>(), shift in 0_u32..128, exponent in -6_i32..6, places in 0_usize..4) {
        let mantissa = mantissa >> shift;
        let text = format!("{mantissa}.{}e{exponent}", "0".repeat(places + 1));
        let scale = 10_i128.pow(exponent.unsigned_abs());
        let value = if exponent >= 0 {
            mantissa.checked_mul(scale)
        } else if mantissa % scale == 0 {
            Some(mantissa / scale)
        } else {
            return Ok(());
        };
        let wanted = value.and_then(|value| i64::try_from(value).map(Value::from).or_else(|_| u64::try_from(value).map(Value::from)).ok());
        prop_assert_eq!(try_read(&text).ok(), wanted, "{}", text);
    }

    #[test]
    fn nothing_is_accepted_that_serde_json_rejects(bytes in prop_oneof![
        prop::collection::vec(any::<u8>(), 0..64),
        prop::collection::vec(prop::sample::select(&b"{}[]:,\"\\ue0123456789.-+E tfn/'`\n"[..]), 0..24),
    ]) {
        agrees_with_serde_json(&bytes)?;
    }

    #[test]
    fn no_damage_makes_the_reader_panic_or_accept(value in any_value(), choices in prop::collection::vec(any::<u8>(), 1..64), at in any::<prop::sample::Index>(), byte in any::<u8>(), kind in 0..3) {
        let mut bytes = Scribe::spell(&value, &choices).into_bytes();
        let at = at.index(bytes.len());
        match kind {
            0 => bytes.truncate(at),
            1 => bytes[at] = byte,
            _ => bytes.insert(at, byte),
        }
        agrees_with_serde_json(&bytes)?;
    }
}

fn agrees_with_serde_json(bytes: &[u8]) -> Result<(), TestCaseError> {
    let limits = Limits::default();
    let theirs = serde_json::from_slice::<Value>(bytes);
    match read(bytes, &limits) {
        Ok(value) => prop_assert!(theirs.is_ok(), "{value}"),
        Err(flaw) => {
            prop_assert!(flaw.offset <= bytes.len());
            // Whatever we refuse as malformed, another reader refuses too; the rest is stricter by design.
            if matches!(
                flaw.code,
                FlawCode::Syntax
                    | FlawCode::Truncated
                    | FlawCode::TrailingData
                    | FlawCode::ControlCharacter
                    | FlawCode::LoneSurrogate
                    | FlawCode::CodeFence
            ) {
                prop_assert!(theirs.is_err(), "{}", flaw);
            }
        }
    }
    for accepted in [
        read_arguments(bytes, &limits).is_ok(),
        members(bytes, &limits).is_ok_and(|members| members.iter().all(|(_, raw)| read(raw, &limits).is_ok())),
        items(bytes, &limits).is_ok_and(|items| items.iter().all(|raw| read(raw, &limits).is_ok())),
    ] {
        let blank = bytes.iter().all(u8::is_ascii_whitespace);
        prop_assert!(!accepted || blank || serde_json::from_slice::<Value>(bytes).is_ok());
    }
    Ok(())
}
