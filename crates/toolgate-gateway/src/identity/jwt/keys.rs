//! The keys of one issuer: a JWK set (RFC 7517), of which only what verifies is kept.

use data_encoding::BASE64URL_NOPAD;
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey};
use serde_json::{Map, Value};
use toolgate::json::{self, Limits};

use super::crypto::is_signed;
use super::shown::{Shown, Wanted, algorithm};

/// The keys that verify what an issuer signed.
#[derive(Debug)]
pub(super) struct Keys(Vec<Key>);

/// One key. INVARIANT (one algorithm): it comes from the key, and a token that names another is not held against it.
#[derive(Debug)]
struct Key {
    id: Option<String>,
    algorithm: Algorithm,
    key: DecodingKey,
}

/// The largest set that is read, in bytes.
pub(super) const SIZE: usize = 256 * 1024;
const LIMITS: Limits = Limits { size: SIZE, depth: 16, members: 5000 };
/// The bytes of an RSA modulus: 2048 to 8192 bits.
const MODULUS: std::ops::RangeInclusive<usize> = 256..=1024;

impl Keys {
    /// Reads a set. Keys that cannot verify are left out; where none is left, the set is of no use.
    pub(super) fn parse(text: &[u8]) -> Result<Self, String> {
        if text.trim_ascii_start().starts_with(b"-----BEGIN") {
            return Err("expected a JWK set, {\"keys\": [...]}; this is a key in PEM".to_owned());
        }
        let set = json::read(text, &LIMITS)
            .map_err(|flaw| format!("{} (line {}, column {})", flaw.message, flaw.line, flaw.column))?;
        let list = set.get("keys").and_then(Value::as_array).ok_or("expected a JWK set: {\"keys\": [...]}")?;
        let keys: Vec<Key> = list.iter().filter_map(|key| Key::read(key.as_object()?)).collect();
        match keys.is_empty() {
            true => Err("it holds no key that verifies: RSA from 2048 bits, P-256, P-384 or Ed25519".to_owned()),
            false => Ok(Self(keys)),
        }
    }

    /// Whether one of them may have signed what says that it was signed with this key.
    pub(super) fn know(&self, wanted: &Wanted) -> bool {
        self.fitting(wanted).next().is_some()
    }

    /// Whether one of them signed this.
    pub(super) fn verify(&self, shown: &Shown<'_>) -> bool {
        self.fitting(&shown.wanted).any(|key| is_signed(shown.message, shown.signature, &key.key, key.algorithm))
    }

    fn fitting<'k>(&'k self, wanted: &'k Wanted) -> impl Iterator<Item = &'k Key> {
        let named = |key: &&Key| wanted.key_id.as_ref().is_none_or(|id| key.id.as_ref() == Some(id));
        self.0.iter().filter(|key| key.algorithm == wanted.algorithm).filter(named)
    }
}

impl Key {
    fn read(key: &Map<String, Value>) -> Option<Self> {
        let text = |name: &str| key.get(name).and_then(Value::as_str);
        let bytes = |name: &str| BASE64URL_NOPAD.decode(text(name)?.as_bytes()).ok();
        // A set that shows a private key has given it away.
        if key.contains_key("d") || !is_for_signatures(key) {
            return None;
        }
        let (own, key_of) = match (text("kty")?, text("crv")) {
            ("RSA", _) => {
                let (n, e) = (bytes("n")?, bytes("e")?);
                // OpenID Connect has it so where a key says nothing.
                let own = algorithm(text("alg").unwrap_or("RS256"))?;
                let fits = own.family() == AlgorithmFamily::Rsa && MODULUS.contains(&n.len());
                (own, fits.then(|| DecodingKey::from_rsa_raw_components(&n, &e))?)
            }
            ("EC", Some("P-256")) => (Algorithm::ES256, on_curve(bytes("x")?, bytes("y")?, 32)?),
            ("EC", Some("P-384")) => (Algorithm::ES384, on_curve(bytes("x")?, bytes("y")?, 48)?),
            ("OKP", Some("Ed25519")) => {
                let x = bytes("x").filter(|x| x.len() == 32)?;
                (Algorithm::EdDSA, DecodingKey::from_ed_der(&x))
            }
            _ => return None,
        };
        let agrees = match key.get("alg") {
            None => true,
            Some(Value::String(said)) => algorithm(said) == Some(own),
            Some(_) => false,
        };
        let id = match key.get("kid") {
            None => None,
            Some(Value::String(id)) => Some(id.clone()),
            Some(_) => return None,
        };
        agrees.then_some(Self { id, algorithm: own, key: key_of })
    }
}

/// Whether a key may be used for signatures, by what it says of its use.
fn is_for_signatures(key: &Map<String, Value>) -> bool {
    let used = match key.get("use") {
        None => true,
        Some(said) => said == "sig",
    };
    let operations = match key.get("key_ops") {
        None => true,
        Some(said) => said.as_array().is_some_and(|said| said.iter().any(|operation| operation == "verify")),
    };
    used && operations
}

/// The uncompressed point of these coordinates.
fn on_curve(x: Vec<u8>, y: Vec<u8>, length: usize) -> Option<DecodingKey> {
    let point = [&[4], x.as_slice(), y.as_slice()].concat();
    (x.len() == length && y.len() == length).then(|| DecodingKey::from_ec_der(&point))
}
