//! People of issuers, whose tokens admit nobody any more.

use std::path::Path;

use serde_json::{Value, json};
use toolgate::clock::Millis;
use toolgate::session::Principal;

use super::super::failure::FailureCode;
use super::super::{Exit, Failure, Output, told};
use super::{identity_of, unchanged};
use crate::identity::{Identity, Jwt};

/// The issuers of a folder that trusts some.
pub(super) fn jwt(dir: &Path, output: &mut Output) -> Result<Jwt, Failure> {
    match identity_of(dir, output)? {
        Identity::Jwt(jwt) => Ok(jwt),
        Identity::Local(_) => {
            let message = "the people of this folder are listed in toolgate.toml, and no issuer vouches for them";
            Err(Failure::new(FailureCode::PeopleListed, message).hint("take the person out of the list of users"))
        }
        Identity::Tokens(_) => Err(Failure::usage("--subject is for a folder whose tokens are signed by issuers")
            .hint(format!("say the id of a token; `toolgate token list {}` shows them", dir.display()))),
    }
}

pub(super) fn list(jwt: &Jwt, dir: &Path, json: bool, output: &mut Output) -> Result<Exit, Failure> {
    let all = jwt.revoked().map_err(|error| told(error, dir, output))?;
    match json {
        true => output.json(&all.iter().map(|(person, since)| stated(person, *since)).collect::<Vec<Value>>()),
        false => all.iter().for_each(|(person, since)| output.line(&summary(person, *since))),
    }
    Ok(Exit::Ok)
}

pub(super) fn add(
    jwt: &Jwt,
    issuer: Option<&str>,
    subject: &str,
    dir: &Path,
    json: bool,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let person = jwt.principal(issuer, subject)?;
    let since = jwt.revoke(person.clone()).map_err(|not| unchanged(not, dir, output))?;
    match json {
        true => output.json(&stated(&person, since)),
        false => output.line(&summary(&person, since)),
    }
    Ok(Exit::Ok)
}

/// The shape for scripts.
fn stated(person: &Principal, since: Millis) -> Value {
    json!({
        "principal": { "issuer": person.issuer, "subject": person.subject },
        "revoked_at": since.to_string(),
        "state": "revoked",
    })
}

fn summary(person: &Principal, since: Millis) -> String {
    format!("revoked  {}  of {}  since {since}", Value::from(person.subject.as_str()), person.issuer)
}
