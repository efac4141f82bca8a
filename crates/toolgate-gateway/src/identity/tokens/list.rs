//! What the file says: `[[token]]` tables, read strictly and written back whole.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;

use serde_json::{Map, Value};
use toolgate::clock::Millis;
use toolgate::fields::{Fields, Problems, nearest};
use toolgate::json::Digest;
use toolgate::session::{BadTag, Tags};

use super::super::file::{read_text, unreadable};
use super::super::{NAME, Scope, TENANT, is_name, is_tenant};
use super::{ID_LENGTH, Token};
use crate::config::{Finding, Located};

/// All tokens, in the order in which they were given out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct List {
    tokens: Vec<Token>,
    /// INVARIANT (one token an id): where each stands.
    places: HashMap<String, usize>,
}

const HEAD: &str = "\
# The tokens of this gate. Of each only a digest is kept; `toolgate token new|list|revoke` writes this file.
";

impl List {
    /// The list of the file at `path`, which findings call `name`. No file is an empty list.
    pub(super) fn load(name: &Path, path: &Path) -> Result<Self, Vec<Finding>> {
        match File::open(path).and_then(|file| read_text(&file)) {
            Ok(text) => Self::parse(name, &text),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(vec![unreadable(name, &error)]),
        }
    }

    /// The list that a text tells.
    pub(super) fn parse(name: &Path, text: &str) -> Result<Self, Vec<Finding>> {
        let finding = |code: String, offset, message| Finding::at_offset(name, code, text, offset, message).unshown();
        let located = Located::parse(text).map_err(|faults| -> Vec<Finding> {
            faults.into_iter().map(|fault| finding("not_toml".to_owned(), fault.offset, fault.message)).collect()
        })?;
        let mut problems = Problems::default();
        let list = Self::read(&located.table, &mut problems);
        if problems.0.is_empty() {
            return Ok(list);
        }
        let told = problems.0.into_iter().map(|problem| {
            let message = format!("{}: {}", problem.at.trim_start_matches('/').replace('/', "."), problem.message);
            finding(problem.code, located.offset(&problem.at), message).hint(problem.hint)
        });
        Err(told.collect())
    }

    fn read(table: &Map<String, Value>, problems: &mut Problems) -> Self {
        let mut top = Fields::of(table, "");
        let mut list = Self::default();
        match top.raw("token") {
            None => {}
            Some(Value::Array(items)) => {
                for (index, item) in items.iter().enumerate() {
                    let at = format!("/token/{index}");
                    match item {
                        Value::Object(fields) => {
                            if let Some(token) = read_token(fields, &at, problems) {
                                if list.find(&token.id).is_some() {
                                    problems.note(format!("{at}/id"), "unique", "two tokens have this id");
                                }
                                list.add(token);
                            }
                        }
                        _ => problems.note(at, "type", "expected a table"),
                    }
                }
            }
            Some(_) => problems.note("/token", "type", "expected [[token]] tables"),
        }
        top.end(problems);
        list
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Token> {
        self.tokens.iter()
    }

    pub(super) fn find(&self, id: &str) -> Option<&Token> {
        self.tokens.get(*self.places.get(id)?)
    }

    pub(super) fn find_mut(&mut self, id: &str) -> Option<&mut Token> {
        self.tokens.get_mut(*self.places.get(id)?)
    }

    pub(super) fn add(&mut self, token: Token) {
        self.places.insert(token.id.clone(), self.tokens.len());
        self.tokens.push(token);
    }

    /// The text of the file.
    pub(super) fn text(&self) -> String {
        let mut text = HEAD.to_owned();
        for token in &self.tokens {
            let roles: Vec<String> = token.roles.iter().map(|role| quoted(role)).collect();
            let scopes: Vec<String> = token.scopes.iter().map(|scope| quoted(scope.as_str())).collect();
            let mut line = |key: &str, value: &str| text.push_str(&format!("{key} = {value}\n"));
            line("\n[[token]]\nid", &quoted(&token.id));
            line("user", &quoted(&token.user));
            line("tenant", &quoted(&token.tenant));
            line("roles", &format!("[{}]", roles.join(", ")));
            line("scopes", &format!("[{}]", scopes.join(", ")));
            if let Some(tags) = &token.tags {
                line("tags", &format!("[{}]", tags.iter().map(quoted).collect::<Vec<_>>().join(", ")));
            }
            line("sha256", &quoted(&token.digest.hex()));
            line("created_at", &quoted(&token.created_at.to_string()));
            for (key, moment) in [("expires_at", token.expires_at), ("revoked_at", token.revoked_at)] {
                if let Some(moment) = moment {
                    line(key, &quoted(&moment.to_string()));
                }
            }
        }
        text
    }
}

fn read_token(table: &Map<String, Value>, at: &str, problems: &mut Problems) -> Option<Token> {
    let mut fields = Fields::of(table, at);
    let id = fields.needed("id", problems).map(str::to_owned);
    let user = fields.needed("user", problems).map(str::to_owned);
    let tenant = fields.needed("tenant", problems).map(str::to_owned);
    let roles: BTreeSet<String> = fields.texts("roles", problems).into_iter().collect();
    let scopes = fields.texts("scopes", problems);
    let tags = fields.raw("tags").map(|tags| read_tags(tags, &mut fields, problems));
    let digest = fields.needed("sha256", problems).and_then(|text| {
        let digest = text.parse::<Digest>();
        if digest.is_err() {
            problems.note(fields.place("sha256"), "format", "expected 64 hexadecimal digits in lower case");
        }
        digest.ok()
    });
    let created_at = fields.needed("created_at", problems).map(str::to_owned);
    let ends =
        [fields.text("expires_at", problems), fields.text("revoked_at", problems)].map(|end| end.map(str::to_owned));
    let [expires_at, revoked_at] = ends;
    let moment = |key: &str, text: &str, problems: &mut Problems| {
        text.parse::<Millis>().map_err(|error| problems.note(format!("{at}/{key}"), "format", error.to_string())).ok()
    };
    let created_at = created_at.and_then(|text| moment("created_at", &text, problems));
    let expires_at = expires_at.map(|text| moment("expires_at", &text, problems));
    let revoked_at = revoked_at.map(|text| moment("revoked_at", &text, problems));
    fields.end(problems);
    if user.as_ref().is_some_and(|user| !is_name(user)) {
        problems.note(format!("{at}/user"), "pattern", NAME);
    }
    if tenant.as_ref().is_some_and(|tenant| !is_tenant(tenant)) {
        problems.note(format!("{at}/tenant"), "pattern", TENANT);
    }
    if id.as_ref().is_some_and(|id| !is_id(id)) {
        problems.note(format!("{at}/id"), "pattern", format!("expected {ID_LENGTH} hexadecimal digits in lower case"));
    }
    if roles.iter().any(|role| !is_role(role)) {
        problems.note(format!("{at}/roles"), "pattern", ROLE);
    }
    let scopes = scopes.iter().filter_map(|name| read_scope(name, &format!("{at}/scopes"), problems)).collect();
    Some(Token {
        id: id?,
        user: user?,
        tenant: tenant?,
        roles,
        scopes,
        // What was said and could not be read is no token without a bound, or without an end.
        tags: tags.map_or(Some(None), |read| read.map(Some))?,
        digest: digest?,
        created_at: created_at?,
        expires_at: expires_at.map_or(Some(None), |read| read.map(Some))?,
        revoked_at: revoked_at.map_or(Some(None), |read| read.map(Some))?,
    })
}

/// The tags that a token says. INVARIANT (no empty bound): a list without one is a fault, and never all tools.
fn read_tags(said: &Value, fields: &mut Fields<'_>, problems: &mut Problems) -> Option<Tags> {
    let at = fields.place("tags");
    if said.as_array().is_some_and(Vec::is_empty) {
        problems.note(at.as_str(), "min_items", "expected at least one tag; without this key there is no bound");
    }
    let tags: Result<Vec<Tags>, BadTag> = fields.texts("tags", problems).into_iter().map(Tags::of).collect();
    let tags = tags.map_err(|bad| problems.note(at, "pattern", bad.to_string())).ok()?;
    tags.into_iter().reduce(Tags::or)
}

fn read_scope(name: &str, at: &str, problems: &mut Problems) -> Option<Scope> {
    let scope = Scope::parse(name);
    if scope.is_none() {
        let names = || Scope::ALL.iter().map(|scope| scope.as_str());
        let known = || format!("known: {}", names().collect::<Vec<_>>().join(", "));
        let hint = nearest(name, names()).unwrap_or_else(known);
        problems.hinted(at, "enum", "there is no such scope", Some(hint));
    }
    scope
}

/// What a role of a token is made of.
pub(crate) const ROLE: &str = "a role is 1 to 128 characters that can be seen";

/// Whether a role can be written and shown as it is.
pub(crate) fn is_role(role: &str) -> bool {
    (1..=128).contains(&role.len()) && !role.trim().is_empty() && !role.chars().any(char::is_control)
}

fn is_id(id: &str) -> bool {
    id.len() == ID_LENGTH && id.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// A text in the quotes of TOML, which are those of JSON for everything that can stand here.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}
