//! Who is not admitted any more, whatever their issuer signs: a file that is written by `toolgate token revoke`, and read
//! again whenever it is another one.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use toolgate::clock::Millis;
use toolgate::fields::{Fields, Problems};
use toolgate::session::Principal;

use super::file::{self, read_text, unreadable};
use super::tokens::NotChanged;
use super::watched::{Kind, Watched};
use crate::cli::{FailureCode, Say};
use crate::config::{Finding, Located};

/// The people of issuers whose tokens admit nobody any more.
pub(super) struct Revocations {
    /// The file, as the folder names it.
    name: PathBuf,
    path: PathBuf,
    watched: Watched<Revoked>,
}

/// Who was revoked, and when.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Revoked(BTreeMap<Principal, Millis>);

const HEAD: &str = "\
# Whose tokens admit nobody any more. `toolgate token revoke` adds to this file; who is taken out of it is admitted again.
";

impl Revocations {
    pub(super) fn at(dir: &Path, name: &Path, say: Say) -> Self {
        let kind = Kind {
            parse: Revoked::parse,
            absent: Some(Revoked::default),
            code: FailureCode::TokensUnreadable,
            without: "who was revoked cannot be read, so nobody is admitted",
            again: "who was revoked can be read again",
        };
        let path = dir.join(name);
        Self { name: name.to_owned(), watched: Watched::new(name, &path, kind, say), path }
    }

    /// Whether somebody is revoked; `None` where it cannot be read.
    pub(super) fn has(&self, principal: &Principal) -> Option<bool> {
        self.watched.now().map(|revoked| revoked.0.contains_key(principal))
    }

    /// Who is revoked, and since when.
    pub(super) fn all(&self) -> Result<Vec<(Principal, Millis)>, Vec<Finding>> {
        Ok(self.load()?.0.into_iter().collect())
    }

    /// Revokes somebody from now on; who was revoked before stays so as they were. It tells since when they are.
    pub(super) fn add(&self, principal: Principal, now: Millis) -> Result<Millis, NotChanged> {
        let unwritable = |error: io::Error| NotChanged::Unwritable { file: self.name.clone(), why: error.kind() };
        let _lock = file::lock(&self.path).map_err(unwritable)?;
        let mut revoked = self.load().map_err(NotChanged::Faults)?;
        let before = revoked.clone();
        let since = *revoked.0.entry(principal).or_insert(now);
        if revoked != before {
            file::replace(&self.path, &revoked.text()).map_err(unwritable)?;
        }
        Ok(since)
    }

    /// What is wrong with the file.
    pub(super) fn faults(&self) -> Vec<Finding> {
        self.load().err().unwrap_or_default()
    }

    fn load(&self) -> Result<Revoked, Vec<Finding>> {
        match File::open(&self.path).and_then(|file| read_text(&file)) {
            Ok(text) => Revoked::parse(&self.name, &text),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Revoked::default()),
            Err(error) => Err(vec![unreadable(&self.name, &error)]),
        }
    }
}

impl Revoked {
    fn parse(name: &Path, text: &str) -> Result<Self, Vec<Finding>> {
        let finding = |code: String, offset, message| Finding::at_offset(name, code, text, offset, message).unshown();
        let located = Located::parse(text).map_err(|faults| -> Vec<Finding> {
            faults.into_iter().map(|fault| finding("not_toml".to_owned(), fault.offset, fault.message)).collect()
        })?;
        let mut problems = Problems::default();
        let revoked = Self::read(&located.table, &mut problems);
        let told = problems.0.into_iter().map(|problem| {
            let message = format!("{}: {}", problem.at.trim_start_matches('/').replace('/', "."), problem.message);
            finding(problem.code, located.offset(&problem.at), message).hint(problem.hint)
        });
        let told: Vec<Finding> = told.collect();
        if told.is_empty() { Ok(revoked) } else { Err(told) }
    }

    fn read(table: &Map<String, Value>, problems: &mut Problems) -> Self {
        let mut top = Fields::of(table, "");
        let mut revoked = BTreeMap::new();
        let items = match top.raw("revoked") {
            None => &[],
            Some(Value::Array(items)) => items.as_slice(),
            Some(_) => {
                problems.note("/revoked", "type", "expected [[revoked]] tables");
                &[]
            }
        };
        for (index, item) in items.iter().enumerate() {
            let at = format!("/revoked/{index}");
            let Value::Object(table) = item else {
                problems.note(at, "type", "expected a table");
                continue;
            };
            let mut fields = Fields::of(table, at);
            let issuer = fields.needed("issuer", problems);
            let subject = fields.needed("subject", problems);
            let since = fields.needed("revoked_at", problems).and_then(|text| {
                let since = text.parse::<Millis>();
                since.map_err(|error| problems.note(fields.place("revoked_at"), "format", error.to_string())).ok()
            });
            fields.end(problems);
            if let (Some(issuer), Some(subject), Some(since)) = (issuer, subject, since) {
                revoked.insert(Principal::new(issuer, subject), since);
            }
        }
        top.end(problems);
        Self(revoked)
    }

    /// The text of the file.
    fn text(&self) -> String {
        // The quotes of TOML are those of JSON for everything that can stand here.
        let quoted = |text: &str| Value::from(text).to_string();
        let entries = self.0.iter().map(|(Principal { issuer, subject }, since)| {
            let [issuer, subject, since] = [issuer, subject, &since.to_string()].map(|text| quoted(text));
            format!("\n[[revoked]]\nissuer = {issuer}\nsubject = {subject}\nrevoked_at = {since}\n")
        });
        HEAD.to_owned() + &entries.collect::<String>()
    }
}
