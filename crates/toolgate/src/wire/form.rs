//! How a dialect writes one call: a declaration, and the one reading of it.

use serde_json::Value;

use super::envelope::Envelope;
use super::frame::{Frame, Members};
use super::{Address, MOST_CALLS, Proposed, Turn, WireFault};

/// The form of a call in a dialect.
pub(super) struct Form {
    /// A call, as it is shown to whoever wrote one wrongly.
    pub(super) shown: &'static str,
    /// The object that stands for the call in a message.
    pub(super) item: Level,
    /// What its `type` says, if it has one and the message has other kinds of calls in the same place.
    pub(super) kind: Option<&'static str>,
    /// The member with name and arguments, where they do not stand in the item itself.
    pub(super) inner: Option<Inner>,
    pub(super) id: Id,
    pub(super) arguments: Arguments,
}

/// The members that an object of a call may have. All others are refused.
pub(super) struct Level {
    /// What makes the call.
    pub(super) wanted: &'static [&'static str],
    /// What providers add.
    pub(super) extras: &'static [&'static str],
    /// What would make another call of it, unless it is `null` or `false`: programs print members that are not set.
    pub(super) unset: &'static [&'static str],
}

pub(super) struct Inner {
    pub(super) member: &'static str,
    pub(super) level: Level,
    /// Whether the id stands inside too, or beside it.
    pub(super) holds_id: bool,
}

/// What the answer is paired with its call by.
pub(super) enum Id {
    /// Every call has this member.
    Needed(&'static str),
    /// A call may have this member; one without it is paired by its name and its place.
    Optional(&'static str),
}

/// How the arguments are written.
pub(super) enum Arguments {
    /// A member with text that holds an object. A server that sends the object itself may have read it, and rounded its
    /// numbers, before.
    Text(&'static str),
    /// A member with the object itself.
    Object(&'static str),
}

/// The calls of a message, in its order.
pub(super) struct Calls<'f> {
    frame: &'f Frame<'f>,
    form: &'static Form,
    list: Vec<(Proposed, Address)>,
}

impl Form {
    fn read(&self, call: &mut Envelope<'_>, item: &Members<'_>) {
        let Some(inner) = &self.inner else {
            self.id.read(call, "", item);
            self.read_body(call, "", item);
            call.only("", item, &self.item);
            return;
        };
        if !inner.holds_id {
            self.id.read(call, "", item);
        }
        if !self.is_of_kind(call, item) {
            return;
        }
        call.only("", item, &self.item);
        let at = format!("/{}", inner.member);
        let Some(part) = item.get(inner.member) else {
            call.missing(&at, "send an object with name and arguments");
            return;
        };
        let Some(body) = call.open(&at, part) else { return };
        if inner.holds_id {
            self.id.read(call, &at, &body);
        }
        self.read_body(call, &at, &body);
        call.only(&at, &body, &inner.level);
    }

    fn read_body(&self, call: &mut Envelope<'_>, at: &str, body: &Members<'_>) {
        call.name(&format!("{at}/name"), body.get("name"));
        self.arguments.read(call, at, body);
    }

    /// Nothing can be said of the members of another kind of call.
    fn is_of_kind(&self, call: &mut Envelope<'_>, item: &Members<'_>) -> bool {
        let (Some(wanted), Some(part)) = (self.kind, item.get("type")) else { return true };
        match call.value("/type", part) {
            Some(Value::String(kind)) if kind == wanted => true,
            Some(Value::String(_)) => {
                let hint = format!("only a {wanted} can be called here");
                call.problem("/type", "const", format!("another kind of call than {wanted}"), hint);
                false
            }
            Some(other) => {
                call.wrong_type("/type", &format!("the string \"{wanted}\""), &other);
                true
            }
            None => true,
        }
    }
}

impl Id {
    fn read(&self, call: &mut Envelope<'_>, at: &str, members: &Members<'_>) {
        match self {
            Self::Needed(member) => call.id(&format!("{at}/{member}"), members.get(member)),
            Self::Optional(member) => call.id_if_given(&format!("{at}/{member}"), members.given(member)),
        }
    }
}

impl Arguments {
    /// Takes them as they were written. `null` is no text, and no object: like a member that is not there.
    fn read(&self, call: &mut Envelope<'_>, at: &str, body: &Members<'_>) {
        match self {
            Self::Text(member) => {
                let Some(part) = body.given(member) else { return };
                let at = format!("{at}/{member}");
                match call.value(&at, part) {
                    Some(Value::String(text)) => call.arguments(text),
                    Some(other) => call.wrong_type(&at, "a string that holds a JSON object", &other),
                    None => {}
                }
            }
            Self::Object(member) => {
                let Some(part) = body.given(member) else { return };
                let at = format!("{at}/{member}");
                if part.starts_with(b"{") {
                    call.arguments(part);
                } else if let Some(other) = call.value(&at, part) {
                    call.wrong_type(&at, "an object", &other);
                }
            }
        }
    }
}

impl<'f> Calls<'f> {
    pub(super) fn new(frame: &'f Frame<'f>, form: &'static Form) -> Self {
        Self { frame, form, list: Vec::new() }
    }

    /// Reads a list of calls alone.
    pub(super) fn items(&mut self, items: &[&'f [u8]]) -> Result<(), WireFault> {
        items.iter().try_for_each(|item| self.item(item))
    }

    /// Reads one call.
    pub(super) fn item(&mut self, item: &'f [u8]) -> Result<(), WireFault> {
        let mut call = Envelope::new(self.frame.limits());
        if let Some(members) = call.open("", item) {
            self.form.read(&mut call, &members);
        }
        self.push(item, call, self.form)
    }

    /// Reads blocks of which some are calls: `form` says of which form a block is one, and `None` of another kind. What may
    /// be a call is never passed over: a block that cannot be read is answered as a broken one.
    pub(super) fn blocks(
        &mut self,
        blocks: &[&'f [u8]],
        mut form: impl FnMut(&'f [u8], &Members<'f>) -> Result<Option<&'static Form>, WireFault>,
    ) -> Result<(), WireFault> {
        for block in blocks {
            if !block.starts_with(b"{") {
                self.frame.members(block, "a content block")?;
            }
            let mut call = Envelope::new(self.frame.limits());
            let Some(members) = call.open("", block) else {
                self.push(block, call, self.form)?;
                continue;
            };
            if let Some(form) = form(block, &members)? {
                form.read(&mut call, &members);
                self.push(block, call, form)?;
            }
        }
        Ok(())
    }

    pub(super) fn into_turn(self, cut_off: bool) -> Turn {
        Turn::new(self.frame.dialect(), self.list, cut_off)
    }

    /// Models do repeat ids; each call is answered in its place.
    fn push(&mut self, item: &[u8], call: Envelope<'_>, form: &Form) -> Result<(), WireFault> {
        if self.list.len() == MOST_CALLS {
            return Err(self.frame.too_many_calls(item));
        }
        self.list.push(call.end(form.shown));
        Ok(())
    }
}

impl Level {
    /// Whether the level has this member, with this text for its value.
    pub(super) fn has(&self, name: &str, value: &[u8]) -> bool {
        let unset = || matches!(value, b"null" | b"false");
        self.wanted.contains(&name) || self.extras.contains(&name) || (self.unset.contains(&name) && unset())
    }
}
