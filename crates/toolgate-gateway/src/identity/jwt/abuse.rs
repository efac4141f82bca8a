//! The rows of `abuse.jsonl`, in `$TOOLGATE_CORPORA`, that are tokens, issuers and tenants.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a test may panic, look around and tell what it skips"
)]

use std::path::Path;

use data_encoding::BASE64URL_NOPAD;
use serde_json::{Value, json};

use super::forge::{Signer, message};
use super::tests::{House, ISSUER, claims, header, issuer, with};
use super::*;

/// The variants of the row with this number; none where there is no corpus.
fn variants(id: u64) -> Vec<Value> {
    let Some(corpora) = std::env::var_os("TOOLGATE_CORPORA") else {
        println!("skipped: TOOLGATE_CORPORA does not name the folder that holds abuse.jsonl");
        return Vec::new();
    };
    let path = Path::new(&corpora).join("abuse.jsonl");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let rows = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let row = rows.into_iter().find(|row| row["id"] == id).unwrap_or_else(|| panic!("there is no row {id}"));
    let variants = row["input"]["variants"].as_array().unwrap().clone();
    assert!(variants.len() > 2, "{row}");
    variants
}

/// A token whose signature is this, whatever was signed.
fn signed(header: &Value, signature: &[u8]) -> String {
    format!("{}.{}", message(header, &claims().to_string()), BASE64URL_NOPAD.encode(signature))
}

#[test]
fn row_136_the_algorithm_comes_from_the_key() {
    let house = House::new();
    let key = Signer::rsa();
    house.publish("keys.json", &[key.jwk("rsa1")]);
    let jwt = house.jwt(&[issuer()]);
    assert!(jwt.admit(&key.token(&header("RS256", "rsa1"), &claims().to_string())).is_ok());
    for variant in variants(136) {
        let token = &variant["jwt"];
        let header = with(json!({ "kid": "rsa1" }), token["header"].clone());
        let shown = match token["sig"].as_str().unwrap() {
            "" | "empty" => signed(&header, b""),
            "HMAC keyed with the RSA public key PEM" => {
                let secret = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &key.public_bytes());
                let tag = ring::hmac::sign(&secret, message(&header, &claims().to_string()).as_bytes());
                signed(&header, tag.as_ref())
            }
            other => panic!("no signature is told of like this: {other}"),
        };
        assert_eq!(jwt.admit(&shown).unwrap_err(), NotAdmitted::Unauthenticated, "{variant}");
    }
}

#[test]
fn row_138_a_malformed_claim_is_not_an_absent_one() {
    let house = House::new();
    let key = Signer::ed25519();
    house.publish("keys.json", &[key.jwk("a")]);
    let jwt = house.jwt(&[issuer()]);
    for variant in variants(138) {
        let token = &variant["jwt"];
        let text = match token["claims_raw"].as_str() {
            // What stands there is put behind the claims that any token must have.
            Some(raw) => {
                let rest = with(claims(), json!({ "sub": null, "exp": null })).to_string();
                format!("{},{}", rest.strip_suffix('}').unwrap(), raw.strip_prefix('{').unwrap())
            }
            None => {
                // `null` stands for itself here, and leaves no claim out.
                let mut all = claims();
                token["claims"].as_object().unwrap().iter().for_each(|(name, value)| all[name] = value.clone());
                all.to_string()
            }
        };
        let shown = key.token(&header("EdDSA", "a"), &text);
        assert_eq!(jwt.admit(&shown).unwrap_err(), NotAdmitted::Unauthenticated, "{variant}");
    }
}

#[test]
fn row_140_keys_are_bound_to_issuers_and_issuers_to_tenants() {
    let house = House::new();
    let signers = [("A", Signer::ed25519()), ("B", Signer::ed25519()), ("evil", Signer::ed25519())];
    let of = |name: &str, tenant: &str| {
        house.publish(name, &[signers.iter().find(|(known, _)| *known == name).unwrap().1.jwk("k")]);
        let address = format!("https://{}.example.com", name.to_lowercase());
        with(issuer(), json!({ "issuer": address, "jwks": name, "tenant": "/tenant", "tenants": [tenant] }))
    };
    let jwt = house.jwt(&[of("A", "t_a"), of("B", "t_b")]);
    for variant in variants(140) {
        let token = &variant["jwt"];
        let (_, signer) = signers.iter().find(|(name, _)| token["signed_by"] == *name).unwrap();
        let claims = with(claims(), token["claims"].clone());
        let shown = signer.token(&header("EdDSA", "k"), &claims.to_string());
        assert_eq!(jwt.admit(&shown).unwrap_err(), NotAdmitted::Unauthenticated, "{variant}");
    }
}

#[test]
fn row_150_a_folder_that_weakens_the_check_does_not_load() {
    let house = House::new();
    house.publish("keys.json", &[Signer::ed25519().jwk("a")]);
    let mut refused = Vec::new();
    for variant in variants(150) {
        let raw = variant["config_raw"].as_str().unwrap();
        let said = crate::config::Located::parse(&raw.replace("jwks_url", "jwks")).unwrap().table;
        let audience = if raw.contains("no audience") { Value::Null } else { json!("toolgate") };
        let table = with(with(issuer(), json!({ "audience": audience })), Value::Object(said));
        let (_, problems) = house.load(&json!({ "kind": "jwt", "issuer": [table] }));
        assert_eq!(problems.len(), 1, "{variant}: {problems:?}");
        refused.extend(problems);
    }
    let places = ["issuer format", "tls_verify unknown_key", "algorithms unknown_key", "audience required"];
    if !refused.is_empty() {
        assert_eq!(refused, places.map(|place| format!("/identity/issuer/0/{place}")));
    }
}

#[test]
fn row_230_a_tenant_is_spelled_in_one_way() {
    let house = House::new();
    let key = Signer::ed25519();
    house.publish("keys.json", &[key.jwk("a")]);
    let jwt = house.jwt(&[issuer()]);
    for variant in variants(230) {
        let tenant = &variant["tenant_id"];
        let shown = key.token(&header("EdDSA", "a"), &with(claims(), json!({ "org": tenant })).to_string());
        assert_eq!(jwt.admit(&shown).unwrap_err(), NotAdmitted::Unauthenticated, "{variant}");
        let table = with(issuer(), json!({ "tenants": [tenant] }));
        assert_eq!(house.load(&json!({ "kind": "jwt", "issuer": [table] })).1.len(), 1, "{variant}");
        let user = json!({ "kind": "local", "user": [{ "name": "alice", "tenant": tenant }] });
        let mut problems = Problems::default();
        crate::identity::Identity::read(Path::new(""), user.as_object().unwrap(), &mut problems);
        assert_eq!(problems.0.len(), 1, "{variant}: {problems:?}");
        let person = format!("alice@{}", tenant.as_str().unwrap());
        assert_eq!(crate::identity::parse_person(&person), None, "{variant}");
    }
    assert_eq!(crate::identity::parse_person("alice@t_a-1"), Some(("alice", "t_a-1")));
    assert_eq!(ISSUER, issuer()["issuer"]);
}
