//! The record as lines of JSON, an entry each, which are verified like the store itself.
//!
//! The text of an entry stands in its line as it was sealed, to the byte.

use std::fmt::Write;

use serde_json::Value;

use super::filter::Filter;
use super::verify::{Part, Row};
use super::{BODY, Sealed};
use crate::json::{self, Digest};
use crate::ledger::{Store, StoreError};

/// How many rows are read at once: each may hold a megabyte.
const PAGE: usize = 100;

impl Sealed {
    /// The entry as a line, without its end.
    pub fn line(&self) -> String {
        let Self { seq, reference, previous, hash, body } = self;
        let reference = Value::from(reference.as_str());
        let mut line = format!(r#"{{"seq":{seq},"ref":{reference},"previous":"{previous}","hash":"{hash}","body":"#);
        // What is no object on one line was not sealed by a gate; it is carried as a text, so that it can be examined.
        match json::members(body.as_bytes(), &BODY).is_ok() && !body.contains('\n') {
            true => line.push_str(body),
            false => {
                let _ = write!(line, "{}", Value::from(body.as_str()));
            }
        }
        line.push('}');
        line
    }
}

impl Row {
    /// Reads a line of an export, the one with this number.
    pub fn parse(line: &[u8], number: u64) -> Self {
        let mut row = [const { None }; 5];
        let none = || Self::Unreadable { place: i64::try_from(number).unwrap_or(i64::MAX), part: Part::Line };
        let Ok(members) = json::members(line, &BODY) else { return none() };
        let count = members.len();
        for (name, raw) in members {
            let place = ["seq", "ref", "previous", "hash", "body"].iter().position(|known| *known == name);
            match place.and_then(|place| row.get_mut(place)) {
                Some(member) => *member = Some(raw),
                None => return none(),
            }
        }
        let [seq, reference, previous, hash, body] = row;
        if count != 5 {
            return none();
        }
        let digest = |raw| text(raw)?.parse::<Digest>().ok().map(|digest| *digest.as_bytes());
        let Some(place) = seq.and_then(|seq| json::read(seq, &BODY).ok()?.as_i64()) else { return none() };
        let body = body.and_then(|raw| match raw.first() {
            Some(b'{') => String::from_utf8(raw.to_vec()).ok(),
            Some(_) | None => text(raw),
        });
        Self::of(place, reference.and_then(text), previous.and_then(digest), hash.and_then(digest), body)
    }
}

fn text(raw: &[u8]) -> Option<String> {
    match json::read(raw, &BODY) {
        Ok(Value::String(text)) => Some(text),
        Ok(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) | Err(_) => None,
    }
}

impl Store {
    /// Rows of the record from the one with this number on, at most a page, and the number to go on from; none where it
    /// ends.
    pub async fn page(&self, from: u64) -> Result<(Vec<Row>, Option<u64>), StoreError> {
        let rows = self.rows(i64::try_from(from).unwrap_or(i64::MAX), PAGE).await?;
        let last = rows.last().and_then(|row| u64::try_from(row.place()).ok());
        Ok((rows, last.and_then(|last| last.checked_add(1)).filter(|next| *next > from)))
    }

    /// The last entries that a filter takes, oldest first.
    pub async fn last(&self, count: usize, filter: &Filter) -> Result<Vec<Sealed>, StoreError> {
        let mut found = Vec::new();
        let mut end = self.head().await?.seq;
        while end > 0 && found.len() < count {
            let after = end.saturating_sub(u64::try_from(PAGE).unwrap_or(u64::MAX));
            let records = self.records(after, PAGE).await?;
            let wanted = records.into_iter().rev().filter(|record| record.seq <= end && filter.takes(record));
            found.extend(wanted.take(count - found.len()));
            end = after;
        }
        found.reverse();
        Ok(found)
    }
}
