//! `tools/list`, all pages of it, within bounds.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use tokio::time::{Instant, timeout_at};
use toolgate::json::{self, Limits};

use super::Mark;
use super::connection::Connection;
use super::waiting::Arrived;

/// What a server lists.
#[derive(Debug)]
pub(crate) struct Listing {
    /// The raw texts of the definitions, in the order of the pages.
    pub(crate) definitions: Vec<Vec<u8>>,
    /// The moment before the first page, with no change until after the last.
    pub(crate) mark: Mark,
}

const MOST_PAGES: usize = 100;
const MOST_TOOLS: usize = 1000;
const MOST_BYTES: usize = 16 << 20;
/// How often a list is begun that changes while it is listed.
const MOST_BEGINNINGS: usize = 5;

/// Lists the tools. The error is for a person.
pub(super) async fn list(connection: &Connection, until: Instant) -> Result<Listing, String> {
    for _ in 0..MOST_BEGINNINGS {
        let mark = connection.mark();
        let definitions = pages(connection, until).await?;
        // What changes from here on has to be listed again by whoever compares the marks.
        if connection.mark() == mark {
            return Ok(Listing { definitions, mark });
        }
    }
    Err("its list of tools changes each time that it is listed".to_owned())
}

async fn pages(connection: &Connection, until: Instant) -> Result<Vec<Vec<u8>>, String> {
    let mut definitions = Vec::new();
    let mut bytes = 0;
    let mut cursors = BTreeSet::new();
    let mut cursor: Option<String> = None;
    for _ in 0..MOST_PAGES {
        let page = timeout_at(until, page(connection, cursor.as_deref())).await;
        let page = page.map_err(|_| "it did not list its tools in time".to_owned())??;
        bytes += page.definitions.iter().map(Vec::len).sum::<usize>();
        definitions.extend(page.definitions);
        if definitions.len() > MOST_TOOLS {
            return Err(format!("it lists more than {MOST_TOOLS} tools"));
        }
        if bytes > MOST_BYTES {
            return Err("its tools take more than 16 MB".to_owned());
        }
        match page.next {
            None => return Ok(definitions),
            Some(next) if !cursors.insert(next.clone()) => {
                return Err("its list of tools comes back to a page that it had".to_owned());
            }
            Some(next) => cursor = Some(next),
        }
    }
    Err(format!("its list of tools has more than {MOST_PAGES} pages"))
}

struct Page {
    definitions: Vec<Vec<u8>>,
    next: Option<String>,
}

async fn page(connection: &Connection, cursor: Option<&str>) -> Result<Page, String> {
    let mut params = Vec::new();
    if let Some(cursor) = cursor {
        params.push(format!(r#""cursor":{}"#, json!(cursor)));
    }
    if let Some(meta) = connection.meta(&Map::new()) {
        params.push(format!(r#""_meta":{meta}"#));
    }
    match connection.request("tools/list", &format!("{{{}}}", params.join(","))).await? {
        Arrived::Result(result) => read(&result).ok_or_else(|| "its list of tools cannot be read".to_owned()),
        Arrived::Error(_) => Err("it refuses to list its tools".to_owned()),
        Arrived::Broken => Err("its list of tools cannot be read".to_owned()),
    }
}

fn read(result: &[u8]) -> Option<Page> {
    let limits = Limits { size: usize::MAX, members: usize::MAX, ..Limits::default() };
    let members = json::members(result, &limits).ok()?;
    let member = |name: &str| members.iter().find(|(known, _)| known == name).map(|(_, raw)| *raw);
    let definitions = json::items(member("tools")?, &limits).ok()?.into_iter().map(<[u8]>::to_vec).collect();
    let next = match member("nextCursor").map(|raw| json::read(raw, &Limits::default())) {
        None | Some(Ok(Value::Null)) => None,
        Some(Ok(Value::String(next))) => Some(next),
        Some(_) => return None,
    };
    Some(Page { definitions, next })
}
