//! The grammar: one walk over the text, for values, raw slices and skipping alike.

use std::collections::HashSet;

use serde_json::{Map, Number, Value};

use super::diagnose;
use super::flaw::{Fail, Flaw, Found};
use super::{Limits, number};

/// No setting allows more open brackets: the walk, and whoever walks the value later, recurses.
const DEEPEST: usize = 512;

/// Up to here a repeated name is looked for by comparing, beyond by hashing.
const FEW: usize = 16;

/// What a step of the walk yields.
pub(super) type Reading<T> = Result<T, Fail>;

/// A place in a text.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    pub(super) text: &'a str,
    /// INVARIANT (boundary): lies on a character boundary of the text, or at its end.
    pub(super) at: usize,
    open: usize,
    members: usize,
    depth_limit: usize,
    members_limit: usize,
    /// What was read of the objects that are open, the innermost last: one memory for all, so that each is made at its
    /// size when it is whole.
    pending_members: Vec<Member>,
    /// The same of the arrays that are open.
    pending_items: Vec<Value>,
}

/// A member of an object that is not whole yet.
#[derive(Debug)]
struct Member {
    /// Where its name stands.
    at: usize,
    name: String,
    value: Value,
}

impl<'a> Reader<'a> {
    /// Lets `read` read the one value of a text, and sees to its bounds, its encoding and its end.
    pub(super) fn over<T>(
        bytes: &'a [u8],
        limits: &Limits,
        read: impl FnOnce(&mut Self) -> Reading<T>,
    ) -> Result<T, Flaw> {
        Self::whole(bytes, limits, read).map_err(|fail| fail.into_flaw(bytes))
    }

    fn whole<T>(bytes: &'a [u8], limits: &Limits, read: impl FnOnce(&mut Self) -> Reading<T>) -> Reading<T> {
        if bytes.len() > limits.size {
            return Err(Fail { at: limits.size, found: Found::TooLarge(limits.size) });
        }
        let text =
            std::str::from_utf8(bytes).map_err(|error| Fail { at: error.valid_up_to(), found: Found::NotUtf8 })?;
        let mut reader = Self {
            text,
            at: 0,
            open: 0,
            members: 0,
            depth_limit: limits.depth.min(DEEPEST),
            members_limit: limits.members,
            pending_members: Vec::with_capacity(8),
            pending_items: Vec::new(),
        };
        reader.space();
        let value = read(&mut reader).map_err(|fail| match reader.open {
            0 => diagnose::outside_brackets(text, fail),
            _ => fail,
        })?;
        reader.space();
        if !reader.at_end() {
            return Err(diagnose::after_value(text, reader.at));
        }
        Ok(value)
    }

    pub(super) fn at_end(&self) -> bool {
        self.at >= self.text.len()
    }

    /// Reads a value with all that is in it.
    pub(super) fn value(&mut self) -> Reading<Value> {
        match self.peek() {
            Some(b'"') => self.string().map(Value::String),
            Some(b'{') => self.object_value(),
            Some(b'[') => self.array_value(),
            Some(b'-' | b'0'..=b'9') => self.number().map(Value::Number),
            Some(b't') => self.word("true").map(|()| Value::Bool(true)),
            Some(b'f') => self.word("false").map(|()| Value::Bool(false)),
            Some(b'n') => self.word("null").map(|()| Value::Null),
            _ => Err(diagnose::instead_of_value(self.text, self.at)),
        }
    }

    /// Reads one level of an object, its values as raw text.
    pub(super) fn members(&mut self) -> Reading<Vec<(String, &'a [u8])>> {
        if self.peek() != Some(b'{') {
            return Err(self.instead_of(Found::NotObject));
        }
        let mut members: Vec<(String, &'a [u8])> = Vec::new();
        let mut seen: HashSet<String> = HashSet::new();
        self.object(|reader| {
            let start = reader.at;
            let name = reader.name()?;
            let repeated = if members.len() < FEW {
                members.iter().any(|(earlier, _)| *earlier == name)
            } else {
                if seen.is_empty() {
                    seen.extend(members.iter().map(|(earlier, _)| earlier.clone()));
                }
                !seen.insert(name.clone())
            };
            if repeated {
                return Err(diagnose::duplicate(start, &name));
            }
            members.push((name, reader.raw()?));
            Ok(())
        })?;
        Ok(members)
    }

    /// Reads one level of an array, its items as raw text.
    pub(super) fn items(&mut self) -> Reading<Vec<&'a [u8]>> {
        if self.peek() != Some(b'[') {
            return Err(self.instead_of(Found::NotArray));
        }
        let mut items = Vec::new();
        self.array(|reader| {
            items.push(reader.raw()?);
            Ok(())
        })?;
        Ok(items)
    }

    fn object_value(&mut self) -> Reading<Value> {
        let first = self.pending_members.len();
        let walked = self.object(|reader| {
            let at = reader.at;
            let name = reader.name()?;
            let value = reader.value()?;
            reader.pending_members.push(Member { at, name, value });
            Ok(())
        });
        // Also where the walk has failed: a name that was repeated before that is what a reader meets first.
        let mut members = Map::with_capacity(self.pending_members.len().saturating_sub(first));
        let mut pending = self.pending_members.drain(first..);
        let repeated = pending.find_map(|Member { at, name, value }| members.insert(name, value).map(|_| at));
        drop(pending);
        if let Some(at) = repeated {
            self.at = at;
            return Err(diagnose::duplicate(at, &self.string()?));
        }
        walked.map(|()| Value::Object(members))
    }

    fn array_value(&mut self) -> Reading<Value> {
        let first = self.pending_items.len();
        self.array(|reader| {
            let item = reader.value()?;
            reader.pending_items.push(item);
            Ok(())
        })?;
        Ok(Value::Array(self.pending_items.drain(first..).collect()))
    }

    /// The text of a value whose structure is sound, without looking for flaws in its content.
    fn raw(&mut self) -> Reading<&'a [u8]> {
        let start = self.at;
        self.skip()?;
        Ok(self.slice(start, self.at).as_bytes())
    }

    fn skip(&mut self) -> Reading<()> {
        match self.peek() {
            Some(b'"') => self.skip_string(),
            Some(b'{') => self.object(|reader| {
                reader.skip_string()?;
                reader.colon()?;
                reader.skip()
            }),
            Some(b'[') => self.array(Self::skip),
            Some(b'-' | b'0'..=b'9') => self.number_text().map(|_| ()),
            Some(b't') => self.word("true"),
            Some(b'f') => self.word("false"),
            Some(b'n') => self.word("null"),
            _ => Err(diagnose::instead_of_value(self.text, self.at)),
        }
    }

    /// Walks an object; `member` takes over at the quotation mark of each name.
    fn object(&mut self, mut member: impl FnMut(&mut Self) -> Reading<()>) -> Reading<()> {
        self.opened()?;
        if !self.take(b'}') {
            loop {
                if self.peek() != Some(b'"') {
                    return Err(diagnose::instead_of_name(self.text, self.at));
                }
                member(self)?;
                self.space();
                if self.take(b'}') {
                    break;
                }
                self.comma('{')?;
            }
        }
        self.open -= 1;
        Ok(())
    }

    fn array(&mut self, mut item: impl FnMut(&mut Self) -> Reading<()>) -> Reading<()> {
        self.opened()?;
        if !self.take(b']') {
            loop {
                item(self)?;
                self.space();
                if self.take(b']') {
                    break;
                }
                self.comma('[')?;
            }
        }
        self.open -= 1;
        Ok(())
    }

    fn opened(&mut self) -> Reading<()> {
        if self.open >= self.depth_limit {
            return self.fail(Found::TooDeep(self.depth_limit));
        }
        self.open += 1;
        self.at += 1;
        self.space();
        Ok(())
    }

    fn comma(&mut self, open: char) -> Reading<()> {
        if !self.take(b',') {
            return Err(diagnose::instead_of_comma(self.text, self.at, open));
        }
        self.space();
        Ok(())
    }

    fn colon(&mut self) -> Reading<()> {
        self.space();
        if !self.take(b':') {
            return Err(diagnose::instead_of_colon(self.text, self.at));
        }
        self.space();
        Ok(())
    }

    /// Reads a member's name and the colon.
    fn name(&mut self) -> Reading<String> {
        if self.members >= self.members_limit {
            return self.fail(Found::TooManyMembers(self.members_limit));
        }
        self.members += 1;
        let name = self.string()?;
        self.colon()?;
        Ok(name)
    }

    fn number(&mut self) -> Reading<Number> {
        let start = self.at;
        let text = self.number_text()?;
        number::exact(text).ok_or(Fail { at: start, found: Found::InexactNumber })
    }

    fn number_text(&mut self) -> Reading<&'a str> {
        let start = self.at;
        self.take(b'-');
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits(),
            _ => return Err(diagnose::instead_of_digit(self.text, start, self.at)),
        }
        if self.take(b'.') {
            self.some_digits(start)?;
        }
        if self.take(b'e') || self.take(b'E') {
            let _ = self.take(b'+') || self.take(b'-');
            self.some_digits(start)?;
        }
        match self.peek() {
            Some(b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'.' | b'+' | b'-' | b'_') => {
                Err(diagnose::in_number(self.text, start))
            }
            _ => Ok(self.slice(start, self.at)),
        }
    }

    fn some_digits(&mut self, start: usize) -> Reading<()> {
        if !matches!(self.peek(), Some(b'0'..=b'9')) {
            return Err(diagnose::instead_of_digit(self.text, start, self.at));
        }
        self.digits();
        Ok(())
    }

    fn digits(&mut self) {
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
    }

    fn word(&mut self, word: &str) -> Reading<()> {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        match rest.strip_prefix(word.as_bytes()) {
            Some([b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'_', ..]) | None => {
                Err(diagnose::instead_of_value(self.text, self.at))
            }
            Some(_) => {
                self.at += word.len();
                Ok(())
            }
        }
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    pub(super) fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    pub(super) fn slice(&self, start: usize, end: usize) -> &'a str {
        self.text.get(start..end).unwrap_or_default()
    }

    pub(super) fn fail<T>(&self, found: Found) -> Reading<T> {
        Err(Fail { at: self.at, found })
    }

    /// A sound value of another kind than the wanted one is named; an unsound one has its own flaw.
    fn instead_of(&mut self, wanted: fn(&'static str) -> Found) -> Fail {
        let start = self.at;
        match self.skip() {
            Ok(()) => Fail { at: start, found: wanted(diagnose::kind(self.text, start)) },
            Err(fail) => fail,
        }
    }
}
