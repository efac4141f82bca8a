//! Redaction: what of a call may stand on the record.
//!
//! | what | stands there as |
//! |---|---|
//! | a value that its contract marks `x-secret` | `{"$secret": "<64 hex>"}`, a digest under the gate's key |
//! | a value that its contract marks `x-personal` | `{"$personal": "<64 hex>"}`, a digest under the key of whoever it is of |
//! | what looks like a secret in another text | `[secret <8 hex>]` in its place |
//! | the text of a call that was not admitted | see [`Redactor::unadmitted`] |
//!
//! Equal values have equal digests, so that one can tell that two calls carried the same; whoever has not the key learns
//! nothing else. Once the salt of a person is erased, nobody has the key of what is personal to them.

mod detect;
mod raw;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value, json};

use crate::call::Ref;
use crate::json::{Digest, canonical};
use crate::schema::{Mark, Schema};
use crate::vault::{GateKey, Salt, Seal};
use detect::{Secrets, promises_secret};

/// Whether records hold the arguments, the raw texts and the facts of calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kept {
    /// They do, without what is secret or personal.
    #[default]
    Values,
    /// They hold digests of them alone.
    Digests,
}

/// The redaction of a gate.
#[derive(Clone)]
pub(crate) struct Redaction(Arc<Means>);

struct Means {
    key: GateKey,
    seal: Seal,
    kept: Kept,
}

/// The redaction of one call.
pub(crate) struct Redactor {
    redaction: Redaction,
    /// The strongest mark of what the call may carry.
    mark: Option<Mark>,
    /// What digests personal values. Where it is not known whose they are, a key that is used this once.
    personal: OnceLock<Box<Seal>>,
}

impl Redaction {
    pub(crate) fn new(key: GateKey, kept: Kept) -> Self {
        let seal = key.seal();
        Self(Arc::new(Means { key, seal, kept }))
    }

    /// The redaction of a call that may carry what is marked so, and of whom `salt` is.
    pub(crate) fn of_call(&self, mark: Option<Mark>, salt: Option<&Salt>) -> Redactor {
        let personal = salt.map(|salt| OnceLock::from(Box::new(self.0.key.seal_of(salt))));
        Redactor { redaction: self.clone(), mark, personal: personal.unwrap_or_default() }
    }

    /// A text without the secrets that can be told by their form.
    pub(crate) fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut found = Secrets::of(text).peekable();
        if found.peek().is_none() {
            return Cow::Borrowed(text);
        }
        let mut out = String::with_capacity(text.len());
        let mut end = 0;
        for secret in found {
            out.push_str(text.get(end..secret.start).unwrap_or_default());
            out.push_str(&self.stand_in(text.get(secret.clone()).unwrap_or_default()));
            end = secret.end;
        }
        out.push_str(text.get(end..).unwrap_or_default());
        Cow::Owned(out)
    }

    /// A value without such secrets, in its texts and in the names of its members.
    pub(crate) fn scrub(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Cow::Owned(redacted) = self.text(text) {
                    *text = redacted;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.scrub(item)),
            Value::Object(members) if is_digest(members) => {}
            Value::Object(members) => {
                for (name, value) in members.iter_mut() {
                    match promises_secret(name.as_bytes()) {
                        true => self.hide_all(value),
                        false => self.scrub(value),
                    }
                }
                self.scrub_names(members);
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// What a member holds whose name promises a secret: each text and number of it may be the secret.
    fn hide_all(&self, value: &mut Value) {
        match value {
            Value::String(text) if text.is_empty() => {}
            Value::String(text) => *text = self.stand_in(text),
            Value::Number(number) => *value = self.stand_in(&number.to_string()).into(),
            Value::Array(items) => items.iter_mut().for_each(|item| self.hide_all(item)),
            Value::Object(members) if is_digest(members) => {}
            Value::Object(members) => {
                members.values_mut().for_each(|value| self.hide_all(value));
                self.scrub_names(members);
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn scrub_names(&self, members: &mut Map<String, Value>) {
        if members.keys().any(|name| Secrets::of(name).next().is_some()) {
            let named = std::mem::take(members);
            members.extend(named.into_iter().map(|(name, value)| (self.text(&name).into_owned(), value)));
        }
    }

    /// What stands on record for the key of an action, which is `sent` downstream. INVARIANT (no plain digest of what is
    /// hidden): it is one of the arguments, so where they may be marked its own keyed digest stands there. All records of
    /// one action have the same, and no subject is part of it: what finds an action out has no arguments at hand.
    pub(crate) fn key_of_action(&self, mark: Option<Mark>, sent: String) -> String {
        match mark {
            Some(_) => self.0.seal.digest("key of an action", &[sent.as_bytes()]).hex(),
            None => sent,
        }
    }

    fn stand_in(&self, secret: &str) -> String {
        // What was replaced already tells nothing.
        if secret.starts_with("[secret") || secret == Mark::Personal.shown() {
            return secret.to_owned();
        }
        let digest = self.0.seal.digest("detected", &[secret.as_bytes()]).hex();
        format!("[secret {}]", digest.get(..8).unwrap_or_default())
    }
}

impl Redactor {
    /// The canonical arguments for the record, where they are kept.
    pub(crate) fn arguments(&self, input: &Schema, members: &Map<String, Value>, canonical: &str) -> Option<String> {
        match self.redaction.0.kept {
            Kept::Digests => None,
            // Nearly always, and what is canonical can stand as it is.
            Kept::Values if !input.has_marks() && !names_secret(members) && Secrets::of(canonical).next().is_none() => {
                Some(canonical.to_owned())
            }
            Kept::Values => {
                let value = self.value(Some(input), &Value::Object(members.clone()));
                Some(crate::json::canonical(&value))
            }
        }
    }

    /// A fact for the record, by the schema of the tool that found it.
    pub(crate) fn fact(&self, output: Option<&Schema>, value: &Value) -> Value {
        match self.redaction.0.kept {
            Kept::Values => self.value(output, value),
            Kept::Digests => json!({ "$digest": self.keyed(self.mark, "fact", canonical(value).as_bytes()) }),
        }
    }

    /// A digest that says which of two values is which. INVARIANT (no plain digest of what is hidden): where the call may
    /// carry a marked value, it is digested once more under the key of that value.
    pub(crate) fn digest(&self, plain: Digest) -> Digest {
        match self.mark {
            Some(mark) => self.keyed(Some(mark), "digest", plain.as_bytes()),
            None => plain,
        }
    }

    fn value(&self, schema: Option<&Schema>, value: &Value) -> Value {
        let mut redacted = match schema {
            Some(schema) => schema.replaced(value, &mut |mark, value| self.hidden(mark, value)),
            None => value.clone(),
        };
        self.redaction.scrub(&mut redacted);
        redacted
    }

    /// What stands for a marked value.
    fn hidden(&self, mark: Mark, value: &Value) -> Value {
        let digest = |purpose| self.keyed(Some(mark), purpose, canonical(value).as_bytes());
        match mark {
            Mark::Secret => json!({ SECRET: digest("secret") }),
            Mark::Personal => json!({ PERSONAL: digest("personal") }),
        }
    }

    fn keyed(&self, mark: Option<Mark>, purpose: &str, bytes: &[u8]) -> Digest {
        let seal = match mark {
            Some(Mark::Personal) => self.personal.get_or_init(|| {
                // Nobody writes this down, so nobody can make the key again.
                let once = Salt(*Digest::of(Ref::fresh().as_str().as_bytes()).as_bytes());
                Box::new(self.redaction.0.key.seal_of(&once))
            }),
            Some(Mark::Secret) | None => &self.redaction.0.seal,
        };
        seal.digest(purpose, &[bytes])
    }
}

/// Whether the name of some member promises a secret.
fn names_secret(members: &Map<String, Value>) -> bool {
    fn within(value: &Value) -> bool {
        match value {
            Value::Array(items) => items.iter().any(within),
            Value::Object(members) => names_secret(members),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        }
    }
    members.iter().any(|(name, value)| promises_secret(name.as_bytes()) || within(value))
}

const SECRET: &str = "$secret";
const PERSONAL: &str = "$personal";

/// Whether an object stands for a value that was hidden.
fn is_digest(members: &Map<String, Value>) -> bool {
    let digest = |value: &Value| value.as_str().is_some_and(|text| text.parse::<Digest>().is_ok());
    members.len() == 1 && [SECRET, PERSONAL].iter().any(|name| members.get(*name).is_some_and(digest))
}

impl fmt::Debug for Redaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redaction")
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redactor")
    }
}
