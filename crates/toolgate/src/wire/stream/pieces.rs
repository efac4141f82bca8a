//! What comes piece by piece: texts that grow, and facts that are told once or again.

use serde_json::Value;

use crate::json::{self, Limits};

/// A text in pieces.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    text: String,
    /// The raw text of the first piece that is none: not a string, or one that cannot be read.
    odd: Option<Vec<u8>>,
}

/// A name, whole or in pieces.
#[derive(Debug, Default)]
pub(super) struct Name {
    text: String,
    /// Where the last piece begins, once there is more than one.
    last: Option<usize>,
}

/// What a piece did to a name.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Named {
    /// It is the name, or says it again.
    Whole,
    /// It went to the end of the name.
    Longer,
    /// It cannot be told what the name is, for this reason.
    Unsure(&'static str),
}

/// A value that is told once, or again with the same meaning.
#[derive(Debug, Default)]
pub(super) struct Fact(Option<Vec<u8>>);

impl Pieces {
    /// Puts a piece at the end. `null` adds nothing.
    pub(super) fn add(&mut self, piece: &[u8], limits: &Limits) {
        if let Some(text) = self.read(piece, limits) {
            self.text.push_str(&text);
        }
    }

    /// Puts a piece at the end, unless it is all of an object that is there already; then this gives `false`. Two objects
    /// in a row are never one text of arguments, so nothing is lost.
    ///
    /// The text is looked at only where the piece is as long: all looking together is no more than all pieces.
    pub(super) fn add_once(&mut self, piece: &[u8], limits: &Limits) -> bool {
        let Some(text) = self.read(piece, limits) else { return true };
        if !text.is_empty() && text == self.text && json::members(text.as_bytes(), limits).is_ok() {
            return false;
        }
        self.text.push_str(&text);
        true
    }

    fn read(&mut self, piece: &[u8], limits: &Limits) -> Option<String> {
        match json::read(piece, limits) {
            Ok(Value::String(text)) => Some(text),
            Ok(Value::Null) => None,
            Ok(Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) | Err(_) => {
                self.odd.get_or_insert_with(|| piece.to_vec());
                None
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.odd.is_none()
    }

    /// Whether there is no text, or none that says anything.
    pub(super) fn is_blank(&self) -> bool {
        self.text.trim_ascii().is_empty() && self.odd.is_none()
    }

    /// Whether the text is an object from its beginning to its end.
    pub(super) fn is_whole(&self, limits: &Limits) -> bool {
        self.odd.is_none() && json::members(self.text.as_bytes(), limits).is_ok()
    }

    /// The text that the pieces make; of pieces that make none, the raw text of the first that is none.
    pub(super) fn into_text(self) -> Result<String, Vec<u8>> {
        self.odd.map_or(Ok(self.text), Err)
    }

    /// The same as JSON text.
    pub(super) fn into_raw(self) -> Vec<u8> {
        self.into_text().map_or_else(|odd| odd, |text| quoted(&text))
    }
}

impl Name {
    /// Takes a piece of the name; `begun` says that the arguments have begun.
    ///
    /// Servers send a name once, or whole with every piece of the call, or in pieces. One that could be read as two of
    /// these is refused.
    pub(super) fn add(&mut self, piece: &str, begun: bool) -> Named {
        if piece.is_empty() || piece == self.text {
            return Named::Whole;
        }
        if self.text.is_empty() {
            self.text.push_str(piece);
            return Named::Whole;
        }
        if begun {
            return Named::Unsure("another name after the arguments began");
        }
        if piece.starts_with(&self.text) {
            return Named::Unsure("a longer name that begins like the one before: the whole, or a piece");
        }
        if self.last.is_some_and(|last| self.text.get(last..) == Some(piece)) {
            return Named::Unsure("a piece of the name again: the same, or the next");
        }
        self.last = Some(self.text.len());
        self.text.push_str(piece);
        Named::Longer
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

impl Fact {
    /// Takes what is told; `false` if it is not what was told before.
    pub(super) fn tell(&mut self, raw: &[u8], limits: &Limits) -> bool {
        let told = spelled(raw, limits);
        *self.0.get_or_insert_with(|| told.clone()) == told
    }

    pub(super) fn raw(&self) -> Option<&[u8]> {
        self.0.as_deref()
    }
}

/// The one spelling of a string; any other value as it is written.
pub(super) fn spelled(raw: &[u8], limits: &Limits) -> Vec<u8> {
    match json::read(raw, limits) {
        Ok(Value::String(text)) => quoted(&text),
        _ => raw.to_vec(),
    }
}

/// A string as JSON text.
pub(super) fn quoted(text: &str) -> Vec<u8> {
    Value::from(text).to_string().into_bytes()
}

/// An object of these members, with the raw text of their values.
pub(super) fn object<'m>(members: impl IntoIterator<Item = (&'m str, &'m [u8])>) -> Vec<u8> {
    let mut text = b"{".to_vec();
    for (name, raw) in members {
        if text.len() > 1 {
            text.push(b',');
        }
        text.extend_from_slice(&quoted(name));
        text.push(b':');
        text.extend_from_slice(raw);
    }
    text.push(b'}');
    text
}

/// An array of items with this raw text.
pub(super) fn list(items: &[Vec<u8>]) -> Vec<u8> {
    let mut text = b"[".to_vec();
    for item in items {
        if text.len() > 1 {
            text.push(b',');
        }
        text.extend_from_slice(item);
    }
    text.push(b']');
    text
}
