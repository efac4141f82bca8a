//! Server-sent events, as the HTML standard describes them in section 9.2.6: a byte order mark before the text, three
//! kinds of line ends, comments, several lines of data.
//!
//! Two things differ. The last event needs no empty line after it: recordings lose their last line end, and an event
//! that was cut off is no JSON. And `event:` is not consulted: the providers that send it say the same in the data.

use std::borrow::Cow;

use crate::wire::WireFault;

/// What the first line of a recording may begin with.
const FIELDS: [&[u8]; 5] = [b"data:", b"event:", b"id:", b"retry:", b":"];

/// The data of one event.
#[derive(Default)]
pub(super) struct Event<'a> {
    data: Cow<'a, [u8]>,
    /// Where each line of the data begins in the text: line and column, from 1.
    lines: Vec<(usize, usize)>,
}

struct Events<'a> {
    rest: &'a [u8],
    /// Lines that were read.
    line: usize,
}

/// Whether a text is server-sent events. No JSON begins like one.
pub(super) fn is_text(bytes: &[u8]) -> bool {
    let blank = bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
    let first = bytes.get(blank..).unwrap_or_default();
    FIELDS.iter().any(|field| first.starts_with(field))
}

/// The events of a text that have data.
pub(super) fn events(bytes: &[u8]) -> impl Iterator<Item = Event<'_>> {
    Events { rest: bytes, line: 0 }.filter(|event| !event.data.trim_ascii().is_empty())
}

impl Event<'_> {
    pub(super) fn data(&self) -> &[u8] {
        &self.data
    }

    /// A fault of the data, where it stands in the text.
    pub(super) fn placed(&self, fault: WireFault) -> WireFault {
        let (line, column) = self.lines.get(fault.line.saturating_sub(1)).copied().unwrap_or((1, 1));
        WireFault { line: 1, ..fault }.moved((line, column))
    }
}

impl<'a> Event<'a> {
    fn add(&mut self, value: &'a [u8], line: usize, column: usize) {
        if self.lines.is_empty() {
            self.data = Cow::Borrowed(value);
        } else {
            let data = self.data.to_mut();
            data.push(b'\n');
            data.extend_from_slice(value);
        }
        self.lines.push((line, column));
    }
}

impl<'a> Iterator for Events<'a> {
    type Item = Event<'a>;

    fn next(&mut self) -> Option<Event<'a>> {
        let mut event = Event::default();
        while let Some(line) = self.next_line() {
            if line.is_empty() {
                if !event.lines.is_empty() {
                    return Some(event);
                }
                continue;
            }
            let Some(rest) = line.strip_prefix(b"data") else { continue };
            let value = match rest {
                [b':', b' ', value @ ..] | [b':', value @ ..] => value,
                [] => rest,
                // A field of another name.
                [_, ..] => continue,
            };
            event.add(value, self.line, 1 + line.len() - value.len());
        }
        (!event.lines.is_empty()).then_some(event)
    }
}

impl<'a> Events<'a> {
    fn next_line(&mut self) -> Option<&'a [u8]> {
        if self.rest.is_empty() {
            return None;
        }
        let end = self.rest.iter().position(|byte| matches!(byte, b'\r' | b'\n')).unwrap_or(self.rest.len());
        let (line, ended) = self.rest.split_at_checked(end)?;
        self.rest = match ended {
            [b'\r', b'\n', rest @ ..] | [_, rest @ ..] => rest,
            [] => ended,
        };
        self.line += 1;
        Some(line)
    }
}
