//! Patterns with look-around in their common forms, said by patterns without.

use serde_json::{Map, Value, json};

use super::pattern::{Matching, Survey, matcher};

/// Characters of a suggestion.
const MAX_LENGTH: usize = 200;

/// What is asked of a text besides the rest of its pattern.
struct Condition {
    pattern: String,
    holds: bool,
}

/// The keywords that say the same as a pattern, as JSON without its braces: `"allOf": [...]`, `"not": {...}`. Known are
/// conditions on the beginning, `^(?=...)` and `^(?!...)`, one or more, and on the end, `(?<=...)$` and `(?<!...)$`.
pub(super) fn instead_of(pattern: &str) -> Option<String> {
    if has_alternatives(pattern) {
        return None;
    }
    let (mut conditions, rest) = leading(pattern);
    let (rest, last) = trailing(rest);
    conditions.extend(last);
    if conditions.is_empty() {
        return None;
    }
    let rest = Some(rest).filter(|rest| !matches!(rest.as_str(), "" | "^" | "^.*" | ".*" | "^.*$" | ".*$" | "$"));
    let required = conditions.iter().filter(|condition| condition.holds).map(|condition| condition.pattern.clone());
    let required: Vec<String> = required.chain(rest).collect();
    let forbidden: Vec<&str> =
        conditions.iter().filter(|condition| !condition.holds).map(|condition| condition.pattern.as_str()).collect();
    let all = required.iter().map(String::as_str).chain(forbidden.iter().copied());
    if all.clone().any(|part| Survey::of(part).backtracks() || matcher(part, Matching::Linear).is_none()) {
        return None;
    }
    let mut keywords = Map::new();
    let patterns = |parts: &[&str]| parts.iter().map(|part| json!({ "pattern": part })).collect::<Value>();
    match required.as_slice() {
        [] => {}
        [only] => drop(keywords.insert("pattern".to_owned(), json!(only))),
        several => {
            let several: Vec<&str> = several.iter().map(String::as_str).collect();
            keywords.insert("allOf".to_owned(), patterns(&several));
        }
    }
    match forbidden.as_slice() {
        [] => {}
        [only] => drop(keywords.insert("not".to_owned(), json!({ "pattern": only }))),
        several => drop(keywords.insert("not".to_owned(), json!({ "anyOf": patterns(several) }))),
    }
    let written: Vec<String> = keywords.iter().map(|(name, value)| format!("{}: {value}", json!(name))).collect();
    Some(written.join(", ")).filter(|written| written.chars().count() <= MAX_LENGTH)
}

/// The conditions after `^`, and the pattern without them.
fn leading(pattern: &str) -> (Vec<Condition>, String) {
    let (anchor, mut rest) = match pattern.strip_prefix('^') {
        Some(rest) => ("^", rest),
        None => ("", pattern),
    };
    let mut conditions = Vec::new();
    while let Some((holds, inner, after)) = group(rest, &[("(?=", true), ("(?!", false)]) {
        // Where `.` matches each character, a thing that comes later is one that comes anywhere.
        let anywhere = inner.strip_prefix(".*?").or_else(|| inner.strip_prefix(".*")).filter(|it| !it.is_empty());
        let condition = match anywhere {
            Some(later) if !has_alternatives(inner) => later.to_owned(),
            // Without an anchor it may hold at any place, and one that must not hold says nothing.
            _ if anchor.is_empty() => return (Vec::new(), pattern.to_owned()),
            _ if has_alternatives(inner) => format!("^(?:{inner})"),
            _ => format!("^{inner}"),
        };
        if anchor.is_empty() && !holds {
            return (Vec::new(), pattern.to_owned());
        }
        conditions.push(Condition { pattern: condition, holds });
        rest = after;
    }
    (conditions, format!("{anchor}{rest}"))
}

/// The pattern without the condition before `$`, and that.
fn trailing(pattern: String) -> (String, Option<Condition>) {
    let Some(before) = pattern.strip_suffix('$') else { return (pattern, None) };
    for (opening, holds) in [("(?<=", true), ("(?<!", false)] {
        let Some((rest, _)) = before.rsplit_once(opening) else { continue };
        let tail = before.get(rest.len()..).unwrap_or_default();
        let Some((_, inner, "")) = group(tail, &[(opening, holds)]) else { continue };
        let ends = if has_alternatives(inner) { format!("(?:{inner})$") } else { format!("{inner}$") };
        return (format!("{rest}$"), Some(Condition { pattern: ends, holds }));
    }
    (pattern, None)
}

/// The group with one of these openings that a pattern begins with: what the opening means, what is inside, what follows.
fn group<'p>(pattern: &'p str, openings: &[(&str, bool)]) -> Option<(bool, &'p str, &'p str)> {
    let (holds, inside) =
        openings.iter().find_map(|(opening, holds)| Some((*holds, pattern.strip_prefix(opening)?)))?;
    let (inner, after) = inside.split_at_checked(closing(inside)?)?;
    let after = after.strip_prefix(')')?;
    // A group that is repeated is no condition.
    (!after.starts_with(['*', '+', '?', '{'])).then_some((holds, inner, after))
}

/// Where the group closes that is open at the beginning.
fn closing(pattern: &str) -> Option<usize> {
    marks(pattern).find(|(_, c, depth)| *c == ')' && *depth == 0).map(|(at, ..)| at)
}

/// Whether alternatives stand side by side, outside of any group.
fn has_alternatives(pattern: &str) -> bool {
    marks(pattern).any(|(_, c, depth)| c == '|' && depth == 0)
}

/// The characters that mean something, each with its place and the groups that are open around it: none that is escaped
/// or in a class.
fn marks(pattern: &str) -> impl Iterator<Item = (usize, char, usize)> {
    let (mut escaped, mut class, mut depth) = (false, false, 0_usize);
    pattern.char_indices().filter_map(move |(at, c)| {
        if std::mem::take(&mut escaped) {
            return None;
        }
        match c {
            '\\' => escaped = true,
            '[' => class = true,
            ']' => class = false,
            _ if class => {}
            '(' => depth += 1,
            ')' => {
                let mark = (at, c, depth);
                depth = depth.saturating_sub(1);
                return Some(mark);
            }
            c => return Some((at, c, depth)),
        }
        None
    })
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::disallowed_methods,
    reason = "a test may panic"
)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FORMS: [(&str, &str); 11] = [
        (r"^(?=.*\d).+$", r#""allOf": [{"pattern":"\\d"},{"pattern":"^.+$"}]"#),
        (
            r"^(?=.*[a-c])(?=.*\d)[a-c0-9]{2,4}$",
            r#""allOf": [{"pattern":"[a-c]"},{"pattern":"\\d"},{"pattern":"^[a-c0-9]{2,4}$"}]"#,
        ),
        ("^(?!ab)[a-c]+$", r#""pattern": "^[a-c]+$", "not": {"pattern":"^ab"}"#),
        ("^(?!.*bb).*$", r#""not": {"pattern":"bb"}"#),
        ("^(?!a$|b$)[a-c]+$", r#""pattern": "^[a-c]+$", "not": {"pattern":"^(?:a$|b$)"}"#),
        ("^(?!a)(?!b)[a-c]+$", r#""pattern": "^[a-c]+$", "not": {"anyOf":[{"pattern":"^a"},{"pattern":"^b"}]}"#),
        ("^[a-c]+(?<!c)$", r#""pattern": "^[a-c]+$", "not": {"pattern":"c$"}"#),
        ("^[a-c]+(?<=c)$", r#""allOf": [{"pattern":"c$"},{"pattern":"^[a-c]+$"}]"#),
        ("(?=.*a)", r#""pattern": "a""#),
        ("^(?=[ab])(?!.*c).{1,3}$", r#""allOf": [{"pattern":"^[ab]"},{"pattern":"^.{1,3}$"}], "not": {"pattern":"c"}"#),
        (r"^(?=\(|[)a])[()a]+$", r#""allOf": [{"pattern":"^(?:\\(|[)a])"},{"pattern":"^[()a]+$"}]"#),
    ];

    #[test]
    fn common_forms_are_said_without_look_around() {
        for (pattern, said) in FORMS {
            assert_eq!(instead_of(pattern).as_deref(), Some(said), "{pattern}");
        }
    }

    #[test]
    fn what_is_not_understood_is_not_said_otherwise() {
        for pattern in [
            "(?!a)b",
            "a(?=b)c",
            "^(?=a)a|b",
            "^(?:(?=a)a)+$",
            "^(?=(?!a)b)b$",
            "^(?=a)+b$",
            "(?=a)b",
            r"^(a)\1$",
            "a",
            "^(?=a",
        ] {
            assert_eq!(instead_of(pattern), None, "{pattern}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(80))]

        #[test]
        fn what_is_said_instead_takes_the_same_texts(text in "[abc01()]{0,5}") {
            for (pattern, said) in FORMS {
                let schema: Value = serde_json::from_str(&format!("{{{said}}}")).unwrap();
                let linear = Matching::Linear.set(jsonschema::options()).build(&schema).unwrap();
                let value = json!(text);
                let meant = matcher(pattern, Matching::Bounded).unwrap().is_valid(&value);
                prop_assert_eq!(linear.is_valid(&value), meant, "{} {}", pattern, text);
            }
        }
    }
}
