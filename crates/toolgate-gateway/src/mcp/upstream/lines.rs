//! Lines of a pipe, bounded.

use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// One line, without its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Whole(Vec<u8>),
    /// It is longer than may be; these are its first bytes.
    Cut(Vec<u8>),
}

/// Reads lines of at most `most` bytes.
pub(super) struct Lines<R> {
    reader: R,
    most: usize,
    /// The rest of a line that was cut is still to come.
    skipping: bool,
}

impl<R: AsyncBufRead + Unpin> Lines<R> {
    pub(super) fn new(reader: R, most: usize) -> Self {
        Self { reader, most, skipping: false }
    }

    /// The next line, or `None` at the end. A line that is cut is given once its bound is passed, not at its end, which may
    /// never come; what follows of it is passed over.
    pub(super) async fn next(&mut self) -> std::io::Result<Option<Line>> {
        let mut line = Vec::new();
        loop {
            let chunk = self.reader.fill_buf().await?;
            if chunk.is_empty() {
                return Ok((!line.is_empty()).then_some(Line::Whole(line)));
            }
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let part = chunk.get(..end.unwrap_or(chunk.len())).unwrap_or_default();
            let used = part.len() + usize::from(end.is_some());
            if !self.skipping {
                let room = self.most.saturating_sub(line.len());
                line.extend_from_slice(part.get(..room.min(part.len())).unwrap_or_default());
                if part.len() > room {
                    self.reader.consume(used);
                    self.skipping = end.is_none();
                    return Ok(Some(Line::Cut(line)));
                }
            }
            self.reader.consume(used);
            if end.is_some() && !std::mem::take(&mut self.skipping) {
                if line.last() == Some(&b'\r') {
                    line.pop();
                }
                return Ok(Some(Line::Whole(line)));
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use tokio::io::BufReader;

    use super::*;

    async fn lines(text: &[u8], most: usize) -> Vec<Line> {
        // A buffer of three bytes, so that lines come in pieces.
        let mut lines = Lines::new(BufReader::with_capacity(3, text), most);
        let mut all = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            all.push(line);
        }
        all
    }

    fn whole(text: &str) -> Line {
        Line::Whole(text.into())
    }

    #[tokio::test]
    async fn lines_come_whole_and_without_their_ends() {
        assert_eq!(lines(b"one\r\n\ntwo\nlast", 10).await, [whole("one"), whole(""), whole("two"), whole("last")]);
        assert_eq!(lines(b"", 10).await, []);
    }

    #[tokio::test]
    async fn of_a_line_that_is_too_long_the_rest_is_passed_over() {
        let cut = Line::Cut(b"12345".to_vec());
        assert_eq!(lines(b"12345678901\nnext\n", 5).await, [cut, whole("next")]);
        assert_eq!(lines(b"12345\n6\n", 5).await, [whole("12345"), whole("6")]);
    }
}
