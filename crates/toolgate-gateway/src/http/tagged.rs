//! The tags that a request names, by `?tag=` or by its path: they bound what it may list, and what it may call.
//!
//! A tag that no tool has is not told from one whose tools the caller may not see: either way nothing is there.

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use toolgate::session::{BadTag, Session, Tags};

use super::problem::{Kind, Problem};
use super::query::{Query, TAG};

/// The tag that stands in a path.
pub(super) type InPath = Result<Path<String>, PathRejection>;

/// The session within the tags of a query: the tools that have any of them.
pub(super) fn within(session: Session, query: &Query) -> Result<Session, Problem> {
    let tags: Result<Vec<Tags>, BadTag> = query.all(TAG).map(Tags::of).collect();
    let tags = tags.map_err(|bad| malformed(bad).hint("several are said as `tag=a&tag=b`"))?;
    Ok(tags.into_iter().reduce(Tags::or).into_iter().fold(session, Session::only_tags))
}

/// The session within the tag of a path.
pub(super) fn at(session: Session, path: InPath) -> Result<Session, Problem> {
    let tag = path.map_err(|_| BadTag).and_then(|Path(tag)| Tags::of(tag));
    tag.map(|tag| session.only_tags(tag)).map_err(malformed)
}

fn malformed(bad: BadTag) -> Problem {
    Problem::new(Kind::BadTag, bad.to_string())
}
