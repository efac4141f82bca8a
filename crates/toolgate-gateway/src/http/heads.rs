//! The lengths that requests say they have, as they stand on the wire.
//!
//! The HTTP layer reads a request whose length is said twice, and leaves one of them out. Whoever stands before this
//! door may have read the other, and then disagrees on where the next request begins. So the heads are followed here as
//! well, beside the HTTP layer, and the first request of a connection that says its length twice is remembered.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Which request of a connection, counted from 1, first said its length twice.
#[derive(Clone, Debug)]
pub(super) struct Ambiguous(Arc<AtomicU64>);

/// Follows the requests of one connection.
#[derive(Debug)]
pub(super) struct Heads {
    place: Place,
    /// The beginning of the line that is being read.
    line: Vec<u8>,
    /// How many bytes the line has so far.
    line_bytes: usize,
    length: Length,
    /// How many heads have begun.
    begun: u64,
    ambiguous: Ambiguous,
}

/// Where in a request the next byte stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Before the request line.
    Between,
    /// In the head.
    Head,
    /// In a body of so many bytes more.
    Body(u64),
    /// Beyond what is followed. INVARIANT (last request): no further request of this connection is answered.
    Lost,
}

/// What a head has said so far of the length of its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Length {
    Unsaid,
    Bytes(u64),
    /// It comes in chunks.
    Chunked,
}

/// Longer than any line of interest that says one thing.
const LINE: usize = 64;

impl Ambiguous {
    pub(super) fn new() -> Self {
        Self(Arc::new(AtomicU64::new(u64::MAX)))
    }

    /// Whether the request of this number, or one before it, said its length twice.
    pub(super) fn reaches(&self, request: u64) -> bool {
        self.0.load(Ordering::Relaxed) <= request
    }
}

impl Heads {
    pub(super) fn new(ambiguous: Ambiguous) -> Self {
        let line = Vec::with_capacity(LINE);
        Self { place: Place::Between, line, line_bytes: 0, length: Length::Unsaid, begun: 0, ambiguous }
    }

    /// Takes what has just been read.
    pub(super) fn follow(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match self.place {
                Place::Lost => return,
                Place::Body(left) => {
                    let here = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
                    let left = left.saturating_sub(u64::try_from(here).unwrap_or(u64::MAX));
                    self.place = if left == 0 { Place::Between } else { Place::Body(left) };
                    bytes = bytes.get(here..).unwrap_or_default();
                }
                Place::Between | Place::Head => {
                    let end = bytes.iter().position(|byte| *byte == b'\n');
                    let (part, rest) = match end {
                        Some(end) => bytes.split_at_checked(end + 1).unwrap_or((bytes, &[])),
                        None => (bytes, &[][..]),
                    };
                    let room = LINE.saturating_sub(self.line.len()).min(part.len());
                    self.line.extend_from_slice(part.get(..room).unwrap_or_default());
                    self.line_bytes = self.line_bytes.saturating_add(part.len());
                    if end.is_some() {
                        self.end_line();
                        self.line.clear();
                        self.line_bytes = 0;
                    }
                    bytes = rest;
                }
            }
        }
    }

    fn end_line(&mut self) {
        let blank = self.line.trim_ascii_end().is_empty() && self.line_bytes <= 2;
        match (self.place, blank) {
            (Place::Between, true) => {}
            (Place::Between, false) => {
                self.place = Place::Head;
                self.length = Length::Unsaid;
                self.begun += 1;
            }
            (Place::Head, false) => self.end_header(),
            (Place::Head, true) => {
                self.place = match self.length {
                    Length::Unsaid | Length::Bytes(0) => Place::Between,
                    Length::Bytes(length) => Place::Body(length),
                    // The answer to it closes the connection.
                    Length::Chunked => Place::Lost,
                }
            }
            (Place::Body(_) | Place::Lost, _) => {}
        }
    }

    fn end_header(&mut self) {
        let mut parts = self.line.splitn(2, |byte| *byte == b':');
        let name = parts.next().unwrap_or_default().trim_ascii();
        let said = if name.eq_ignore_ascii_case(b"content-length") {
            let value = parts.next().unwrap_or_default().trim_ascii();
            let digits = self.line_bytes <= LINE && !value.is_empty() && value.iter().all(u8::is_ascii_digit);
            let length = std::str::from_utf8(value).ok().filter(|_| digits).and_then(|text| text.parse().ok());
            length.map(Length::Bytes)
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            Some(Length::Chunked)
        } else {
            return;
        };
        match (self.length, said) {
            (Length::Unsaid, Some(length)) => self.length = length,
            (Length::Bytes(_) | Length::Chunked, _) | (Length::Unsaid, None) => {
                self.ambiguous.0.fetch_min(self.begun, Ordering::Relaxed);
                self.place = Place::Lost;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The number of the first ambiguous request, however the bytes are cut.
    fn ambiguous(bytes: &[u8]) -> Option<u64> {
        let found = |piece: usize| {
            let ambiguous = Ambiguous::new();
            let mut heads = Heads::new(ambiguous.clone());
            bytes.chunks(piece).for_each(|part| heads.follow(part));
            (1..100).find(|request| ambiguous.reaches(*request))
        };
        let whole = found(bytes.len());
        for piece in 1..30 {
            assert_eq!(found(piece), whole, "in pieces of {piece}");
        }
        whole
    }

    #[test]
    fn requests_that_say_one_length_follow_each_other() {
        let get = &b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"[..];
        let post = b"POST / HTTP/1.1\r\nContent-Length: 19\r\nHost: a\r\n\r\n{\"a\":\"\r\n\r\nGET / \"}\r\n";
        let empty = b"POST / HTTP/1.1\ncontent-length:0\n\n";
        assert_eq!(ambiguous(&[get, post, empty, b"\r\n", get, post].concat()), None);
    }

    #[test]
    fn a_length_that_is_said_twice_is_found_in_whatever_spelling() {
        for head in [
            "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
            "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
            "Content-Length: 2\r\nContent-Length: 40\r\n",
            "Content-Length: 2\r\nHost: a\r\ncontent-length:2\r\n",
            "transfer-encoding: chunked\nTRANSFER-ENCODING: identity\n",
            "Content-Length : 2\r\nContent-Length: 2\r\n",
            "Content-Length: 2, 2\r\n",
            "Content-Length: +2\r\n",
            "Content-Length:\r\n",
            "Content-Length: 99999999999999999999\r\n",
            "Content-Length:                                                                2\r\n",
        ] {
            let request = format!("POST / HTTP/1.1\r\nHost: a\r\n{head}\r\n");
            assert_eq!(ambiguous(request.as_bytes()), Some(1), "{head}");
        }
    }

    #[test]
    fn it_is_known_which_request_it_was() {
        let fine = &b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}"[..];
        let twice = b"POST / HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}";
        assert_eq!(ambiguous(&[fine, fine, twice].concat()), Some(3));
        // What stands in a body is no head.
        let body = "Content-Length: 1\r\nContent-Length: 2\r\n\r\n";
        let post = format!("POST / HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        assert_eq!(ambiguous(&[post.as_bytes(), twice].concat()), Some(2));
    }

    #[test]
    fn nothing_is_followed_beyond_chunks() {
        let chunked = &b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"[..];
        let twice = b"POST / HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}";
        assert_eq!(ambiguous(&[chunked, twice].concat()), None);
    }

    proptest! {
        #[test]
        fn however_bytes_are_cut_the_same_is_found(
            bytes in proptest::collection::vec(
                prop_oneof![
                    any::<u8>().prop_map(|byte| vec![byte]),
                    prop::sample::select(vec![
                        &b"POST / HTTP/1.1\r\n"[..], b"\r\n", b"\n", b":", b"Content-Length: 2\r\n", b"Content-Length: ", b"1",
                        b"Transfer-Encoding: chunked\r\n", b"18446744073709551615\r\n",
                    ]).prop_map(<[u8]>::to_vec),
                ],
                1..40,
            )
        ) {
            ambiguous(&bytes.concat());
        }
    }
}
