//! `[[limits]]`: how much of something calls may take in a window of time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Map, Value};

use crate::fields::{Fields, Problems, parse_span};
use crate::json::canonical;
use crate::schema::Schema;
use crate::template::at_pointer;

/// A bound on what calls take. Its windows are fixed: they are aligned to 1970-01-01T00:00:00Z.
#[derive(Debug)]
pub(crate) struct Limit {
    pub(crate) counts: Counts,
    pub(crate) max: u64,
    /// Roles that raise the maximum.
    pub(crate) roles: BTreeMap<String, u64>,
    /// How long a window is.
    pub(crate) per: Duration,
    pub(crate) scope: LimitScope,
}

/// What of the calls is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Counts {
    /// The calls themselves.
    Calls,
    /// The argument at this JSON pointer. INVARIANT (nothing is given back): its schema allows whole numbers from 0 alone.
    Sum(String),
}

/// Whose calls are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LimitScope {
    Run,
    User,
    Tenant,
    /// Everybody's, of all tenants.
    Tool,
}

/// What a store can count to.
const LARGEST: u64 = i64::MAX.unsigned_abs();

impl Limit {
    /// The limits of a contract, in their order. What they sum stands in `input`, where that can be read.
    pub(super) fn read_all(top: &mut Fields<'_>, input: Option<&Schema>, problems: &mut Problems) -> Vec<Self> {
        let at = top.place("limits");
        match top.raw("limits") {
            None => Vec::new(),
            Some(Value::Array(items)) => items
                .iter()
                .enumerate()
                .filter_map(|(index, item)| {
                    let place = format!("{at}/{index}");
                    let Value::Object(table) = item else {
                        problems.note(place, "type", "expected a table");
                        return None;
                    };
                    Self::read(Fields::of(table, place), input, problems)
                })
                .collect(),
            Some(_) => {
                problems.hinted(at, "type", "expected a list of tables", Some("write [[limits]]".into()));
                Vec::new()
            }
        }
    }

    fn read(mut table: Fields<'_>, input: Option<&Schema>, problems: &mut Problems) -> Option<Self> {
        let scopes = [
            ("run", LimitScope::Run),
            ("user", LimitScope::User),
            ("tenant", LimitScope::Tenant),
            ("tool", LimitScope::Tool),
        ];
        let calls = most(&mut table, "calls", problems);
        let sum = table.text("sum", problems).map(str::to_owned);
        if let Some((sum, input)) = sum.as_deref().zip(input) {
            check_sum(sum, table.place("sum"), input, problems);
        }
        let max = most(&mut table, "max", problems);
        let (counts, max) = match (table.has("calls"), table.has("sum")) {
            (true, true) => {
                let message = "a limit counts `calls` or the `sum` of an argument: one of the two";
                problems.note(table.place("sum"), "limit", message);
                (None, None)
            }
            (false, false) => {
                let message = "`calls` is missing, or `sum` with a `max`: say what is counted";
                problems.note(table.place("calls"), "required", message);
                (None, None)
            }
            (true, false) => {
                if table.has("max") {
                    let message = "`max` goes with `sum`: `calls` says the maximum itself";
                    problems.note(table.place("max"), "limit", message);
                }
                (Some(Counts::Calls), calls)
            }
            (false, true) => {
                if !table.has("max") {
                    problems.note(table.place("max"), "required", "`max` is missing");
                }
                (sum.map(Counts::Sum), max)
            }
        };
        let roles = read_roles(&mut table, max, problems);
        let per = read_per(&mut table, problems);
        let scope = table.word("scope", &scopes, LimitScope::User, problems);
        table.end(problems);
        Some(Self { counts: counts?, max: max?, roles, per: per?, scope })
    }

    /// How much whoever has these roles may take in a window: the most that one of them allows.
    pub(crate) fn max_for(&self, roles: &BTreeSet<String>) -> u64 {
        let raised = roles.iter().filter_map(|role| self.roles.get(role)).copied();
        raised.max().unwrap_or(0).max(self.max)
    }

    /// What a call takes. An absent argument takes nothing; what cannot be counted takes more than there is.
    pub(crate) fn amount(&self, arguments: &Map<String, Value>) -> u64 {
        match &self.counts {
            Counts::Calls => 1,
            Counts::Sum(pointer) => match at_pointer(arguments, pointer) {
                None => 0,
                // The canonical form of a whole number is its digits, also of one that came as 5.0.
                Some(value) => canonical(value).parse().unwrap_or(u64::MAX),
            },
        }
    }
}

/// What is summed must be a number that only grows the sum, whatever a call says.
fn check_sum(pointer: &str, at: String, input: &Schema, problems: &mut Problems) {
    if let Some((code, message, hint)) = unsummable(pointer, input) {
        problems.hinted(at, code, message, hint);
    }
}

/// Why the argument at a pointer cannot be summed, if it cannot: the code of the problem, what is wrong, and what to do.
pub(crate) fn unsummable(pointer: &str, input: &Schema) -> Option<(&'static str, &'static str, Option<String>)> {
    if !pointer.starts_with('/') {
        return Some(("format", "expected a JSON pointer such as /amount_cents", None));
    }
    if input.locate(pointer).is_empty() {
        let known: Vec<String> = input.members().iter().map(|member| format!("/{member}")).collect();
        return Some(("limit", "it names no argument", Some(format!("known: {}", known.join(", ")))));
    }
    if !is_countable(&input.certain(pointer)) {
        let message = "only whole numbers from 0 can be summed, and the schema allows others here";
        let hint = "declare it with type = \"integer\" and minimum = 0 or more".to_owned();
        return Some(("limit", message, Some(hint)));
    }
    None
}

/// Whether schemas that all hold of a value leave only whole numbers from 0.
fn is_countable(schemas: &[&Value]) -> bool {
    let whole = schemas.iter().any(|schema| schema.get("type").is_some_and(|kind| kind == "integer"));
    let from =
        |schema: &Value, bound: &str| schema.get(bound).and_then(Value::as_f64).is_some_and(|least| least >= 0.0);
    whole && schemas.iter().any(|schema| from(schema, "minimum") || from(schema, "exclusiveMinimum"))
}

/// A maximum: a whole number from 1.
fn most(table: &mut Fields<'_>, key: &'static str, problems: &mut Problems) -> Option<u64> {
    let at = table.place(key);
    maximum(table.raw(key)?, at, problems)
}

fn maximum(value: &Value, at: String, problems: &mut Problems) -> Option<u64> {
    let found = value.as_u64().filter(|most| (1..=LARGEST).contains(most));
    if found.is_none() {
        let code = match (value.as_i64(), value.as_u64()) {
            (Some(..1), _) => "minimum",
            (_, Some(_)) => "maximum",
            (Some(_) | None, None) => "type",
        };
        problems.note(at, code, format!("expected a whole number from 1 to {LARGEST}"));
    }
    found
}

fn read_roles(table: &mut Fields<'_>, max: Option<u64>, problems: &mut Problems) -> BTreeMap<String, u64> {
    let mut roles = BTreeMap::new();
    let Some(named) = table.table("roles", problems) else { return roles };
    for (role, value) in named.entries() {
        let at = named.place(role);
        let Some(raised) = maximum(value, at.clone(), problems) else { continue };
        if max.is_some_and(|max| raised <= max) {
            let message = "a role raises the maximum, and this is no more than everybody has";
            problems.hinted(at, "minimum", message, Some("name a larger one, or leave the role out".into()));
        }
        roles.insert(role.clone(), raised);
    }
    roles
}

fn read_per(table: &mut Fields<'_>, problems: &mut Problems) -> Option<Duration> {
    let at = table.place("per");
    let text = table.needed("per", problems)?;
    let per = parse_span(text).filter(|per| !per.is_zero());
    if per.is_none() {
        problems.note(at, "format", "expected a span of time of more than 0, such as 30m, 1h or 1d");
    }
    per
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::contract::Contract;
    use crate::schema::Problem;

    fn contract(limits: Value, amount: Value) -> Result<Contract, Vec<Problem>> {
        let keys = json!({
            "description": "Pay somebody.",
            "effect": "write",
            "input": { "properties": { "cents": amount, "note": { "type": "string" } } },
            "limits": limits,
        });
        Contract::parse("pay", &keys)
    }

    fn cents() -> Value {
        json!({ "type": "integer", "minimum": 0 })
    }

    fn wrong(limits: Value) -> Vec<(String, String)> {
        let problems = contract(limits, cents()).unwrap_err();
        problems.into_iter().map(|problem| (problem.at, problem.code)).collect()
    }

    #[test]
    fn a_limit_counts_calls_or_sums_an_argument() {
        let limits = json!([
            { "sum": "/cents", "max": 50_000, "roles": { "manager": 200_000 }, "per": "1d" },
            { "calls": 20, "per": "1h", "scope": "tool" },
        ]);
        let limits = contract(limits, cents()).unwrap().limits;
        assert_eq!((&limits[0].counts, limits[0].max), (&Counts::Sum("/cents".into()), 50_000));
        assert_eq!((limits[0].per, limits[0].scope), (Duration::from_secs(86_400), LimitScope::User));
        assert_eq!((&limits[1].counts, limits[1].max, limits[1].scope), (&Counts::Calls, 20, LimitScope::Tool));
    }

    #[test]
    fn everything_that_is_wrong_with_limits_is_told_at_once() {
        let mut found = wrong(json!([
            { "per": "1d" },
            { "calls": 2, "sum": "/cents", "max": 5, "per": "1d" },
            { "calls": 0, "per": "1d" },
            { "calls": 3, "max": 3, "per": "0s" },
            { "sum": "/cents", "per": "soon", "scope": "world" },
            { "sum": "/nothing", "max": 5, "per": "1d" },
            { "sum": "/note", "max": 5, "per": "1d" },
            { "sum": "cents", "max": 5, "per": "1d" },
            { "sum": "/cents", "max": 5, "roles": { "manager": 5, "owner": -1 }, "per": "1d" },
            { "calls": 3, "each": "1d" },
            7,
        ]));
        let expected = [
            ("/limits/0/calls", "required"),
            ("/limits/1/sum", "limit"),
            ("/limits/10", "type"),
            ("/limits/2/calls", "minimum"),
            ("/limits/3/max", "limit"),
            ("/limits/3/per", "format"),
            ("/limits/4/max", "required"),
            ("/limits/4/per", "format"),
            ("/limits/4/scope", "enum"),
            ("/limits/5/sum", "limit"),
            ("/limits/6/sum", "limit"),
            ("/limits/7/sum", "format"),
            ("/limits/8/roles/manager", "minimum"),
            ("/limits/8/roles/owner", "minimum"),
            ("/limits/9/each", "unknown_key"),
            ("/limits/9/per", "required"),
        ];
        let expected = expected.map(|(at, code)| (at.to_owned(), code.to_owned()));
        found.sort();
        assert_eq!(found, expected);
    }

    #[test]
    fn only_whole_numbers_from_0_are_summed() {
        let sum = || json!([{ "sum": "/cents", "max": 5, "per": "1d" }]);
        for amount in [
            cents(),
            json!({ "type": "integer", "minimum": 1 }),
            json!({ "type": "integer", "exclusiveMinimum": 0 }),
            json!({ "type": "integer", "allOf": [{ "minimum": 3 }] }),
        ] {
            assert!(contract(sum(), amount.clone()).is_ok(), "{amount}");
        }
        for amount in [
            json!({ "type": "integer" }),
            json!({ "type": "integer", "minimum": -1 }),
            json!({ "type": "number", "minimum": 0 }),
            json!({ "type": ["integer", "null"], "minimum": 0 }),
            json!({ "type": "string" }),
            json!({ "anyOf": [{ "type": "integer", "minimum": 0 }, { "type": "string" }] }),
        ] {
            let problems = contract(sum(), amount.clone()).unwrap_err();
            assert!(problems.iter().any(|problem| problem.at == "/limits/0/sum"), "{amount}: {problems:?}");
        }
    }

    #[test]
    fn an_argument_that_may_be_another_thing_in_a_branch_is_not_summed() {
        let input = json!({
            "properties": { "kind": { "type": "string" } },
            "anyOf": [
                { "properties": { "cents": { "type": "integer", "minimum": 0 } }, "required": ["cents"] },
                { "properties": { "cents": { "type": "string" } } },
            ],
        });
        let keys = json!({
            "description": "Pay somebody.", "effect": "write", "input": input,
            "limits": [{ "sum": "/cents", "max": 5, "per": "1d" }],
        });
        let problems = Contract::parse("pay", &keys).unwrap_err();
        assert!(problems.iter().any(|problem| problem.at == "/limits/0/sum"), "{problems:?}");
    }

    #[test]
    fn the_largest_maximum_of_the_roles_counts_and_an_absent_argument_takes_nothing() {
        let limits = json!([
            { "sum": "/cents", "max": 5, "roles": { "clerk": 10, "manager": 20 }, "per": "1d" },
            { "calls": 2, "per": "1d" },
        ]);
        let limits = contract(limits, cents()).unwrap().limits;
        let max = |roles: &[&str]| limits[0].max_for(&roles.iter().map(|role| (*role).to_owned()).collect());
        assert_eq!([max(&[]), max(&["clerk"]), max(&["manager", "clerk"]), max(&["guest"])], [5, 10, 20, 5]);

        let amount = |value: Value| limits[0].amount(value.as_object().unwrap());
        assert_eq!(amount(json!({})), 0);
        assert_eq!([amount(json!({ "cents": 7 })), amount(json!({ "cents": 7.0 }))], [7, 7]);
        assert_eq!([amount(json!({ "cents": 1e30 })), amount(json!({ "cents": "7" }))], [u64::MAX, u64::MAX]);
        assert_eq!(limits[1].amount(&Map::new()), 1);
    }
}
