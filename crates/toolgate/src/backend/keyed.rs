//! A backend of which somebody promises that it honours the key of an action.

use std::sync::Arc;

use super::{Backend, Dispatch, Looking, Lookup, Running};
use crate::contract::Contract;
use crate::schema::Problem;

/// The backend, with that promise.
pub(crate) struct Keyed(pub(crate) Arc<dyn Backend>);

impl Backend for Keyed {
    fn run(&self, dispatch: Dispatch) -> Running<'_> {
        self.0.run(dispatch)
    }

    fn look(&self, lookup: Lookup) -> Looking<'_> {
        self.0.look(lookup)
    }

    fn signals(&self) -> Option<Vec<&str>> {
        self.0.signals()
    }

    fn honours_key(&self) -> bool {
        true
    }

    fn upstream(&self) -> Option<&str> {
        self.0.upstream()
    }

    fn check(&self, contract: &Contract) -> Vec<Problem> {
        self.0.check(contract)
    }
}
