//! People that the folder itself lists: `[identity] kind = "local"`.

use std::collections::BTreeSet;

use serde_json::Value;
use toolgate::fields::{Fields, Problems, nearest};
use toolgate::session::{Principal, Session, Standing};

use super::{NAME, People, TENANT, Unlisted, is_name, is_tenant};

/// The people that a folder lists.
#[derive(Clone, Debug, Default)]
pub struct Local {
    users: Vec<User>,
    default: Option<usize>,
}

/// A person in a tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
struct User {
    name: String,
    tenant: String,
    roles: BTreeSet<String>,
}

/// Who vouches for the people of a folder.
const ISSUER: &str = "local";

impl Local {
    /// Reads the rest of the table `[identity]`.
    pub(super) fn read(mut fields: Fields<'_>, problems: &mut Problems) -> Self {
        let users = read_users(&mut fields, problems);
        let default = fields.text("default", problems).map(str::to_owned);
        fields.end(problems);
        let mut local = Self { users, default: None };
        if let Some(named) = default {
            match local.find(&named) {
                Ok(index) => local.default = Some(index),
                Err(unlisted) => problems.hinted("/identity/default", "enum", unlisted.message, unlisted.hint),
            }
        }
        local
    }

    /// The tenant, where all people are of the same.
    pub(super) fn only_tenant(&self) -> Option<&str> {
        let first = self.users.first()?.tenant.as_str();
        self.users.iter().all(|user| user.tenant == first).then_some(first)
    }

    /// Whom the folder lists.
    pub(super) fn people(&self) -> People {
        let people: People = self.users.iter().map(|user| (user.tenant.clone(), user.roles.clone())).collect();
        People { is_one: self.users.len() == 1, ..people }
    }

    /// The tenants of all people.
    pub(super) fn tenants(&self) -> impl Iterator<Item = &str> {
        self.users.iter().map(|user| user.tenant.as_str())
    }

    /// The session of `USER@TENANT`, or of the default user.
    pub fn session(&self, named: Option<&str>) -> Result<Session, Unlisted> {
        let index = match (named, self.default) {
            (Some(named), _) => self.find(named)?,
            (None, Some(default)) => default,
            (None, None) => {
                let hint = "say --as USER@TENANT, or set `default` under [identity]";
                return Err(Unlisted::new("nobody is asking: the folder names no default user").hint(hint));
            }
        };
        let user = self.users.get(index).ok_or_else(|| Unlisted::new("there is no such user"))?;
        let session = Session::new(Principal::new(ISSUER, user.name.as_str()), user.tenant.as_str());
        Ok(user.roles.iter().fold(session, Session::role))
    }

    fn find(&self, named: &str) -> Result<usize, Unlisted> {
        let found = self.users.iter().position(|user| user.full_name() == named);
        found.ok_or_else(|| {
            let names: Vec<String> = self.users.iter().map(User::full_name).collect();
            let near = nearest(named, names.iter().map(String::as_str));
            let hint = near.unwrap_or_else(|| format!("listed: {}", names.join(", ")));
            Unlisted::new("the folder lists no such user; it takes USER@TENANT").hint(hint)
        })
    }
}

impl Standing for Local {
    fn roles(&self, principal: &Principal, tenant: &str) -> Option<BTreeSet<String>> {
        let known = self.users.iter().find(|user| user.name == principal.subject && user.tenant == tenant);
        // A person that the folder no longer lists has no standing any more.
        (principal.issuer == ISSUER).then(|| known.map(|user| user.roles.clone()).unwrap_or_default())
    }
}

impl User {
    fn full_name(&self) -> String {
        format!("{}@{}", self.name, self.tenant)
    }
}

fn read_users(fields: &mut Fields<'_>, problems: &mut Problems) -> Vec<User> {
    let at = fields.place("user");
    let list = match fields.raw("user") {
        Some(Value::Array(list)) => list.as_slice(),
        Some(_) => {
            problems.note(at.clone(), "type", "expected [[identity.user]] tables");
            &[]
        }
        None => &[],
    };
    let mut users: Vec<User> = Vec::new();
    for (index, value) in list.iter().enumerate() {
        let place = format!("{at}/{index}");
        let Value::Object(table) = value else {
            problems.note(place, "type", "expected a table");
            continue;
        };
        let mut fields = Fields::of(table, place.clone());
        let name = fields.needed("name", problems).map(str::to_owned);
        let tenant = fields.needed("tenant", problems).map(str::to_owned);
        let roles: BTreeSet<String> = fields.texts("roles", problems).into_iter().collect();
        if roles.iter().any(|role| role.trim().is_empty()) {
            problems.note(format!("{place}/roles"), "min_length", "a role has a name");
        }
        fields.end(problems);
        // `USER@TENANT` must be read in one way only, and shown as it is.
        if name.as_ref().is_some_and(|name| !is_name(name)) {
            problems.note(format!("{place}/name"), "pattern", NAME);
        }
        if tenant.as_ref().is_some_and(|tenant| !is_tenant(tenant)) {
            problems.note(format!("{place}/tenant"), "pattern", TENANT);
        }
        if let (Some(name), Some(tenant)) = (name, tenant) {
            let user = User { name, tenant, roles };
            if users.iter().any(|known| known.full_name() == user.full_name()) {
                problems.note(place, "unique", "this user is listed twice");
            }
            users.push(user);
        }
    }
    users
}
