//! The lines of a stream, each bounded before it is kept.

use std::io::{self, BufRead, BufReader, ErrorKind, Read};

/// Reads a stream line by line.
pub(super) struct Lines<R> {
    reader: BufReader<R>,
    most: usize,
    line: Vec<u8>,
}

/// One line, without its line feed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    Whole(&'a [u8]),
    /// It was passed over; the lines behind it are read as ever.
    TooLong,
}

impl<R: Read> Lines<R> {
    pub(super) fn new(reader: R, most: usize) -> Self {
        Self { reader: BufReader::with_capacity(1 << 16, reader), most, line: Vec::new() }
    }

    /// Whether the next line is here already, so that reading it waits for nobody.
    pub(super) fn has_next(&self) -> bool {
        self.reader.buffer().contains(&b'\n')
    }

    /// The next line; `None` at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        self.line.clear();
        let (mut begun, mut too_long) = (false, false);
        loop {
            let chunk = match self.reader.fill_buf() {
                Ok(chunk) => chunk,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if chunk.is_empty() && !begun {
                return Ok(None);
            }
            begun = true;
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let part = chunk.get(..end.unwrap_or(chunk.len())).unwrap_or_default();
            too_long |= self.line.len() + part.len() > self.most;
            if !too_long {
                self.line.extend_from_slice(part);
            }
            let (read, is_last) = (part.len() + usize::from(end.is_some()), end.is_some() || chunk.is_empty());
            self.reader.consume(read);
            if is_last {
                return Ok(Some(if too_long { Line::TooLong } else { Line::Whole(&self.line) }));
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    /// What is read of a text with lines of at most five bytes; `None` for one that is too long.
    fn read(text: &str) -> Vec<Option<String>> {
        let mut lines = Lines::new(text.as_bytes(), 5);
        let mut read = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            read.push(match line {
                Line::Whole(line) => Some(String::from_utf8(line.to_vec()).unwrap()),
                Line::TooLong => None,
            });
        }
        read
    }

    fn whole(lines: &[&str]) -> Vec<Option<String>> {
        lines.iter().map(|line| Some((*line).to_owned())).collect()
    }

    #[test]
    fn the_last_line_needs_no_line_feed_and_an_empty_one_is_a_line() {
        assert_eq!(read(""), whole(&[]));
        assert_eq!(read("a\n\nb"), whole(&["a", "", "b"]));
        assert_eq!(read("a\n"), whole(&["a"]));
    }

    #[test]
    fn a_line_that_is_too_long_does_not_end_the_stream() {
        assert_eq!(read("12345\n123456\n1\n"), [Some("12345".to_owned()), None, Some("1".to_owned())]);
        let long = "x".repeat(200_000);
        assert_eq!(read(&format!("{long}\n{long}")), [None, None]);
        assert_eq!(read(&format!("{long}\nab\n")), [None, Some("ab".to_owned())]);
    }

    #[test]
    fn a_line_that_is_half_here_is_not_here() {
        let mut lines = Lines::new("a\nb\nc".as_bytes(), 5);
        assert!(!lines.has_next(), "nothing was read yet");
        lines.next().unwrap();
        assert!(lines.has_next());
        lines.next().unwrap();
        assert!(!lines.has_next(), "c may go on");
    }
}
