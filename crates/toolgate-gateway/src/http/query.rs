//! The part behind `?`, read strictly: each name at most once, but for `tag`, and none that is not known.

use super::problem::{Kind, Problem};

/// The named values of a query.
#[derive(Debug)]
pub(super) struct Query(Vec<(&'static str, String)>);

/// The names of which there may be several: their values belong together, and none of them is the last word.
const REPEATED: [&str; 1] = [TAG];

/// The tags within which tools are listed and called.
pub(super) const TAG: &str = "tag";

impl Query {
    /// Reads `a=1&b=2`, where `known` lists the names.
    pub(super) fn read(text: Option<&str>, known: &[&'static str]) -> Result<Self, Problem> {
        let mut values: Vec<(&'static str, String)> = Vec::new();
        for pair in text.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let Some(name) = known.iter().copied().find(|known| *known == name) else {
                let detail = "the query has a name that is not known here";
                return Err(Problem::new(Kind::BadQuery, detail).hint(match known {
                    [] => "this path takes no query".to_owned(),
                    known => format!("known: {}", known.join(", ")),
                }));
            };
            if !REPEATED.contains(&name) && values.iter().any(|(given, _)| *given == name) {
                return Err(Problem::new(Kind::BadQuery, format!("`{name}` is given twice")));
            }
            let Some(value) = decoded(value) else {
                return Err(Problem::new(
                    Kind::BadQuery,
                    format!("the value of `{name}` is not percent-encoded UTF-8"),
                ));
            };
            values.push((name, value));
        }
        Ok(Self(values))
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// Every value of a name, in their order.
    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(given, _)| *given == name).map(|(_, value)| value.as_str())
    }

    /// A whole number.
    pub(super) fn number(&self, name: &'static str) -> Result<Option<u64>, Problem> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        match text.parse().ok().filter(|_| digits) {
            Some(number) => Ok(Some(number)),
            None => Err(Problem::new(Kind::BadQuery, format!("`{name}` is not a whole number"))),
        }
    }

    /// How many of a list are wanted: from 1 to `most`.
    pub(super) fn limit(&self, default: usize, most: usize) -> Result<usize, Problem> {
        let Some(number) = self.number("limit")? else { return Ok(default) };
        let limit = usize::try_from(number).ok().filter(|limit| (1..=most).contains(limit));
        limit.ok_or_else(|| Problem::new(Kind::BadQuery, format!("`limit` is a whole number from 1 to {most}")))
    }
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut read = Vec::with_capacity(text.len());
    let digit = |byte: Option<u8>| u8::try_from(char::from(byte?).to_digit(16)?).ok();
    while let Some(byte) = bytes.next() {
        read.push(match byte {
            b'%' => digit(bytes.next())? * 16 + digit(bytes.next())?,
            b'+' => b' ',
            byte => byte,
        });
    }
    String::from_utf8(read).ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn values_are_decoded_and_found_by_name() {
        let query = Query::read(Some("tag=two%20w+rds%C3%A9&&limit=20"), &["limit", "tag"]).unwrap();
        assert_eq!(query.text("tag"), Some("two w rdsé"));
        assert_eq!(query.limit(10, 100).unwrap(), 20);
        assert_eq!(Query::read(None, &["limit"]).unwrap().limit(10, 100).unwrap(), 10);
    }

    #[test]
    fn tags_are_all_heard() {
        let query = Query::read(Some("tag=a&limit=1&tag=b&tag=a"), &["limit", TAG]).unwrap();
        assert_eq!(query.all(TAG).collect::<Vec<_>>(), ["a", "b", "a"]);
        assert_eq!(Query::read(None, &[TAG]).unwrap().all(TAG).count(), 0);
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for bad in ["limit=1&limit=1", "tga=a", "tag=%zz", "tag=%f", "tag=%ff", "=x"] {
            assert!(Query::read(Some(bad), &["limit", "tag"]).is_err(), "{bad}");
        }
        for bad in ["limit=0", "limit=101", "limit=-1", "limit=+1", "limit=", "limit=1e1", "limit=99999999999999999999"]
        {
            assert!(Query::read(Some(bad), &["limit"]).unwrap().limit(10, 100).is_err(), "{bad}");
        }
    }
}
