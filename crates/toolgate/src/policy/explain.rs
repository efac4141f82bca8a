//! What Cedar says about a policy, in words for people.
//!
//! Cedar's own text names grammar rules and internal types. What is kept of it are names that the author wrote. The
//! places come by `DetailedError`, Cedar's own view of an error for other languages, which names no foreign type.

use std::collections::BTreeMap;
use std::ops::Range;

use cedar_policy::ffi::DetailedError;
use cedar_policy::{ParseErrors, ValidationError, ValidationResult, ValidationWarning};

use super::fault::{PolicyCode, suggest};
use super::schema::Vocabulary;

/// One thing that is wrong, with its place in the text that Cedar was given.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) at: Range<usize>,
    pub(super) message: String,
    pub(super) hint: Option<String>,
    pub(super) code: PolicyCode,
}

const FUNCTIONS: [&str; 23] = [
    "contains",
    "containsAll",
    "containsAny",
    "isEmpty",
    "hasTag",
    "getTag",
    "lessThan",
    "lessThanOrEqual",
    "greaterThan",
    "greaterThanOrEqual",
    "isIpv4",
    "isIpv6",
    "isLoopback",
    "isMulticast",
    "isInRange",
    "offset",
    "durationSince",
    "toDate",
    "toTime",
    "decimal",
    "ip",
    "datetime",
    "duration",
];

/// What is wrong with the grammar of `text`.
pub(super) fn syntax(text: &str, errors: &ParseErrors) -> Vec<Finding> {
    let error = DetailedError::from(errors);
    std::iter::once(&error).chain(&error.related).map(|error| syntax_finding(text, error)).collect()
}

/// What to say where Cedar's message begins like this.
const SAYINGS: [(&str, &str, &str); 22] = [
    ("unexpected end of input", "the text ends too early", "a bracket or a value is missing"),
    ("invalid token", "this character has no meaning in a policy", ""),
    ("'=' is not", "`=` compares nothing", "write `==`"),
    ("this policy is missing", HEAD, HEAD_HINT),
    ("this policy has an extra", HEAD, HEAD_HINT),
    ("found an invalid variable in the policy scope", HEAD, HEAD_HINT),
    ("found the variable", HEAD, HEAD_HINT),
    ("invalid operator in the action scope", "the head compares an action with `==` or `in`", ""),
    ("`is` cannot appear in the action scope", "the head compares an action with `==` or `in`", ""),
    ("invalid operator in the policy scope", "the head compares with `==`, `in`, `is`, or `is ... in`", ""),
    ("expected an entity uid", "an entity is meant here", ENTITY_HINT),
    ("expected single entity uid", "an entity is meant here", ENTITY_HINT),
    ("invalid entity literal", "an entity is meant here", ENTITY_HINT),
    ("expected a static policy", TEMPLATE, "name the principal or the resource itself"),
    ("found template slot", TEMPLATE, "name the principal or the resource itself"),
    ("`when` condition clause cannot be empty", "the condition is empty", "leave it out, or say when it holds"),
    ("`unless` condition clause cannot be empty", "the condition is empty", "leave it out, or say when it holds"),
    ("integer", "the number is too large", "at most 9223372036854775807"),
    ("division", "there is no division in policies", "multiply the other side instead"),
    ("remainder", "there is no division in policies", "multiply the other side instead"),
    ("multiple relational operators", "two comparisons follow each other", "put each in brackets, joined by `&&`"),
    ("invalid RHS of a `has`", "`has` asks for a member", "write a name or a text behind it"),
];
const HEAD: &str = "the head of the policy is not complete";
const HEAD_HINT: &str = "it is `(principal, action, resource)`, in this order";
const ENTITY_HINT: &str = "it has a type and an id, like `Role::\"manager\"`";
const TEMPLATE: &str = "a policy with `?principal` or `?resource` is a template, and there are none here";

fn syntax_finding(text: &str, error: &DetailedError) -> Finding {
    let at = range(error);
    let said = error.message.as_str();
    let saying = SAYINGS.iter().find(|(start, ..)| said.starts_with(start));
    let (message, hint) = if let Some((_, message, hint)) = saying {
        ((*message).to_owned(), (!hint.is_empty()).then(|| (*hint).to_owned()))
    } else {
        about_a_name(said)
            .unwrap_or_else(|| (format!("{} cannot be understood as part of a policy", shown(text, &at)), None))
    };
    Finding { at, message, hint, code: PolicyCode::Syntax }
}

/// What to say where Cedar names something that the author wrote.
fn about_a_name(said: &str) -> Option<(String, Option<String>)> {
    let after = |start: &str| said.strip_prefix(start);
    let name = said.split('`').nth(1).unwrap_or_default();
    Some(if let Some(token) = after("unexpected token ") {
        (format!("{token} cannot stand here"), None)
    } else if let Some(word) = after("invalid policy effect: ") {
        (format!("`{word}` is no effect"), suggest(word, ["permit", "forbid"]))
    } else if let Some(word) = after("invalid policy condition: ") {
        (format!("`{word}` is no condition"), suggest(word, ["when", "unless"]))
    } else if let Some(word) = after("duplicate annotation: ") {
        (format!("{word} stands here twice"), None)
    } else if let Some(word) = after("this identifier is reserved and cannot be used: ") {
        (format!("`{word}` is a word of the policy language"), Some(format!("write it as a text: `[\"{word}\"]`")))
    } else if let Some(word) = after("invalid variable: ") {
        let hint = format!("an argument is `context.input.{word}`, a text is `\"{word}\"`");
        (format!("`{word}` is not known here"), Some(hint))
    } else if said.starts_with("invalid member access") || said.starts_with("invalid indexing") {
        let word = name.split(['.', '[']).next().unwrap_or_default();
        (format!("`{word}` is not known here"), suggest(word, ["principal", "action", "resource", "context"]))
    } else if said.ends_with("is not a valid method") || said.ends_with("is not a valid function") {
        (format!("there is no function `{name}`"), suggest(name, FUNCTIONS))
    } else if said.ends_with("is a method, not a function") {
        (format!("`{name}` stands behind a value"), Some(format!("write `value.{name}(...)`")))
    } else if said.ends_with("is a function, not a method") {
        (format!("`{name}` stands before its argument"), Some(format!("write `{name}(...)`")))
    } else {
        return None;
    })
}

/// What strict validation found, by the id of the policy; `text_of` gives the text of each.
pub(super) fn validation<'t>(
    result: &ValidationResult,
    vocabulary: &Vocabulary<'_>,
    text_of: impl Fn(&str) -> &'t str,
) -> Vec<(String, Finding)> {
    let mut found = Vec::new();
    // A policy for several actions fails for each of them; one finding names them all.
    let mut missing: BTreeMap<(String, usize, usize), Vec<String>> = BTreeMap::new();
    for error in result.validation_errors() {
        let id: &str = error.policy_id().as_ref();
        let detail = DetailedError::from(error);
        let at = range(&detail);
        if let (ValidationError::UnsafeAttributeAccess(_), Some(action)) = (error, action_of(&detail.message)) {
            missing.entry((id.to_owned(), at.start, at.end)).or_default().push(action);
            continue;
        }
        let (message, hint, code) = type_finding(error, &detail, text_of(id), vocabulary);
        found.push((id.to_owned(), Finding { at, message, hint, code }));
    }
    for ((id, start, end), mut actions) in missing {
        actions.sort();
        let shown = shown(text_of(&id), &(start..end));
        let message = format!("{shown} does not exist for {}", few(&actions));
        let hint = guard(text_of(&id), &(start..end))
            .map(|guard| format!("ask first: `{guard} && ...`, or narrow the action"));
        found.push((id, Finding { at: start..end, message, hint, code: PolicyCode::Member }));
    }
    for warning in result.validation_warnings() {
        let (message, hint, code) = match warning {
            ValidationWarning::ImpossiblePolicy(_) => {
                ("the policy can never apply: its condition is false for every call".to_owned(), None, PolicyCode::Idle)
            }
            ValidationWarning::InvalidActionApplication(_) => (
                "the policy can never apply: no tool has this action, this principal and this resource".to_owned(),
                Some("the contract's resource.type says what a tool acts on; without one it is `Tool`".to_owned()),
                PolicyCode::Idle,
            ),
            ValidationWarning::BidiCharsInString(_) | ValidationWarning::BidiCharsInIdentifier(_) => (
                "the policy holds characters that turn the direction of text, so it does not read as it runs"
                    .to_owned(),
                Some("remove them".to_owned()),
                PolicyCode::Type,
            ),
            _ => continue,
        };
        let at = range(&DetailedError::from(warning));
        found.push((warning.policy_id().to_string(), Finding { at, message, hint, code }));
    }
    found
}

fn type_finding(
    error: &ValidationError,
    detail: &DetailedError,
    text: &str,
    vocabulary: &Vocabulary<'_>,
) -> (String, Option<String>, PolicyCode) {
    let at = range(detail);
    let shown = shown(text, &at);
    let ticked = detail.message.split('`').nth(3).unwrap_or_default();
    let typed = |message: String, hint: Option<String>| (message, hint, PolicyCode::Type);
    match error {
        ValidationError::UnrecognizedEntityType(_) => {
            typed(format!("there is no entity type `{ticked}`"), vocabulary.suggest_type(ticked))
        }
        ValidationError::UnrecognizedActionId(_) => {
            let name = ticked.split('"').nth(1).unwrap_or(ticked);
            typed(format!("there is no action `{name}`"), vocabulary.suggest_action(name))
        }
        ValidationError::UnexpectedType(_) => {
            let (expected, actual) = detail
                .message
                .split_once(": expected ")
                .and_then(|(_, types)| types.split_once(" but saw "))
                .unwrap_or_default();
            let wanted: Vec<&str> = expected.split(", or ").map(type_in_words).collect();
            let hint = match (expected, actual) {
                ("Long", "decimal") => Some("compare decimals by name: `.lessThan(decimal(\"10.0\"))`".to_owned()),
                (_, "Long") if wanted.contains(&"a decimal number") => {
                    Some("write the number as `decimal(\"10.0\")`".to_owned())
                }
                ("Bool", _) => Some("compare it with something".to_owned()),
                _ => None,
            };
            typed(format!("{shown} is {}, where {} is needed", type_in_words(actual), wanted.join(" or ")), hint)
        }
        ValidationError::IncompatibleTypes(_) => {
            let types =
                detail.message.strip_prefix("the types ").and_then(|rest| rest.strip_suffix(" are not compatible"));
            let names: Vec<&str> = types.filter(|types| !types.contains('{')).map_or_else(Vec::new, |types| {
                types.split(" and ").flat_map(|part| part.split(", ")).map(type_in_words).collect()
            });
            let message = match names.as_slice() {
                [] => format!("{shown} brings different types together"),
                names => format!("{shown} brings different types together: {}", names.join(" and ")),
            };
            typed(message, None)
        }
        ValidationError::UnsafeAttributeAccess(_) => {
            let message = format!("{shown} does not exist");
            let hint = "what is known of a call is in `context`; people are told apart by `principal == User::...` and `principal in Role::...`";
            (message, Some(hint.to_owned()), PolicyCode::Member)
        }
        ValidationError::UnsafeOptionalAttributeAccess(_) => (
            format!("{shown} may be absent"),
            guard(text, &at).map(|guard| format!("ask first: `{guard} && ...`")),
            PolicyCode::Member,
        ),
        ValidationError::UndefinedFunction(_) | ValidationError::WrongNumberArguments(_) => {
            typed(format!("{shown} is no call of a function that there is"), None)
        }
        ValidationError::FunctionArgumentValidation(_) => typed(
            format!("{shown} holds a constant that is not a value of its type"),
            shown
                .contains("decimal(")
                .then(|| "a decimal is written like `decimal(\"12.50\")`, with one to four places".to_owned()),
        ),
        ValidationError::EmptySetForbidden(_) => {
            typed("an empty set has no type".to_owned(), Some("ask with `.isEmpty()`".to_owned()))
        }
        ValidationError::NonLitExtConstructor(_) => {
            typed(format!("{shown} makes a value of something that is not a fixed text"), None)
        }
        _ => typed(format!("{shown} does not fit what the contracts declare"), None),
    }
}

/// A type of Cedar in words.
fn type_in_words(name: &str) -> &str {
    match name {
        "Long" => "an integer",
        "String" => "a text",
        "Bool" | "__cedar::internal::True" | "__cedar::internal::False" => "a boolean",
        "decimal" => "a decimal number",
        "ipaddr" => "an IP address",
        "datetime" => "a point in time",
        "duration" => "a span of time",
        _ if name.starts_with("Set<") => "a set",
        _ if name.starts_with('{') || name.contains("Record") => "an object",
        _ => "an entity",
    }
}

/// The text at `at` for a sentence, unless it is too long for one.
fn shown(text: &str, at: &Range<usize>) -> String {
    const SHORT: usize = 60;
    match text.get(at.clone()) {
        Some(part) if !part.is_empty() && part.len() <= SHORT && !part.contains('\n') => format!("`{part}`"),
        _ => "this".to_owned(),
    }
}

/// The question whether the member read at `at` is there.
fn guard(text: &str, at: &Range<usize>) -> Option<String> {
    let access = text.get(at.clone())?;
    match access.strip_suffix(']').and_then(|access| access.rsplit_once('[')) {
        Some((of, member)) => Some(format!("{of} has {member}")),
        None => access.rsplit_once('.').map(|(of, member)| format!("{} has {}", of.trim_end(), member.trim_start())),
    }
}

fn action_of(message: &str) -> Option<String> {
    let (_, action) = message.split_once(" in context for ")?;
    action.split('"').nth(1).map(str::to_owned)
}

fn few(names: &[String]) -> String {
    const FEW: usize = 3;
    match names.get(..FEW) {
        Some(first) if names.len() > FEW => format!("{} and {} more tools", first.join(", "), names.len() - FEW),
        _ => names.join(", "),
    }
}

fn range(error: &DetailedError) -> Range<usize> {
    error.source_locations.first().map_or(0..0, |label| label.loc.start..label.loc.end)
}
