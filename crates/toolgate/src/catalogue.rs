//! What a session may see. One question, asked wherever a tool is listed, found or named: to whoever may not see a tool,
//! it is not there.

use std::sync::Arc;

use crate::contract::{Contract, Registered, Registry};
use crate::modes::Modes;
use crate::policy::Policies;
use crate::session::Session;

/// The tools of a gate, as each session sees them. What the gate looks up for itself it takes from the registry.
pub(crate) struct Catalogue {
    registry: Arc<Registry>,
    policies: Arc<Policies>,
    modes: Modes,
}

impl Catalogue {
    pub(crate) fn new(registry: Arc<Registry>, policies: Arc<Policies>, modes: Modes) -> Self {
        Self { registry, policies, modes }
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

    /// The tools whose policies are only observed, by name.
    pub(crate) fn observed(&self) -> impl Iterator<Item = &Contract> {
        let contracts = self.registry.iter().map(|tool| &*tool.contract);
        contracts.filter(|contract| self.modes.observe(contract))
    }

    /// INVARIANT (one question): within the tags that bound the session, and some call of it could be permitted. Nothing
    /// could be learned of a tool that nobody sees, so one whose policies are only observed is there whatever they say.
    fn shows(&self, contract: &Contract, session: &Session) -> bool {
        let could_be = || self.modes.observe(contract) || self.policies.visible(&contract.name, session);
        session.is_open_to(&contract.tags) && could_be()
    }
}
