//! The envelope of one call: what the dialect puts around the arguments. All that is wrong with it is told at once, and
//! none of it breaks the message.

use serde_json::Value;

use super::form::Level;
use super::frame::{Members, kind};
use super::{Address, Broken, Proposed, names};
use crate::call::Call;
use crate::json::{self, Flaw, Limits};
use crate::refusal::{Code, Refusal};
use crate::schema::Problem;

/// Problems told of one call.
const MOST_PROBLEMS: usize = 20;

/// A longer name of a member, or one that does not print, is not repeated.
const LONGEST_SHOWN_NAME: usize = 64;

/// A call while it is read.
pub(super) struct Envelope<'a> {
    limits: &'a Limits,
    call_id: String,
    tool: String,
    address: Address,
    arguments: Vec<u8>,
    problems: Vec<Problem>,
}

impl<'a> Envelope<'a> {
    pub(super) fn new(limits: &'a Limits) -> Self {
        Self {
            limits,
            call_id: String::new(),
            tool: String::new(),
            address: Address::default(),
            arguments: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// A call whose id stands outside of it: `call_id` is how it is shown.
    pub(super) fn with_id(limits: &'a Limits, id: Value, call_id: String) -> Self {
        let address = Address { id: Some(id), name: String::new() };
        Self { call_id, address, ..Self::new(limits) }
    }

    /// Takes the id that the answer will carry. One that cannot be read is answered as an empty one: no dialect with ids
    /// can say it otherwise.
    pub(super) fn id(&mut self, at: &str, part: Option<&[u8]>) {
        self.call_id = self.word(at, part);
        self.address.id = Some(Value::from(self.call_id.as_str()));
    }

    /// Takes an id that need not be there. In proto3 and in Go an empty string is one that is not set.
    pub(super) fn id_if_given(&mut self, at: &str, part: Option<&[u8]>) {
        if let Some(part) = part.filter(|part| *part != b"\"\"") {
            self.call_id = self.word(at, Some(part));
            self.address.id = (!self.call_id.is_empty()).then(|| Value::from(self.call_id.as_str()));
        }
    }

    /// Takes the name of the tool.
    pub(super) fn name(&mut self, at: &str, name: Option<&[u8]>) {
        self.address.name = self.word(at, name);
        self.tool = names::meant(&self.address.name);
    }

    /// Takes the name of the tool in a dialect that has dots in names.
    pub(super) fn name_as_written(&mut self, at: &str, name: Option<&[u8]>) {
        self.address.name = self.word(at, name);
        self.tool.clone_from(&self.address.name);
    }

    /// Takes the raw text of an object as the arguments.
    pub(super) fn arguments(&mut self, text: impl Into<Vec<u8>>) {
        self.arguments = text.into();
    }

    /// The members of an object of the call; a problem where it is none.
    pub(super) fn open<'m>(&mut self, at: &str, part: &'m [u8]) -> Option<Members<'m>> {
        match Members::read(part, self.limits) {
            Ok(members) => Some(members),
            Err(flaw) => {
                self.flawed(at, &flaw);
                None
            }
        }
    }

    /// A value of the call; a problem where it cannot be read.
    pub(super) fn value(&mut self, at: &str, part: &[u8]) -> Option<Value> {
        match json::read(part, self.limits) {
            Ok(value) => Some(value),
            Err(flaw) => {
                self.flawed(at, &flaw);
                None
            }
        }
    }

    /// INVARIANT (nothing beside it): a member that the dialect does not know is never ignored, so that nobody can say
    /// in a call who is asking, or believe that they have.
    pub(super) fn only(&mut self, at: &str, members: &Members<'_>, level: &Level) {
        for (name, _) in members.each().filter(|(name, value)| !level.has(name, value)) {
            let prints = name.len() <= LONGEST_SHOWN_NAME && name.bytes().all(|byte| matches!(byte, b' '..=b'~'));
            let (place, message) = if prints {
                (format!("{at}/{}", name.replace('~', "~0").replace('/', "~1")), "unknown member")
            } else {
                (at.to_owned(), "unknown member with a name that is long or does not print")
            };
            self.problem(
                place,
                "additional_property",
                message,
                format!("leave it out; known: {}", level.wanted.join(", ")),
            );
        }
    }

    pub(super) fn missing(&mut self, at: &str, hint: &'static str) {
        self.problem(at, "required", "missing member", hint);
    }

    pub(super) fn wrong_type(&mut self, at: &str, expected: &str, found: &Value) {
        let message = format!("expected {expected}, got {}", kind(found));
        self.problem(at, "type", message, format!("send {expected}"));
    }

    pub(super) fn problem(
        &mut self,
        at: impl Into<String>,
        code: &str,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        let problem = Problem { at: at.into(), code: code.into(), message: message.into(), hint: Some(hint.into()) };
        self.problems.push(problem);
    }

    /// A string that is there and not empty; an empty one with its problem noted where it is not.
    fn word(&mut self, at: &str, part: Option<&[u8]>) -> String {
        let Some(part) = part else {
            self.missing(at, "send it as a string that is not empty");
            return String::new();
        };
        match self.value(at, part) {
            Some(Value::String(word)) if word.is_empty() => {
                self.problem(at, "min_length", "empty string", "send a string that is not empty");
                word
            }
            Some(Value::String(word)) => word,
            Some(other) => {
                self.wrong_type(at, "a string", &other);
                String::new()
            }
            None => String::new(),
        }
    }

    /// Ends the call: whole, or refused with all its problems; with it goes to whom it is answered. `form` is how a call of
    /// the dialect looks.
    pub(super) fn end(self, form: &str) -> (Proposed, Address) {
        let Self { call_id, tool, address, arguments, mut problems, .. } = self;
        if problems.is_empty() {
            return (Proposed::Call(Call::new(call_id, tool, arguments)), address);
        }
        let count = problems.len();
        problems.truncate(MOST_PROBLEMS);
        let more = count - problems.len();
        let plural = if count == 1 { "problem" } else { "problems" };
        let message =
            format!("{count} {plural} in the call around its arguments, so it did not run. A call is {form}.");
        let refusal = Refusal::before(Code::InvalidCall).message(message).problems(problems, more);
        (Proposed::Broken(Broken { call_id, tool, refusal }), address)
    }

    fn flawed(&mut self, at: &str, flaw: &Flaw) {
        let hint = flaw.hint().unwrap_or("send strict JSON");
        self.problem(format!("{at}{}", flaw.pointer), flaw.code.as_str(), flaw.message.clone(), hint);
    }
}
