//! How near two names are, in two strengths: what a hint may say, and what may be acted on.
//!
//! A hint may be wrong: whoever reads it decides. To act on a name is another thing, since `enable_user` and
//! `disable_user` differ by three letters and `order` is the end of `delete_order`. There the words that say what is
//! done must be the same.

/// Bytes of a name that is compared at all: as long as a tool's own can be. A model may have written it, and a
/// comparison costs the product of both lengths.
const LONGEST: usize = 128;

/// Characters of a name in which a slip can be told from another name.
const LEAST_OF_A_NAME: usize = 8;
/// The same of the word that it is in.
const LEAST_OF_A_WORD: usize = 5;

/// Between the words of a name.
const SEPARATORS: [char; 6] = ['_', '-', '.', ':', '/', ' '];
/// What models put before the name of any tool, since their providers showed them tools so.
const NAMESPACES: [&str; 5] = ["functions.", "functions:", "tools.", "default_api.", "default_api:"];
/// What hosts of MCP servers put before a server's name, and after it.
const OF_MCP: (&str, &str) = ("mcp__", "__");

/// `did you mean X?` for the nearest of some words, if one is near.
pub fn nearest<'w>(word: &str, words: impl Iterator<Item = &'w str>) -> Option<String> {
    words.filter_map(|known| Some((distance(word, known)?, known))).min().map(|(_, known)| did_you_mean(known))
}

/// The hint for a name of a tool: as [`nearest`], else the one that is this name written otherwise, or with a prefix
/// more or less.
pub(crate) fn nearest_name<'w>(name: &str, known: impl Iterator<Item = &'w str> + Clone) -> Option<String> {
    let letters = Letters::of(name)?;
    nearest(name, known.clone()).or_else(|| {
        only(known.filter(|known| letters.are_of(known) || is_tail(name, known) || is_tail(known, name)))
            .map(did_you_mean)
    })
}

/// The one name that may be acted on where `name` was said: the one with its letters, else the one that stands in it
/// behind a namespace, or differs by one slip.
pub(crate) fn only_meant<'w>(name: &str, known: impl Iterator<Item = &'w str> + Clone) -> Option<&'w str> {
    let letters = Letters::of(name)?;
    let mut same = known.clone().filter(|known| letters.are_of(known)).peekable();
    if same.peek().is_some() {
        return only(same);
    }
    only(known.filter(|known| is_in_a_namespace(name, known) || is_slip(name, known)))
}

fn did_you_mean(known: &str) -> String {
    format!("did you mean {known}?")
}

fn only<'w>(mut candidates: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    candidates.next().filter(|_| candidates.next().is_none())
}

fn distance(word: &str, known: &str) -> Option<usize> {
    if word.len() > LONGEST {
        return None;
    }
    let distance = strsim::damerau_levenshtein(word, known);
    (distance <= 1.max(known.len() / 3)).then_some(distance)
}

/// A name without case and separators. Between two digits a separator stays: `v1_12` is not `v11_2`.
#[derive(PartialEq, Eq)]
struct Letters(String);

impl Letters {
    /// Nothing for a name that is too long or has none.
    fn of(name: &str) -> Option<Self> {
        if name.len() > LONGEST {
            return None;
        }
        let mut letters = String::with_capacity(name.len());
        let mut after_separator = false;
        for c in name.chars() {
            if SEPARATORS.contains(&c) {
                after_separator = true;
                continue;
            }
            if after_separator && c.is_ascii_digit() && letters.ends_with(|last: char| last.is_ascii_digit()) {
                letters.push('_');
            }
            after_separator = false;
            letters.push(c.to_ascii_lowercase());
        }
        (!letters.is_empty()).then_some(Self(letters))
    }

    fn are_of(&self, known: &str) -> bool {
        Self::of(known).is_some_and(|known| known == *self)
    }
}

/// Whether one name is the other behind any prefix.
fn is_tail(tail: &str, whole: &str) -> bool {
    !tail.is_empty() && whole.strip_suffix(tail).is_some_and(|prefix| prefix.ends_with(['.', '_', '-', ':', '/']))
}

/// Whether `name` is `known` in a namespace that says nothing of what is done. Of any other word before a name nobody
/// knows that: `undo.create_refund` is no server's `create_refund`.
fn is_in_a_namespace(name: &str, known: &str) -> bool {
    let (before, after) = OF_MCP;
    let of_a_server = |space: &str| {
        let server = space.strip_prefix(before).and_then(|space| space.strip_suffix(after));
        server.is_some_and(|server| !server.is_empty())
    };
    let space = name.strip_suffix(known).filter(|_| Letters::of(known).is_some());
    space.is_some_and(|space| NAMESPACES.contains(&space) || of_a_server(space))
}

/// Whether one letter was missed, doubled, mistaken or swapped with the next in one long word of a long name. The first
/// word says what is done, the first letters of words are not missed, a digit tells things apart, and so does an `s` at
/// the end: one user or all of them.
fn is_slip(name: &str, known: &str) -> bool {
    if name.len().min(known.len()) < LEAST_OF_A_NAME || !(name.is_ascii() && known.is_ascii()) {
        return false;
    }
    let (name, known) = (name.to_ascii_lowercase(), known.to_ascii_lowercase());
    let (sent, meant): (Vec<&str>, Vec<&str>) = (name.split(SEPARATORS).collect(), known.split(SEPARATORS).collect());
    if sent.len() != meant.len() || sent.first() != meant.first() {
        return false;
    }
    let mut others = sent.into_iter().zip(meant).filter(|(sent, meant)| sent != meant);
    let (Some((sent, meant)), None) = (others.next(), others.next()) else { return false };
    let digits = |word: &str| word.chars().filter(char::is_ascii_digit).collect::<String>();
    sent.len().max(meant.len()) >= LEAST_OF_A_WORD
        && sent.chars().next() == meant.chars().next()
        && digits(sent) == digits(meant)
        && sent.strip_suffix('s') != Some(meant)
        && meant.strip_suffix('s') != Some(sent)
        && strsim::osa_distance(sent, meant) == 1
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test may panic")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn is_taken(name: &str, known: &str) -> bool {
        only_meant(name, [known].into_iter()).is_some()
    }

    #[test]
    fn no_name_is_taken_for_its_opposite_or_for_what_undoes_it() {
        for (one, other) in [
            ("enable_user", "disable_user"),
            ("delete_refund", "create_refund"),
            ("lock_account", "unlock_account"),
            ("set_order", "get_order"),
            ("undo_create_refund", "create_refund"),
            ("dry_run_create_refund", "create_refund"),
            ("dont-create-refund", "create-refund"),
            ("order", "delete_order"),
            ("order", "delete.order"),
            ("set_valid", "set_invalid"),
            ("set_typical", "set_atypical"),
            ("mark_read", "mark_unread"),
            ("switch_on", "switch_off"),
            ("switch_on", "switch_in"),
            ("rotate_key_1", "rotate_key_2"),
            ("charge_order12", "charge_order2"),
            ("run_v1_12", "run_v11_2"),
            ("user_clock", "user_block"),
            ("fetch", "web-fetch"),
            ("!find_files", "find_files"),
            ("undo.create_refund", "create_refund"),
            ("dry_run/create_refund", "create_refund"),
            ("undo__create_refund", "create_refund"),
            ("order_items", "delete.order_items"),
            ("delete_user", "delete_users"),
        ] {
            assert!(!is_taken(one, other), "{one} for {other}");
            assert!(!is_taken(other, one), "{other} for {one}");
        }
    }

    #[test]
    fn other_separators_a_namespace_and_one_slip_are_seen_through() {
        for (name, known) in [
            ("FindFiles", "find_files"),
            ("find-files ", "find_files"),
            ("find_fiels", "find_files"),
            ("create_refnd", "create_refund"),
            ("functions.find_files", "find_files"),
            ("mcp__shop__find_files", "find_files"),
            ("default_api:find_files", "find_files"),
            ("functions.fetch", "fetch"),
        ] {
            assert!(is_taken(name, known), "{name} for {known}");
        }
    }

    #[test]
    fn a_name_of_a_megabyte_is_near_nothing_and_has_no_hint() {
        let long = "find_files_".repeat(100_000);
        assert_eq!(only_meant(&long, ["find_files"].into_iter()), None);
        assert_eq!(nearest_name(&long, ["find_files"].into_iter()), None);
        let behind = format!("{}.find_files", "a".repeat(200));
        assert_eq!((only_meant(&behind, ["find_files"].into_iter()), is_tail("find_files", &behind)), (None, true));
    }

    proptest! {
        #[test]
        fn what_is_done_is_never_read_otherwise(one in "[a-z]{2,9}", other in "[a-z]{2,9}", rest in "[a-z]{2,9}(_[a-z]{2,9})?") {
            prop_assume!(one != other);
            let (name, known) = (format!("{one}_{rest}"), format!("{other}_{rest}"));
            prop_assert!(!is_taken(&name, &known), "{} for {}", name, known);
        }

        #[test]
        fn whichever_way_two_names_are_compared_the_answer_is_the_same(one in "[a-c1_.-]{0,12}", other in "[a-c1_.-]{0,12}") {
            prop_assert_eq!(is_taken(&one, &other), is_taken(&other, &one));
        }
    }
}
