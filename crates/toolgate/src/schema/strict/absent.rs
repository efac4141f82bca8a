//! The inverse of strict mode: what was written `null` because it is left out, is left out again.

use serde_json::Value;

use super::{Absence, Form, PartId, Strict};
use crate::schema::Schema;
use crate::schema::graph::escaped;

impl Schema {
    /// Takes out of a value every `null` that stands where strict mode says that an optional member is left out, and
    /// returns their places. A `null` that the schema itself allows there is a value, and stays; of a schema that has no
    /// strict form all of them stay.
    pub fn absent_for_null(&self, value: &mut Value) -> Vec<String> {
        let Some(strict) = self.strict() else { return Vec::new() };
        let mut read = Read::default();
        Inverse { schema: self, strict }.part(Strict::ROOT, value, "", &mut read);
        read.absent
    }
}

struct Inverse<'s> {
    schema: &'s Schema,
    strict: &'s Strict,
}

/// What was found in a value.
#[derive(Default)]
struct Read {
    /// The places of the members that are left out.
    absent: Vec<String>,
    /// Members that strict mode would have had.
    missing: usize,
}

impl Inverse<'_> {
    fn part(&self, id: PartId, value: &mut Value, at: &str, read: &mut Read) {
        match (self.strict.form(id), value) {
            (Some(Form::Same(to)), value) => self.part(*to, value, at, read),
            (Some(Form::Union(branches)), value) => self.branch(branches, value, at, read),
            (Some(Form::Object(members)), Value::Object(given)) => {
                for member in members {
                    let place = || format!("{at}/{}", escaped(&member.name));
                    match given.get_mut(&member.name) {
                        None => read.missing += 1,
                        Some(Value::Null) if member.absence == Absence::Null => read.absent.push(place()),
                        Some(value) => self.part(member.part, value, &place(), read),
                    }
                }
                let is_absent = |name: &str, value: &Value| {
                    value.is_null()
                        && members.iter().any(|member| member.name == name && member.absence == Absence::Null)
                };
                given.retain(|name, value| !is_absent(name, value));
            }
            (Some(Form::Array(items)), Value::Array(given)) => {
                for (index, item) in given.iter_mut().enumerate() {
                    self.part(*items, item, &format!("{at}/{index}"), read);
                }
            }
            _ => {}
        }
    }

    /// Reads by the branch that fits; of several by the one whose members are all there, for strict mode leaves out none.
    fn branch(&self, branches: &[PartId], value: &mut Value, at: &str, read: &mut Read) {
        let mut best: Option<(Value, Read)> = None;
        for branch in branches.iter().filter(|branch| self.may_be(**branch, value)) {
            let (mut tried, mut found) = (value.clone(), Read::default());
            self.part(*branch, &mut tried, at, &mut found);
            let Some(part) = self.strict.part(*branch) else { continue };
            let cost = |read: &Read| (read.missing, read.absent.len());
            if self.schema.accepted(&[part.node], &tried)
                && best.as_ref().is_none_or(|(_, best)| cost(&found) < cost(best))
            {
                best = Some((tried, found));
            }
        }
        if let Some((tried, found)) = best {
            *value = tried;
            read.absent.extend(found.absent);
            read.missing += found.missing;
        }
    }

    /// Whether a value is of the kind of a branch. Within scalars there is nothing to be left out.
    fn may_be(&self, id: PartId, value: &Value) -> bool {
        self.strict.leaves(id).into_iter().any(|leaf| match (self.strict.form(leaf), value) {
            (Some(Form::Object(members)), Value::Object(given)) => {
                given.keys().all(|name| members.iter().any(|member| member.name == *name))
            }
            (Some(Form::Array(_)), Value::Array(_)) => true,
            _ => false,
        })
    }
}
