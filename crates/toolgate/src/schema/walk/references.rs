//! Names inside a document, and the references to them: what leads to outside or nowhere is a fault.

use jsonschema::Draft;
use serde_json::Value;

use super::super::graph::{Graph, NodeId};
use super::super::hints::near;
use super::super::keywords::{self, Applies, Shape};
use super::{Walk, article};

/// A reference that was read, and is followed once the whole document has been.
pub(super) struct Reference {
    from: NodeId,
    at: String,
    to: String,
    dynamic: bool,
}

impl<'a> Walk<'a> {
    pub(super) fn identifier(&mut self, id: NodeId, place: &str, value: &'a Value) {
        match value {
            Value::String(text) if self.draft <= Draft::Draft7 && text.starts_with('#') => {
                self.name(id, place, text.trim_start_matches('#'));
            }
            Value::String(text) if id == Graph::ROOT && !text.contains('#') => {}
            Value::String(_) => self.fault(
                place,
                "a schema inside the document has no address of its own",
                Some("leave it out and refer by #/$defs/...".to_owned()),
            ),
            other => self.wrong(place, "a string", other),
        }
    }

    pub(super) fn anchor(&mut self, id: NodeId, place: &str, dynamic: bool, value: &Value) {
        match value {
            Value::String(name) if dynamic => {
                self.dynamic.entry(name.clone()).or_default().push(id);
                self.name(id, place, name);
            }
            Value::String(name) => self.name(id, place, name),
            other => self.wrong(place, "a name", other),
        }
    }

    fn name(&mut self, id: NodeId, place: &str, name: &str) {
        if self.anchors.insert(name.to_owned(), id).is_some_and(|before| before != id) {
            self.fault(place, "this anchor stands in the document twice", None);
        }
    }

    pub(super) fn reference(&mut self, from: NodeId, place: &str, shape: Shape, value: &Value) {
        let Value::String(to) = value else { return self.wrong(place, "a reference such as #/$defs/name", value) };
        let Some(inside) = self.inside(to) else {
            let hint = "copy the schema under $defs and refer to #/$defs/...";
            return self.fault(place, "refers to outside of this document", Some(hint.to_owned()));
        };
        if shape == Shape::RootReference && !inside.is_empty() {
            return self.fault(place, "may only be #", Some("use $ref".to_owned()));
        }
        let dynamic = shape == Shape::AnchorReference;
        self.references.push_back(Reference { from, at: place.to_owned(), to: decoded(inside), dynamic });
    }

    /// The fragment of a reference that stays inside: the document may be called by the address that it gives itself.
    fn inside<'r>(&self, to: &'r str) -> Option<&'r str> {
        if to.starts_with('#') {
            return to.strip_prefix('#');
        }
        let key = if self.draft == Draft::Draft4 { "id" } else { "$id" };
        let own = self.document.get(key)?.as_str()?.trim_end_matches('#');
        match to.strip_prefix(own).filter(|_| own.contains("://"))? {
            "" => Some(""),
            rest => rest.strip_prefix('#'),
        }
    }

    /// Follows every reference: pointers first, for what they lead to may hold more references and anchors.
    pub(super) fn follow(&mut self) {
        let mut by_name = Vec::new();
        while let Some(reference) = self.references.pop_front() {
            if !reference.to.is_empty() && !reference.to.starts_with('/') {
                by_name.push(reference);
                continue;
            }
            match self.document.pointer(&reference.to) {
                Some(target @ (Value::Object(_) | Value::Bool(_))) => {
                    let nesting = reference.to.matches('/').count();
                    if let Some(to) = self.schema(reference.to, target, nesting) {
                        self.link(reference.from, Applies::All, to);
                    }
                }
                Some(other) => {
                    self.fault(
                        &reference.at,
                        format!("refers to {}, not to a schema", article(keywords::type_of(other))),
                        None,
                    );
                }
                None => {
                    let hint = self.definition_like(&reference.to);
                    self.fault(&reference.at, "refers to nothing in this document", hint);
                }
            }
        }
        for reference in by_name {
            let targets = match self.anchors.get(&reference.to) {
                Some(_) if reference.dynamic && self.dynamic.contains_key(&reference.to) => {
                    self.dynamic.get(&reference.to).cloned().unwrap_or_default()
                }
                found => found.copied().into_iter().collect(),
            };
            if targets.is_empty() {
                let hint = near(&reference.to, self.anchors.keys().map(String::as_str));
                let hint = hint.map(|known| format!("did you mean #{known}?"));
                self.fault(&reference.at, "refers to an anchor that is nowhere in this document", hint);
            }
            for to in targets {
                self.link(reference.from, Applies::All, to);
            }
        }
    }

    fn definition_like(&self, pointer: &str) -> Option<String> {
        let wanted = pointer.rsplit('/').next()?;
        let known = ["$defs", "definitions"]
            .iter()
            .filter_map(|holder| Some((*holder, self.document.get(holder)?.as_object()?)));
        let names = known.flat_map(|(holder, map)| map.keys().map(move |name| (holder, name.as_str())));
        let names: Vec<(&str, &str)> = names.collect();
        let like = near(wanted, names.iter().map(|(_, name)| *name))?;
        let (holder, _) = names.iter().find(|(_, name)| *name == like)?;
        Some(format!("did you mean #/{holder}/{like}?"))
    }
}

/// The fragment of a URI without its percent escapes.
pub(in crate::schema) fn decoded(fragment: &str) -> String {
    let mut bytes = fragment.bytes();
    let mut out = Vec::with_capacity(fragment.len());
    while let Some(byte) = bytes.next() {
        let mut ahead = bytes.clone();
        let code = match (byte, ahead.next(), ahead.next()) {
            (b'%', Some(high), Some(low)) => {
                let digit = |b: u8| char::from(b).to_digit(16);
                digit(high).zip(digit(low)).and_then(|(h, l)| u8::try_from(h * 16 + l).ok())
            }
            _ => None,
        };
        match code {
            Some(code) => {
                out.push(code);
                bytes = ahead;
            }
            None => out.push(byte),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}
