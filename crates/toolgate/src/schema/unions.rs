//! Values that fit no branch of `anyOf` or `oneOf`: which branch was meant.

use std::collections::BTreeSet;

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind as Kind;
use serde_json::Value;

use super::Schema;
use super::graph::{NodeId, escaped};
use super::hints::listed;
use super::inert::visible;
use super::keywords::{Applies, type_of};
use super::problems::{Report, meant};
use super::words::{expected, limits};

/// Unions inside unions that are looked into.
const MAX_UNIONS: usize = 8;
/// Characters that tell what the variants of a union want.
const MAX_VARIANTS: usize = 200;

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
        self.graph.names(&self.graph.spread(&[first])).into_iter().find_map(|name| {
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

    /// The values that a branch allows for one of its members, if it lists them: by itself, or each of its own branches.
    fn fixed(&self, branch: NodeId, name: &str) -> Option<Vec<&Value>> {
        let mandatory = self.graph.mandatory(&[branch]);
        let member = self.graph.of_named_member(&mandatory, name);
        let schemas = self.graph.mandatory(&member).into_iter().filter_map(|id| self.written(id));
        let own = schemas
            .filter_map(|schema| match (schema.get("const"), schema.get("enum")) {
                (Some(value), _) => Some(vec![value]),
                (None, Some(Value::Array(values))) => Some(values.iter().collect()),
                _ => None,
            })
            .next();
        own.or_else(|| {
            let unions = [Applies::Any, Applies::One];
            let inner = mandatory.iter().flat_map(|id| unions.map(|union| self.graph.branches(*id, union)));
            let inner = inner.into_iter().find(|branches| !branches.is_empty())?;
            let each: Option<Vec<Vec<&Value>>> = inner.iter().map(|branch| self.fixed(*branch, name)).collect();
            Some(each?.concat())
        })
    }

    /// The members that a branch must have, by name.
    fn needed(&self, branch: NodeId) -> Vec<String> {
        let mut names = self.graph.names(&self.graph.mandatory(&[branch]));
        names.retain(|name| self.graph.requires(&self.document, branch, name));
        let own = self.written(branch).and_then(|schema| schema.get("required")).and_then(Value::as_array);
        for name in own.into_iter().flatten().filter_map(Value::as_str) {
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
        names
    }

    /// What to send so that one branch alone fits, where each needs members of its own.
    pub(super) fn told_apart(&self, branches: &[NodeId]) -> Option<String> {
        let needed: Vec<String> = branches.iter().map(|branch| self.needed(*branch).join(", ")).collect();
        let distinct: BTreeSet<&String> = needed.iter().collect();
        if needed.iter().any(String::is_empty) || distinct.len() < needed.len() {
            return None;
        }
        let list: Vec<String> = needed.iter().map(|names| format!("{{{}}}", visible(names))).collect();
        let list = list.join(" or ");
        (list.len() <= MAX_VARIANTS).then(|| format!("send the members of one alone: {list}"))
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

impl Report<'_> {
    /// The branch that was meant, if that can be told; else one problem for all of them.
    pub(super) fn union(
        &mut self,
        error: &ValidationError<'_>,
        context: &[Vec<ValidationError<'static>>],
        kind: Applies,
        unions: usize,
    ) {
        let at = error.instance_path().as_str();
        let value: &Value = error.instance();
        let branches = self.schema.branches(at, kind, error.schema_path().as_str(), context.len());
        let tag = branches.as_ref().and_then(|branches| self.schema.tag(branches));
        if let (Some(tag), Value::Object(members)) = (tag, value) {
            let place = format!("{at}/{}", escaped(&tag.name));
            let sent = members.get(&tag.name);
            if let Some(errors) = sent.and_then(|sent| tag.branch(sent)).and_then(|index| context.get(index)) {
                return self.explain_all(errors, unions);
            }
            let values = tag.values();
            let list = listed(values.iter().copied()).map(|list| format!(": one of: {list}")).unwrap_or_default();
            let (message, hint) = match sent {
                Some(sent) => (format!("tells the variants apart{list}"), meant(&values, sent)),
                None => (format!("missing member that tells the variants apart{list}"), None),
            };
            return self.add(&place, "discriminator", message, hint);
        }
        let mistyped = |errors: &Vec<ValidationError<'_>>| {
            errors.iter().find_map(|e| match e.kind() {
                Kind::Type { kind } if e.instance_path().as_str() == at => Some(expected(kind)),
                _ => None,
            })
        };
        let fitting: Vec<usize> = context
            .iter()
            .enumerate()
            .filter(|(_, errors)| mistyped(errors).is_none())
            .map(|(index, _)| index)
            .collect();
        let nearest = match (fitting.as_slice(), &branches) {
            ([only], _) => Some(*only),
            (several, Some(branches)) => self.nearest(value, branches, context, several),
            _ => None,
        };
        if let Some(errors) = nearest.and_then(|index| context.get(index)).filter(|_| unions < MAX_UNIONS) {
            return self.explain_all(errors, unions);
        }
        let code = if kind == Applies::Any { "any_of" } else { "one_of" };
        let mut wanted: Vec<String> = context.iter().filter_map(mistyped).collect();
        if wanted.len() == context.len() {
            let mut seen = BTreeSet::new();
            wanted.retain(|kind| seen.insert(kind.clone()));
            let message = format!("expected {}, got {}", wanted.join(" or "), type_of(value));
            let hint = self.schema.retyped(at, value);
            return self.add(at, code, message, hint);
        }
        let hint = branches.and_then(|branches| self.variants(&branches, context));
        self.add(at, code, format!("fits none of {} variants", context.len()), hint);
    }

    fn explain_all(&mut self, errors: &[ValidationError<'static>], unions: usize) {
        for error in errors {
            self.explain(error, unions + 1);
        }
    }

    /// The branch that an object is nearest to, if one is nearer than all others: by the members that it does not know,
    /// then by how much is wrong with it.
    fn nearest(
        &self,
        value: &Value,
        branches: &[NodeId],
        context: &[Vec<ValidationError<'static>>],
        fitting: &[usize],
    ) -> Option<usize> {
        let members = value.as_object()?;
        let distance = |index: usize| {
            let names = self.schema.graph.names(&self.schema.graph.spread(&[*branches.get(index)?]));
            let strange = members.keys().filter(|name| !names.contains(name)).count();
            Some((strange, context.get(index)?.len()))
        };
        let mut by_distance: Vec<((usize, usize), usize)> =
            fitting.iter().filter_map(|index| Some((distance(*index)?, *index))).collect();
        by_distance.sort_unstable();
        match by_distance.as_slice() {
            [(nearest, index), (next, _), ..] if nearest < next => Some(*index),
            _ => None,
        }
    }

    /// The branches by the members or values that they want.
    fn variants(&self, branches: &[NodeId], context: &[Vec<ValidationError<'static>>]) -> Option<String> {
        let mut words = Vec::new();
        for (branch, errors) in branches.iter().zip(context) {
            let needed = self.schema.needed(*branch);
            words.push(match (needed.as_slice(), errors.as_slice()) {
                ([], [only]) => limits(only.kind()).1,
                ([], _) => return None,
                (needed, _) => format!("{{{}}}", visible(&needed.join(", "))),
            });
        }
        let list = words.join(" or ");
        (list.len() <= MAX_VARIANTS).then(|| format!("variants: {list}"))
    }
}
