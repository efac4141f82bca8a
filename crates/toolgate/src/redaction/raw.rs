//! The text of a call that was not admitted, as far as it may be kept.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::{Kept, Redactor};
use crate::contract::Contract;
use crate::json::{self, Limits, canonical};
use crate::schema::{Mark, Schema};

/// Bytes of the text that a record keeps.
const BOUND: usize = 16 * 1024;
/// Bytes that are looked at for what is kept: enough that what is cut off hides nothing before the cut.
const LOOKED_AT: usize = 4 * BOUND;
/// What stands for characters that are not kept.
const BLANK: char = '…';

impl Redactor {
    /// What the record keeps of arguments that were not admitted: always how many bytes there were and their keyed
    /// `digest`, and beside them
    ///
    /// - of a tool that hides nothing, the `text` as it was sent, without what looks like a secret;
    /// - of a tool that hides something, the `value`, if the text is strict JSON. What its schema marks is hidden, and so is
    ///   what stands where the schema says nothing: it may be the marked value under a wrong name;
    /// - of a tool that hides something, where the text is no strict JSON, the `text` with blanks in place of all that
    ///   cannot be told to be a value that may be shown;
    /// - of an unknown tool nothing: nobody has said what is secret there.
    ///
    /// `redacted`, `cut` and `lossy` (it was not UTF-8) are there, and true, where the text is not the one that was sent.
    pub(crate) fn unadmitted(&self, contract: Option<&Contract>, sent: &[u8]) -> Value {
        let mut raw = match contract.filter(|_| self.redaction.0.kept == Kept::Values) {
            Some(contract) if contract.input.has_marks() => self.of_hiding(&contract.input, sent),
            Some(_) => self.as_sent(sent),
            None => Map::new(),
        };
        raw.insert("bytes".into(), sent.len().into());
        raw.insert("digest".into(), json!(self.keyed(self.mark, "raw", sent)));
        Value::Object(raw)
    }

    fn as_sent(&self, sent: &[u8]) -> Map<String, Value> {
        let (text, mut told) = readable(sent);
        let redacted = self.redaction.text(&text);
        if *redacted != text {
            say("redacted", &mut told);
        }
        bounded(&redacted, told)
    }

    fn of_hiding(&self, input: &Schema, sent: &[u8]) -> Map<String, Value> {
        let limits = Limits { size: sent.len(), ..Limits::default() };
        match json::read_arguments(sent, &limits) {
            Ok(members) => {
                let hidden = &mut |mark: Mark, value: &Value| self.hidden(mark, value);
                let mut value = input.replaced_in_misfit(&Value::Object(members), hidden);
                self.redaction.scrub(&mut value);
                let mut told = Map::new();
                match canonical(&value).len() <= BOUND {
                    true => drop(told.insert("value".into(), value)),
                    false => say("cut", &mut told),
                }
                told
            }
            Err(_) => {
                let (text, mut told) = readable(sent);
                let blanked = blanked(&text, input);
                say("redacted", &mut told);
                bounded(&self.redaction.text(&blanked), told)
            }
        }
    }
}

/// The beginning of what was sent, as text, and what of it is not as it was.
fn readable(sent: &[u8]) -> (String, Map<String, Value>) {
    let start = sent.get(..LOOKED_AT).unwrap_or(sent);
    let mut told = Map::new();
    if start.len() < sent.len() {
        say("cut", &mut told);
    }
    let text = match std::str::from_utf8(start) {
        Ok(text) => text.to_owned(),
        // A character that the cut went through is no fault of the text.
        Err(error) if error.error_len().is_none() && start.len() < sent.len() => {
            String::from_utf8_lossy(start.get(..error.valid_up_to()).unwrap_or_default()).into_owned()
        }
        Err(_) => {
            say("lossy", &mut told);
            String::from_utf8_lossy(start).into_owned()
        }
    };
    (text, told)
}

fn bounded(text: &str, mut told: Map<String, Value>) -> Map<String, Value> {
    let end = text.floor_char_boundary(BOUND);
    if end < text.len() {
        say("cut", &mut told);
    }
    told.insert("text".into(), text.get(..end).unwrap_or_default().into());
    told
}

/// Says that the text is not the one that was sent, and in what.
fn say(what: &str, told: &mut Map<String, Value>) {
    told.insert(what.to_owned(), true.into());
}

/// A token of JSON, or of what was meant to be JSON.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Token {
    Space,
    /// One of `{ } [ ] , :`.
    Sign(u8),
    /// With its quotation marks, of which the last may be missing at the end of the text.
    Text,
    /// A number or a literal.
    Bare,
}

/// What the text says is open.
struct Level {
    object: bool,
    /// Whether a value that comes next may be shown.
    shown: bool,
    /// Whether names below count at all.
    inside_shown: bool,
}

/// The text without the values that its schema marks, and without those of which it cannot be told.
fn blanked(text: &str, input: &Schema) -> String {
    match tokens(text) {
        Some(tokens) => without_hidden(&tokens, input),
        None => without_words(text, input),
    }
}

/// The tokens of a text that is wrong only in how they follow each other, or ends too early.
fn tokens(text: &str) -> Option<Vec<(Token, &str)>> {
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let rest = bytes.get(at..)?;
        let length = |of: &dyn Fn(u8) -> bool| rest.iter().position(|byte| !of(*byte)).unwrap_or(rest.len());
        let (token, length) = match byte {
            b' ' | b'\t' | b'\r' | b'\n' => (Token::Space, length(&|byte| b" \t\r\n".contains(&byte))),
            b'{' | b'}' | b'[' | b']' | b',' | b':' => (Token::Sign(byte), 1),
            b'"' => (Token::Text, quoted(rest)),
            b'-' | b'0'..=b'9' | b'a'..=b'z' => {
                let length = length(&|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
                let word = text.get(at..at + length)?;
                let known = matches!(word, "true" | "false" | "null") || word.parse::<f64>().is_ok();
                // What was cut off at the end may have been a literal.
                if !known && at + length < bytes.len() {
                    return None;
                }
                (Token::Bare, length)
            }
            _ => return None,
        };
        tokens.push((token, text.get(at..at + length)?));
        at += length;
    }
    Some(tokens)
}

/// The length of a text with its quotation marks.
fn quoted(bytes: &[u8]) -> usize {
    let mut at = 1;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn without_hidden(tokens: &[(Token, &str)], input: &Schema) -> String {
    let mut shows = HashMap::new();
    let mut open: Vec<Level> = Vec::new();
    let mut out = String::new();
    for (index, (token, written)) in tokens.iter().enumerate() {
        let follows = tokens.iter().skip(index + 1).find(|(token, _)| *token != Token::Space);
        let is_name = *token == Token::Text && follows.is_some_and(|(token, _)| *token == Token::Sign(b':'));
        let shown = open.last().is_some_and(|level| level.shown);
        match token {
            Token::Space | Token::Sign(b':') => out.push_str(written),
            Token::Sign(b'{' | b'[') => {
                let object = *written == "{";
                let inside_shown = open.is_empty() && object || shown;
                open.push(Level { object, shown: !object && inside_shown, inside_shown });
                out.push_str(written);
            }
            Token::Sign(sign) => {
                if *sign != b',' {
                    open.pop();
                }
                if let Some(level) = open.last_mut().filter(|level| level.object) {
                    level.shown = false;
                }
                out.push_str(written);
            }
            Token::Text if is_name => {
                let name = json::read(written.as_bytes(), &Limits::default()).ok();
                let name = name.as_ref().and_then(Value::as_str);
                if let Some(level) = open.last_mut() {
                    level.shown = level.inside_shown
                        && name.is_some_and(|name| *shows.entry(name.to_owned()).or_insert_with(|| input.shows(name)));
                }
                match name.is_some_and(|name| input.declares(name)) {
                    true => out.push_str(written),
                    false => blank(written, &mut out),
                }
            }
            Token::Text | Token::Bare => {
                match shown {
                    true => out.push_str(written),
                    false => blank(written, &mut out),
                }
                // A second value under one name cannot be told.
                if let Some(level) = open.last_mut().filter(|level| level.object) {
                    level.shown = false;
                }
            }
        }
    }
    out
}

/// A token whose form can be seen, and nothing else.
fn blank(written: &str, out: &mut String) {
    match written.strip_prefix('"') {
        Some(rest) => {
            out.push('"');
            out.push(BLANK);
            if rest.ends_with('"') {
                out.push('"');
            }
        }
        None => out.push(BLANK),
    }
}

/// Of a text of which nothing can be told, the signs and the names that the schema declares.
fn without_words(text: &str, input: &Schema) -> String {
    let is_sign = |c: char| c.is_whitespace() || "{}[],:\"'`".contains(c);
    let mut out = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = if is_sign(first) { first.len_utf8() } else { rest.find(is_sign).unwrap_or(rest.len()) };
        let (word, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
        let is_name = || after.trim_start_matches(['"', '\'', '`', ' ']).starts_with(':') && input.declares(word);
        match is_sign(first) || is_name() {
            true => out.push_str(word),
            false => out.push(BLANK),
        }
        rest = after;
    }
    out
}
