//! Values that fit no branch of `anyOf` or `oneOf`: which branch was meant.

use serde_json::Value;

use super::Schema;
use super::graph::NodeId;
use super::keywords::Applies;

/// The member that tells the branches of a union apart.
pub(super) struct Tag<'s> {
    pub(super) name: String,
    /// The values of the tag in each branch; `None` for a branch that is no object.
    branches: Vec<Option<Vec<&'s Value>>>,
}

impl Schema {
    /// The schemas of the branches of the union that failed at `at`. The engine names the union by its place in the
    /// document, but for one behind an anchor; the number of branches then tells.
    pub(super) fn branches(&self, at: &str, union: Applies, written_at: &str, count: usize) -> Option<Vec<NodeId>> {
        let spread = self.graph.spread(&self.graph.entries(at));
        let mut fitting: Vec<(bool, Vec<NodeId>)> = spread
            .into_iter()
            .filter_map(|id| {
                let place = &self.graph.node(id)?.at;
                Some((
                    written_at
                        .strip_prefix(place.as_str())
                        .is_some_and(|rest| !rest.trim_start_matches('/').contains('/')),
                    id,
                ))
            })
            .map(|(named, id)| (named, self.graph.branches(id, union)))
            .filter(|(_, branches)| branches.len() == count)
            .collect();
        if let Some(named) = fitting.iter().position(|(named, _)| *named) {
            return Some(fitting.swap_remove(named).1);
        }
        match fitting.as_slice() {
            [(_, branches)] => Some(branches.clone()),
            _ => None,
        }
    }

    /// The tag of a union: a member that every object branch fixes, each to values of its own.
    pub(super) fn tag(&self, branches: &[NodeId]) -> Option<Tag<'_>> {
        let objects: Vec<bool> = branches.iter().map(|branch| self.may_be_object(*branch)).collect();
        let first = branches.iter().zip(&objects).find(|(_, object)| **object).map(|(branch, _)| *branch)?;
        if objects.iter().filter(|object| **object).count() < 2 {
            return None;
        }
        self.graph.names(&self.graph.mandatory(&[first])).into_iter().find_map(|name| {
            let mut taken: Vec<&Value> = Vec::new();
            let mut values = Vec::with_capacity(branches.len());
            for (branch, object) in branches.iter().zip(&objects) {
                if !object {
                    values.push(None);
                    continue;
                }
                let fixed = self.fixed(*branch, &name)?;
                if fixed.iter().any(|value| taken.contains(value)) {
                    return None;
                }
                taken.extend(&fixed);
                values.push(Some(fixed));
            }
            Some(Tag { name, branches: values })
        })
    }

    /// The values that a branch allows for one of its members, if it lists them.
    fn fixed(&self, branch: NodeId, name: &str) -> Option<Vec<&Value>> {
        let member = self.graph.of_named_member(&self.graph.mandatory(&[branch]), name);
        let schemas = self.graph.mandatory(&member).into_iter().filter_map(|id| self.written(id));
        schemas
            .filter_map(|schema| match (schema.get("const"), schema.get("enum")) {
                (Some(value), _) => Some(vec![value]),
                (None, Some(Value::Array(values))) => Some(values.iter().collect()),
                _ => None,
            })
            .next()
    }

    fn may_be_object(&self, branch: NodeId) -> bool {
        let types = self.types(&[branch]);
        types.is_empty() || types.contains(&"object")
    }
}

impl<'s> Tag<'s> {
    /// The branch that this value of the tag belongs to.
    pub(super) fn branch(&self, value: &Value) -> Option<usize> {
        self.branches.iter().position(|values| values.as_ref().is_some_and(|values| values.contains(&value)))
    }

    /// All values of the tag.
    pub(super) fn values(&self) -> Vec<&'s Value> {
        self.branches.iter().flatten().flatten().copied().collect()
    }
}
