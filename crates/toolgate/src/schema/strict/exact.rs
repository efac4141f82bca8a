//! Whether strict mode writes any two values alike, so that there would be no reading them back.
//!
//! It can only where a union has two branches with the same members: a `null` that says of one that a member is left out
//! may be a value in the other.

use std::collections::BTreeSet;

use super::{Form, Member, Members, PartId, Strict};

impl Strict {
    pub(super) fn is_exact(&self) -> bool {
        let unions = self.parts.iter().filter_map(|part| match &part.form {
            Form::Union(branches) => Some(branches),
            Form::Scalar { .. } | Form::Object(_) | Form::Array(_) | Form::Same(_) => None,
        });
        let mut compared = BTreeSet::new();
        unions.into_iter().all(|branches| {
            let leaves: BTreeSet<PartId> = branches.iter().flat_map(|branch| self.leaves(*branch)).collect();
            leaves.iter().all(|one| leaves.iter().all(|other| !self.leaf_blurs(*one, *other, &mut compared)))
        })
    }

    /// Whether a value of one part may be written like another value of the other.
    fn blurs(&self, one: PartId, other: PartId, compared: &mut BTreeSet<(PartId, PartId)>) -> bool {
        let (ones, others) = (self.leaves(one), self.leaves(other));
        ones.iter().any(|one| others.iter().any(|other| self.leaf_blurs(*one, *other, compared)))
    }

    fn leaf_blurs(&self, one: PartId, other: PartId, compared: &mut BTreeSet<(PartId, PartId)>) -> bool {
        if one == other || !compared.insert((one, other)) {
            return false;
        }
        match (self.form(one), self.form(other)) {
            (Some(Form::Array(one)), Some(Form::Array(other))) => self.blurs(*one, *other, compared),
            (Some(Form::Object(ones)), Some(Form::Object(others))) => {
                let Some(pairs) = paired(ones, others) else { return false };
                if pairs.iter().any(|(one, other)| self.are_apart(one, other)) {
                    return false;
                }
                pairs.iter().any(|(one, other)| {
                    let null_is_both =
                        !one.required && self.takes_null(other) || !other.required && self.takes_null(one);
                    null_is_both || self.blurs(one.part, other.part, compared)
                })
            }
            (
                Some(Form::Scalar { .. } | Form::Object(_) | Form::Array(_) | Form::Union(_) | Form::Same(_)) | None,
                _,
            ) => false,
        }
    }

    /// Whether no value fits both members, such as the tags of two branches.
    fn are_apart(&self, one: &Member, other: &Member) -> bool {
        let required = one.required && other.required;
        match (self.listed(one.part), self.listed(other.part)) {
            (Some(ones), Some(others)) => required && ones.is_disjoint(&others),
            (Some(_) | None, _) => false,
        }
    }

    /// Whether `null` may be a value of the member itself.
    fn takes_null(&self, member: &Member) -> bool {
        let null =
            |leaf: PartId| matches!(self.form(leaf), Some(Form::Scalar { types, .. }) if types.contains(&"null"));
        self.leaves(member.part).into_iter().any(null)
    }
}

/// The members of two objects by name, if both have the same ones.
fn paired<'a>(ones: &'a Members, others: &'a Members) -> Option<Vec<(&'a Member, &'a Member)>> {
    let find = |one: &'a Member| Some((one, others.named(&one.name)?));
    if ones.len() == others.len() { ones.iter().map(find).collect() } else { None }
}
