//! Whom a folder lists: as far as it does, in which tenants they are and which roles they have.

use std::collections::BTreeSet;

use super::Identity;
use super::tokens::State;

/// The tenants and the roles of the people that a folder lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct People {
    /// Their tenants; none where the folder lists nobody.
    pub(crate) tenants: BTreeSet<String>,
    /// Their roles.
    pub(crate) roles: BTreeSet<String>,
    /// Whether it is one person, so that there is nobody else who could approve.
    pub(crate) is_one: bool,
}

impl Identity {
    /// Whom the folder lists.
    pub(crate) fn people(&self) -> People {
        match self {
            Self::Local(local) => local.people(),
            // Issuers list nobody: what is known is the tenants that they may speak for.
            Self::Jwt(jwt) => {
                People { tenants: jwt.tenants().unwrap_or_default(), roles: BTreeSet::new(), is_one: false }
            }
            // A file that cannot be read lists nobody; what is wrong with it is told elsewhere.
            Self::Tokens(tokens) => tokens.all().map_or_else(
                |_| People::default(),
                |(all, now)| {
                    let good = all.into_iter().filter(|token| token.state_at(now) == State::Active);
                    good.map(|token| (token.tenant, token.roles)).collect()
                },
            ),
        }
    }
}

impl FromIterator<(String, BTreeSet<String>)> for People {
    fn from_iter<I: IntoIterator<Item = (String, BTreeSet<String>)>>(listed: I) -> Self {
        let mut people = Self::default();
        for (tenant, roles) in listed {
            people.tenants.insert(tenant);
            people.roles.extend(roles);
        }
        people
    }
}
