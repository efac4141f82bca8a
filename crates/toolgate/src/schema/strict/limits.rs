//! The bounds that OpenAI sets to a schema in strict mode ("Structured Outputs", "Objects have limitations on nesting depth
//! and size").

use std::collections::BTreeMap;

use super::{Form, PartId, Strict};

/// Objects and arrays inside one another.
const MOST_LEVELS: usize = 10;
/// Members of all objects together.
const MOST_MEMBERS: usize = 5_000;
/// Values of all enums together.
const MOST_VALUES: usize = 1_000;
/// Characters of all names and values together.
const MOST_CHARACTERS: usize = 120_000;
/// An enum with more values than this may have only so many characters.
const LARGE_ENUM: usize = 250;
const LARGE_ENUM_CHARACTERS: usize = 15_000;

impl Strict {
    pub(super) fn keeps_limits(&self) -> bool {
        let (mut members, mut values, mut characters) = (0, 0, 0);
        for part in &self.parts {
            match &part.form {
                Form::Object(own) => {
                    members += own.len();
                    characters += own.iter().map(|member| member.name.len()).sum::<usize>();
                }
                Form::Scalar { values: Some(own), .. } => {
                    let length: usize = own.iter().filter_map(|value| Some(value.as_str()?.len())).sum();
                    if own.len() > LARGE_ENUM && length > LARGE_ENUM_CHARACTERS {
                        return false;
                    }
                    // `null` may be added to it.
                    values += own.len() + 1;
                    characters += length;
                }
                Form::Scalar { values: None, .. } | Form::Array(_) | Form::Union(_) | Form::Same(_) => {}
            }
        }
        members <= MOST_MEMBERS
            && values <= MOST_VALUES
            && characters <= MOST_CHARACTERS
            && self.levels(Self::ROOT, &mut BTreeMap::new()) <= MOST_LEVELS
    }

    /// How many objects and arrays stand inside one another; a reference back up counts as none.
    fn levels(&self, id: PartId, known: &mut BTreeMap<PartId, usize>) -> usize {
        if let Some(levels) = known.get(&id) {
            return *levels;
        }
        known.insert(id, 0);
        let levels = match self.form(id) {
            Some(Form::Object(members)) => {
                1 + members.iter().map(|member| self.levels(member.part, known)).max().unwrap_or(0)
            }
            Some(Form::Array(items)) => 1 + self.levels(*items, known),
            Some(Form::Union(branches)) => branches.iter().map(|branch| self.levels(*branch, known)).max().unwrap_or(0),
            Some(Form::Same(to)) => self.levels(*to, known),
            Some(Form::Scalar { .. }) | None => 0,
        };
        known.insert(id, levels);
        levels
    }
}
