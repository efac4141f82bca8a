//! Entries and what they carry.

use rusqlite::types::ToSql;
use rusqlite::{Row, params};
use serde_json::Value;

use super::super::rows::{Change, Stored};
use super::super::{Action, ActionState, Claim, Entry, EntryKey, LaneKey, Owner, State};
use super::rows::{Tables, half, integer, millis, moment, natural, parse_holds};
use super::sealing::{self, Part, Place, Vault};
use super::trouble::{damaged, unstorable};
use crate::call::Ref;
use crate::json::Digest;
use crate::session::Principal;
use crate::vault::{Salt, Subject};

/// Selects entries `e`: all but what is sealed, in the order in which [`Found::of`] reads it, and then `$sealed`.
macro_rules! select {
    ($sealed:literal, $from:expr) => {
        concat!(
            "SELECT e.id, e.key, e.revision, e.attempt, e.state, e.owner, e.lease_end, e.at, e.lane_version, e.claim, \
             e.claim_until, e.first_ref, e.tool, e.tenant, e.issuer, e.principal, e.run, e.args_digest, e.lane, \
             e.keeps_lane, e.retain_ms, e.approval, e.holds, e.subject, s.salt, ",
            $sealed,
            " FROM ",
            $from
        )
    };
}

const WHOLE: &str = select!(
    "e.contents, a.sealed",
    "entry_keys AS k CROSS JOIN entries AS e ON e.id = k.id LEFT JOIN salts AS s ON s.id = e.salt
     LEFT JOIN answers AS a ON a.id = e.id WHERE k.half = ?1 AND e.key = ?2"
);
const OUTLINE: &str = select!(
    "NULL, NULL",
    "entry_keys AS k CROSS JOIN entries AS e ON e.id = k.id LEFT JOIN salts AS s ON s.id = e.salt
     WHERE k.half = ?1 AND e.key = ?2"
);
const OPEN: &str = select!(
    "NULL, NULL",
    "entries AS e LEFT JOIN salts AS s ON s.id = e.salt WHERE e.state = 'open' ORDER BY e.lease_end"
);
const BEFORE: &str = select!(
    "NULL, NULL",
    "entries AS e LEFT JOIN salts AS s ON s.id = e.salt WHERE e.id < ?1 ORDER BY e.id DESC LIMIT ?2"
);
/// Each state is said in the text, not as a value: only then an index over one state is used.
macro_rules! before_in {
    ($state:literal) => {
        select!(
            "NULL, NULL",
            concat!(
                "entries AS e LEFT JOIN salts AS s ON s.id = e.salt WHERE e.state = '",
                $state,
                "' AND e.id < ?1 ORDER BY e.id DESC LIMIT ?2"
            )
        )
    };
}
const BETWEEN: &str = select!(
    "NULL, NULL",
    "entry_keys AS k CROSS JOIN entries AS e ON e.id = k.id LEFT JOIN salts AS s ON s.id = e.salt
     WHERE k.half BETWEEN ?1 AND ?2 AND e.key BETWEEN ?3 AND ?4 LIMIT ?5"
);
const OPENED_BY: &str = select!(
    "NULL, NULL",
    "entries AS e LEFT JOIN salts AS s ON s.id = e.salt WHERE e.first_ref = ?1 ORDER BY e.id DESC LIMIT 1"
);
const ID: &str =
    "SELECT e.id FROM entry_keys AS k CROSS JOIN entries AS e ON e.id = k.id WHERE k.half = ?1 AND e.key = ?2";

const INSERT: &str = "
    INSERT INTO entries (revision, state, owner, lease_end, at, lane_version, lapses_at, claim, claim_until, attempt,
        first_ref, tool, tenant, issuer, principal, run, args_digest, lane, keeps_lane, retain_ms, approval, holds,
        subject, salt, contents, key)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23,
        ?24, ?25, ?26)";
const REOPEN: &str = "
    UPDATE entries SET revision = ?1, state = ?2, owner = ?3, lease_end = ?4, at = ?5, lane_version = ?6,
        lapses_at = ?7, claim = ?8, claim_until = ?9, attempt = ?10, first_ref = ?11, tool = ?12, tenant = ?13,
        issuer = ?14, principal = ?15, run = ?16, args_digest = ?17, lane = ?18, keeps_lane = ?19, retain_ms = ?20,
        approval = ?21, holds = ?22, subject = ?23, salt = ?24, contents = ?25
    WHERE id = ?26";
const MOVE: &str = "
    UPDATE entries SET revision = ?1, state = ?2, owner = ?3, lease_end = ?4, at = ?5, lane_version = ?6,
        lapses_at = ?7, claim = ?8, claim_until = ?9
    WHERE id = ?10";
const ANSWER: &str = "INSERT OR REPLACE INTO answers (id, sealed) VALUES (?1, ?2)";

/// A row, as it was read.
struct Found {
    id: i64,
    /// All but what is sealed.
    entry: Entry,
    salt: Option<[u8; 32]>,
    contents: Option<Vec<u8>>,
    answer: Option<Vec<u8>>,
}

/// The salt that an entry is sealed with, where it has one.
enum Salted {
    /// The gate's key alone seals it.
    Plain,
    With(Salt),
    /// The salt was erased, and with it all that was sealed.
    Erased,
}

/// A salt of zeros is one that was erased.
pub(super) const ERASED: [u8; 32] = [0; 32];

impl Tables<'_> {
    /// The entry, with all that it carries where this process has the key.
    pub(super) fn whole_entry(&self, key: EntryKey) -> Stored<Option<Entry>> {
        self.found(WHOLE, key)?.map(|found| found.opened(self.vault())).transpose()
    }

    pub(super) fn outline_of(&self, key: EntryKey) -> Stored<Option<Entry>> {
        Ok(self.found(OUTLINE, key)?.map(Found::outlined))
    }

    pub(super) fn outlines_open(&self) -> Stored<Vec<Entry>> {
        Ok(self.all(OPEN, [], Found::of)?.into_iter().map(Found::outlined).collect())
    }

    pub(super) fn outlines_before(&self, before: i64, limit: i64) -> Stored<Vec<(u64, Entry)>> {
        self.all(BEFORE, params![before, limit], |row| Ok((natural(row, 0)?, Found::of(row)?.outlined())))
    }

    pub(super) fn outlines_in(&self, state: ActionState, before: i64, limit: i64) -> Stored<Vec<(u64, Entry)>> {
        let sql = match state {
            ActionState::Open => before_in!("open"),
            ActionState::Done => before_in!("done"),
            ActionState::Failed => before_in!("failed"),
            ActionState::Unknown => before_in!("unknown"),
        };
        self.all(sql, params![before, limit], |row| Ok((natural(row, 0)?, Found::of(row)?.outlined())))
    }

    pub(super) fn outlines_between(&self, first: EntryKey, last: EntryKey, limit: i64) -> Stored<Vec<Entry>> {
        let (first, last) = (first.as_bytes(), last.as_bytes());
        let found = self.all(BETWEEN, params![half(first), half(last), first, last, limit], Found::of)?;
        Ok(found.into_iter().map(Found::outlined).collect())
    }

    pub(super) fn outline_opened_by(&self, first: &str) -> Stored<Option<Entry>> {
        Ok(self.one(OPENED_BY, params![first], Found::of)?.map(Found::outlined))
    }

    fn found(&self, sql: &'static str, key: EntryKey) -> Stored<Option<Found>> {
        let found = self.one(sql, params![half(key.as_bytes()), key.as_bytes()], Found::of)?;
        self.seen().entry = Some((key, found.as_ref().map(|found| found.id)));
        Ok(found)
    }

    fn id_of(&self, key: EntryKey) -> Stored<Option<i64>> {
        if let Some((_, id)) = self.seen().entry.filter(|(seen, _)| *seen == key) {
            return Ok(id);
        }
        self.one(ID, params![half(key.as_bytes()), key.as_bytes()], |row| row.get(0))
    }

    pub(super) fn write_entry(&self, entry: &Entry, change: Change) -> Stored<()> {
        match (change, self.id_of(entry.key)?) {
            (Change::Opened, id) => self.write_opened(entry, id),
            (Change::Moved, Some(id)) => self.write_moved(entry, id),
            (Change::Moved, None) => Err(damaged()),
        }
    }

    /// Everything, as a new row or in place of the row of an earlier attempt.
    fn write_opened(&self, entry: &Entry, id: Option<i64>) -> Stored<()> {
        let vault = self.vault().ok_or_else(unstorable)?;
        let action = &entry.action;
        let salted = action.subject.map(|subject| self.salt_for(subject)).transpose()?;
        let salt = salted.as_ref().map(|(_, salt)| salt);
        let text = sealing::print(&action.arguments, &action.facts)?;
        let contents = vault.seal(entry.place(Part::Contents), salt, &text)?;
        let holds = match action.holds.as_slice() {
            [] => None,
            holds => Some(serde_json::to_string(holds).map_err(|_| unstorable())?),
        };
        let state = StateColumns::of(entry)?;
        let tail: [&dyn ToSql; 16] = [
            &entry.attempt,
            &entry.first.as_str(),
            &action.tool,
            &action.tenant,
            &action.principal.issuer,
            &action.principal.subject,
            &action.run,
            &action.args_digest.as_bytes(),
            &action.lane.as_bytes(),
            &action.keeps_lane,
            &action.retain_ms.cast_signed(),
            &action.grant,
            &holds,
            &action.subject.as_ref().map(Subject::as_bytes),
            &salted.as_ref().map(|(id, _)| *id),
            &contents,
        ];
        let values = |last: &'_ dyn ToSql, sql: &'static str| {
            let all: Vec<&dyn ToSql> = state.values().into_iter().chain(tail).chain([last]).collect();
            self.run(sql, all.as_slice())
        };
        let id = match id {
            None => {
                values(&entry.key.as_bytes(), INSERT)?;
                let id = self.last_id();
                let sql = "INSERT INTO entry_keys (half, id) VALUES (?1, ?2)";
                self.run(sql, params![half(entry.key.as_bytes()), id])?;
                id
            }
            Some(id) => {
                values(&id, REOPEN)?;
                self.run("DELETE FROM answers WHERE id = ?1", params![id])?;
                id
            }
        };
        self.seen().entry = Some((entry.key, Some(id)));
        self.write_answer(entry, id, vault, salt)
    }

    /// Where it stands, and nothing of the action again.
    fn write_moved(&self, entry: &Entry, id: i64) -> Stored<()> {
        let state = StateColumns::of(entry)?;
        let values: Vec<&dyn ToSql> = state.values().into_iter().chain([&id as &dyn ToSql]).collect();
        self.run(MOVE, values.as_slice())?;
        let State::Done { .. } = entry.state else { return Ok(()) };
        let vault = self.vault().ok_or_else(unstorable)?;
        match entry.action.subject {
            None => self.write_answer(entry, id, vault, None),
            Some(_) => match self.salt_of_entry(id)? {
                Salted::Plain => Err(damaged()),
                Salted::With(salt) => self.write_answer(entry, id, vault, Some(&salt)),
                // Whose data it is had it erased while it ran: what came of it is not kept either.
                Salted::Erased => Ok(()),
            },
        }
    }

    fn write_answer(&self, entry: &Entry, id: i64, vault: &Vault, salt: Option<&Salt>) -> Stored<()> {
        let State::Done { answer, .. } = &entry.state else { return Ok(()) };
        let sealed = vault.seal(entry.place(Part::Answer), salt, answer)?;
        self.run(ANSWER, params![id, sealed])
    }

    fn salt_of_entry(&self, id: i64) -> Stored<Salted> {
        let sql = "SELECT s.salt FROM entries AS e JOIN salts AS s ON s.id = e.salt WHERE e.id = ?1";
        Ok(Salted::of(self.one(sql, params![id], |row| row.get(0))?))
    }

    pub(super) fn forget_entry(&self, key: EntryKey) -> Stored<()> {
        let Some(id) = self.id_of(key)? else { return Ok(()) };
        self.seen().entry = None;
        self.run("DELETE FROM answers WHERE id = ?1", params![id])?;
        self.run("DELETE FROM entries WHERE id = ?1", params![id])?;
        self.run("DELETE FROM entry_keys WHERE half = ?1 AND id = ?2", params![half(key.as_bytes()), id])
    }
}

impl Entry {
    fn place(&self, part: Part) -> Place {
        Place { key: self.key, attempt: self.attempt, part }
    }
}

impl Salted {
    fn of(salt: Option<[u8; 32]>) -> Self {
        match salt {
            None => Self::Plain,
            Some(ERASED) => Self::Erased,
            Some(salt) => Self::With(Salt(salt)),
        }
    }
}

impl Found {
    fn of(row: &Row<'_>) -> rusqlite::Result<Self> {
        let digest = |at| row.get::<_, [u8; 32]>(at).map(Digest::from);
        let holds = match row.get_ref(22)?.as_str_or_null()? {
            None => Vec::new(),
            Some(text) => parse_holds(text, 22)?,
        };
        let action = Action {
            tool: row.get(12)?,
            tenant: row.get(13)?,
            principal: Principal { issuer: row.get(14)?, subject: row.get(15)? },
            run: row.get(16)?,
            args_digest: digest(17)?,
            arguments: Value::Null,
            facts: Value::Null,
            lane: LaneKey(digest(18)?),
            keeps_lane: row.get(19)?,
            retain_ms: row.get::<_, i64>(20)?.cast_unsigned(),
            grant: row.get(21)?,
            holds,
            subject: row.get::<_, Option<[u8; 32]>>(23)?.map(Subject::from_bytes),
        };
        let entry = Entry {
            key: EntryKey(digest(1)?),
            revision: natural(row, 2)?,
            attempt: row.get(3)?,
            first: Ref::kept(row.get(11)?),
            action,
            state: state(row)?,
            erased: false,
        };
        Ok(Self { id: row.get(0)?, entry, salt: row.get(24)?, contents: row.get(25)?, answer: row.get(26)? })
    }

    /// Without what is sealed.
    fn outlined(self) -> Entry {
        let mut entry = self.entry;
        entry.erased = matches!(Salted::of(self.salt), Salted::Erased);
        entry
    }

    /// With what is sealed, for whoever has the key.
    fn opened(self, vault: Option<&Vault>) -> Stored<Entry> {
        let salt = match Salted::of(self.salt) {
            Salted::Erased => return Ok(self.outlined()),
            Salted::Plain if self.entry.action.subject.is_some() => return Err(damaged()),
            Salted::Plain => None,
            Salted::With(salt) => Some(salt),
        };
        let Self { mut entry, contents, answer: sealed, .. } = self;
        let Some(vault) = vault else { return Ok(entry) };
        let contents = contents.ok_or_else(damaged)?;
        let contents = vault.open(entry.place(Part::Contents), salt.as_ref(), &contents)?;
        (entry.action.arguments, entry.action.facts) = sealing::read(&contents)?;
        let place = entry.place(Part::Answer);
        if let State::Done { answer, .. } = &mut entry.state {
            let sealed = sealed.ok_or_else(damaged)?;
            *answer = vault.open(place, salt.as_ref(), &sealed)?;
        }
        Ok(entry)
    }
}

/// What of a row moves with the state.
struct StateColumns<'e> {
    revision: i64,
    state: &'static str,
    owner: Option<&'e str>,
    lease_end: Option<i64>,
    at: Option<i64>,
    lane_version: Option<i64>,
    lapses_at: Option<i64>,
    claim: Option<&'e str>,
    claim_until: Option<i64>,
}

impl<'e> StateColumns<'e> {
    fn of(entry: &'e Entry) -> Stored<Self> {
        let revision = integer(entry.revision)?;
        let lapses_at = entry.lapses_at().map(moment);
        let plain = |state| Self {
            revision,
            state,
            owner: None,
            lease_end: None,
            at: None,
            lane_version: None,
            lapses_at,
            claim: None,
            claim_until: None,
        };
        Ok(match &entry.state {
            State::Open { owner, since, lease_end } => Self {
                owner: Some(&owner.0),
                lease_end: Some(moment(*lease_end)),
                at: Some(moment(*since)),
                ..plain("open")
            },
            State::Done { lane_version, at, .. } => {
                Self { at: Some(moment(*at)), lane_version: Some(integer(*lane_version)?), ..plain("done") }
            }
            State::Failed { at } => Self { at: Some(moment(*at)), ..plain("failed") },
            State::Unknown { owner, since, lease_end, claim } => Self {
                owner: Some(&owner.0),
                lease_end: Some(moment(*lease_end)),
                at: Some(moment(*since)),
                claim: claim.as_ref().map(|claim| claim.token.as_str()),
                claim_until: claim.as_ref().map(|claim| moment(claim.until)),
                ..plain("unknown")
            },
        })
    }

    fn values(&self) -> [&dyn ToSql; 9] {
        [
            &self.revision,
            &self.state,
            &self.owner,
            &self.lease_end,
            &self.at,
            &self.lane_version,
            &self.lapses_at,
            &self.claim,
            &self.claim_until,
        ]
    }
}

/// The state of a row; the answer of a done one is sealed.
fn state(row: &Row<'_>) -> rusqlite::Result<State> {
    let owner = || row.get(5).map(Owner);
    let at = || millis(row, 7);
    Ok(match row.get_ref(4)?.as_str()? {
        "open" => {
            let lease_end = millis(row, 6)?;
            // A row of an earlier version does not say when it was opened.
            let since = row.get::<_, Option<i64>>(7)?.map_or(Ok(lease_end), |_| at())?;
            State::Open { owner: owner()?, since, lease_end }
        }
        "done" => State::Done { answer: String::new(), lane_version: natural(row, 8)?, at: at()? },
        "failed" => State::Failed { at: at()? },
        "unknown" => {
            let claim = match row.get::<_, Option<String>>(9)? {
                Some(token) => Some(Claim { token, until: millis(row, 10)? }),
                None => None,
            };
            State::Unknown { owner: owner()?, since: at()?, lease_end: millis(row, 6)?, claim }
        }
        _ => return Err(rusqlite::Error::InvalidColumnType(4, "state".into(), rusqlite::types::Type::Text)),
    })
}
