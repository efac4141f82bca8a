#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::disallowed_methods,
    reason = "a test may panic"
)]

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::contract::Contract;

/// Characters of a token, made when the test runs, so that none stands in the repository.
fn made(length: usize) -> String {
    "aB3xZ9q0".chars().cycle().take(length).collect()
}

fn capitals(length: usize) -> String {
    "Q7ZK2M".chars().cycle().take(length).collect()
}

fn redaction() -> Redaction {
    Redaction::new(GateKey::generate().unwrap(), Kept::Values)
}

/// Each kind of secret, and a text that holds it.
fn told() -> Vec<(String, String)> {
    let within = |secret: String| (format!("use {secret}, please"), secret);
    let pair = |before: &str, secret: String, after: &str| (format!("{before}{secret}{after}"), secret);
    let jwt = format!("eyJ{}.eyJ{}.{}", made(20), made(30), made(43));
    let pem = |body: &str| format!("-----BEGIN {0} KEY-----\n{body}\n-----END {0} KEY-----", "PRIVATE");
    vec![
        within(format!("AKIA{}", capitals(16))),
        within(format!("ASIA{}", capitals(16))),
        within(format!("ghp_{}", made(36))),
        within(format!("github_pat_{}", made(60))),
        within(format!("glpat-{}", made(20))),
        within(format!("xoxb-{}-{}", made(12), made(24))),
        within(format!("sk_live_{}", made(24))),
        within(format!("whsec_{}", made(32))),
        within(format!("sk-{}", made(48))),
        within(format!("sk-proj-{}", made(60))),
        within(format!("sk-ant-api03-{}", made(80))),
        within(format!("AIza{}", made(35))),
        within(format!("GOCSPX-{}", made(28))),
        within(format!("ya29.{}", made(60))),
        within(format!("SG.{}.{}", made(22), made(43))),
        within(format!("npm_{}", made(36))),
        within(format!("tg_{}", made(48))),
        within(jwt.clone()),
        within(pem(&made(64))),
        within(pem(&made(64)).replace('\n', "\\n")),
        pair("Authorization: Bearer ", made(24), "\"").clone(),
        pair("curl -H 'authorization: ", format!("Basic {}", made(12)), "' x"),
        pair("postgres://app:", made(9), "@db.example.com/shop"),
        pair("https://x.example.com/?api_key=", made(8), "&page=2"),
        pair("DB_PASSWORD=", "hunter".to_owned() + "2", "\nnext"),
        pair("password: ", "hunter".to_owned() + "22", " and so on"),
        pair("{\"client_secret\": \"", made(10), "\"}"),
        pair("{\\\"password\\\": \\\"", made(10), "\\\"}"),
        pair("'passwd' => '", "a b \"c\"".to_owned(), "', 'x' => 1"),
        pair("line\\n", format!("ghp_{}", made(36)), "\\nline"),
    ]
    .into_iter()
    .map(|(text, secret)| (secret, text))
    .collect()
}

#[test]
fn each_known_form_is_replaced_by_its_keyed_digest() {
    let redaction = redaction();
    for (secret, text) in told() {
        let redacted = redaction.text(&text).into_owned();
        let word = secret.split_whitespace().last().unwrap();
        assert!(!redacted.contains(&secret) && !redacted.contains(word), "{redacted}");
        let stand_in = redacted.find("[secret ").unwrap_or_else(|| panic!("{text}: {redacted}"));
        let digest = &redacted[stand_in + 8..stand_in + 16];
        assert!(digest.bytes().all(|byte| byte.is_ascii_hexdigit()), "{redacted}");
        assert_eq!(redaction.text(&redacted), redacted, "what is redacted stays as it is");
        assert_eq!(redaction.text(&text), redacted, "equal secrets, equal digests");
        assert_ne!(super::Redaction::new(GateKey::generate().unwrap(), Kept::Values).text(&text), redacted);
    }
}

#[test]
fn what_only_resembles_a_secret_is_left_alone() {
    let redaction = redaction();
    for text in [
        "",
        "The password is required.",
        "Forgot your password: ask the desk",
        "bearer of good news for everybody",
        "see https://example.com:8080/a@b and user@example.com, ssh git@example.com",
        "sk-learn-is-not-what-the-package-is-called",
        "AKIAcertainly-not",
        "a digest: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "if password == given { secret = true }",
        "eyJ is how it begins, -----BEGIN CERTIFICATE----- is public",
        "01JABCDEFGHJKMNPQRSTVWXYZ0 ord_1001 apr_01JABCDEFGHJKMNPQRSTVWXYZ0",
        "C:\\new\\table\\u0041",
    ] {
        assert_eq!(redaction.text(text), text);
    }
}

#[test]
fn a_value_is_looked_through_in_its_texts_and_names_and_what_stands_for_a_secret_is_kept() {
    let redaction = redaction();
    let token = format!("ghp_{}", made(36));
    let mut value = json!({
        "note": [format!("use {token}")], token.clone(): 1, "password": "abc", "count": 7,
        "card": { "$secret": Digest::of(b"").hex() },
    });
    let card = value["card"].clone();
    redaction.scrub(&mut value);
    let text = value.to_string();
    assert!(!text.contains(&token) && !text.contains("abc"), "{text}");
    assert_eq!((&value["card"], &value["count"]), (&card, &json!(7)));
    let again = value.clone();
    redaction.scrub(&mut value);
    assert_eq!(value, again);
}

#[test]
fn only_a_text_was_replaced_under_the_name_of_a_secret() {
    let redaction = redaction();
    let card = json!({ "$secret": Digest::of(b"").hex() });
    let mut value = json!({
        "api_key": 4711, "count": 4711, "secret": [1.5, "abc", { "x": "abc", "on": true, "none": null, "card": card }],
        "password": card, "passwd": "",
    });
    redaction.scrub(&mut value);
    let shown = |place: &str| value.pointer(place).unwrap().as_str().unwrap_or_default().starts_with("[secret ");
    assert!(["/api_key", "/secret/0", "/secret/1", "/secret/2/x"].into_iter().all(shown), "{value}");
    assert_eq!(value["secret"][1], value["secret"][2]["x"], "equal secrets, equal digests");
    let within = &value["secret"][2];
    assert_eq!((&within["on"], &within["none"], &within["card"]), (&json!(true), &Value::Null, &card));
    assert_eq!((&value["count"], &value["password"], &value["passwd"]), (&json!(4711), &card, &json!("")));
    let again = value.clone();
    redaction.scrub(&mut value);
    assert_eq!(value, again);
}

#[test]
fn looking_for_secrets_takes_time_in_proportion_to_the_text() {
    for part in [
        "password:",
        "password=\"",
        "-----BEGIN ",
        "://a:",
        "bearer ",
        "eyJaaaaaaaaaaaa.",
        "\\n",
        "a",
        "\"'`\\",
        "sk-",
        "=: ",
    ] {
        let text = part.repeat(400_000 / part.len());
        let begun = std::time::Instant::now();
        Secrets::of(&text).for_each(drop);
        assert!(begun.elapsed().as_secs() < 5, "{part}: {:?}", begun.elapsed());
    }
}

proptest! {
    #[test]
    fn any_text_is_looked_through_without_a_panic_and_the_finds_lie_in_order(text in any::<String>()) {
        let mut end = 0;
        for found in Secrets::of(&text) {
            prop_assert!(found.start >= end && found.end > found.start);
            prop_assert!(text.get(found.clone()).is_some());
            end = found.end;
        }
    }

    #[test]
    fn text_made_of_the_marks_of_secrets_is_looked_through_as_well(
        parts in prop::collection::vec(prop::sample::select(vec![
            "password", "=", ":", "\"", "'", "\\", "n", "ghp_", "eyJ", ".", "-----BEGIN ", "PRIVATE KEY-----", "-----END",
            "Bearer ", "://", "@", "a1B2c3D4e5F6g7H8", "…", " ", "\n", "AKIA", "sk-", "authorization", "[secret ",
        ]), 0..40),
    ) {
        let text = parts.concat();
        let redaction = redaction();
        let redacted = redaction.text(&text).into_owned();
        for found in Secrets::of(&text) {
            prop_assert!(text.is_char_boundary(found.start) && text.is_char_boundary(found.end));
        }
        prop_assert!(redacted.len() <= text.len() * 17 + 17);
    }

    #[test]
    fn words_without_a_secret_stay_as_they_are(words in prop::collection::vec("[a-z]{1,9}", 0..30)) {
        let text = words.join(" ");
        prop_assert_eq!(redaction().text(&text), text.as_str());
    }

    #[test]
    fn no_value_of_a_hidden_member_is_left_in_a_broken_text(
        cut in 0usize..90, noise in prop::sample::select(vec!["", "}", "]", ",", "\"", "'", "x", "```", ": ", "[", "\\"]), at in 0usize..90,
    ) {
        let sent = r#"{"note":"shown","card":"4000 0027","more":{"card":40000028,"note":"x"},"wrong":"4000 0029"}"#;
        let mut text = sent[..cut.min(sent.len())].to_owned();
        text.insert_str(at.min(text.len()), noise);
        let raw = redaction().of_call(Some(Mark::Secret), None).unadmitted(Some(&hiding()), text.as_bytes());
        let told = raw.to_string();
        prop_assert!(!told.contains("4000 00") && !told.contains("400000"), "{} of {}", told, text);
    }
}

fn hiding() -> Contract {
    contract(json!({
        "note": { "type": "string" }, "card": { "type": "string", "x-secret": true },
        "more": { "type": "object", "properties": {
            "card": { "type": "integer", "x-secret": true }, "note": { "type": "string" },
        } },
    }))
}

fn contract(properties: Value) -> Contract {
    let keys = json!({ "description": "A tool.", "effect": "read", "input": { "properties": properties } });
    Contract::parse("tool", &keys).unwrap()
}

fn raw(contract: Option<&Contract>, sent: &str) -> Value {
    let redactor = redaction().of_call(contract.and_then(|contract| contract.input.mark()), None);
    redactor.unadmitted(contract, sent.as_bytes())
}

#[test]
fn what_was_sent_to_a_tool_that_hides_nothing_is_kept_as_it_was_sent() {
    let plain = contract(json!({ "note": { "type": "string" } }));
    let sent = "{\"note\": 1, \"note\": 2";
    let told = raw(Some(&plain), sent);
    assert_eq!((&told["text"], &told["bytes"]), (&json!(sent), &json!(sent.len())));
    assert!(told.get("redacted").is_none() && told.get("cut").is_none());
    let token = format!("ghp_{}", made(36));
    let told = raw(Some(&plain), &format!("{{\"note\": \"{token}\""));
    assert_eq!(told["redacted"], json!(true));
    assert!(!told.to_string().contains(&token));
    let long = raw(Some(&plain), &"{".repeat(100_000));
    assert_eq!((long["text"].as_str().unwrap().len(), &long["cut"]), (16 * 1024, &json!(true)));
}

#[test]
fn of_a_tool_that_nobody_knows_no_word_is_kept() {
    let told = raw(None, r#"{"card": "4000 0027"}"#);
    assert_eq!(told.as_object().unwrap().keys().collect::<Vec<_>>().len(), 2);
    assert!(told["digest"].is_string() && told["bytes"] == json!(21));
}

#[test]
fn of_what_does_not_fit_a_tool_that_hides_something_only_what_is_declared_and_unmarked_is_shown() {
    let told =
        raw(Some(&hiding()), r#"{"note": {"pin": "1234"}, "card": 5, "crad": "4000 0027", "more": {"note": "x"}}"#);
    let value = &told["value"];
    for hidden in ["/note/pin", "/card", "/crad"] {
        let digest = value.pointer(hidden).unwrap_or_else(|| panic!("{hidden}: {value}"));
        assert!(is_digest(digest.as_object().unwrap()), "{hidden}: {value}");
    }
    assert_eq!(value.pointer("/more/note"), Some(&json!("x")));
    assert!(told.get("text").is_none());
}

#[test]
fn of_a_broken_text_the_fault_can_be_seen_and_what_is_hidden_cannot() {
    let shown = |sent: &str| raw(Some(&hiding()), sent)["text"].as_str().unwrap().to_owned();
    for (sent, wanted) in [
        (r#"{"note":"a","card":"4000","note":"b"}"#, r#"{"note":"a","card":"…","note":"b"}"#),
        (r#"{"note":"a","c\u0061rd":"4000",}"#, r#"{"note":"a","c\u0061rd":"…",}"#),
        (r#"{"more":{"card":4000,"note":"a"}"#, r#"{"more":{"card":…,"note":"…"}"#),
        (r#"{"note":"a" "card":"4000"}"#, r#"{"note":"a" "card":"…"}"#),
        (r#"{"note":"a" "4000"}"#, r#"{"note":"a" "…"}"#),
        (r#"{"note":"a","card":"40"#, r#"{"note":"a","card":"…"#),
        (r#"{'card': '4000', note: 1}"#, r#"{'card': '…', note: …}"#),
        ("```json\n{\"card\":\"4000\"}\n```", "```…\n{\"card\":\"…\"}\n```"),
        (r#""{\"card\":\"4000\"}""#, r#""…""#),
        (r#"["4000"]"#, r#"["…"]"#),
    ] {
        assert_eq!(shown(sent), wanted);
    }
}

#[test]
fn a_personal_value_is_digested_under_the_key_of_whoever_it_is_of() {
    let redaction = redaction();
    let personal = contract(json!({ "name": { "type": "string", "x-personal": true } }));
    let value = json!({ "name": "Ada" });
    let of = |salt: Option<&Salt>| redaction.of_call(Some(Mark::Personal), salt).value(Some(&personal.input), &value);
    let (ada, other) = (Salt::generate().unwrap(), Salt::generate().unwrap());
    assert_eq!(of(Some(&ada)), of(Some(&ada)));
    assert_ne!(of(Some(&ada)), of(Some(&other)));
    assert_ne!(of(None), of(None), "nobody can say whose it is, so nobody can compare it");
    assert!(of(None)["name"]["$personal"].is_string());
}

#[test]
fn where_digests_alone_are_kept_no_value_is() {
    let redaction = Redaction::new(GateKey::generate().unwrap(), Kept::Digests);
    let redactor = redaction.of_call(None, None);
    let plain = contract(json!({ "note": { "type": "string" } }));
    let members = json!({ "note": "hello" });
    assert_eq!(redactor.arguments(&plain.input, members.as_object().unwrap(), r#"{"note":"hello"}"#), None);
    assert!(redactor.unadmitted(Some(&plain), b"{\"note\":").get("text").is_none());
    assert!(!redactor.fact(None, &members).to_string().contains("hello"));
}
