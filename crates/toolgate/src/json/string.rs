//! Strings: escapes undone, or only stepped over.

use super::bytes::plain_length;
use super::flaw::{Fail, Found};
use super::reader::{Reader, Reading};

impl<'a> Reader<'a> {
    pub(super) fn string(&mut self) -> Reading<String> {
        self.at += 1;
        let plain = self.plain();
        if self.take(b'"') {
            return Ok(plain.to_owned());
        }
        let mut unescaped = plain.to_owned();
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(unescaped);
                }
                Some(b'\\') => unescaped.push(self.escape()?),
                Some(control) => return self.fail(Found::ControlInString(control)),
                None => return self.fail(Found::EndInString),
            }
            unescaped.push_str(self.plain());
        }
    }

    pub(super) fn skip_string(&mut self) -> Reading<()> {
        self.at += 1;
        loop {
            self.plain();
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => self.skip_escape()?,
                Some(_) => self.at += 1,
                None => return self.fail(Found::EndInString),
            }
        }
    }

    /// Takes what stands for itself in a string: all up to a quotation mark, a backslash or a control character.
    fn plain(&mut self) -> &'a str {
        let start = self.at;
        let rest = self.text.as_bytes().get(start..).unwrap_or_default();
        self.at += plain_length(rest);
        self.slice(start, self.at)
    }

    fn escape(&mut self) -> Reading<char> {
        let start = self.at;
        let character = match self.text.as_bytes().get(start + 1) {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(),
            Some(_) => return self.fail(Found::EscapeUnknown),
            None => return self.fail(Found::EndInString),
        };
        self.at += 2;
        Ok(character)
    }

    fn unicode_escape(&mut self) -> Reading<char> {
        let start = self.at;
        let unit = self.hex_unit()?;
        if let Some(character) = char::from_u32(u32::from(unit)) {
            return Ok(character);
        }
        let is_high = unit < 0xDC00;
        if is_high && self.text.as_bytes().get(self.at..self.at + 2) == Some(b"\\u") {
            let next = self.hex_unit()?;
            if let Some(Ok(character)) = char::decode_utf16([unit, next]).next() {
                return Ok(character);
            }
        }
        Err(Fail { at: start, found: Found::LoneSurrogate })
    }

    fn skip_escape(&mut self) -> Reading<()> {
        match self.text.as_bytes().get(self.at + 1) {
            Some(b'u') => self.hex_unit().map(|_| ()),
            _ => self.escape().map(|_| ()),
        }
    }

    /// Takes one `\uXXXX`.
    fn hex_unit(&mut self) -> Reading<u16> {
        let digits = self.text.as_bytes().iter().skip(self.at + 2).take(4);
        let mut unit = 0_u16;
        let mut count = 0;
        for digit in digits.map_while(|&byte| char::from(byte).to_digit(16)) {
            unit = (unit << 4) | u16::try_from(digit).unwrap_or_default();
            count += 1;
        }
        if count < 4 {
            let ends = self.text.len() <= self.at + 2 + count;
            return self.fail(if ends { Found::EndInString } else { Found::EscapeOfUnicode });
        }
        self.at += 6;
        Ok(unit)
    }
}
