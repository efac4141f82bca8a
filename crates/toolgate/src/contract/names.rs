//! How a tool's name is shown to a model whose provider takes fewer names than a contract does.
//!
//! What a provider does not take is written with a mark, `_-` and a letter or sign, and read back from left to right:
//!
//! | shown | means |
//! |---|---|
//! | `_-_` | a dot: `shop.get_order` is shown as `shop_-_get_order` |
//! | `_--` | `_-`, which stands in the name itself |
//! | `_-n` | nothing; before a name that may not begin as it does, such as `_-n2fa_reset` |
//! | `_-h` and 26 letters and digits, at the end | the beginning of a name that is too long, and 128 bits of the digest of the whole |
//!
//! So two names are never shown alike, and a name without `.` and `_-` that is neither long nor begins with a digit is
//! shown as it is. All but the last are read back from themselves alone; a short form names itself, and the registry
//! knows whose it is.

use data_encoding::BASE32_NOPAD;

use crate::json::Digest;

const MARK: &str = "_-";
const DOT: &str = "_-_";
const MARK_ITSELF: &str = "_--";
const NOTHING: &str = "_-n";
const SHORT: &str = "_-h";

/// Bytes of the digest in a short form, and how many characters they take in base32.
const DIGEST_BYTES: usize = 16;
const DIGEST_CHARACTERS: usize = 26;

/// What a provider takes as a name. Each takes letters, digits, `_` and `-`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NameRule {
    longest: usize,
    /// Whether a name may begin with a digit or `-`.
    begins_freely: bool,
}

impl NameRule {
    /// OpenAI and Bedrock.
    pub(crate) const CHARACTERS_64: Self = Self { longest: 64, begins_freely: true };
    /// Gemini, which took 63 before it took 64.
    pub(crate) const CHARACTERS_63: Self = Self { longest: 63, begins_freely: false };
    /// Anthropic.
    pub(crate) const CHARACTERS_128: Self = Self { longest: 128, begins_freely: true };
    /// Ollama, of which no bound is known.
    pub(crate) const ANY_LENGTH: Self = Self { longest: usize::MAX, begins_freely: true };

    const ALL: [Self; 4] = [Self::CHARACTERS_64, Self::CHARACTERS_63, Self::CHARACTERS_128, Self::ANY_LENGTH];

    /// How a tool's name is shown under this rule.
    pub(crate) fn shown(self, name: &str) -> String {
        self.short(name).unwrap_or_else(|| format!("{}{}", self.lead(name), marked(name)))
    }

    /// The short form of a name that is too long as it is.
    fn short(self, name: &str) -> Option<String> {
        let lead = self.lead(name);
        if lead.len() + marked(name).len() <= self.longest {
            return None;
        }
        let room = self.longest.saturating_sub(lead.len() + SHORT.len() + DIGEST_CHARACTERS);
        let beginnings = name.char_indices().map(|(at, _)| marked(name.get(..at).unwrap_or_default()));
        let beginning = beginnings.take_while(|beginning| beginning.len() <= room).last().unwrap_or_default();
        Some(format!("{lead}{beginning}{SHORT}{}", digest(name)))
    }

    fn lead(self, name: &str) -> &'static str {
        if self.begins_freely || !begins_otherwise(name) { "" } else { NOTHING }
    }
}

/// The short forms of a name, under all rules; none for a name that is short.
pub(crate) fn short_forms(name: &str) -> Vec<String> {
    let mut forms: Vec<String> = NameRule::ALL.iter().filter_map(|rule| rule.short(name)).collect();
    forms.dedup();
    forms
}

/// The name that was shown this way. A short form stays as it is, and so does what is not shown so by any name.
pub(crate) fn meant(shown: &str) -> String {
    let mut name = String::with_capacity(shown.len());
    let mut rest = shown.strip_prefix(NOTHING).filter(|rest| begins_otherwise(rest)).unwrap_or(shown);
    while let Some((before, after)) = rest.split_once(MARK) {
        name.push_str(before);
        if let Some(after_dot) = after.strip_prefix('_') {
            name.push('.');
            rest = after_dot;
        } else if after.strip_prefix('h').is_some_and(is_digest) {
            return shown.to_owned();
        } else {
            name.push_str(MARK);
            rest = after.strip_prefix('-').unwrap_or(after);
        }
    }
    name.push_str(rest);
    name
}

fn marked(name: &str) -> String {
    name.replace(MARK, MARK_ITSELF).replace('.', DOT)
}

/// Whether a name begins with what not every provider takes there.
fn begins_otherwise(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_digit() || first == '-')
}

fn digest(name: &str) -> String {
    let whole = Digest::of(name.as_bytes());
    let bytes = whole.as_bytes().get(..DIGEST_BYTES).unwrap_or_default();
    BASE32_NOPAD.encode(bytes).to_ascii_lowercase()
}

fn is_digest(text: &str) -> bool {
    text.len() == DIGEST_CHARACTERS && text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'2'..=b'7'))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_dot_is_shown_as_something_that_every_provider_takes() {
        for (name, as_shown) in [
            ("create_refund", "create_refund"),
            ("mcp__files__read-all", "mcp__files__read-all"),
            ("shop.get_order", "shop_-_get_order"),
            ("a_-_b", "a_--_b"),
            ("_.-", "__-_-"),
        ] {
            for rule in NameRule::ALL {
                assert_eq!(rule.shown(name), as_shown);
            }
            assert_eq!(meant(as_shown), name);
        }
    }

    #[test]
    fn a_name_that_was_never_shown_names_itself() {
        for name in ["shop.get_order", "a_-", "a_-b", "_-é", "", "ab\u{200B}", "_-n", "_-nab", "a_-h", "a_-n1"] {
            assert_eq!(meant(name), name);
        }
    }

    #[test]
    fn a_name_that_begins_with_a_digit_is_shown_with_a_lead_where_it_must() {
        for (name, as_shown) in [("2fa.reset", "_-n2fa_-_reset"), ("-x", "_-n-x"), (".x", "_-_x"), ("_1", "_1")] {
            assert_eq!(NameRule::CHARACTERS_63.shown(name), as_shown);
            assert_eq!(meant(as_shown), name);
        }
        assert_eq!(NameRule::CHARACTERS_64.shown("2fa"), "2fa");
    }

    #[test]
    fn a_name_that_is_too_long_keeps_its_beginning_and_gets_a_digest() {
        let name = format!("shop.{}", "create_refund_".repeat(6));
        let shown = NameRule::CHARACTERS_64.shown(&name);
        assert_eq!(shown.len(), 64);
        assert!(shown.starts_with("shop_-_create_refund_create_refund__-h"), "{shown}");
        assert_eq!(meant(&shown), shown);
        assert_eq!(short_forms(&name).len(), 2, "one of 64 characters and one of 63");
        assert_eq!(NameRule::CHARACTERS_128.shown(&name).len(), name.len() + 2);
        let other = format!("{name}2");
        assert_ne!(NameRule::CHARACTERS_64.shown(&other), shown);
    }

    #[test]
    fn a_name_that_looks_like_a_short_form_is_not_taken_for_one() {
        let tail = "a".repeat(DIGEST_CHARACTERS);
        for name in [format!(".-h{tail}"), format!("x_-h{tail}"), format!("_.-h{tail}")] {
            let shown = NameRule::ANY_LENGTH.shown(&name);
            assert_eq!(meant(&shown), name, "{shown}");
        }
    }

    fn names() -> impl Strategy<Value = String> {
        prop_oneof!["[ab1._-]{1,12}", "[ab._-]{55,70}", "[a.]{120,128}", "[-0-9][a._-]{50,80}", "_?-?h[a-c2-4]{24,28}"]
    }

    proptest! {
        #[test]
        fn what_is_shown_is_what_the_rule_takes_and_names_the_tool(name in names()) {
            let forms = short_forms(&name);
            for rule in NameRule::ALL {
                let shown = rule.shown(&name);
                prop_assert!(shown.len() <= rule.longest);
                prop_assert!(shown.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')));
                prop_assert!(rule.begins_freely || !begins_otherwise(&shown), "{}", shown);
                let meant = meant(&shown);
                prop_assert!(meant == name || forms.contains(&meant), "{} is read as {}", shown, meant);
            }
        }

        #[test]
        fn two_names_are_never_shown_alike(names in prop::collection::btree_set(names(), 2..40)) {
            for rule in NameRule::ALL {
                let shown: BTreeSet<String> = names.iter().map(|name| rule.shown(name)).collect();
                prop_assert_eq!(shown.len(), names.len());
            }
        }

        #[test]
        fn names_that_differ_by_little_are_never_shown_alike(beginning in "[a._-]{60,100}", ends in prop::collection::btree_set("[ab._-]{0,3}", 2..6)) {
            for rule in NameRule::ALL {
                let shown: BTreeSet<String> = ends.iter().map(|end| rule.shown(&format!("{beginning}{end}"))).collect();
                prop_assert_eq!(shown.len(), ends.len());
            }
        }
    }
}
