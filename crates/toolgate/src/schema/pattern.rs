//! Regular expressions in schemas: linear in the text, small when written out.

use std::iter::Peekable;
use std::str::Chars;

use super::compile;

const MAX_LENGTH: usize = 2_048;
/// With its repeats written out, in atoms: `(a{10}b){20}` is 220. A matcher's memory, and its time for each character
/// of the text, grow with this.
const MAX_SIZE: u64 = 2_000;

/// All patterns of a document together, each counted as at least `MIN_SIZE`: building them takes time.
const MAX_TOGETHER: u64 = 20_000;
const MIN_SIZE: u64 = 10;

/// Checks the patterns of one document.
#[derive(Debug, Default)]
pub(super) struct Patterns {
    size: u64,
}

/// What is wrong with a pattern, and what to do instead.
pub(super) struct PatternFault {
    pub(super) message: String,
    pub(super) hint: String,
}

#[derive(Default)]
struct Survey {
    look_around: bool,
    back_reference: bool,
    size: u64,
}

impl Patterns {
    pub(super) fn check(&mut self, pattern: &str) -> Result<(), PatternFault> {
        if pattern.len() > MAX_LENGTH {
            return fault(
                "the pattern is longer than 2,048 bytes",
                "list the values in an enum, or split the pattern under allOf",
            );
        }
        let survey = Survey::of(pattern);
        if survey.look_around {
            return fault(
                "look-around is not linear in the length of the text",
                "say it with several patterns under allOf, and what is forbidden with a pattern under not",
            );
        }
        if survey.back_reference {
            return fault("a back-reference is not linear in the length of the text", "write the alternatives out");
        }
        if survey.size > MAX_SIZE {
            return fault(
                "the repeats of the pattern multiply to more than 2,000 atoms",
                "drop the counts and bound the text with minLength and maxLength",
            );
        }
        self.size = self.size.saturating_add(survey.size.max(MIN_SIZE));
        if self.size > MAX_TOGETHER {
            return fault(
                "the patterns of the document are too large together",
                "use fewer counts, or enum, or format",
            );
        }
        if compile::matcher(pattern).is_none() {
            return fault(
                "not a regular expression of the linear engine, or too large for it",
                "check brackets, braces and escapes; bound long texts with maxLength",
            );
        }
        Ok(())
    }
}

fn fault(message: &str, hint: &str) -> Result<(), PatternFault> {
    Err(PatternFault { message: message.to_owned(), hint: hint.to_owned() })
}

impl Survey {
    fn of(pattern: &str) -> Self {
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
        Patterns::default().check(pattern)
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
        let mut many = Patterns::default();
        assert!((0..10).all(|n| many.check(&format!("[a-z]{{1,{}}}", 1990 + n)).is_ok()));
        assert!(many.check("[a-z]{1,2000}").err().unwrap().message.contains("together"));
        assert_eq!(Survey::of("(a{10}b){20}").size, 220);
        assert_eq!(Survey::of("a|bc|(d)").size, 4);
    }
}
