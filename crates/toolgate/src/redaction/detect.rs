//! Secrets that somebody wrote where no contract expects one, known by their form. One pass, no pattern engine.
//!
//! What is found is the part that gives a right to whoever reads it: of `password=hunter2` the value, of a URL the
//! password. A text that is JSON is looked at as it stands, its escapes included.

use std::ops::Range;

/// The secrets in a text, in order, none of which overlap.
pub(super) struct Secrets<'t> {
    text: &'t str,
    at: usize,
}

/// What tokens of one issuer look like.
struct Form {
    prefix: &'static [u8],
    /// What comes at least after it.
    rest: usize,
    of: fn(u8) -> bool,
    /// Whether chance alone would put a digit and a capital into it: words that people write have no such mix.
    mixed: bool,
}

const fn form(prefix: &'static [u8], rest: usize, of: fn(u8) -> bool) -> Form {
    Form { prefix, rest, of, mixed: false }
}

/// Tokens that one word makes: what follows the prefix is of one alphabet to the end of the word.
const FORMS: &[Form] = &[
    // Access key ids of AWS are 20 characters, of long-term and of temporary keys.
    form(b"AKIA", 16, is_capital),
    form(b"ASIA", 16, is_capital),
    form(b"ghp_", 30, is_word),
    form(b"gho_", 30, is_word),
    form(b"ghu_", 30, is_word),
    form(b"ghs_", 30, is_word),
    form(b"ghr_", 30, is_word),
    form(b"github_pat_", 22, is_word),
    form(b"glpat-", 20, is_word),
    form(b"gldt-", 20, is_word),
    form(b"glrt-", 20, is_word),
    form(b"glptt-", 20, is_word),
    form(b"xoxb-", 10, is_word),
    form(b"xoxp-", 10, is_word),
    form(b"xoxa-", 10, is_word),
    form(b"xoxr-", 10, is_word),
    form(b"xoxs-", 10, is_word),
    form(b"xoxe-", 10, is_word),
    form(b"xapp-", 10, is_word),
    form(b"sk_live_", 16, is_word),
    form(b"sk_test_", 16, is_word),
    form(b"rk_live_", 16, is_word),
    form(b"rk_test_", 16, is_word),
    form(b"whsec_", 16, is_word),
    form(b"sk-ant-", 20, is_word),
    Form { prefix: b"sk-", rest: 20, of: is_word, mixed: true },
    form(b"AIza", 35, is_word),
    form(b"GOCSPX-", 20, is_word),
    form(b"npm_", 36, is_word),
    form(b"pypi-AgE", 32, is_word),
    Form { prefix: b"hf_", rest: 30, of: is_word, mixed: true },
    form(b"shpat_", 32, is_word),
    form(b"dop_v1_", 60, is_word),
    // A token of a folder of Toolgate's own.
    form(b"tg_", 36, is_word),
];

/// Shorter words are no token.
const SHORTEST: usize = 14;

/// Names whose value is a secret, as the end of a longer name too, whatever the case.
const NAMES: &[&str] = &[
    "password",
    "passwd",
    "pwd",
    "passphrase",
    "secret",
    "api_key",
    "apikey",
    "api-key",
    "access_key",
    "access-key",
    "accesskey",
    "secret_key",
    "private_key",
    "access_token",
    "auth_token",
    "refresh_token",
    "authorization",
];

impl<'t> Secrets<'t> {
    pub(super) fn of(text: &'t str) -> Self {
        Self { text, at: 0 }
    }
}

impl Iterator for Secrets<'_> {
    type Item = Range<usize>;

    /// INVARIANT (linear): a byte is looked at a bounded number of times, whatever the text.
    fn next(&mut self) -> Option<Range<usize>> {
        let bytes = self.text.as_bytes();
        while let Some(&byte) = bytes.get(self.at) {
            let at = self.at;
            let found = match byte {
                b':' if rest(bytes, at).starts_with(b"://") => {
                    self.at = at + 3;
                    url_password(bytes, at + 3)
                }
                byte if is_word(byte) => {
                    let end = at + run(rest(bytes, at), is_word);
                    self.at = end;
                    starts(bytes, at, end).find_map(|start| self.of_word(bytes, start, end))
                }
                _ => {
                    self.at = at + 1;
                    None
                }
            };
            if let Some(found) = found.filter(|found| !found.is_empty()) {
                self.at = found.end;
                return Some(found);
            }
        }
        None
    }
}

impl Secrets<'_> {
    /// What the word from `start` to `end` is, or says of what follows it.
    fn of_word(&self, bytes: &[u8], start: usize, end: usize) -> Option<Range<usize>> {
        let word = bytes.get(start..end)?;
        if word.starts_with(b"-----BEGIN") {
            return self.private_key(start);
        }
        let token = (word.len() >= SHORTEST && is_token(word)).then_some(start..end);
        token
            .or_else(|| dotted(bytes, start, end))
            .or_else(|| bearer(bytes, word, end))
            .or_else(|| named(bytes, word, end))
    }

    /// A private key in the text form of RFC 7468, to its end or to that of the text.
    fn private_key(&self, start: usize) -> Option<Range<usize>> {
        const LONGEST_LABEL: usize = 64;
        let after = self.text.get(start + "-----BEGIN".len()..)?;
        let label = after.find("-----").filter(|length| *length <= LONGEST_LABEL)?;
        if !after.get(..label)?.ends_with("PRIVATE KEY") {
            return None;
        }
        let whole = self.text.get(start..)?;
        let end = whole.find("-----END").and_then(|end| {
            let close = whole.get(end + "-----END".len()..)?.find("-----")?;
            (close <= LONGEST_LABEL).then_some(start + end + "-----END".len() + close + "-----".len())
        });
        Some(start..end.unwrap_or(self.text.len()))
    }
}

/// Where a word may begin: behind a backslash the first letters may be an escape of JSON.
fn starts(bytes: &[u8], at: usize, end: usize) -> impl Iterator<Item = usize> + use<> {
    let escaped = at.checked_sub(1).and_then(|before| bytes.get(before)) == Some(&b'\\');
    let skipped = match bytes.get(at) {
        Some(b'b' | b'f' | b'n' | b'r' | b't') if escaped => Some(at + 1),
        Some(b'u') if escaped => Some(at + 5),
        _ => None,
    };
    [Some(at), skipped.filter(|start| *start < end)].into_iter().flatten()
}

fn is_token(word: &[u8]) -> bool {
    FORMS.iter().any(|form| {
        word.strip_prefix(form.prefix).is_some_and(|rest| {
            rest.len() >= form.rest
                && rest.iter().all(|byte| (form.of)(*byte))
                && (!form.mixed || rest.iter().any(u8::is_ascii_digit) && rest.iter().any(u8::is_ascii_uppercase))
        })
    })
}

/// Tokens of several words with dots between them.
fn dotted(bytes: &[u8], start: usize, end: usize) -> Option<Range<usize>> {
    let word = bytes.get(start..end)?;
    let after = |end: usize, least: usize| {
        let length = run(rest(bytes, end + 1), is_word);
        (bytes.get(end) == Some(&b'.') && length >= least).then_some(end + 1 + length)
    };
    if word.starts_with(b"eyJ") && word.len() >= SHORTEST {
        let payload = after(end, 10).filter(|_| rest(bytes, end + 1).starts_with(b"eyJ"))?;
        return Some(start..after(payload, 4).unwrap_or(payload));
    }
    match word {
        b"ya29" => Some(start..after(end, 20)?),
        b"SG" => Some(start..after(after(end, 16)?, 16)?),
        _ => None,
    }
}

/// What follows the word `Bearer`.
fn bearer(bytes: &[u8], word: &[u8], end: usize) -> Option<Range<usize>> {
    if !word.eq_ignore_ascii_case(b"bearer") {
        return None;
    }
    let start = end + run(rest(bytes, end), |byte| byte == b' ').min(3);
    let length = run(rest(bytes, start), |byte| is_word(byte) || b"._~+/=".contains(&byte));
    let token = bytes.get(start..start + length)?;
    (start > end && length >= 16 && token.iter().any(u8::is_ascii_digit)).then_some(start..start + length)
}

/// The value that stands with a name which promises a secret.
fn named(bytes: &[u8], word: &[u8], end: usize) -> Option<Range<usize>> {
    const QUOTES: &[u8] = b"\"'`\\";
    let quote = |byte: u8| QUOTES.contains(&byte);
    let space = |byte: u8| byte == b' ';
    if !bytes.get(end).is_some_and(|next| b"=:\"'`\\ ".contains(next)) || !promises_secret(word) {
        return None;
    }
    let closed = end + run(rest(bytes, end), quote).min(2);
    let sign = closed + run(rest(bytes, closed), space).min(3);
    let assigned = match bytes.get(sign)? {
        b'=' if bytes.get(sign + 1) == Some(&b'=') => return None,
        b'=' => true,
        b':' => false,
        _ => return None,
    };
    let begin = sign + 1 + usize::from(bytes.get(sign + 1) == Some(&b'>'));
    let begin = begin + run(rest(bytes, begin), space).min(3);
    let (quotes, opened) = match rest(bytes, begin) {
        [b'\\', mark @ (b'"' | b'\''), ..] => (2, Some(*mark)),
        [mark @ (b'"' | b'\'' | b'`'), ..] => (1, Some(*mark)),
        _ => (0, None),
    };
    let start = begin + quotes;
    let of_header = opened.is_none() && names_header(word) && begins_with_scheme(rest(bytes, start));
    let length = match opened {
        Some(mark) => quoted(rest(bytes, start), mark, quotes == 2),
        None if of_header => run(rest(bytes, start), |byte| !quote(byte) && !byte.is_ascii_control()),
        None => run(rest(bytes, start), |byte| !byte.is_ascii_whitespace() && !b"\"'`&;,:)]}<>".contains(&byte)),
    };
    let value = bytes.get(start..start + length)?;
    let told = assigned || opened.is_some() || of_header || length >= 6 && value.iter().any(u8::is_ascii_digit);
    (told && !says_nothing(value)).then_some(start..start + length)
}

fn names_header(word: &[u8]) -> bool {
    word.len() >= 13 && word.to_ascii_lowercase().ends_with(b"authorization")
}

fn begins_with_scheme(value: &[u8]) -> bool {
    let scheme = value.get(..run(value, is_word)).unwrap_or_default();
    value.get(scheme.len()) == Some(&b' ')
        && [&b"basic"[..], b"bearer", b"digest", b"token"].iter().any(|known| scheme.eq_ignore_ascii_case(known))
}

/// Whether a value tells nothing: it was replaced already, or is one that everybody knows.
fn says_nothing(value: &[u8]) -> bool {
    value.starts_with(b"[secret") || [&b"true"[..], b"false", b"null", b"none", b"None"].contains(&value)
}

/// Whether what a member of this name holds is a secret.
pub(super) fn promises_secret(name: &[u8]) -> bool {
    // Nearly all names are told apart by their last letter.
    let last = name.last().map_or(0, u8::to_ascii_lowercase);
    NAMES.iter().map(|known| known.as_bytes()).any(|known| {
        known.last() == Some(&last)
            && name.len() >= known.len()
            && name.get(name.len() - known.len()..).is_some_and(|end| end.eq_ignore_ascii_case(known))
    })
}

/// The password of a URL, whose authority begins at `start`.
fn url_password(bytes: &[u8], start: usize) -> Option<Range<usize>> {
    let of_authority =
        |byte: u8| !byte.is_ascii_whitespace() && !byte.is_ascii_control() && !b"/?#\"'`<>\\".contains(&byte);
    let authority = bytes.get(start..start + run(rest(bytes, start), of_authority))?;
    let end = authority.iter().rposition(|byte| *byte == b'@')?;
    let colon = authority.get(..end)?.iter().position(|byte| *byte == b':')?;
    Some(start + colon + 1..start + end)
}

fn rest(bytes: &[u8], from: usize) -> &[u8] {
    bytes.get(from..).unwrap_or_default()
}

/// How many bytes from the first on are of a kind.
fn run(bytes: &[u8], of: impl Fn(u8) -> bool) -> usize {
    bytes.iter().position(|byte| !of(*byte)).unwrap_or(bytes.len())
}

/// How long a text is that a quotation mark opened. A backslash takes the next byte with it, unless all of it is escaped
/// once more.
fn quoted(bytes: &[u8], mark: u8, escaped: bool) -> usize {
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if byte == mark {
            let before = at.checked_sub(1).and_then(|before| bytes.get(before));
            return if escaped && before == Some(&b'\\') { at - 1 } else { at };
        }
        at += if byte == b'\\' && !escaped { 2 } else { 1 };
    }
    bytes.len()
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

fn is_capital(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}
