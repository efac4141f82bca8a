//! Regular expressions in schemas: linear in the text where the operator wrote them, within a bound of steps where
//! somebody else did, and small when written out.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::str::Chars;

use jsonschema::{PatternOptions, Validator};
use serde_json::json;

use super::{Author, SchemaFault, linear};

const MAX_LENGTH: usize = 2_048;
/// With its repeats written out, in atoms: `(a{10}b){20}` is 220. A matcher's memory, and its time for each character
/// of the text, grow with this.
const MAX_SIZE: u64 = 2_000;

/// All patterns of a document together, each counted as at least `MIN_SIZE`: building them takes time.
const MAX_TOGETHER: u64 = 20_000;
const MIN_SIZE: u64 = 10;

/// Bytes of one compiled pattern.
const COMPILED: usize = 1 << 20;
/// Steps back of one match: a look-ahead of a few hundred characters and its rest stay far below.
const BACKTRACKS: usize = 2_000;
/// Patterns that are built only to say that they can't be.
const MAX_BUILT: usize = 200;

/// The patterns of one document.
#[derive(Debug)]
pub(super) struct Patterns {
    author: Author,
    size: u64,
    /// Where each first stands.
    places: BTreeMap<String, String>,
    matching: Matching,
}

/// How texts are held to a pattern.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Matching {
    /// In time linear in the text.
    #[default]
    Linear,
    /// By going back and trying again, within a bound of steps; a text that takes more does not fit.
    Bounded,
}

/// What is wrong with a pattern, and what to do instead.
pub(super) struct PatternFault {
    pub(super) message: String,
    pub(super) hint: String,
}

/// What the text of a pattern shows before it is built.
#[derive(Debug, Default)]
pub(super) struct Survey {
    look_around: bool,
    back_reference: bool,
    pub(super) size: u64,
}

impl Patterns {
    pub(super) fn new(author: Author) -> Self {
        Self { author, size: 0, places: BTreeMap::new(), matching: Matching::Linear }
    }

    /// Takes a pattern, as far as its text shows that it can be used.
    pub(super) fn survey(&mut self, at: &str, pattern: &str) -> Result<Matching, PatternFault> {
        if pattern.len() > MAX_LENGTH {
            return fault(
                "the pattern is longer than 2,048 bytes",
                "list the values in an enum, or split the pattern under allOf",
            );
        }
        let survey = Survey::of(pattern);
        let matching = match (survey.backtracks(), self.author) {
            (false, _) => Matching::Linear,
            (true, Author::SomebodyElse) => Matching::Bounded,
            (true, Author::Operator) => return Err(survey.instead_of(pattern)),
        };
        if survey.size > MAX_SIZE {
            return fault(
                "the repeats of the pattern multiply to more than 2,000 atoms",
                "drop the counts and bound the text with minLength and maxLength",
            );
        }
        if !self.places.contains_key(pattern) {
            self.size = self.size.saturating_add(survey.size.max(MIN_SIZE));
            self.places.insert(pattern.to_owned(), at.to_owned());
        }
        if self.size > MAX_TOGETHER {
            return fault(
                "the patterns of the document are too large together",
                "use fewer counts, or enum, or format",
            );
        }
        self.matching = self.matching.max(matching);
        Ok(matching)
    }

    /// How a document with these patterns is held to them, or those that cannot be built.
    pub(super) fn built(&self) -> Result<Matching, Vec<SchemaFault>> {
        let built = self.places.iter().take(MAX_BUILT);
        let faults: Vec<SchemaFault> = built
            .filter(|(pattern, _)| matcher(pattern, self.matching).is_none())
            .map(|(_, at)| SchemaFault {
                at: super::inert::visible(at),
                message: "not a regular expression of the linear engine, or too large for it".to_owned(),
                hint: Some("check brackets, braces and escapes; bound long texts with maxLength".to_owned()),
            })
            .collect();
        if faults.is_empty() { Ok(self.matching) } else { Err(faults) }
    }
}

impl Matching {
    /// The same options for every pattern of a document.
    pub(super) fn set(self, options: jsonschema::ValidationOptions<'static>) -> jsonschema::ValidationOptions<'static> {
        match self {
            Self::Linear => {
                options.with_pattern_options(PatternOptions::regex().size_limit(COMPILED).dfa_size_limit(COMPILED))
            }
            Self::Bounded => options.with_pattern_options(
                PatternOptions::fancy_regex().backtrack_limit(BACKTRACKS).size_limit(COMPILED).dfa_size_limit(COMPILED),
            ),
        }
    }
}

/// A matcher of texts; `None` where the pattern does not compile.
pub(super) fn matcher(pattern: &str, matching: Matching) -> Option<Validator> {
    matching.set(jsonschema::options()).offline().build(&json!({ "pattern": pattern })).ok()
}

fn fault<T>(message: &str, hint: &str) -> Result<T, PatternFault> {
    Err(PatternFault { message: message.to_owned(), hint: hint.to_owned() })
}

impl Survey {
    /// Whether a match may have to go back and try again.
    pub(super) fn backtracks(&self) -> bool {
        self.look_around || self.back_reference
    }

    /// What is wrong with a pattern that backtracks, and how to say the same without.
    fn instead_of(&self, pattern: &str) -> PatternFault {
        let (message, hint) = match self.look_around {
            true => (
                "look-around is not linear in the length of the text",
                "say it with several patterns under allOf, and what is forbidden with a pattern under not",
            ),
            false => (
                "a back-reference is not linear in the length of the text",
                "write the alternatives out, each as a pattern under anyOf",
            ),
        };
        let hint = match linear::instead_of(pattern) {
            Some(linear) => format!("write {linear} in place of the pattern"),
            None => hint.to_owned(),
        };
        PatternFault { message: message.to_owned(), hint }
    }

    pub(super) fn of(pattern: &str) -> Self {
        let mut survey = Self::default();
        let mut chars = pattern.chars().peekable();
        let mut outer: Vec<u64> = Vec::new();
        // The sequence so far without its last atom, which a repeat may still multiply.
        let mut sum: u64 = 0;
        let mut last: u64 = 0;
        while let Some(c) = chars.next() {
            match c {
                '(' => {
                    survey.group(&mut chars);
                    outer.push(sum.saturating_add(last));
                    (sum, last) = (0, 0);
                }
                ')' => {
                    last = sum.saturating_add(last).max(1);
                    sum = outer.pop().unwrap_or(0);
                }
                '{' => match repeat(&mut chars) {
                    Some(times) => last = last.saturating_mul(times.max(1)),
                    None => (sum, last) = (sum.saturating_add(last), 1),
                },
                '*' | '+' | '?' | '|' | '^' | '$' => {}
                _ => {
                    match c {
                        '\\' => survey.escape(&mut chars),
                        '[' => class(&mut chars),
                        _ => {}
                    }
                    (sum, last) = (sum.saturating_add(last), 1);
                }
            }
        }
        survey.size = outer.into_iter().fold(sum.saturating_add(last), u64::saturating_add);
        survey
    }

    fn group(&mut self, chars: &mut Peekable<Chars<'_>>) {
        let mut ahead = chars.clone();
        if ahead.next() != Some('?') {
            return;
        }
        match (ahead.next(), ahead.next()) {
            (Some('=' | '!'), _) | (Some('<'), Some('=' | '!')) => self.look_around = true,
            (Some('P'), Some('=')) => self.back_reference = true,
            _ => {}
        }
        // `?` is no repeat here.
        chars.next();
    }

    fn escape(&mut self, chars: &mut Peekable<Chars<'_>>) {
        match chars.next() {
            Some('1'..='9') => self.back_reference = true,
            Some('k') if chars.peek() == Some(&'<') => self.back_reference = true,
            Some('p' | 'P' | 'u' | 'x') if chars.peek() == Some(&'{') => {
                chars.find(|c| *c == '}');
            }
            _ => {}
        }
    }
}

/// Reads a class to its end.
fn class(chars: &mut Peekable<Chars<'_>>) {
    let mut depth = 1;
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                chars.next();
            }
            '[' if chars.peek() == Some(&':') => depth += 1,
            ']' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return;
        }
    }
}

/// Reads `m}`, `m,}` or `m,n}` and gives the larger number; anything else is left unread: a brace that stands for itself.
fn repeat(chars: &mut Peekable<Chars<'_>>) -> Option<u64> {
    let mut ahead = chars.clone();
    let inner: String = ahead.by_ref().take_while(|c| *c != '}').take(32).collect();
    let numbers: Vec<Option<u64>> = inner
        .split(',')
        .map(|digits| match digits.trim() {
            "" => Some(0),
            digits => digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().unwrap_or(u64::MAX)),
        })
        .collect();
    if inner.is_empty() || numbers.len() > 2 || numbers.iter().any(Option::is_none) {
        return None;
    }
    *chars = ahead;
    numbers.into_iter().flatten().max()
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
    use super::*;

    fn check(pattern: &str) -> Result<(), PatternFault> {
        let mut patterns = Patterns::new(Author::Operator);
        patterns.survey("", pattern)?;
        let built = patterns.built();
        built.map(drop).map_err(|faults| PatternFault {
            message: faults[0].message.clone(),
            hint: faults[0].hint.clone().unwrap(),
        })
    }

    #[test]
    fn everyday_patterns_pass() {
        for pattern in [
            "^ord_[A-Za-z0-9]+$",
            "^ORD-[0-9]{6}$",
            "^(a+)+$",
            r"^\d{4}-\d{2}-\d{2}$",
            r"^\p{Lu}{2,3}(?:-[a-z]{1,8})*$",
            "^[a-z]{1,2000}$",
            "(?i)x",
            "(?<year>[0-9]{4})",
            "[(?=]",
            r"\(\?=a\{3\}",
        ] {
            assert!(check(pattern).is_ok(), "{pattern}");
        }
    }

    #[test]
    fn what_would_backtrack_is_named_and_has_a_way_out() {
        for (pattern, word) in [
            ("^(?!root)[a-z]+$", "look-around"),
            ("(?<=a)b", "look-around"),
            (r"^(a|b)\1$", "back-reference"),
            ("(?P<x>a)(?P=x)", "back-reference"),
            (r"(?<x>a)\k<x>", "back-reference"),
            ("(?>a+)b", "regular expression"),
            ("[a-", "regular expression"),
        ] {
            let fault = check(pattern).err().unwrap();
            assert!(fault.message.contains(word), "{pattern}: {}", fault.message);
            assert!(!fault.hint.is_empty());
        }
    }

    #[test]
    fn repeats_are_multiplied_before_the_engine_builds_them() {
        for pattern in ["(a{100}){100}", "((a{20}){20}){20}", "[a-z]{5000}", "a{99999999999999999999}", "(ab{999}c){9}"]
        {
            assert!(check(pattern).err().unwrap().message.contains("2,000"), "{pattern}");
        }
        let mut many = Patterns::new(Author::Operator);
        assert!((0..10).all(|n| many.survey("", &format!("[a-z]{{1,{}}}", 1990 + n)).is_ok()));
        assert!(many.survey("", "[a-z]{1,1990}").is_ok(), "one that was counted before");
        assert!(many.survey("", "[a-z]{1,2000}").err().unwrap().message.contains("together"));
        assert_eq!(Survey::of("(a{10}b){20}").size, 220);
        assert_eq!(Survey::of("a|bc|(d)").size, 4);
    }
}
