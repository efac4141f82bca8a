//! The inverse of strict mode: what was written `null` because it is left out, is left out again.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{Form, Member, Members, PartId, Strict};
use crate::json::canonical;
use crate::schema::graph::escaped;
use crate::schema::{Schema, type_of};

/// Places and forms looked at in one value, those of each branch that is tried counted anew. Beyond it nothing is taken
/// out, and the call is judged as it stands.
const MOST_STEPS: usize = 400_000;

/// Listed values that are compared in one step.
const VALUES_IN_A_STEP: usize = 16;

/// What the checks of parts of a value may cost together, as the cost of a schema counts it: less than a third of what
/// one check of the whole may.
const MOST_CHECKED: u64 = 30_000_000;

impl Schema {
    /// Takes out of a value every `null` that stands where strict mode says that an optional member is left out, and
    /// returns their places. A `null` that the schema itself allows there is a value, and stays. Of a schema that has
    /// no strict form all of them stay, and of a value that would take too long to read.
    pub(crate) fn absent_for_null(&self, value: &mut Value) -> Vec<String> {
        let Some(strict) = self.strict().filter(|_| self.affords(value)) else { return Vec::new() };
        let mut inverse = Inverse { schema: self, strict, steps: 0, checked: 0 };
        let (mut tried, mut read) = (value.clone(), Read::default());
        if inverse.part(Strict::ROOT, &mut tried, "", &mut read).is_err() {
            return Vec::new();
        }
        *value = tried;
        read.absent
    }
}

struct Inverse<'s> {
    schema: &'s Schema,
    strict: &'s Strict,
    steps: usize,
    checked: u64,
}

/// The value takes more steps than may be made.
struct TooMany;

/// What was found in a value.
#[derive(Default)]
struct Read {
    /// The places of the members that are left out.
    absent: Vec<String>,
    /// Members that strict mode would have had.
    missing: usize,
}

impl Inverse<'_> {
    fn part(&mut self, id: PartId, value: &mut Value, at: &str, read: &mut Read) -> Result<(), TooMany> {
        self.step(1)?;
        let strict = self.strict;
        match (strict.form(id), value) {
            (Some(Form::Same(to)), value) => self.part(*to, value, at, read),
            (Some(Form::Union(branches)), value) => self.branch(branches, value, at, read),
            (Some(Form::Object(members)), Value::Object(given)) => {
                read.missing += members.len();
                let mut absent = BTreeSet::new();
                for (name, value) in given.iter_mut() {
                    self.step(1)?;
                    let Some(member) = members.named(name) else { continue };
                    read.missing -= 1;
                    let place = format!("{at}/{}", escaped(name));
                    if value.is_null() && !member.required {
                        read.absent.push(place);
                        absent.insert(member.name.as_str());
                    } else {
                        self.part(member.part, value, &place, read)?;
                    }
                }
                given.retain(|name, _| !absent.contains(name.as_str()));
                Ok(())
            }
            (Some(Form::Array(items)), Value::Array(given)) => {
                for (index, item) in given.iter_mut().enumerate() {
                    self.part(*items, item, &format!("{at}/{index}"), read)?;
                }
                Ok(())
            }
            // A value of another kind is refused later; in a scalar there is nothing to be left out.
            (Some(Form::Object(_) | Form::Array(_) | Form::Scalar { .. }) | None, _) => Ok(()),
        }
    }

    /// Reads by the one branch that a value can be of; of several by the one that then fits and whose members are all
    /// there, for strict mode leaves out none.
    fn branch(&mut self, branches: &[PartId], value: &mut Value, at: &str, read: &mut Read) -> Result<(), TooMany> {
        let mut possible = Vec::new();
        for branch in branches {
            if self.may_be(*branch, value)? {
                possible.push(*branch);
            }
        }
        if let [only] = possible.as_slice() {
            return self.part(*only, value, at, read);
        }
        let mut best: Option<(Value, Read)> = None;
        for branch in possible {
            let (mut tried, mut found) = (value.clone(), Read::default());
            self.part(branch, &mut tried, at, &mut found)?;
            let Some(part) = self.strict.part(branch) else { continue };
            self.check(&tried)?;
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
        Ok(())
    }

    /// Whether a value can be of a branch, as far as it and its members tell by themselves. Within scalars there is
    /// nothing to be left out.
    fn may_be(&mut self, id: PartId, value: &Value) -> Result<bool, TooMany> {
        let strict = self.strict;
        for leaf in strict.leaves(id) {
            self.step(1)?;
            let can = match (strict.form(leaf), value) {
                (Some(Form::Object(members)), Value::Object(given)) => self.may_have(members, given)?,
                (Some(Form::Array(_)), Value::Array(_)) => true,
                // Another kind; references and unions are no leaves.
                (Some(Form::Object(_) | Form::Array(_)), _)
                | (Some(Form::Scalar { .. } | Form::Union(_) | Form::Same(_)) | None, _) => false,
            };
            if can {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn may_have(&mut self, members: &Members, given: &Map<String, Value>) -> Result<bool, TooMany> {
        for (name, value) in given {
            self.step(1)?;
            let Some(member) = members.named(name) else { return Ok(false) };
            if !self.may_hold(member, value)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a member can have a value, as far as a scalar's types and values tell, such as those of a tag.
    fn may_hold(&mut self, member: &Member, value: &Value) -> Result<bool, TooMany> {
        match self.strict.form(member.part) {
            _ if value.is_null() && !member.required => Ok(true),
            Some(Form::Scalar { values: Some(values), .. }) => {
                self.step(values.len() / VALUES_IN_A_STEP)?;
                Ok(values.iter().any(|listed| is_same(listed, value)))
            }
            Some(Form::Scalar { types, values: None }) => {
                let number = value.is_number() && ["integer", "number"].iter().any(|kind| types.contains(kind));
                Ok(number || types.contains(&type_of(value)))
            }
            Some(Form::Object(_) | Form::Array(_) | Form::Union(_) | Form::Same(_)) | None => Ok(true),
        }
    }

    fn step(&mut self, steps: usize) -> Result<(), TooMany> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps > MOST_STEPS { Err(TooMany) } else { Ok(()) }
    }

    /// Counts a check of a value against a branch, and its copy.
    fn check(&mut self, value: &Value) -> Result<(), TooMany> {
        self.checked = self.checked.saturating_add(self.schema.steps_of(value));
        if self.checked > MOST_CHECKED { Err(TooMany) } else { Ok(()) }
    }
}

/// Whether two scalars are one value: `1` and `1.0` are.
fn is_same(one: &Value, other: &Value) -> bool {
    let numbers = one.is_number() && other.is_number();
    one == other || numbers && one.as_f64() == other.as_f64() && canonical(one) == canonical(other)
}
