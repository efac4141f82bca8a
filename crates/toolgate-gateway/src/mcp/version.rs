//! The revisions of the protocol. Up to 2025-11-25 client and server agree on one by `initialize`; from 2026-07-28 each
//! request stands alone and names its revision in `_meta`.

use serde_json::{Value, json};
use toolgate::json::{self, Limits};
use toolgate::wire::mcp::Implementation;

use super::message::{Broken, INVALID_PARAMS};

pub(crate) use toolgate::wire::mcp::Era;

/// Revisions that begin with `initialize`, the oldest first. 2025-03-26 is not among them: it makes batches mandatory,
/// which are refused here.
pub(crate) const HANDSHAKE: [&str; 3] = ["2024-11-05", "2025-06-18", NEWEST_HANDSHAKE];
/// What is offered to a client whose revision is not known.
pub(crate) const NEWEST_HANDSHAKE: &str = "2025-11-25";
/// Revisions whose requests stand alone.
pub(crate) const STATELESS: [&str; 1] = ["2026-07-28"];

/// MCP 2026-07-28, "Error codes": headers that do not say what the body says.
pub(crate) const HEADER_MISMATCH: i64 = -32020;
/// MCP 2026-07-28, "Error codes": a revision that the server does not speak.
pub(crate) const UNSUPPORTED_VERSION: i64 = -32022;

/// This program, as it names itself.
pub(crate) const SELF: Implementation<'static> =
    Implementation { name: "toolgate", version: env!("CARGO_PKG_VERSION") };

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// What a request that stands alone says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Envelope {
    /// The revision that it names, known or not.
    pub(crate) version: String,
}

/// The revision that answers an `initialize` which offers this one.
pub(crate) fn agreed(offered: &str) -> &'static str {
    HANDSHAKE.into_iter().find(|known| *known == offered).unwrap_or(NEWEST_HANDSHAKE)
}

impl Envelope {
    /// What the parameters say of their request; `None` where they name no revision, as before 2026-07-28. Parameters
    /// that cannot be read say nothing: whoever takes them in tells what is wrong with them.
    pub(crate) fn of(params: Option<&[u8]>, limits: &Limits) -> Result<Option<Self>, Broken> {
        let members = params.and_then(|params| json::members(params, limits).ok()).unwrap_or_default();
        let Some((_, meta)) = members.into_iter().find(|(name, _)| name == "_meta") else { return Ok(None) };
        let Ok(meta) = json::members(meta, limits) else {
            return Err(Broken::new(INVALID_PARAMS, "`_meta` is no strict JSON object"));
        };
        let member = |name: &str| meta.iter().find(|(known, _)| known == name).map(|(_, raw)| *raw);
        let Some(version) = member(VERSION) else { return Ok(None) };
        let Ok(Value::String(version)) = json::read(version, limits) else {
            return Err(Broken::new(INVALID_PARAMS, format!("`{VERSION}` of `_meta` must be text")));
        };
        if member(CAPABILITIES).is_none_or(|raw| json::members(raw, limits).is_err()) {
            return Err(missing());
        }
        Ok(Some(Self { version }))
    }

    /// The era of a request, if its revision is one that is spoken here.
    pub(crate) fn era(&self) -> Result<Era<'static>, Broken> {
        if STATELESS.contains(&self.version.as_str()) {
            return Ok(Era::Stateless(SELF));
        }
        Err(unsupported(&self.version))
    }
}

/// The answer to a request that should stand alone and does not say what it must.
pub(crate) fn missing() -> Broken {
    let message = format!("a request of 2026-07-28 names `{VERSION}` and the object `{CAPABILITIES}` in `_meta`");
    Broken::new(INVALID_PARAMS, message)
}

/// The answer to a revision that is not spoken here.
pub(crate) fn unsupported(version: &str) -> Broken {
    // The protocol wants it repeated. What does not look like a revision is not.
    let looks_like_one = version.len() <= 32 && version.bytes().all(|byte| byte.is_ascii_graphic());
    let requested = if looks_like_one { version } else { "" };
    let data = json!({ "supported": STATELESS, "requested": requested });
    let message = "this revision of the protocol is not spoken here; `data.supported` lists those that are";
    Broken { data: Some(Box::new(data)), ..Broken::new(UNSUPPORTED_VERSION, message) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]
mod tests {
    use super::*;

    fn envelope(params: &str) -> Result<Option<Envelope>, i64> {
        Envelope::of(Some(params.as_bytes()), &Limits::default()).map_err(|broken| broken.code)
    }

    #[test]
    fn a_revision_that_is_known_is_agreed_on_and_for_any_other_the_newest_of_its_kind_is_offered() {
        for known in HANDSHAKE {
            assert_eq!(agreed(known), known);
        }
        for other in ["2025-03-26", "2026-07-28", "2099-01-01", "", "zzz"] {
            assert_eq!(agreed(other), NEWEST_HANDSHAKE);
        }
    }

    #[test]
    fn a_request_stands_alone_if_it_names_its_revision_and_then_its_client_too() {
        let whole = format!(r#"{{"_meta":{{"{VERSION}":"2026-07-28","{CAPABILITIES}":{{}}}}}}"#);
        let found = envelope(&whole).unwrap().unwrap();
        assert_eq!(found.era(), Ok(Era::Stateless(SELF)));
        for without in ["{}", r#"{"_meta":{}}"#, r#"{"_meta":{"progressToken":1}}"#, "{"] {
            assert_eq!(envelope(without), Ok(None), "{without}");
        }
        for wrong in [
            whole.replace("\"2026-07-28\"", "20260728"),
            whole.replace("{}", "[]"),
            whole.replace(CAPABILITIES, "x"),
            whole.replace(CAPABILITIES, VERSION),
            r#"{"_meta":[]}"#.to_owned(),
        ] {
            assert_eq!(envelope(&wrong), Err(INVALID_PARAMS), "{wrong}");
        }
    }

    #[test]
    fn a_revision_that_is_not_spoken_is_told_which_are() {
        let broken = Envelope { version: "2099-01-01".into() }.era().unwrap_err();
        assert_eq!(broken.code, UNSUPPORTED_VERSION);
        let data = json!({"supported": ["2026-07-28"], "requested": "2099-01-01"});
        assert_eq!(broken.data.as_deref(), Some(&data));
        // `initialize` is the way to these.
        assert!(Envelope { version: "2025-11-25".into() }.era().is_err());
        let long = Envelope { version: "x".repeat(1000) }.era().unwrap_err();
        assert_eq!(long.data.as_deref(), Some(&json!({"supported": ["2026-07-28"], "requested": ""})));
    }
}
