//! `--tag`: the tags within which a command lists and calls tools.

use std::collections::BTreeSet;

use clap::Args;
use toolgate::contract::Contract;
use toolgate::fields::nearest;
use toolgate::session::{BadTag, Session, Tags};

use super::failure::FailureCode;
use super::{Failure, Output};

/// The tags that a command line names.
#[derive(Debug, Args)]
pub(super) struct Tagged {
    /// Keep to the tools of this tag; may be said again
    #[arg(long = "tag", value_name = "TAG", value_parser = read_tag)]
    tags: Vec<Tags>,
}

impl Tagged {
    /// The session within the tags, each of which some tool of the folder has: a misspelled one would leave nothing, and
    /// not say why.
    pub(super) fn bound<'a>(
        &self,
        session: Session,
        tools: impl Iterator<Item = &'a Contract>,
    ) -> Result<Session, Failure> {
        match unknown(&self.tags, tools) {
            Some(unknown) => Err(unknown),
            None => Ok(self.within(session)),
        }
    }

    /// The session within the tags, for a server that goes on without the tools that are set aside: a tag may be one of
    /// theirs.
    pub(super) fn bound_without_some<'a>(
        &self,
        session: Session,
        tools: impl Iterator<Item = &'a Contract>,
        output: &mut Output,
    ) -> Session {
        if let Some(unknown) = unknown(&self.tags, tools) {
            output.warning(&format!("of the tools that are served, {}; {}", unknown.message(), unknown.advice()));
        }
        self.within(session)
    }

    /// The words that say the same again.
    pub(super) fn words(&self) -> impl Iterator<Item = String> {
        self.tags.iter().flat_map(Tags::iter).flat_map(|tag| ["--tag".to_owned(), tag.to_owned()])
    }

    fn within(&self, session: Session) -> Session {
        self.tags.iter().cloned().reduce(Tags::or).into_iter().fold(session, Session::only_tags)
    }
}

/// What is wrong with the first of the tags that none of the tools has.
pub(super) fn unknown<'a>(tags: &[Tags], tools: impl Iterator<Item = &'a Contract>) -> Option<Failure> {
    let known: BTreeSet<&str> = tools.flat_map(Contract::tags).map(String::as_str).collect();
    let unknown = tags.iter().flat_map(Tags::iter).find(|tag| !known.contains(tag))?;
    let listed = match known.len() {
        0 => "there are no tags here".to_owned(),
        _ => format!("known: {}", known.iter().copied().collect::<Vec<_>>().join(", ")),
    };
    let hint =
        nearest(unknown, known.iter().copied()).map_or_else(|| listed.clone(), |near| format!("{near} {listed}"));
    Some(Failure::new(FailureCode::UnknownTag, format!("no tool has the tag {unknown}")).hint(hint))
}

/// A tag of a command line.
pub(super) fn read_tag(text: &str) -> Result<Tags, BadTag> {
    Tags::of(text)
}
