//! A token as it is shown, read strictly before anything in it is believed.

use data_encoding::BASE64URL_NOPAD;
use jsonwebtoken::Algorithm;
use serde_json::{Map, Value};
use toolgate::json::{self, Limits};

/// The parts of a token. Nothing of it has been verified.
#[derive(Debug)]
pub(super) struct Shown<'t> {
    /// What is signed.
    pub(super) message: &'t [u8],
    pub(super) signature: &'t str,
    pub(super) wanted: Wanted,
    /// INVARIANT (no duplicates): each claim is there once, at every depth.
    pub(super) claims: Map<String, Value>,
}

/// The key that a token says it was signed with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) algorithm: Algorithm,
    pub(super) key_id: Option<String>,
}

/// The longest token that is looked at, in bytes.
pub(super) const LONGEST: usize = 16 * 1024;
const HEADER: Limits = Limits { size: 4096, depth: 8, members: 64 };
const CLAIMS: Limits = Limits { size: LONGEST, depth: 16, members: 1000 };
/// The kinds of token that are access tokens, or say nothing of it: a token that was made for something else, such as a
/// logout, opens no door.
const KINDS: [&str; 3] = ["jwt", "at+jwt", "application/at+jwt"];

impl<'t> Shown<'t> {
    /// Reads `HEADER.CLAIMS.SIGNATURE`.
    pub(super) fn read(text: &'t str) -> Option<Self> {
        if text.len() > LONGEST {
            return None;
        }
        let (message, signature) = text.rsplit_once('.')?;
        let (header, claims) = message.split_once('.')?;
        // The alphabet has no dot, so that there is no fourth part. No second spelling of one text is taken either.
        let signed = BASE64URL_NOPAD.decode(signature.as_bytes()).ok()?;
        let wanted = Wanted::read(&members(header, &HEADER)?)?;
        let claims = members(claims, &CLAIMS)?;
        (!signed.is_empty()).then_some(Self { message: message.as_bytes(), signature, wanted, claims })
    }
}

impl Wanted {
    /// INVARIANT (never a key): keys and addresses of keys that stand in a header are not looked at.
    fn read(header: &Map<String, Value>) -> Option<Self> {
        let text = |name: &str| match header.get(name) {
            None => Some(None),
            Some(Value::String(text)) => Some(Some(text.as_str())),
            Some(_) => None,
        };
        let algorithm = algorithm(text("alg")??)?;
        let is_known = text("typ")?.is_none_or(|kind| KINDS.iter().any(|known| known.eq_ignore_ascii_case(kind)));
        // What is critical must be understood, and nothing is.
        let understood = !header.contains_key("crit");
        let key_id = text("kid")?.map(str::to_owned);
        (is_known && understood).then_some(Self { algorithm, key_id })
    }
}

/// The algorithm of this name. INVARIANT (two keys): those that sign with what verifies, and the one that signs with
/// nothing, have no name here.
pub(super) fn algorithm(name: &str) -> Option<Algorithm> {
    Some(match name {
        "RS256" => Algorithm::RS256,
        "RS384" => Algorithm::RS384,
        "RS512" => Algorithm::RS512,
        "PS256" => Algorithm::PS256,
        "PS384" => Algorithm::PS384,
        "PS512" => Algorithm::PS512,
        "ES256" => Algorithm::ES256,
        "ES384" => Algorithm::ES384,
        // RFC 9864 names the curve.
        "EdDSA" | "Ed25519" => Algorithm::EdDSA,
        _ => return None,
    })
}

fn members(part: &str, limits: &Limits) -> Option<Map<String, Value>> {
    let text = BASE64URL_NOPAD.decode(part.as_bytes()).ok()?;
    match json::read(&text, limits).ok()? {
        Value::Object(members) => Some(members),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => None,
    }
}
