//! What `[identity]` says of issuers. INVARIANT (nothing to switch off): there are no keys for algorithms, for TLS or for
//! claims that are not checked, and a key that is not known is a fault.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use toolgate::fields::{Fields, Problems};
use ureq::http::Uri;

use super::super::{TENANT, is_tenant};
use super::issuer::{Issuer, Tenants};
use super::source::Source;
use crate::cli::Say;
use crate::here::is_here;

/// What the table says.
pub(super) struct Said {
    pub(super) issuers: Vec<Issuer>,
    /// The address that the gate is known by, as it is said or as an audience says it.
    pub(super) resource: Option<String>,
    pub(super) development: bool,
    pub(super) revocations: String,
}

const REVOCATIONS: &str = "state/revoked.toml";
const LEEWAY: Duration = Duration::from_secs(30);
const MOST_LEEWAY: Duration = Duration::from_secs(300);
const AN_ADDRESS: &str = "expected an https:// address, without a name, a query or a # in it";

/// Reads the rest of the table `[identity]` of the folder `dir`.
pub(super) fn table(dir: &Path, mut fields: Fields<'_>, say: &Say, problems: &mut Problems) -> Said {
    let development = fields.flag("development", problems);
    let revocations = fields.text("revocations", problems).unwrap_or(REVOCATIONS).to_owned();
    if revocations.is_empty() || revocations.ends_with('/') {
        problems.note("/identity/revocations", "format", "expected the path of a file");
    }
    let resource = fields.text("resource", problems).map(str::to_owned);
    if let Some(resource) = &resource {
        check_address("/identity/resource", resource, development, problems);
    }
    let issuers = read_issuers(dir, &mut fields, development, say, problems);
    fields.end(problems);
    let audiences = issuers.iter().flat_map(|issuer| &issuer.audience);
    let as_address = || audiences.into_iter().find(|audience| address(audience, development).is_ok()).cloned();
    Said { resource: resource.or_else(as_address), issuers, development, revocations }
}

fn read_issuers(
    dir: &Path,
    fields: &mut Fields<'_>,
    development: bool,
    say: &Say,
    problems: &mut Problems,
) -> Vec<Issuer> {
    let at = fields.place("issuer");
    let list = match fields.raw("issuer") {
        Some(Value::Array(list)) => list.as_slice(),
        Some(_) => {
            problems.note(at.as_str(), "type", "expected [[identity.issuer]] tables");
            &[]
        }
        None => {
            problems.note(at.as_str(), "required", "nobody could ask: there is no [[identity.issuer]]");
            &[]
        }
    };
    if list.is_empty() && fields.has("issuer") {
        problems.note(at.as_str(), "min_items", "expected at least one [[identity.issuer]]");
    }
    let mut issuers: Vec<Issuer> = Vec::new();
    for (index, value) in list.iter().enumerate() {
        let place = format!("{at}/{index}");
        let Value::Object(table) = value else {
            problems.note(place, "type", "expected a table");
            continue;
        };
        let Some(issuer) = read_issuer(dir, Fields::of(table, place.as_str()), development, say, problems) else {
            continue;
        };
        if issuers.iter().any(|known| known.name == issuer.name) {
            problems.note(place.as_str(), "unique", "this issuer is listed twice");
        }
        if list.len() > 1 && issuer.tenants.listed.is_empty() {
            let message = "where there are several issuers, each says for which `tenants` it speaks: else one could speak \
                           for those of another";
            problems.note(format!("{place}/tenants"), "unbound", message);
        }
        issuers.push(issuer);
    }
    issuers
}

fn read_issuer(
    dir: &Path,
    mut fields: Fields<'_>,
    development: bool,
    say: &Say,
    problems: &mut Problems,
) -> Option<Issuer> {
    let name = fields.needed("issuer", problems);
    if let Some(name) = name {
        check_address(&fields.place("issuer"), name, development, problems);
    }
    let audience = read_audience(&mut fields, problems);
    let keys = fields.needed("jwks", problems);
    let keys = keys.zip(name).and_then(|(keys, name)| {
        let at = fields.place("jwks");
        read_source(dir, keys, name, development, &at, say, problems)
    });
    let tenants = read_tenants(&mut fields, problems);
    let roles = read_place(&mut fields, "roles", problems);
    let scopes = read_place(&mut fields, "scopes", problems);
    let leeway = fields.span("leeway", LEEWAY, problems);
    if leeway > MOST_LEEWAY {
        problems.note(fields.place("leeway"), "maximum", "at most 5m: it lengthens the life of every token");
    }
    fields.end(problems);
    Some(Issuer { name: name?.to_owned(), audience, tenants, roles, scopes, leeway, keys: keys? })
}

/// A text or a list of texts, and one at least: without it a token for any other program would do.
fn read_audience(fields: &mut Fields<'_>, problems: &mut Problems) -> Vec<String> {
    let at = fields.place("audience");
    let audience = match fields.raw("audience") {
        None => {
            problems.note(at, "required", "`audience` is missing: a token is taken where it was made for this gate");
            return Vec::new();
        }
        Some(Value::String(text)) => vec![text.clone()],
        Some(_) => fields.texts("audience", problems),
    };
    if audience.is_empty() || audience.iter().any(String::is_empty) {
        problems.note(at, "min_length", "expected a text, or a list of texts, that is not empty");
    }
    audience
}

fn read_source(
    dir: &Path,
    keys: &str,
    issuer: &str,
    development: bool,
    at: &str,
    say: &Say,
    problems: &mut Problems,
) -> Option<Source> {
    if !keys.contains("://") {
        if keys.is_empty() || keys.ends_with('/') {
            problems.note(at, "format", "expected an https:// address or the path of a file");
        }
        return Some(Source::file(dir, keys, Arc::clone(say)));
    }
    match query_address(keys, development) {
        // INVARIANT (marked): whom keys vouch for that came without TLS has an issuer that says so in every record.
        Ok(uri) if uri.scheme_str() == Some("https") || issuer.starts_with("http://") => {
            Some(Source::url(issuer, uri, Arc::clone(say)))
        }
        Ok(_) => {
            problems.note(at, "format", "keys come without TLS only for an issuer that is on this machine itself");
            None
        }
        Err(why) => {
            problems.note(at, "format", why);
            None
        }
    }
}

fn read_tenants(fields: &mut Fields<'_>, problems: &mut Problems) -> Tenants {
    let claim = read_place(fields, "tenant", problems);
    let listed: BTreeSet<String> = fields.texts("tenants", problems).into_iter().collect();
    if let Some(Value::Array(said)) = fields.raw("tenants") {
        for (index, _) in said.iter().enumerate().filter(|(_, said)| said.as_str().is_some_and(|said| !is_tenant(said)))
        {
            problems.note(format!("{}/{index}", fields.place("tenants")), "pattern", TENANT);
        }
        if said.is_empty() {
            problems.note(fields.place("tenants"), "min_items", "expected at least one tenant");
        }
    }
    if claim.is_none() && !fields.has("tenant") {
        match listed.len() {
            0 if !fields.has("tenants") => {
                let message = "for which tenant? say `tenants`, or `tenant`: the claim that tells it";
                let hint = "tenant = \"/tenant\", or tenants = [\"acme\"]".to_owned();
                problems.hinted(fields.place("tenant"), "required", message, Some(hint));
            }
            0 | 1 => {}
            _ => {
                let message = "several tenants are listed, and no claim tells which one a token is for";
                problems.hinted(fields.place("tenants"), "ambiguous", message, Some("tenant = \"/tenant\"".into()));
            }
        }
    }
    Tenants { claim, listed }
}

/// A place in the claims.
fn read_place(fields: &mut Fields<'_>, key: &'static str, problems: &mut Problems) -> Option<String> {
    let text = fields.text(key, problems)?;
    if !text.starts_with('/') || text.len() < 2 {
        let hint = format!("{key} = \"/{}\"; a / within a name is written ~1", text.trim_matches('/'));
        problems.hinted(fields.place(key), "pattern", "expected the place of a claim such as /roles", Some(hint));
    }
    Some(text.to_owned())
}

fn check_address(at: &str, text: &str, development: bool, problems: &mut Problems) {
    if let Err(why) = address(text, development) {
        problems.note(at, "format", why);
    }
}

/// An address of which nothing is left open: with TLS, or of this machine where it is said that this is meant.
fn address(text: &str, development: bool) -> Result<Uri, &'static str> {
    if text.contains('?') { Err(AN_ADDRESS) } else { query_address(text, development) }
}

fn query_address(text: &str, development: bool) -> Result<Uri, &'static str> {
    let fits = text.bytes().all(|byte| byte.is_ascii_graphic()) && !text.contains(['#', '"', '\\']);
    let uri = text.parse::<Uri>().ok().filter(|_| fits).ok_or(AN_ADDRESS)?;
    let host = uri.host().filter(|host| !host.is_empty()).ok_or(AN_ADDRESS)?;
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err(AN_ADDRESS);
    }
    if text.starts_with("https://") {
        return Ok(uri);
    }
    match (text.starts_with("http://"), is_here(host), development) {
        (false, _, _) => Err(AN_ADDRESS),
        (true, false, _) => Err("expected https://: whoever is on the way could be the issuer without TLS"),
        (true, true, false) => {
            Err("expected https://; an issuer on this machine is taken without TLS where `development = true` is said")
        }
        (true, true, true) => Ok(uri),
    }
}
