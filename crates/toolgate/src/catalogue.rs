//! What a session may see. One question, asked wherever a tool is listed, found or named: to whoever may not see a tool,
//! it is not there.

use std::sync::Arc;

use crate::contract::{Contract, Registered, Registry};
use crate::policy::Policies;
use crate::session::Session;

/// The tools of a gate, as each session sees them. What the gate looks up for itself it takes from the registry.
pub(crate) struct Catalogue {
    registry: Arc<Registry>,
    policies: Arc<Policies>,
}

impl Catalogue {
    pub(crate) fn new(registry: Arc<Registry>, policies: Arc<Policies>) -> Self {
        Self { registry, policies }
    }

    /// The tool of this name, or of this short form of a name, if the session may see it.
    pub(crate) fn find(&self, name: &str, session: &Session) -> Option<&Arc<Registered>> {
        self.registry.called(name).filter(|tool| self.shows(&tool.contract, session))
    }

    /// The tools that the session may see, by name.
    pub(crate) fn of<'a, 's>(
        &'a self,
        session: &'s Session,
    ) -> impl Iterator<Item = &'a Contract> + Clone + use<'a, 's> {
        let contracts = self.registry.iter().map(|tool| &*tool.contract);
        contracts.filter(|contract| self.shows(contract, session))
    }

    /// INVARIANT (one question): within the tags that bound the session, and some call of it could be permitted.
    fn shows(&self, contract: &Contract, session: &Session) -> bool {
        session.is_open_to(&contract.tags) && self.policies.visible(&contract.name, session)
    }
}
