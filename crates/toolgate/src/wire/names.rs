//! Names with a dot, for dialects that have none.
//!
//! A dot is written `_-_`, and a `_-` that stands in the name itself is written `_--`. So two names are never written
//! alike, a name without `.` and `_-` is written as it is, and what was written can be read back from itself alone:
//! `shop.get_order` is shown as `shop_-_get_order`.

const DOT: &str = "_-_";
const MARK: &str = "_-";
const MARK_ITSELF: &str = "_--";

/// How a tool's name is shown.
pub(super) fn shown(name: &str) -> String {
    name.replace(MARK, MARK_ITSELF).replace('.', DOT)
}

/// The name that was shown this way. What is not shown so by any name stays as it is, and names itself.
pub(super) fn meant(shown: &str) -> String {
    let mut name = String::with_capacity(shown.len());
    let mut rest = shown;
    while let Some((before, after)) = rest.split_once(MARK) {
        name.push_str(before);
        if let Some(after_dot) = after.strip_prefix('_') {
            name.push('.');
            rest = after_dot;
        } else {
            name.push_str(MARK);
            rest = after.strip_prefix('-').unwrap_or(after);
        }
    }
    name.push_str(rest);
    name
}

#[cfg(test)]
mod tests {
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
            assert_eq!(shown(name), as_shown);
            assert_eq!(meant(as_shown), name);
        }
    }

    #[test]
    fn a_name_that_was_never_shown_names_itself() {
        for name in ["shop.get_order", "a_-", "a_-b", "_-é", "", "ab\u{200B}"] {
            assert_eq!(meant(name), name);
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_is_read_back(name in "[ab._-]{0,12}") {
            let shown = shown(&name);
            prop_assert!(!shown.contains('.'));
            prop_assert_eq!(meant(&shown), name);
        }
    }
}
