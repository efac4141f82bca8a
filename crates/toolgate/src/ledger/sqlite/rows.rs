//! The tables, as the transactions of the ledger see them.

use std::cell::{Cell, RefCell, RefMut};

use rusqlite::types::Type;
use rusqlite::{CachedStatement, Connection, OptionalExtension, Params, Row, params};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::super::rows::{Change, Lane, Mark, Note, NoteKind, Rows, Stored};
use super::super::{ActionState, CounterKey, Entry, EntryKey, GrantKey, Hold, LaneKey, Owner};
use super::entries::ERASED;
use super::raw;
use super::sealing::Vault;
use super::trouble::{damaged, unstorable};
use crate::approval::{Approval, ApprovalState};
use crate::audit::{Head, Sealed};
use crate::clock::Millis;
use crate::json::{self, Digest, Limits};
use crate::vault::{Salt, Subject};

/// Wide enough for all that is written: what it is made of has limits of its own.
const BODY: Limits = Limits { size: 256 << 20, depth: 512, members: 10_000_000 };

/// The tables, within one transaction.
pub(super) struct Tables<'c> {
    connection: &'c Connection,
    /// None where the file is only looked at.
    vault: Option<&'c Vault>,
    seen: RefCell<Seen>,
    /// Those of this transaction, by the address of their text: finding one costs less than hashing a text.
    statements: RefCell<Vec<(&'static str, CachedStatement<'c>)>>,
    erased: Cell<bool>,
}

/// What the transaction knows already and need not ask again.
#[derive(Default)]
pub(super) struct Seen {
    head: Option<Head>,
    /// The entry that was looked for last, and its row.
    pub(super) entry: Option<(EntryKey, Option<i64>)>,
    /// The lane that was looked for last, and its row.
    lane: Option<(LaneKey, Option<i64>, Lane)>,
}

impl<'c> Tables<'c> {
    pub(super) fn new(connection: &'c Connection, vault: Option<&'c Vault>) -> Self {
        Self { connection, vault, seen: RefCell::default(), statements: RefCell::default(), erased: Cell::new(false) }
    }

    pub(super) fn vault(&self) -> Option<&'c Vault> {
        self.vault
    }

    pub(super) fn seen(&self) -> RefMut<'_, Seen> {
        self.seen.borrow_mut()
    }

    /// What was seen may have been taken back.
    pub(super) fn forget_seen(&self) {
        self.seen.take();
    }

    /// Whether something was written whose earlier form must be left nowhere.
    pub(super) fn has_erased(&self) -> bool {
        self.erased.get()
    }

    #[cfg(test)]
    pub(super) fn connection(&self) -> &'c Connection {
        self.connection
    }

    /// The number of rows that a statement changed.
    pub(super) fn changed(&self, sql: &'static str, values: impl Params) -> Stored<usize> {
        self.with(sql, |statement| statement.execute(values))
    }

    pub(super) fn last_id(&self) -> i64 {
        self.connection.last_insert_rowid()
    }

    pub(super) fn run(&self, sql: &'static str, values: impl Params) -> Stored<()> {
        self.changed(sql, values).map(|_| ())
    }

    pub(super) fn one<T>(
        &self,
        sql: &'static str,
        values: impl Params,
        read: fn(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Stored<Option<T>> {
        self.with(sql, |statement| statement.query_row(values, read).optional())
    }

    pub(super) fn all<T>(
        &self,
        sql: &'static str,
        values: impl Params,
        read: fn(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Stored<Vec<T>> {
        self.with(sql, |statement| statement.query_map(values, read)?.collect())
    }

    fn with<T>(
        &self,
        sql: &'static str,
        work: impl FnOnce(&mut CachedStatement<'c>) -> rusqlite::Result<T>,
    ) -> Stored<T> {
        let mut statements = self.statements.borrow_mut();
        if let Some((_, statement)) = statements.iter_mut().find(|(text, _)| std::ptr::eq(*text, sql)) {
            return Ok(work(statement)?);
        }
        let mut statement = self.connection.prepare_cached(sql)?;
        let done = work(&mut statement);
        statements.push((sql, statement));
        Ok(done?)
    }

    fn count(&self, sql: &'static str, values: impl Params) -> Stored<usize> {
        let count = self.one(sql, values, |row| row.get::<_, i64>(0))?;
        usize::try_from(count.unwrap_or_default()).map_err(|_| damaged())
    }

    fn approvals(&self, sql: &'static str, values: impl Params) -> Stored<Vec<Approval>> {
        self.all(sql, values, text)?.iter().map(|body| parse(body)).collect()
    }

    /// The salt of a subject and its row, which is made if there is none.
    pub(super) fn salt_for(&self, subject: Subject) -> Stored<(i64, Salt)> {
        match self.standing_salt(subject)? {
            Some(standing) => Ok(standing),
            None => {
                let salt = Salt::generate()?;
                self.add_salt(subject, &salt)?;
                Ok((self.last_id(), salt))
            }
        }
    }

    fn standing_salt(&self, subject: Subject) -> Stored<Option<(i64, Salt)>> {
        let sql = "SELECT id, salt FROM salts WHERE subject = ?1 AND salt <> ?2 ORDER BY id DESC LIMIT 1";
        self.one(sql, params![subject.as_bytes(), ERASED], |row| Ok((row.get(0)?, Salt(row.get(1)?))))
    }

    fn add_salt(&self, subject: Subject, salt: &Salt) -> Stored<()> {
        self.run("INSERT INTO salts (subject, salt) VALUES (?1, ?2)", params![subject.as_bytes(), salt.0])
    }

    /// The lane and its row.
    fn lane_row(&self, key: LaneKey) -> Stored<(Option<i64>, Lane)> {
        if let Some((_, id, lane)) = self.seen().lane.filter(|(seen, ..)| *seen == key) {
            return Ok((id, lane));
        }
        let sql = "SELECT l.id, l.version, l.needed_until, l.holder
                   FROM lane_keys AS k CROSS JOIN lanes AS l ON l.id = k.id WHERE k.half = ?1 AND l.key = ?2";
        let found = self.one(sql, params![half(key.as_bytes()), key.as_bytes()], |row| {
            let holder = row.get::<_, Option<[u8; 32]>>(3)?.map(|key| EntryKey(Digest::from(key)));
            Ok((row.get::<_, i64>(0)?, Lane { version: natural(row, 1)?, needed_until: millis(row, 2)?, holder }))
        })?;
        let (id, lane) = found.map_or((None, Lane::default()), |(id, lane)| (Some(id), lane));
        self.seen().lane = Some((key, id, lane));
        Ok((id, lane))
    }
}

impl Rows for Tables<'_> {
    fn entry(&self, key: EntryKey) -> Stored<Option<Entry>> {
        self.whole_entry(key)
    }

    fn outline(&self, key: EntryKey) -> Stored<Option<Entry>> {
        self.outline_of(key)
    }

    fn put_entry(&mut self, entry: &Entry, change: Change) -> Stored<()> {
        self.write_entry(entry, change)
    }

    fn remove_entry(&mut self, key: EntryKey) -> Stored<()> {
        self.forget_entry(key)
    }

    fn open_entries(&self) -> Stored<Vec<Entry>> {
        self.outlines_open()
    }

    fn entries_before(&self, before: u64, limit: usize) -> Stored<Vec<(u64, Entry)>> {
        self.outlines_before(i64::try_from(before).unwrap_or(i64::MAX), at_most(limit))
    }

    fn entries_in(&self, state: ActionState, before: u64, limit: usize) -> Stored<Vec<(u64, Entry)>> {
        self.outlines_in(state, i64::try_from(before).unwrap_or(i64::MAX), at_most(limit))
    }

    fn entries_between(&self, first: EntryKey, last: EntryKey, limit: usize) -> Stored<Vec<Entry>> {
        self.outlines_between(first, last, at_most(limit))
    }

    fn entry_opened_by(&self, first: &str) -> Stored<Option<Entry>> {
        self.outline_opened_by(first)
    }

    fn open_owners(&self) -> Stored<Vec<(Owner, Millis)>> {
        let sql = "SELECT owner, min(lease_end) FROM entries WHERE state = 'open' GROUP BY owner";
        self.all(sql, [], |row| Ok((Owner(row.get(0)?), millis(row, 1)?)))
    }

    fn lapsed(&self, until: Millis, limit: usize) -> Stored<Vec<EntryKey>> {
        let sql = "SELECT key FROM entries WHERE lapses_at <= ?1 ORDER BY lapses_at LIMIT ?2";
        let found = self.all(sql, params![moment(until), at_most(limit)], |row| row.get::<_, [u8; 32]>(0))?;
        Ok(found.into_iter().map(|key| EntryKey(Digest::from(key))).collect())
    }

    fn lane(&self, key: LaneKey) -> Stored<Lane> {
        self.lane_row(key).map(|(_, lane)| lane)
    }

    fn put_lane(&mut self, key: LaneKey, lane: Lane) -> Stored<()> {
        let holder = lane.holder.as_ref().map(EntryKey::as_bytes);
        let (version, until) = (integer(lane.version)?, moment(lane.needed_until));
        let id = match self.lane_row(key)? {
            (Some(id), _) => {
                let sql = "UPDATE lanes SET version = ?2, needed_until = ?3, holder = ?4 WHERE id = ?1";
                self.run(sql, params![id, version, until, holder])?;
                id
            }
            (None, _) => {
                let sql = "INSERT INTO lanes (key, version, needed_until, holder) VALUES (?1, ?2, ?3, ?4)";
                self.run(sql, params![key.as_bytes(), version, until, holder])?;
                let id = self.last_id();
                self.run("INSERT INTO lane_keys (half, id) VALUES (?1, ?2)", params![half(key.as_bytes()), id])?;
                id
            }
        };
        self.seen().lane = Some((key, Some(id), lane));
        Ok(())
    }

    fn forget_lanes(&mut self, until: Millis, limit: usize) -> Stored<usize> {
        let sql =
            "SELECT id, key FROM lanes WHERE holder IS NULL AND needed_until <= ?1 ORDER BY needed_until LIMIT ?2";
        let idle: Vec<(i64, [u8; 32])> =
            self.all(sql, params![moment(until), at_most(limit)], |row| Ok((row.get(0)?, row.get(1)?)))?;
        self.seen().lane = None;
        for (id, key) in &idle {
            self.run("DELETE FROM lanes WHERE id = ?1", params![id])?;
            self.run("DELETE FROM lane_keys WHERE half = ?1 AND id = ?2", params![half(key), id])?;
        }
        Ok(idle.len())
    }

    fn counted(&self, counter: CounterKey, window: Millis) -> Stored<u64> {
        let sql = "SELECT count FROM counts WHERE key = ?1 AND window = ?2";
        let found = self.one(sql, params![counter.as_bytes(), moment(window)], |row| natural(row, 0))?;
        Ok(found.unwrap_or_default())
    }

    fn put_counted(&mut self, counter: CounterKey, window: Millis, count: u64, needed_until: Millis) -> Stored<()> {
        self.run(
            "INSERT INTO counts (key, window, count, needed_until) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (key, window) DO UPDATE SET count = excluded.count, needed_until = excluded.needed_until",
            params![counter.as_bytes(), moment(window), integer(count)?, moment(needed_until)],
        )
    }

    fn forget_counts(&mut self, until: Millis, limit: usize) -> Stored<usize> {
        let sql = "DELETE FROM counts WHERE (key, window) IN
                   (SELECT key, window FROM counts WHERE needed_until <= ?1 ORDER BY needed_until LIMIT ?2)";
        self.changed(sql, params![moment(until), at_most(limit)])
    }

    fn is_littered(&self, now: Millis, expired: Millis) -> Stored<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM lanes WHERE holder IS NULL AND needed_until <= ?1)
                OR EXISTS (SELECT 1 FROM counts WHERE needed_until <= ?1)
                OR EXISTS (SELECT 1 FROM notes WHERE until <= ?1)
                OR EXISTS (SELECT 1 FROM approvals WHERE expires_at <= ?2)";
        Ok(self.one(sql, params![moment(now), moment(expired)], |row| row.get::<_, bool>(0))?.unwrap_or_default())
    }

    fn high_water(&self) -> Stored<Mark> {
        let sql = "SELECT at, boot, uptime FROM high_water";
        let found =
            self.one(sql, [], |row| Ok(Mark { at: millis(row, 0)?, boot: row.get(1)?, uptime: millis(row, 2)? }))?;
        Ok(found.unwrap_or_default())
    }

    fn put_high_water(&mut self, mark: &Mark) -> Stored<()> {
        self.run(
            "INSERT INTO high_water (one, at, boot, uptime) VALUES (1, ?1, ?2, ?3)
             ON CONFLICT (one) DO UPDATE SET at = excluded.at, boot = excluded.boot, uptime = excluded.uptime",
            params![moment(mark.at), mark.boot, moment(mark.uptime)],
        )
    }

    fn salt(&self, subject: Subject) -> Stored<Option<Salt>> {
        Ok(self.standing_salt(subject)?.map(|(_, salt)| salt))
    }

    fn put_salt(&mut self, subject: Subject, salt: &Salt) -> Stored<()> {
        self.add_salt(subject, salt)
    }

    fn erase_salt(&mut self, subject: Subject) -> Stored<bool> {
        let sql = "UPDATE salts SET salt = ?2 WHERE subject = ?1 AND salt <> ?2";
        let erased = self.changed(sql, params![subject.as_bytes(), ERASED])? > 0;
        self.erased.set(self.erased.get() || erased);
        Ok(erased)
    }

    fn actions_of(&self, subject: Subject) -> Stored<usize> {
        let sql = "SELECT count(*) FROM entries AS e CROSS JOIN salts AS s ON s.id = e.salt
                   WHERE e.subject = ?1 AND s.salt <> ?2";
        self.count(sql, params![subject.as_bytes(), ERASED])
    }

    fn in_doubt_of(&self, subject: Subject) -> Stored<usize> {
        // Few are open or unknown at once, so these two are walked through and not the whole table.
        let sql = "SELECT (SELECT count(*) FROM entries AS e INDEXED BY entries_open
                    CROSS JOIN salts AS s ON s.id = e.salt
                    WHERE e.state = 'open' AND e.subject = ?1 AND s.salt <> ?2)
                 + (SELECT count(*) FROM entries AS e INDEXED BY entries_unknown
                    CROSS JOIN salts AS s ON s.id = e.salt
                    WHERE e.state = 'unknown' AND e.subject = ?1 AND s.salt <> ?2)";
        self.count(sql, params![subject.as_bytes(), ERASED])
    }

    fn approval(&self, id: &str) -> Stored<Option<Approval>> {
        let body = self.one("SELECT body FROM approvals WHERE id = ?1", params![id], text)?;
        body.map(|body| parse(&body)).transpose()
    }

    fn put_approval(&mut self, approval: &Approval) -> Stored<()> {
        let state = match approval.state {
            ApprovalState::Pending => "pending",
            ApprovalState::Granted => "granted",
            ApprovalState::Denied => "denied",
            ApprovalState::Used { .. } => "used",
        };
        let call = GrantKey::of(approval);
        self.run(
            "INSERT INTO approvals (id, tenant, principal, call, state, expires_at, body)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
             ON CONFLICT (id) DO UPDATE SET state = excluded.state, expires_at = excluded.expires_at,
                body = excluded.body",
            params![
                approval.id,
                call.tenant,
                call.principal,
                call.call_digest.as_bytes(),
                state,
                moment(approval.expires_at),
                print(approval)?
            ],
        )
    }

    fn forget_approvals(&mut self, until: Millis, limit: usize) -> Stored<usize> {
        let sql =
            "DELETE FROM approvals WHERE number IN (SELECT number FROM approvals WHERE expires_at <= ?1 LIMIT ?2)";
        self.changed(sql, params![moment(until), at_most(limit)])
    }

    fn approvals_of_call(&self, call: &GrantKey) -> Stored<Vec<Approval>> {
        self.approvals(
            "SELECT body FROM approvals WHERE call = ?1 AND principal = ?2 AND tenant = ?3 ORDER BY number DESC",
            params![call.call_digest.as_bytes(), call.principal, call.tenant],
        )
    }

    fn approvals_of_tenant(&self, tenant: &str, limit: usize) -> Stored<Vec<Approval>> {
        let sql = "SELECT body FROM approvals WHERE tenant = ?1 ORDER BY number DESC LIMIT ?2";
        self.approvals(sql, params![tenant, at_most(limit)])
    }

    fn count_pending(&self, tenant: &str, principal: &str, now: Millis) -> Stored<usize> {
        let sql = "SELECT count(*) FROM approvals
                   WHERE state = 'pending' AND tenant = ?1 AND principal = ?2 AND expires_at > ?3";
        self.count(sql, params![tenant, principal, moment(now)])
    }

    fn count_pending_of_tenant(&self, tenant: &str, now: Millis) -> Stored<usize> {
        let sql = "SELECT count(*) FROM approvals WHERE state = 'pending' AND tenant = ?1 AND expires_at > ?2";
        self.count(sql, params![tenant, moment(now)])
    }

    fn note(&self, kind: NoteKind, key: &str) -> Stored<Option<Note>> {
        let sql = "SELECT key, scope, until, body FROM notes WHERE kind = ?1 AND key = ?2";
        self.one(sql, params![kind.as_str(), key], note)
    }

    fn notes(&self, kind: NoteKind, scope: &str, limit: usize) -> Stored<Vec<Note>> {
        let sql = "SELECT key, scope, until, body FROM notes WHERE kind = ?1 AND scope = ?2 ORDER BY rowid LIMIT ?3";
        self.all(sql, params![kind.as_str(), scope, at_most(limit)], note)
    }

    fn notes_of(&self, kind: NoteKind) -> Stored<Vec<Note>> {
        let sql = "SELECT key, scope, until, body FROM notes WHERE kind = ?1 ORDER BY rowid";
        self.all(sql, params![kind.as_str()], note)
    }

    fn put_note(&mut self, kind: NoteKind, note: &Note) -> Stored<()> {
        self.run(
            "INSERT INTO notes (kind, key, scope, until, body) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (kind, key) DO UPDATE SET scope = excluded.scope, until = excluded.until, body = excluded.body",
            params![kind.as_str(), note.key, note.scope, moment(note.until), note.body],
        )
    }

    fn remove_note(&mut self, kind: NoteKind, key: &str) -> Stored<()> {
        self.run("DELETE FROM notes WHERE kind = ?1 AND key = ?2", params![kind.as_str(), key])
    }

    fn forget_notes(&mut self, until: Millis, limit: usize) -> Stored<usize> {
        let sql =
            "DELETE FROM notes WHERE rowid IN (SELECT rowid FROM notes WHERE until <= ?1 ORDER BY until LIMIT ?2)";
        self.changed(sql, params![moment(until), at_most(limit)])
    }

    fn head(&self) -> Stored<Head> {
        if let Some(head) = self.seen().head {
            return Ok(head);
        }
        let sql = "SELECT seq, hash FROM records ORDER BY seq DESC LIMIT 1";
        let found =
            self.one(sql, [], |row| Ok(Head { seq: natural(row, 0)?, hash: row.get::<_, [u8; 32]>(1)?.into() }))?;
        let head = found.unwrap_or_else(Head::empty);
        self.seen().head = Some(head);
        Ok(head)
    }

    fn push_record(&mut self, record: Sealed) -> Stored<()> {
        self.run(
            "INSERT INTO records (seq, ref, previous, hash, body) VALUES (?1, ?2, ?3, ?4, ?5)",
            params![
                integer(record.seq)?,
                record.reference,
                record.previous.as_bytes(),
                record.hash.as_bytes(),
                record.body
            ],
        )?;
        self.seen().head = Some(Head { seq: record.seq, hash: record.hash });
        Ok(())
    }

    fn records(&self, after: u64, limit: usize) -> Stored<Vec<Sealed>> {
        let after = i64::try_from(after).unwrap_or(i64::MAX);
        let sql = "SELECT seq, ref, previous, hash, body FROM records WHERE seq > ?1 ORDER BY seq LIMIT ?2";
        self.all(sql, params![after, at_most(limit)], sealed)
    }

    fn records_of(&self, reference: &str) -> Stored<Vec<Sealed>> {
        let sql = "SELECT seq, ref, previous, hash, body FROM records WHERE ref = ?1 ORDER BY seq";
        self.all(sql, params![reference], sealed)
    }

    fn rows(&self, from: i64, limit: usize) -> Stored<Vec<crate::audit::verify::Row>> {
        self.all(raw::ROWS, params![from, at_most(limit)], raw::row)
    }

    fn damage(&self) -> Stored<Option<String>> {
        raw::damage(self.connection)
    }
}

/// The first half of a key, by which its row is found.
pub(super) fn half(key: &[u8; 32]) -> &[u8] {
    key.split_at(16).0
}

fn text(row: &Row<'_>) -> rusqlite::Result<String> {
    row.get(0)
}

pub(super) fn natural(row: &Row<'_>, at: usize) -> rusqlite::Result<u64> {
    let integer: i64 = row.get(at)?;
    u64::try_from(integer).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(at, integer))
}

pub(super) fn millis(row: &Row<'_>, at: usize) -> rusqlite::Result<Millis> {
    natural(row, at).map(Millis)
}

fn note(row: &Row<'_>) -> rusqlite::Result<Note> {
    Ok(Note { key: row.get(0)?, scope: row.get(1)?, until: millis(row, 2)?, body: row.get(3)? })
}

fn sealed(row: &Row<'_>) -> rusqlite::Result<Sealed> {
    Ok(Sealed {
        seq: natural(row, 0)?,
        reference: row.get(1)?,
        // What is no hash links to nothing, so that the chain names this entry.
        previous: Digest::from(row.get::<_, [u8; 32]>(2).unwrap_or_default()),
        hash: Digest::from(row.get::<_, [u8; 32]>(3).unwrap_or_default()),
        body: row.get(4)?,
    })
}

pub(super) fn parse_holds(text: &str, at: usize) -> rusqlite::Result<Vec<Hold>> {
    parse(text).map_err(|error| rusqlite::Error::FromSqlConversionFailure(at, Type::Text, Box::new(error)))
}

fn print(value: &impl Serialize) -> Stored<String> {
    serde_json::to_string(value).map_err(|_| unstorable())
}

fn parse<T: DeserializeOwned>(body: &str) -> Stored<T> {
    let value = json::read(body.as_bytes(), &BODY).map_err(|_| damaged())?;
    serde_json::from_value(value).map_err(|_| damaged())
}

/// A moment beyond what fits is as good as never, and so is the last that fits.
pub(super) fn moment(moment: Millis) -> i64 {
    i64::try_from(moment.0).unwrap_or(i64::MAX)
}

fn at_most(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

pub(super) fn integer(number: u64) -> Stored<i64> {
    i64::try_from(number).map_err(|_| unstorable())
}
