//! `toolgate token`: giving tokens out, and taking them back.

mod revoked;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use toolgate::clock::Millis;
use toolgate::fields::{nearest, parse_span};
use toolgate::session::Tags;

use super::failure::FailureCode;
use super::folder::Folder;
use super::tagged::{read_tag, unknown};
use super::{Exit, Failure, Output, find_folder, told};
use crate::config::{self, LoadError, Purpose};
use crate::identity::{self, Grant, Identity, NotChanged, ROLE, Scope, Tokens, is_role, parse_person};

/// Give out tokens, list them, take them back.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples, where [identity] says kind = \"tokens\":\n  toolgate token new shop --as alice@acme --role support --for 90d\n  toolgate token list shop"
)]
pub(super) struct Token {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Give out a token; it is shown this once
    New(New),
    /// List the tokens, without what their holders show
    #[command(after_help = "Example, where [identity] says kind = \"tokens\":\n  toolgate token list shop")]
    List {
        /// The gate folder
        dir: Option<PathBuf>,
        /// Print one line of JSON
        #[arg(long)]
        json: bool,
    },
    /// Take a token back; a running server goes by it at once
    #[command(
        override_usage = "toolgate token revoke [OPTIONS] [DIR] ID\n       toolgate token revoke [OPTIONS] [DIR] --subject SUBJECT",
        after_help = "Examples, where [identity] says kind = \"tokens\", and \"jwt\":\n  toolgate token revoke shop 0f1e2d3c4b5a\n  toolgate token revoke shop --subject u_1 --issuer https://id.example.com"
    )]
    Revoke {
        /// The gate folder
        dir: Option<String>,
        /// The id of the token
        id: Option<String>,
        /// Whose tokens of an issuer admit nobody from now on: the claim sub
        #[arg(long, value_name = "SUBJECT")]
        subject: Option<String>,
        /// The issuer, where the folder trusts several
        #[arg(long, value_name = "ISSUER", requires = "subject")]
        issuer: Option<String>,
        /// Print one line of JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
#[command(
    after_help = "Example, where [identity] says kind = \"tokens\":\n  toolgate token new shop --as alice@acme --role support --for 90d"
)]
struct New {
    /// The gate folder
    dir: Option<PathBuf>,
    /// Who it is given to
    #[arg(long = "as", value_name = "USER@TENANT", value_parser = read_person)]
    person: Person,
    /// A role that they have; may be said more than once
    #[arg(long = "role", value_name = "ROLE", value_parser = read_role)]
    roles: Vec<String>,
    /// What they may ask for: calls, approvals:approve, ledger, audit, and others
    #[arg(long, value_name = "SCOPES", value_delimiter = ',', default_value = "calls", value_parser = read_scope)]
    scope: Vec<Scope>,
    /// Keep them to the tools of this tag; may be said again
    #[arg(long = "tag", value_name = "TAG", value_parser = read_tag)]
    tags: Vec<Tags>,
    /// How long it lasts, such as 12h or 90d; until it is revoked if not said
    #[arg(long = "for", value_name = "SPAN", value_parser = read_span)]
    lasts: Option<Duration>,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Debug)]
struct Person {
    user: String,
    tenant: String,
}

impl Token {
    pub(super) fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        match self.action {
            Action::New(new) => new.run(output),
            Action::List { dir, json } => {
                let dir = find_folder(dir)?;
                match identity_of(&dir, output)? {
                    Identity::Jwt(jwt) => revoked::list(&jwt, &dir, json, output),
                    Identity::Local(_) | Identity::Tokens(_) => list(&dir, json, output),
                }
            }
            Action::Revoke { dir, id: None, subject: Some(subject), issuer, json } => {
                let dir = find_folder(dir.map(PathBuf::from))?;
                revoked::add(&revoked::jwt(&dir, output)?, issuer.as_deref(), &subject, &dir, json, output)
            }
            Action::Revoke { subject: Some(_), .. } => {
                Err(Failure::usage("a token has an id, and a person has a subject: say one of them"))
            }
            Action::Revoke { dir, id, json, subject: None, issuer: _ } => {
                let (Folder { path: dir, .. }, [id, _]) = Folder::of_words([dir, id])?;
                let id = id.ok_or_else(|| {
                    Failure::usage("the id of a token is missing")
                        .hint(format!("toolgate token list {}", dir.display()))
                })?;
                revoke(&dir, &id, json, output)
            }
        }
    }
}

impl New {
    fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let dir = find_folder(self.dir)?;
        let tokens = tokens(&dir, output)?;
        warn_of_unknown(&self.tags, &dir, output);
        let Person { user, tenant } = self.person;
        let grant = Grant {
            user,
            tenant,
            roles: BTreeSet::from_iter(self.roles),
            scopes: BTreeSet::from_iter(self.scope),
            tags: self.tags.into_iter().reduce(Tags::or),
            lasts: self.lasts,
        };
        let (shown, token) = tokens.issue(grant).map_err(|not| unchanged(not, &dir, output))?;
        if self.json {
            let mut all = described(&token);
            if let Value::Object(members) = &mut all {
                members.insert("token".into(), Value::from(shown));
            }
            output.json(&all);
        } else {
            output.line(&shown);
            output.note(&format!("this token is shown once; its id, by which it is taken back, is {}", token.id));
            output.next(&format!("toolgate token revoke {} {}", dir.display(), token.id));
        }
        Ok(Exit::Ok)
    }
}

fn list(dir: &Path, json: bool, output: &mut Output) -> Result<Exit, Failure> {
    let (all, now) = tokens(dir, output)?.all().map_err(|error| told(error, dir, output))?;
    match json {
        true => output.json(&all.iter().map(|token| stated(token, now)).collect::<Vec<Value>>()),
        false => all.iter().for_each(|token| output.line(&summary(token, now))),
    }
    Ok(Exit::Ok)
}

fn revoke(dir: &Path, id: &str, json: bool, output: &mut Output) -> Result<Exit, Failure> {
    let tokens = tokens(dir, output)?;
    let Some(token) = tokens.revoke(id).map_err(|not| unchanged(not, dir, output))? else {
        return Err(Failure::new(FailureCode::NoToken, "there is no token of this id; nothing was changed")
            .hint(format!("toolgate token list {}", dir.display())));
    };
    let now = token.revoked_at.unwrap_or(token.created_at);
    match json {
        true => output.json(&stated(&token, now)),
        false => output.line(&summary(&token, now)),
    }
    Ok(Exit::Ok)
}

/// The tokens of a folder whose people are known by tokens.
fn tokens(dir: &Path, output: &mut Output) -> Result<Tokens, Failure> {
    match identity_of(dir, output)? {
        Identity::Tokens(tokens) => Ok(tokens),
        Identity::Jwt(_) => {
            let message = "the tokens of this folder are given out by its issuers, and none by the folder";
            Err(Failure::new(FailureCode::PeopleListed, message)
                .hint("`toolgate token revoke --subject SUBJECT` takes back those of a person"))
        }
        Identity::Local(_) => {
            let message = "the people of this folder are listed in toolgate.toml, and have no tokens";
            Err(Failure::new(FailureCode::PeopleListed, message)
                .hint("set `kind = \"tokens\"` under [identity], in place of the list of users"))
        }
    }
}

fn identity_of(dir: &Path, output: &mut Output) -> Result<Identity, Failure> {
    config::identity(dir).map_err(|error| told(error, dir, output))
}

/// Why nothing was changed.
fn unchanged(not: NotChanged, dir: &Path, output: &mut Output) -> Failure {
    match not {
        NotChanged::Faults(findings) => told(LoadError::Findings(findings), dir, output),
        NotChanged::Unwritable { file, why } => {
            let message = format!("{} cannot be written, so nothing was changed: {why}", file.display());
            Failure::new(FailureCode::Unwritable, message)
        }
        NotChanged::NoRandom => {
            Failure::new(FailureCode::NoRandom, "the system gives no random numbers, so nothing was changed")
        }
    }
}

/// A tag that no tool has leaves nothing. It may be that of a tool to come, so that the token is given out all the same;
/// what else is wrong with the folder is not asked here.
fn warn_of_unknown(tags: &[Tags], dir: &Path, output: &mut Output) {
    if tags.is_empty() {
        return;
    }
    let unknown = config::load(dir, Purpose::Look).ok().and_then(|loaded| unknown(tags, loaded.gate.contracts()));
    if let Some(unknown) = unknown {
        output.warning(&format!("{}; {}", unknown.message(), unknown.advice()));
    }
}

/// The shape for scripts.
fn described(token: &identity::Token) -> Value {
    json!({
        "id": token.id,
        "principal": { "issuer": token.principal().issuer, "subject": token.user },
        "tenant": token.tenant,
        "roles": token.roles,
        "scopes": token.scopes.iter().map(|scope| scope.as_str()).collect::<Vec<_>>(),
        "tags": token.tags,
        "created_at": token.created_at.to_string(),
        "expires_at": token.expires_at.map(|moment| moment.to_string()),
    })
}

fn stated(token: &identity::Token, now: Millis) -> Value {
    let mut all = described(token);
    if let Value::Object(members) = &mut all {
        members.insert("revoked_at".into(), json!(token.revoked_at.map(|moment| moment.to_string())));
        members.insert("state".into(), Value::from(token.state_at(now).as_str()));
    }
    all
}

fn summary(token: &identity::Token, now: Millis) -> String {
    let joined = |words: Vec<&str>| if words.is_empty() { "none".to_owned() } else { words.join(",") };
    let scopes = joined(token.scopes.iter().map(|scope| scope.as_str()).collect());
    let roles = joined(token.roles.iter().map(String::as_str).collect());
    let until = token.expires_at.map_or_else(|| "revoked".to_owned(), |moment| moment.to_string());
    let tags = token.tags.as_ref().map(|tags| format!("  tags {}", joined(tags.iter().collect()))).unwrap_or_default();
    format!(
        "{}  {:7} {}@{}  scope {scopes}  roles {roles}{tags}  until {until}",
        token.id,
        token.state_at(now).as_str(),
        token.user,
        token.tenant
    )
}

fn read_person(text: &str) -> Result<Person, String> {
    let (user, tenant) = parse_person(text).ok_or("expected USER@TENANT, each of letters, digits and `_ . -`")?;
    Ok(Person { user: user.to_owned(), tenant: tenant.to_owned() })
}

fn read_role(text: &str) -> Result<String, String> {
    is_role(text).then(|| text.to_owned()).ok_or_else(|| ROLE.to_owned())
}

fn read_scope(text: &str) -> Result<Scope, String> {
    let names = || Scope::ALL.iter().map(|scope| scope.as_str());
    Scope::parse(text).ok_or_else(|| {
        nearest(text, names()).unwrap_or_else(|| format!("known: {}", names().collect::<Vec<_>>().join(", ")))
    })
}

fn read_span(text: &str) -> Result<Duration, String> {
    let span = parse_span(text).filter(|span| !span.is_zero());
    span.ok_or_else(|| "expected a span of time such as 30m, 12h or 90d".to_owned())
}
