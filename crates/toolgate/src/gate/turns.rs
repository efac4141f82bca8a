//! The calls of one turn, each with its place among the others before any of them starts.

use super::Gate;
use crate::session::Session;
use crate::stage::admit::Named;
use crate::turn::{Seat, Turn};
use crate::wire::{Broken, Proposed};

/// A call of a turn, or what cannot be one.
pub(super) enum Taken {
    Call(Box<Named>, Seat),
    Broken(Broken),
}

impl Gate {
    /// The calls of a turn with their seats. Before any of them starts it is known which there are.
    pub(super) fn taken(&self, calls: Vec<Proposed>, session: &Session) -> Vec<Taken> {
        let named = calls.into_iter().map(|proposed| match proposed {
            Proposed::Call(call) => Ok(Box::new(self.line.admit.named(call, session))),
            Proposed::Broken(broken) => Err(broken),
        });
        let named: Vec<_> = named.collect();
        // What is not there for this session runs for it neither.
        let is_there = |tool: &&String| self.line.catalogue.find(tool, session).is_some();
        let tool = |named: &Named| Some(&named.call().tool).filter(is_there).cloned();
        let tools = named.iter().map(|named| named.as_ref().ok().and_then(|named| tool(named)));
        let seats = Turn::seats(tools.collect());
        let taken = named.into_iter().zip(seats).map(|(named, seat)| match named {
            Ok(named) => Taken::Call(named, seat),
            Err(broken) => Taken::Broken(broken),
        });
        taken.collect()
    }
}
