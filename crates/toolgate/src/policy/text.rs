//! The text of policies: where a statement ends, and on which line and column a byte stands.
//!
//! Each statement is parsed alone, so that a fault in one hides none in another.

/// One policy as it stands in its file, from its first word to its `;`.
#[derive(Debug)]
pub(super) struct Statement<'a> {
    pub(super) text: &'a str,
    /// Where the text begins in its source, in bytes.
    pub(super) start: usize,
    /// Whether it ends with a `;`.
    pub(super) closed: bool,
    tokens: Vec<Token<'a>>,
}

/// A word, a string literal with its quotes, or a mark.
#[derive(Clone, Copy, Debug)]
struct Token<'a> {
    text: &'a str,
    /// Where it begins in the source of the statement.
    start: usize,
}

/// The statements of a source in their order.
pub(super) fn statements(source: &str) -> Vec<Statement<'_>> {
    let mut found = Vec::new();
    let mut tokens: Vec<Token<'_>> = Vec::new();
    for token in tokens_of(source) {
        tokens.push(token);
        if token.text == ";" {
            found.extend(Statement::new(source, std::mem::take(&mut tokens), true));
        }
    }
    found.extend(Statement::new(source, tokens, false));
    found
}

/// The line and the column of a byte of `source`, both counted from 1, columns in characters.
pub(super) fn place(source: &str, offset: usize) -> (usize, usize) {
    let before = source.get(..offset).unwrap_or(source);
    let line = before.rsplit('\n').next().unwrap_or("");
    (before.matches('\n').count() + 1, line.chars().count() + 1)
}

/// `text` as a string literal of Cedar.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if c.is_control() => out.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

impl<'a> Statement<'a> {
    fn new(source: &'a str, tokens: Vec<Token<'a>>, closed: bool) -> Option<Self> {
        let (first, last) = (tokens.first()?, tokens.last()?);
        let text = source.get(first.start..last.start + last.text.len())?;
        Some(Self { text, start: first.start, closed, tokens })
    }

    /// Where `@name` stands, in the source; the statement's own beginning if it does not.
    pub(super) fn annotation(&self, name: &str) -> usize {
        let mut previous = "";
        for token in &self.tokens {
            if previous == "@" && token.text == name {
                return token.start - 1;
            }
            previous = token.text;
        }
        self.start
    }

    /// Where the member `name` of `parent` is read or asked for; the statement's own beginning if it is not.
    pub(super) fn member(&self, parent: &str, name: &str) -> usize {
        let named = |token: &Token<'_>, name: &str| token.text == name || token.text == quoted(name);
        let hits = || {
            self.tokens.windows(3).filter_map(|three| match three {
                [before, link, token] if matches!(link.text, "." | "[" | "has") && named(token, name) => {
                    Some((before, token))
                }
                _ => None,
            })
        };
        hits()
            .find(|(before, _)| named(before, parent))
            .or_else(|| hits().next())
            .map_or(self.start, |(_, token)| token.start)
    }

    /// Where `text` stands as a literal; the statement's own beginning if it does not.
    pub(super) fn literal(&self, text: &str) -> usize {
        let literal = quoted(text);
        self.tokens.iter().find(|token| token.text == literal).map_or(self.start, |token| token.start)
    }

    /// The ids of the entities of a type, as far as they are written plainly, and where each begins.
    pub(super) fn entities(&self, kind: &str) -> impl Iterator<Item = (&'a str, usize)> {
        self.tokens.windows(4).filter_map(move |four| match four {
            [name, first, second, id] if name.text == kind && first.text == ":" && second.text == ":" => {
                let plain = id.text.strip_prefix('"')?.strip_suffix('"')?;
                (!plain.contains('\\')).then_some((plain, name.start))
            }
            _ => None,
        })
    }

    /// Where a string begins that has no end.
    pub(super) fn endless_string(&self) -> Option<usize> {
        let last = self.tokens.last()?;
        (last.text.starts_with('"') && string_length(last.text).is_none()).then_some(last.start)
    }

    /// Where a second policy begins, which happens when the first one lacks its `;`.
    pub(super) fn second_policy(&self) -> Option<usize> {
        let mut policies = self.tokens.windows(2).filter_map(|two| match two {
            [effect, mark] if matches!(effect.text, "permit" | "forbid") && mark.text == "(" => Some(effect.start),
            _ => None,
        });
        policies.nth(1)
    }

    /// Where the statement ends in its source.
    pub(super) fn end(&self) -> usize {
        self.start + self.text.len()
    }
}

fn tokens_of(source: &str) -> impl Iterator<Item = Token<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let rest = source.get(at..)?;
            let first = rest.chars().next()?;
            let length = if first.is_whitespace() || rest.starts_with("//") {
                at += if first.is_whitespace() { first.len_utf8() } else { rest.find('\n').unwrap_or(rest.len()) };
                continue;
            } else if first == '"' {
                string_length(rest).unwrap_or(rest.len())
            } else if is_word(first) {
                rest.find(|c| !is_word(c)).unwrap_or(rest.len())
            } else {
                first.len_utf8()
            };
            let token = Token { text: rest.get(..length)?, start: at };
            at += length;
            return Some(token);
        }
    })
}

/// How long the string literal is with which `text` begins.
fn string_length(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_ascii_alphanumeric()
}

#[cfg(test)]
#[allow(clippy::indexing_slicing, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn a_semicolon_in_a_string_or_a_comment_ends_nothing() {
        let source = "// a; b\npermit (principal, action, resource) when { \"x;\\\";\" == \"y\" }; // end;\n forbid;";
        let found = statements(source);
        assert_eq!(found.len(), 2);
        assert!(found[0].text.starts_with("permit") && found[0].text.ends_with("};"));
        assert_eq!(found[1].text, "forbid;");
    }

    #[test]
    fn what_follows_the_last_semicolon_is_an_open_statement() {
        let found = statements("permit;\nforbid (principal)\n// nothing more");
        assert!(found[0].closed && !found[1].closed);
        assert_eq!(place("permit;\nforbid (principal)\n", found[1].end()), (2, 19));
    }

    #[test]
    fn columns_count_characters_and_not_bytes() {
        assert_eq!(place("é\nüü@id", 7), (2, 3));
        assert_eq!(statements("\n  @id(\"é\") @fix(\"user\") permit;")[0].annotation("fix"), 13);
    }

    #[test]
    fn a_member_is_found_behind_its_parent_however_it_is_written() {
        let source = "forbid when { context.facts.rate > 1 && context.input.rate > 1 && context[\"x y\"] has rate };";
        let statement = &statements(source)[0];
        assert_eq!(statement.member("input", "rate"), source.find("input.rate").unwrap_or(0) + 6);
        assert_eq!(statement.member("context", "x y"), source.find("\"x y\"").unwrap_or(0));
    }
}
