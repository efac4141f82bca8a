//! The ledger as its operator sees it: the actions of all tenants by their state, and one action by what names it.

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;

use super::rows::{Rows, Stored};
use super::store::Pending;
use super::{Entry, EntryKey, Listed, Page, State, Store, StoreError};
use crate::audit::Sealed;
use crate::json::Digest;

/// Where an action stands, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionState {
    /// It may be running.
    Open,
    /// It happened.
    Done,
    /// It provably did not happen.
    Failed,
    /// Nobody knows whether it happened.
    Unknown,
}

/// Which actions are looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Those in this state.
    pub state: Option<ActionState>,
    /// Those of this tenant.
    pub tenant: Option<String>,
    /// Those of this tool.
    pub tool: Option<String>,
}

/// Why a text names no action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotNamed {
    /// There is none.
    #[error("the ledger holds no action of this key or `ref`")]
    Missing,
    /// Several keys begin like this.
    #[error("several actions have a key that begins like this; say more digits of it")]
    Ambiguous,
}

/// The records that tell of one action.
#[derive(Clone, Debug)]
pub struct History {
    /// In the order in which they were written.
    pub records: Vec<Sealed>,
    /// Whether all of the record was looked through that could tell of it.
    pub whole: bool,
}

/// The fewest digits of a key that name an action.
pub const SHORTEST_KEY: usize = 8;

/// How many entries one page of a list looks through.
const LOOKED_THROUGH: usize = 1000;

/// How much of the record is read at once, and how often, to find what tells of one action. An entry may be of a megabyte.
const RECORDS: usize = 100;
const PAGES: usize = 500;

impl ActionState {
    /// All of them, in the order of the documentation.
    pub const ALL: [Self; 4] = [Self::Open, Self::Unknown, Self::Done, Self::Failed];

    /// The state's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
        }
    }

    /// The state of a name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == name)
    }
}

impl fmt::Display for ActionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Store {
    /// The newest actions of all tenants that are wanted and were first opened before the one with this number, at most
    /// `limit`. One page looks through a bounded part of the ledger: it may be empty and yet not the last.
    pub async fn ledger(&self, wanted: Wanted, before: Option<u64>, limit: usize) -> Result<Page<Listed>, StoreError> {
        self.list(move |rows| page(rows, &wanted, before, limit)).await
    }

    /// The action that a text names: its key, the beginning of its key (at least [`SHORTEST_KEY`] digits), or the `ref` of
    /// an attempt, as far as the record tells which action it was of.
    pub async fn action(&self, named: &str) -> Result<Result<Listed, NotNamed>, StoreError> {
        if let Some(prefix) = Prefix::read(named) {
            return self.between(prefix).await;
        }
        let records = self.history(named).await?;
        let Some(record) = records.first() else { return Ok(Err(NotNamed::Missing)) };
        let first = records.iter().find_map(first_of).unwrap_or_else(|| record.reference.clone());
        let found = self.list(move |rows| rows.entry_opened_by(&first)).await?;
        Ok(found.map(Entry::listed).ok_or(NotNamed::Missing))
    }

    fn between(&self, Prefix { first, last }: Prefix) -> Pending<'_, Result<Listed, NotNamed>> {
        self.list(move |rows| {
            let mut found = rows.entries_between(first, last, 2)?;
            Ok(match (found.pop(), found.pop()) {
                (None, _) => Err(NotNamed::Missing),
                (Some(entry), None) => Ok(entry.listed()),
                (Some(_), Some(_)) => Err(NotNamed::Ambiguous),
            })
        })
    }

    /// The outline of the action with this key.
    pub(crate) fn action_of_key(&self, key: Digest) -> Pending<'_, Option<Entry>> {
        self.list(move |rows| rows.outline(EntryKey(key)))
    }

    /// The records after the one with this number, in order, at most `limit`.
    pub async fn records_after(&self, after: u64, limit: usize) -> Result<Vec<Sealed>, StoreError> {
        self.records(after, limit).await
    }

    /// The records of an action: of its first attempt, and of what came of it since, as far as a bounded part of the
    /// record tells.
    pub async fn history_of(&self, action: &Listed) -> Result<History, StoreError> {
        let first = action.first.as_str();
        let mut history = History { records: self.history(first).await?, whole: true };
        let Some(mut after) = history.records.first().map(|record| record.seq) else { return Ok(history) };
        let mut attempts = BTreeSet::new();
        for _ in 0..PAGES {
            let page = self.records(after, RECORDS).await?;
            history.whole = page.len() < RECORDS;
            after = page.last().map_or(after, |last| last.seq);
            // A name like this is given once: what speaks of it speaks of the action.
            let others = page.into_iter().filter(|record| record.reference != first && record.body.contains(first));
            attempts.extend(others.map(|record| record.reference));
            if history.whole {
                break;
            }
        }
        for attempt in attempts {
            history.records.extend(self.history(&attempt).await?);
        }
        history.records.sort_by_key(|record| record.seq);
        Ok(history)
    }
}

/// The attempt that first opened the action which a record tells of.
fn first_of(record: &Sealed) -> Option<String> {
    let body = record.told()?;
    let stages = body.get("stages").and_then(|stages| stages.as_array()).into_iter().flatten();
    stages.chain([&body]).find_map(|part| Some(part.get("first_ref")?.as_str()?.to_owned()))
}

/// The keys that begin with some digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Prefix {
    first: EntryKey,
    last: EntryKey,
}

impl Prefix {
    /// What the text says, where it is made of the digits of a key, and of enough of them.
    fn read(text: &str) -> Option<Self> {
        let text = text.to_ascii_lowercase();
        let fits = (SHORTEST_KEY..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let filled = |with: char| {
            let digits: String = text.chars().chain(std::iter::repeat(with)).take(64).collect();
            digits.parse().ok().map(EntryKey)
        };
        fits.then(|| Some(Self { first: filled('0')?, last: filled('f')? })).flatten()
    }
}

impl State {
    pub(super) fn named(&self) -> ActionState {
        match self {
            Self::Open { .. } => ActionState::Open,
            Self::Done { .. } => ActionState::Done,
            Self::Failed { .. } => ActionState::Failed,
            Self::Unknown { .. } => ActionState::Unknown,
        }
    }
}

fn page(rows: &dyn Rows, wanted: &Wanted, before: Option<u64>, limit: usize) -> Stored<Page<Listed>> {
    let before = before.unwrap_or(u64::MAX);
    let entries = match wanted.state {
        Some(state @ (ActionState::Open | ActionState::Unknown)) => rows.entries_in(state, before, LOOKED_THROUGH)?,
        // These have no index of their own, and one that is rare would be looked for through the whole ledger.
        Some(ActionState::Done | ActionState::Failed) | None => rows.entries_before(before, LOOKED_THROUGH)?,
    };
    let seen_all = entries.len() < LOOKED_THROUGH;
    let last = entries.last().map(|(number, _)| *number);
    let of = |said: &Option<String>, own: &str| said.as_deref().is_none_or(|said| said == own);
    let mut page = Page { items: Vec::new(), next: None };
    for (number, entry) in entries {
        let Entry { action, state, .. } = &entry;
        let other = wanted.state.is_some_and(|wanted| wanted != state.named());
        if other || !of(&wanted.tenant, &action.tenant) || !of(&wanted.tool, &action.tool) {
            continue;
        }
        if page.items.len() == limit {
            return Ok(page);
        }
        page.items.push(entry.listed());
        page.next = Some(number);
    }
    page.next = last.filter(|_| !seen_all);
    Ok(page)
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::disallowed_methods,
    reason = "a test may panic"
)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::*;
    use crate::audit::{Kind, Record};
    use crate::call::Ref;
    use crate::clock::Millis;
    use crate::ledger::{Action, Claim, Finding, LaneKey, NewEntry, Opened, Opening, Rejected, Stamp};
    use crate::session::Principal;
    use crate::stoppage::Spot;

    /// Opens an action named `name`; its key and the attempt.
    async fn opened(store: &Store, name: &str, tenant: &str, tool: &str) -> (EntryKey, Ref) {
        let key = EntryKey::of(&json!([tenant, name]));
        let (lane, reference) = (LaneKey::of(&json!(name)), Ref::fresh());
        let action = Action {
            tool: tool.into(),
            tenant: tenant.into(),
            principal: Principal::new("local", "alice"),
            run: "default".into(),
            args_digest: Digest::of(b"{}"),
            arguments: json!({}),
            facts: Value::Null,
            lane,
            keeps_lane: true,
            retain_ms: 1000,
            grant: None,
            holds: Vec::new(),
            subject: None,
        };
        let entry = NewEntry {
            key,
            action,
            owner: store.owner().clone(),
            since: Millis(1),
            lease_end: Millis(10),
            reference: reference.clone(),
            anew: false,
            stamp: Stamp { revision: 0, lane_version: 0 },
        };
        let intent = Record::new(Kind::Intent, Millis(1), reference.clone(), Map::new());
        let opening = Opening {
            entry: Some(entry),
            grant: None,
            takings: Vec::new(),
            drawings: Vec::new(),
            intent,
            spot: Spot::default(),
        };
        assert!(matches!(store.open(opening, Millis(1)).await.unwrap(), Opened::Open { .. }));
        (key, reference)
    }

    fn record(entry: &Entry) -> Record {
        Record::new(Kind::Ruling, Millis(30), entry.first.clone(), Map::new())
    }

    /// Stores of both kinds, and where the second one lies.
    fn stores() -> (Vec<Store>, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let sqlite = Store::sqlite(folder.path().join("ledger.db")).unwrap();
        (vec![Store::memory(), sqlite], folder)
    }

    fn named(page: &Page<Listed>) -> Vec<(&str, &str)> {
        page.items.iter().map(|one| (one.tenant.as_str(), one.tool.as_str())).collect()
    }

    #[tokio::test]
    async fn an_operator_sees_the_actions_of_all_tenants_and_narrows_them() {
        let (stores, _folder) = stores();
        for store in stores {
            opened(&store, "one", "acme", "pay").await;
            opened(&store, "two", "globex", "pay").await;
            opened(&store, "three", "acme", "post").await;
            store.sweep(Box::new(record), Millis(20)).await.unwrap();
            opened(&store, "four", "acme", "pay").await;
            let list = |wanted: Wanted, before, limit| {
                let store = store.clone();
                async move { store.ledger(wanted, before, limit).await.unwrap() }
            };
            let all = list(Wanted::default(), None, 10).await;
            assert_eq!(named(&all), [("acme", "pay"), ("acme", "post"), ("globex", "pay"), ("acme", "pay")]);
            let unknown = Wanted { state: Some(ActionState::Unknown), ..Wanted::default() };
            let first = list(unknown.clone(), None, 2).await;
            assert_eq!(named(&first), [("acme", "post"), ("globex", "pay")]);
            assert_eq!(named(&list(unknown.clone(), first.next, 2).await), [("acme", "pay")]);
            let own = Wanted { tenant: Some("acme".into()), tool: Some("pay".into()), ..unknown };
            assert_eq!(named(&list(own, None, 2).await), [("acme", "pay")]);
            let open = Wanted { state: Some(ActionState::Open), ..Wanted::default() };
            assert_eq!(list(open, None, 10).await.items.len(), 1);
        }
    }

    #[tokio::test]
    async fn an_action_is_named_by_its_key_the_beginning_of_it_or_an_attempt() {
        let (stores, _folder) = stores();
        for store in stores {
            let (key, reference) = opened(&store, "one", "acme", "pay").await;
            opened(&store, "two", "acme", "pay").await;
            let hex = key.0.hex();
            for text in [hex.as_str(), &hex[..8], &hex[..63].to_uppercase(), reference.as_str()] {
                assert_eq!(store.action(text).await.unwrap().unwrap().key, key.0, "{text}");
            }
            let absent = if hex.starts_with('0') { "1".repeat(64) } else { "0".repeat(64) };
            for text in [&hex[..7], &absent, "01J8Z3N0W7Q4V5X6Y7Z8A9B0C1", "", "not hex"] {
                assert_eq!(store.action(text).await.unwrap(), Err(NotNamed::Missing), "{text}");
            }
        }
    }

    #[tokio::test]
    async fn a_beginning_that_two_keys_share_names_neither() {
        let (stores, _folder) = stores();
        for store in stores {
            opened(&store, "one", "acme", "pay").await;
            opened(&store, "two", "acme", "pay").await;
            let all = Prefix { first: EntryKey([0; 32].into()), last: EntryKey([255; 32].into()) };
            assert_eq!(store.between(all).await.unwrap(), Err(NotNamed::Ambiguous));
        }
    }

    #[tokio::test]
    async fn an_operator_rules_once_and_not_while_somebody_looks() {
        let (stores, _folder) = stores();
        for store in stores {
            let (key, reference) = opened(&store, "one", "acme", "pay").await;
            let rule = |finding, now| store.rule(key, finding, Box::new(record), Millis(now));
            assert_eq!(rule(Finding::NotDone, 5).await.unwrap().unwrap_err(), Rejected::Running);
            store.sweep(Box::new(record), Millis(20)).await.unwrap();
            store.claim(key, Claim { token: "t".into(), until: Millis(40) }, Millis(21)).await.unwrap().unwrap();
            assert_eq!(store.action(reference.as_str()).await.unwrap().unwrap().claimed_until, Some(Millis(40)));
            assert_eq!(rule(Finding::NotDone, 39).await.unwrap().unwrap_err(), Rejected::Running);
            let done = Finding::Done { answer: "{}".into() };
            rule(done.clone(), 41).await.unwrap().unwrap();
            assert_eq!(rule(done, 42).await.unwrap().unwrap_err(), Rejected::AlreadyDone);
            let action = store.action(reference.as_str()).await.unwrap().unwrap();
            assert_eq!((action.state, action.at), (ActionState::Done, Some(Millis(41))));
            let first = Map::from_iter([("first_ref".to_owned(), json!(reference))]);
            let replay = Record::new(Kind::Replay, Millis(43), Ref::fresh(), first);
            let other = Record::new(Kind::Read, Millis(44), Ref::fresh(), Map::new());
            store.append(vec![replay.clone(), other.clone()]).await.unwrap();
            assert_eq!(store.action(replay.reference().as_str()).await.unwrap().unwrap().key, action.key);
            assert_eq!(store.action(other.reference().as_str()).await.unwrap(), Err(NotNamed::Missing));
            let History { records, whole } = store.history_of(&action).await.unwrap();
            assert!(whole);
            let seqs: Vec<u64> = records.iter().map(|record| record.seq).collect();
            assert_eq!(seqs, [1, 2, 3, 4], "intent, lost, ruling, replay");
        }
    }
}
