//! No events make an assembler panic; a fault is final; a turn that was cut off runs nothing; a call that runs has the
//! arguments that were told; the recorded stream, as a list and as server-sent events, gives what its events give one by one.
#![no_main]

use std::collections::BTreeSet;

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use toolgate::json::{Limits, read};
use toolgate::wire::{Assembler, Dialect, Proposed, Turn};

/// What of a turn must be the same.
fn told(turn: &Turn) -> String {
    format!("{:?} {} {:?}", turn.calls(), turn.cut_off(), turn.warnings())
}

/// What events tell that arguments can be made of.
#[derive(Default)]
struct Telling {
    /// Texts, in their order: pieces, and snapshots.
    texts: Vec<String>,
    /// Inputs that are objects.
    inputs: Vec<Value>,
    /// Whether something says that there is no more.
    ends: bool,
}

impl Telling {
    fn of(events: &[Value]) -> Self {
        let mut telling = Self::default();
        for event in events {
            telling.ends |= event == "[DONE]";
            telling.add(event);
        }
        telling
    }

    fn add(&mut self, value: &Value) {
        match value {
            Value::Object(members) => {
                for (name, value) in members {
                    match (name.as_str(), value) {
                        ("arguments" | "partial_json" | "delta", Value::String(text)) => self.texts.push(text.clone()),
                        ("input", Value::Object(_)) => self.inputs.push(value.clone()),
                        ("finish_reason", Value::String(reason)) => self.ends |= !reason.is_empty(),
                        ("message" | "item" | "response", Value::Object(_)) => self.ends = true,
                        _ => {}
                    }
                    self.add(value);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.add(item)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// Whether these arguments are an input that was told, or some of the texts in their order; none at all only of a
    /// stream that has an end.
    fn has(&self, arguments: &[u8], limits: &Limits) -> bool {
        if arguments.trim_ascii().is_empty() {
            return self.ends;
        }
        if read(arguments, limits).is_ok_and(|input| self.inputs.contains(&input)) {
            return true;
        }
        // Blanks around an input in pieces do not matter, so they may be left out at both ends.
        let mut reached = BTreeSet::from([0]);
        for text in &self.texts {
            for piece in [text.as_str(), text.trim_ascii_start(), text.trim_ascii_end(), text.trim_ascii()] {
                let further = |at: &usize| arguments[*at..].starts_with(piece.as_bytes()).then_some(at + piece.len());
                let further: Vec<usize> = reached.iter().filter_map(further).collect();
                reached.extend(further);
            }
        }
        reached.contains(&arguments.len())
    }
}

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits::default();
    let events: Vec<&[u8]> =
        bytes.split(|byte| *byte == b'\n').filter(|event| !event.trim_ascii().is_empty()).collect();
    for dialect in Dialect::ALL {
        let Some(mut stream) = Assembler::new(dialect, &limits) else { continue };
        let taken: Vec<bool> = events.iter().map(|event| stream.push(event).is_ok()).collect();
        let turn = stream.end();
        let first_wrong = taken.iter().position(|taken| !taken).unwrap_or(taken.len());
        assert!(taken.iter().skip(first_wrong).all(|taken| !taken), "an event was taken after a fault");
        if let Ok(turn) = &turn {
            assert_eq!(first_wrong, taken.len(), "a turn after a fault");
            let runs = turn.calls().iter().any(|call| matches!(call, Proposed::Call(_)));
            assert!(!(runs && turn.cut_off()), "a turn that was cut off runs something");
        }
        // A line of JSON has no line end in it, so it is one line of data.
        let values: Option<Vec<Value>> = events.iter().map(|event| read(event, &limits).ok()).collect();
        let Some(values) = values.filter(|_| !events.iter().any(|event| event.contains(&b'\r'))) else { continue };
        if let Ok(turn) = &turn {
            let telling = Telling::of(&values);
            for proposed in turn.calls() {
                if let Proposed::Call(call) = proposed {
                    assert!(
                        telling.has(call.arguments(), &limits),
                        "{dialect}: arguments that were not told: {call:?}"
                    );
                }
            }
        }
        let turn = turn.ok().map(|turn| told(&turn));
        let recorded =
            |text: Vec<u8>| dialect.decode(&text, &Limits { size: text.len(), ..limits }).ok().map(|turn| told(&turn));
        let list = [&b"{\"stream\":["[..], &events.join(&b',')[..], b"]}"].concat();
        assert_eq!(recorded(list), turn, "{dialect} as a list");
        let text: Vec<u8> = events.iter().flat_map(|event| [b"data: ", *event, b"\n\n"].concat()).collect();
        if !text.is_empty() {
            assert_eq!(recorded(text), turn, "{dialect} as server-sent events");
        }
    }
});
