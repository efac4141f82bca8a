//! An issuer of tokens that there is not.

use data_encoding::BASE64URL_NOPAD;
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};

/// An issuer, and its only key.
pub(crate) struct Issuer(Ed25519KeyPair);

impl Issuer {
    pub(crate) fn new() -> Self {
        let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self(Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).unwrap())
    }

    /// The set of its keys.
    pub(crate) fn keys(&self) -> Value {
        let x = BASE64URL_NOPAD.encode(self.0.public_key().as_ref());
        json!({ "keys": [{ "kty": "OKP", "crv": "Ed25519", "kid": "k", "use": "sig", "alg": "EdDSA", "x": x }] })
    }

    /// What it says, signed.
    pub(crate) fn token(&self, claims: &Value) -> String {
        let part = |value: &Value| BASE64URL_NOPAD.encode(value.to_string().as_bytes());
        let message = format!("{}.{}", part(&json!({ "alg": "EdDSA", "typ": "at+jwt", "kid": "k" })), part(claims));
        format!("{message}.{}", BASE64URL_NOPAD.encode(self.0.sign(message.as_bytes()).as_ref()))
    }
}
