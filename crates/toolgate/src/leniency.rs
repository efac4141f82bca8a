//! Leniencies: what a contract lets a model write otherwise than its schema wants, each by name.
//!
//! A call is read strictly first. Only where that fails, a leniency that the contract names for this place (or the
//! schema of the place itself, by `x-lenient`) may read the one value there otherwise, and only into one that the
//! schema accepts. A value that is right is never touched, one that could be meant in two ways is refused, and each use
//! is evidence: in the trace, the record, the approval, and in what admission answers.
//!
//! | name | what is taken |
//! |---|---|
//! | `integer_as_string` | `"25"`, where 25 is accepted |
//! | `boolean_as_string` | `"true"` and `"false"`, where a boolean is accepted |
//! | `json_as_string` | the text of an object or array, where one is wanted and no string is |
//! | `null_as_absent` | `null` for an optional member, which is then left out |
//! | `trim` | white space at the ends of a string, where the string fits without it |
//! | `code_fence` | the whole argument text in one Markdown fence |
//! | `trailing_token` | special tokens of a model after the whole object |
//! | `near_tool_name` | the name of a tool, nearly |

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::nearness::nearest;
use crate::schema::shown_place;

pub(crate) mod text;

/// Something that may be written otherwise, if a contract says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Leniency {
    /// The JSON spelling of an integer, as a string.
    IntegerAsString,
    /// `true` or `false`, as a string.
    BooleanAsString,
    /// The JSON text of an array or object, as a string.
    JsonAsString,
    /// A Markdown fence around the whole argument text.
    CodeFence,
    /// `null` for an optional member that takes none.
    NullAsAbsent,
    /// White space at the ends of a string.
    Trim,
    /// A tool's name, nearly.
    NearToolName,
    /// Special tokens after the whole object.
    TrailingToken,
}

/// A set of leniencies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Leniencies(u8);

/// The leniencies that hold for the calls of one contract.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Granted {
    /// For the call as a whole and for every place of its arguments. INVARIANT (named twice): for a write only those
    /// that `lenient_for_write` names too.
    pub(crate) everywhere: Leniencies,
    /// Those that hold at the places whose schema names them (see `named twice`).
    pub(crate) where_said: Leniencies,
}

/// What a contract says that makes arguments other than they were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Allowance {
    /// One of its leniencies.
    Leniency(Leniency),
    /// `fill_defaults`: an absent optional member has the default of its schema.
    FillDefaults,
}

/// One place at which arguments are other than they were sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Used {
    /// What allows it.
    #[serde(rename = "leniency")]
    pub by: Allowance,
    /// The place in the arguments, a JSON pointer, whole; `""` for the call as a whole.
    pub at: String,
}

/// A name that no leniency has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no leniency `{0}`")]
pub struct NoLeniency(String);

impl Leniency {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::IntegerAsString,
        Self::BooleanAsString,
        Self::JsonAsString,
        Self::CodeFence,
        Self::NullAsAbsent,
        Self::Trim,
        Self::NearToolName,
        Self::TrailingToken,
    ];

    /// The name, as a contract has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::IntegerAsString => "integer_as_string",
            Self::BooleanAsString => "boolean_as_string",
            Self::JsonAsString => "json_as_string",
            Self::CodeFence => "code_fence",
            Self::NullAsAbsent => "null_as_absent",
            Self::Trim => "trim",
            Self::NearToolName => "near_tool_name",
            Self::TrailingToken => "trailing_token",
        }
    }

    /// The leniency of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|leniency| leniency.as_str() == name)
    }

    /// What a name that is none was meant to be, or which there are.
    pub(crate) fn instead_of(name: &str) -> String {
        let names = Self::ALL.map(Self::as_str);
        nearest(name, names.into_iter()).unwrap_or_else(|| format!("known: {}", names.join(", ")))
    }

    /// Whether it is about a call as a whole, so that no member can name it.
    pub(crate) fn is_of_the_call(self) -> bool {
        match self {
            Self::CodeFence | Self::NearToolName | Self::TrailingToken => true,
            Self::IntegerAsString | Self::BooleanAsString | Self::JsonAsString | Self::NullAsAbsent | Self::Trim => {
                false
            }
        }
    }

    fn bit(self) -> u8 {
        match self {
            Self::IntegerAsString => 1,
            Self::BooleanAsString => 1 << 1,
            Self::JsonAsString => 1 << 2,
            Self::CodeFence => 1 << 3,
            Self::NullAsAbsent => 1 << 4,
            Self::Trim => 1 << 5,
            Self::NearToolName => 1 << 6,
            Self::TrailingToken => 1 << 7,
        }
    }
}

impl Leniencies {
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn has(self, leniency: Leniency) -> bool {
        self.0 & leniency.bit() != 0
    }

    pub(crate) fn insert(&mut self, leniency: Leniency) {
        self.0 |= leniency.bit();
    }

    pub(crate) fn or(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Those that are in both sets.
    pub(crate) fn and(self, others: Self) -> Self {
        Self(self.0 & others.0)
    }
}

impl FromIterator<Leniency> for Leniencies {
    fn from_iter<I: IntoIterator<Item = Leniency>>(leniencies: I) -> Self {
        leniencies.into_iter().fold(Self::default(), |set, leniency| Self(set.0 | leniency.bit()))
    }
}

impl Granted {
    /// Whether every call is taken as it stands.
    pub(crate) fn is_empty(self) -> bool {
        self.everywhere.is_empty() && self.where_said.is_empty()
    }
}

impl Allowance {
    const FILL_DEFAULTS: &str = "fill_defaults";

    /// Its name, as a contract has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Leniency(leniency) => leniency.as_str(),
            Self::FillDefaults => Self::FILL_DEFAULTS,
        }
    }
}

impl TryFrom<String> for Allowance {
    type Error = NoLeniency;

    fn try_from(name: String) -> Result<Self, NoLeniency> {
        match Leniency::parse(&name) {
            Some(leniency) => Ok(Self::Leniency(leniency)),
            None if name == Self::FILL_DEFAULTS => Ok(Self::FillDefaults),
            None => Err(NoLeniency(name)),
        }
    }
}

impl From<Allowance> for String {
    fn from(allowance: Allowance) -> Self {
        allowance.as_str().to_owned()
    }
}

impl Used {
    /// One use of a leniency at a place.
    pub(crate) fn at(leniency: Leniency, at: impl Into<String>) -> Self {
        Self { by: Allowance::Leniency(leniency), at: at.into() }
    }

    /// One use of a leniency on the call as a whole.
    pub(crate) fn of_the_call(leniency: Leniency) -> Self {
        Self::at(leniency, "")
    }
}

/// In words for people: `integer_as_string at /amount`. A long place is cut, and what is not seen is escaped.
impl fmt::Display for Used {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.by.as_str())?;
        if self.at.is_empty() { Ok(()) } else { write!(f, " at {}", shown_place(&self.at)) }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn every_leniency_has_one_name_and_one_place_in_a_set() {
        let all: Leniencies = Leniency::ALL.into_iter().collect();
        assert_eq!(all.0, u8::MAX);
        for leniency in Leniency::ALL {
            assert_eq!(Leniency::parse(leniency.as_str()), Some(leniency));
            let alone: Leniencies = [leniency].into_iter().collect();
            assert!(Leniency::ALL.iter().all(|other| alone.has(*other) == (*other == leniency)));
        }
        assert_eq!(Leniency::parse("fill_defaults"), None, "it is a key of its own");
        assert_eq!(Leniency::instead_of("integer_as_strng"), "did you mean integer_as_string?");
    }

    #[test]
    fn a_use_is_kept_as_its_name_and_its_place() {
        let used = Used::at(Leniency::Trim, "/city");
        let kept = serde_json::to_string(&used).unwrap();
        assert_eq!(kept, r#"{"leniency":"trim","at":"/city"}"#);
        let filled = Used { by: Allowance::FillDefaults, at: "/limit".into() };
        for used in [used, filled] {
            let kept = serde_json::to_value(&used).unwrap();
            assert_eq!(serde_json::from_value::<Used>(kept).unwrap(), used);
        }
        assert_eq!(Used::of_the_call(Leniency::CodeFence).to_string(), "code_fence");
        let long = Used::at(Leniency::Trim, format!("/{}\u{1b}", "n".repeat(1000)));
        assert_eq!(long.to_string(), format!("trim at /{}…", "n".repeat(64)), "cut where it is shown alone");
    }
}
