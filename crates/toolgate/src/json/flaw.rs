//! What can be wrong with a text: code, words and remedy of each finding in one table.

use std::borrow::Cow;
use std::fmt;

use super::place;

/// Why a text was refused, where, and how to mend it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} at line {line} column {column}")]
#[non_exhaustive]
pub struct Flaw {
    /// The class of the flaw.
    pub code: FlawCode,
    /// Line of the finding, from 1.
    pub line: usize,
    /// Column of the finding in characters, from 1.
    pub column: usize,
    /// Byte offset of the finding, from 0.
    pub offset: usize,
    /// What was found, in words.
    ///
    /// INVARIANT (no echo): holds no value of the text; a member's name only if it is short and printable.
    pub message: Cow<'static, str>,
    /// The value it stands in, as a JSON pointer: told of a flaw inside a value. The whole text, `""`, where it is the
    /// structure that is broken.
    pub pointer: String,
    hint: Option<&'static str>,
}

/// The problem codes of refused JSON, as they stand in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FlawCode {
    /// Not JSON.
    Syntax,
    /// Something follows the value.
    TrailingData,
    /// A member is given twice.
    DuplicateKey,
    /// The text ends before the value does.
    Truncated,
    /// A value, but no object.
    NotObject,
    /// A string that holds the object.
    DoubleEncoded,
    /// Markdown around the JSON.
    CodeFence,
    /// A raw control character in a string.
    ControlCharacter,
    /// Half of a surrogate pair.
    LoneSurrogate,
    /// Too many open brackets.
    Depth,
    /// Too many bytes.
    Size,
    /// Too many members.
    Members,
    /// A number that cannot be kept exactly.
    Number,
}

/// Where reading stopped, and at what.
#[derive(Debug)]
pub(super) struct Fail {
    pub(super) at: usize,
    pub(super) found: Found,
}

/// One thing that can be found wrong.
#[derive(Debug)]
pub(super) enum Found {
    Backslash,
    ByteOrderMark,
    Character(char),
    CodeFence,
    Comment,
    ControlInString(u8),
    DoubleEncoded,
    Duplicate(Option<Box<str>>),
    End,
    EndInString,
    EscapeOfUnicode,
    EscapeUnknown,
    ExtraComma,
    InexactNumber,
    LoneSurrogate,
    MissingColon,
    MissingComma,
    MissingCommaOrEscape,
    MissingName,
    MissingValue,
    NotArray(&'static str),
    NotFinite(&'static str),
    NotObject(&'static str),
    NotUtf8,
    NumberInHex,
    NumberMalformed,
    NumberWithLeadingZero,
    NumberWithoutDigit,
    NumberWithPlus,
    QuoteCurly,
    QuoteSingle,
    SecondValue,
    TooDeep(usize),
    TooLarge(usize),
    TooManyMembers(usize),
    TextBefore,
    TrailingComma,
    TrailingText,
    UnquotedName,
    UnquotedWord,
    WordOfAnotherLanguage(&'static str),
    WrongBracket { found: char, open: char },
}

impl Flaw {
    /// How to mend it, in words for a model.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        self.hint
    }
}

impl FlawCode {
    /// The code as it stands in an answer.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Syntax => "syntax",
            Self::TrailingData => "trailing_data",
            Self::DuplicateKey => "duplicate_key",
            Self::Truncated => "truncated",
            Self::NotObject => "not_object",
            Self::DoubleEncoded => "double_encoded",
            Self::CodeFence => "code_fence",
            Self::ControlCharacter => "control_character",
            Self::LoneSurrogate => "lone_surrogate",
            Self::Depth => "depth",
            Self::Size => "size",
            Self::Members => "members",
            Self::Number => "number",
        }
    }

    /// Whether the text around it has a structure all the same.
    fn is_inside_a_value(self) -> bool {
        match self {
            Self::DuplicateKey | Self::ControlCharacter | Self::LoneSurrogate | Self::Number => true,
            Self::Syntax
            | Self::TrailingData
            | Self::Truncated
            | Self::NotObject
            | Self::DoubleEncoded
            | Self::CodeFence
            | Self::Depth
            | Self::Size
            | Self::Members => false,
        }
    }
}

impl fmt::Display for FlawCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Fail {
    #[cold]
    pub(super) fn into_flaw(self, bytes: &[u8]) -> Flaw {
        let before = bytes.get(..self.at).unwrap_or(bytes);
        let line_start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let in_line = before.get(line_start..).unwrap_or_default();
        let (code, message, hint) = self.found.describe();
        let pointer = if code.is_inside_a_value() { place::pointer(bytes, self.at) } else { String::new() };
        Flaw {
            code,
            line: 1 + before.iter().filter(|&&byte| byte == b'\n').count(),
            column: 1 + in_line.iter().filter(|&&byte| !is_continuation(byte)).count(),
            offset: self.at,
            message,
            pointer,
            hint,
        }
    }
}

impl Found {
    /// The table: code, words, remedy.
    fn describe(&self) -> (FlawCode, Cow<'static, str>, Option<&'static str>) {
        use FlawCode::{
            CodeFence, ControlCharacter, Depth, DoubleEncoded, DuplicateKey, LoneSurrogate, Members, NotObject, Number,
            Size, Syntax, TrailingData, Truncated,
        };
        let (code, words, hint) = match self {
            Self::Backslash => (Syntax, "backslash outside a string", "escapes stand inside strings only"),
            Self::ByteOrderMark => (Syntax, "byte order mark", "send the JSON alone, without a byte order mark"),
            Self::CodeFence => (CodeFence, "code fence", "send the JSON alone, without ``` around it"),
            Self::Comment => (Syntax, "comment", "JSON has no comments: leave it out"),
            Self::DoubleEncoded => {
                (DoubleEncoded, "string that holds the object", "send the object itself, not a string that holds it")
            }
            Self::End => (Truncated, "unexpected end", "the text stops too early: send the whole of it"),
            Self::EndInString => {
                (Truncated, "unexpected end inside a string", "the text stops too early: send the whole of it")
            }
            Self::EscapeOfUnicode => {
                (Syntax, "incomplete \\u escape", "write four hexadecimal digits after \\u, or the character itself")
            }
            Self::EscapeUnknown => (
                Syntax,
                "unknown escape in a string",
                "write a backslash as \\\\; the other escapes are \\\" \\/ \\b \\f \\n \\r \\t \\uXXXX",
            ),
            Self::ExtraComma => (Syntax, "extra comma", "put one comma between values"),
            Self::InexactNumber => (
                Number,
                "number that cannot be kept exactly",
                "send an integer of at most 64 bits or a decimal of at most 15 digits",
            ),
            Self::LoneSurrogate => {
                (LoneSurrogate, "half of a surrogate pair", "write the character itself, or both halves of the pair")
            }
            Self::MissingColon => (Syntax, "missing colon", "put a colon between a member's name and its value"),
            Self::MissingComma => (Syntax, "missing comma", "put a comma between values"),
            Self::MissingCommaOrEscape => (
                Syntax,
                "missing comma or unescaped quotation mark",
                "put a comma between values, and write a quotation mark inside a string as \\\"",
            ),
            Self::MissingName => (Syntax, "missing member name", "give each member a name in double quotes"),
            Self::MissingValue => (Syntax, "missing value", "give a value, or leave the member out"),
            Self::NotUtf8 => (Syntax, "bytes that are not UTF-8", "send UTF-8"),
            Self::NumberInHex => (Syntax, "hexadecimal number", "write numbers in decimal digits"),
            Self::NumberMalformed => (Syntax, "malformed number", "write numbers like 12, -0.5 or 1e3"),
            Self::NumberWithLeadingZero => (Syntax, "number with a leading zero", "write 7, not 007"),
            Self::NumberWithoutDigit => (
                Syntax,
                "number with a missing digit",
                "write a digit on each side of the point and after the exponent",
            ),
            Self::NumberWithPlus => (Syntax, "number with a plus sign", "write 5, not +5"),
            Self::QuoteCurly => (Syntax, "curly quotes", "use straight double quotes"),
            Self::QuoteSingle => (Syntax, "single quotes", "use double quotes"),
            Self::SecondValue => (TrailingData, "second value", "send one value and nothing after it"),
            Self::TextBefore => (Syntax, "text before the value", "send the JSON alone, without words around it"),
            Self::TrailingComma => (Syntax, "trailing comma", "leave out the comma after the last member or item"),
            Self::TrailingText => (TrailingData, "text after the value", "send one value and nothing after it"),
            Self::UnquotedName => (Syntax, "unquoted member name", "put member names in double quotes"),
            Self::UnquotedWord => (Syntax, "unquoted text", "put strings in double quotes"),

            Self::Character(found) => {
                let message = format!("unexpected {}", shown_character(*found));
                return (Syntax, message.into(), None);
            }
            Self::ControlInString(found) => {
                let message = format!("raw {} in a string", shown_character(char::from(*found)));
                let hint = "write a line break in a string as \\n, other control characters as \\u00XX";
                return (ControlCharacter, message.into(), Some(hint));
            }
            Self::Duplicate(name) => {
                let message = match name {
                    Some(name) => format!("duplicate member \"{name}\"").into(),
                    None => "duplicate member".into(),
                };
                return (DuplicateKey, message, Some("give each member once"));
            }
            Self::NotArray(found) => {
                let message = format!("expected an array, found {found}");
                return (Syntax, message.into(), Some("send an array"));
            }
            Self::NotFinite(word) => {
                let hint = "JSON has no NaN or Infinity: send a number, or leave the member out";
                return (Syntax, format!("the word {word}").into(), Some(hint));
            }
            Self::NotObject(found) => {
                let message = format!("expected an object, found {found}");
                return (NotObject, message.into(), Some("send an object that holds the values as members"));
            }
            Self::TooDeep(limit) => {
                let message = format!("more than {limit} open brackets");
                return (Depth, message.into(), Some("nest less deeply"));
            }
            Self::TooLarge(limit) => {
                return (Size, format!("more than {limit} bytes").into(), Some("send less"));
            }
            Self::TooManyMembers(limit) => {
                let message = format!("more than {limit} members");
                return (Members, message.into(), Some("send fewer members"));
            }
            Self::WordOfAnotherLanguage(word) => {
                let hint = "the words of JSON are true, false and null, in lower case";
                return (Syntax, format!("the word {word}").into(), Some(hint));
            }
            Self::WrongBracket { found, open } => {
                let message = format!("{found} where the open bracket is {open}");
                return (Syntax, message.into(), Some("close brackets in the order in which they were opened"));
            }
        };
        (code, words.into(), Some(hint))
    }
}

fn shown_character(character: char) -> String {
    match character {
        '\n' => "line feed".to_owned(),
        '\r' => "carriage return".to_owned(),
        '\t' => "tab".to_owned(),
        '!'..='~' => format!("character {character}"),
        _ => format!("character U+{:04X}", u32::from(character)),
    }
}

fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}
