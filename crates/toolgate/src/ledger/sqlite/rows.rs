//! The tables. What is asked for has a column; the rest of an entry or an approval is one JSON text.

use rusqlite::{Connection, OptionalExtension, Params, Row, params};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::super::transact::{Change, Lane, Mark, Rows, Stored};
use super::super::{ActionState, CounterKey, Entry, EntryKey, GrantKey, LaneKey, Owner, State};
use super::{StoreError, broken};
use crate::approval::{Approval, ApprovalState};
use crate::audit::{Head, Sealed};
use crate::clock::Millis;
use crate::json::{self, Digest, Limits};
use crate::vault::{Salt, Subject};

/// Wide enough for all that is written: arguments, facts and answers have limits of their own.
const BODY: Limits = Limits { size: 256 << 20, depth: 512, members: 10_000_000 };

/// The tables, within one transaction.
pub(super) struct Tables<'c>(pub(super) &'c Connection);

impl Tables<'_> {
    fn run(&self, sql: &str, values: impl Params) -> Stored<()> {
        self.0.prepare_cached(sql)?.execute(values)?;
        Ok(())
    }

    fn one<T>(&self, sql: &str, values: impl Params, read: fn(&Row<'_>) -> rusqlite::Result<T>) -> Stored<Option<T>> {
        Ok(self.0.prepare_cached(sql)?.query_row(values, read).optional()?)
    }

    fn all<T>(&self, sql: &str, values: impl Params, read: fn(&Row<'_>) -> rusqlite::Result<T>) -> Stored<Vec<T>> {
        let mut statement = self.0.prepare_cached(sql)?;
        let found = statement.query_map(values, read)?.collect::<Result<_, _>>()?;
        Ok(found)
    }

    fn approvals(&self, sql: &str, values: impl Params) -> Stored<Vec<Approval>> {
        self.all(sql, values, text)?.iter().map(|body| parse(body)).collect()
    }
}

impl Rows for Tables<'_> {
    fn entry(&self, key: EntryKey) -> Stored<Option<Entry>> {
        let body = self.one("SELECT body FROM entries WHERE key = ?1", params![key.as_bytes()], text)?;
        body.map(|body| parse(&body)).transpose()
    }

    fn put_entry(&mut self, entry: &Entry, _: Change) -> Stored<()> {
        let body = print(entry)?;
        let (state, owner, lease_end) = match &entry.state {
            State::Open { owner, lease_end } => {
                // Nothing may run under an entry that could not be read back.
                parse::<Entry>(&body).map_err(|_| unstorable())?;
                ("open", Some(&owner.0), Some(moment(*lease_end)))
            }
            State::Done { .. } => ("done", None, None),
            State::Failed => ("failed", None, None),
            State::Unknown { .. } => ("unknown", None, None),
        };
        self.run(
            "INSERT INTO entries (key, state, owner, lease_end, lapses_at, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT (key) DO UPDATE SET state = excluded.state, owner = excluded.owner,
                lease_end = excluded.lease_end, lapses_at = excluded.lapses_at, body = excluded.body",
            params![entry.key.as_bytes(), state, owner, lease_end, entry.lapses_at().map(moment), body],
        )
    }

    fn remove_entry(&mut self, key: EntryKey) -> Stored<()> {
        self.run("DELETE FROM entries WHERE key = ?1", params![key.as_bytes()])
    }

    fn open_entries(&self) -> Stored<Vec<Entry>> {
        let bodies = self.all("SELECT body FROM entries WHERE owner IS NOT NULL ORDER BY lease_end", [], text)?;
        bodies.iter().map(|body| parse(body)).collect()
    }

    fn entries_before(&self, before: u64, limit: usize) -> Stored<Vec<(u64, Entry)>> {
        let sql = "SELECT rowid, body FROM entries WHERE rowid < ?1 ORDER BY rowid DESC LIMIT ?2";
        let before = i64::try_from(before).unwrap_or(i64::MAX);
        let found: Vec<(i64, String)> =
            self.all(sql, params![before, at_most(limit)], |row| Ok((row.get(0)?, row.get(1)?)))?;
        found.into_iter().map(|(number, body)| Ok((natural(number)?, parse(&body)?))).collect()
    }

    fn entries_in(&self, state: ActionState, before: u64, limit: usize) -> Stored<Vec<(u64, Entry)>> {
        // Said in the text, not as a value: only then an index over one state is used.
        let own = match state {
            ActionState::Open => "owner IS NOT NULL",
            ActionState::Done => "state = 'done'",
            ActionState::Failed => "state = 'failed'",
            ActionState::Unknown => "state = 'unknown'",
        };
        let sql = format!("SELECT rowid, body FROM entries WHERE {own} AND rowid < ?1 ORDER BY rowid DESC LIMIT ?2");
        let before = i64::try_from(before).unwrap_or(i64::MAX);
        let found: Vec<(i64, String)> =
            self.all(&sql, params![before, at_most(limit)], |row| Ok((row.get(0)?, row.get(1)?)))?;
        found.into_iter().map(|(number, body)| Ok((natural(number)?, parse(&body)?))).collect()
    }

    fn entries_between(&self, first: EntryKey, last: EntryKey, limit: usize) -> Stored<Vec<Entry>> {
        let sql = "SELECT body FROM entries WHERE key BETWEEN ?1 AND ?2 LIMIT ?3";
        let bodies = self.all(sql, params![first.as_bytes(), last.as_bytes(), at_most(limit)], text)?;
        bodies.iter().map(|body| parse(body)).collect()
    }

    fn open_owners(&self) -> Stored<Vec<(Owner, Millis)>> {
        let sql = "SELECT owner, min(lease_end) FROM entries WHERE owner IS NOT NULL GROUP BY owner";
        let found: Vec<(String, i64)> = self.all(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        found.into_iter().map(|(owner, lease_end)| Ok((Owner(owner), Millis(natural(lease_end)?)))).collect()
    }

    fn lapsed(&self, until: Millis, limit: usize) -> Stored<Vec<EntryKey>> {
        let sql = "SELECT key FROM entries WHERE lapses_at <= ?1 ORDER BY lapses_at LIMIT ?2";
        let found = self.all(sql, params![moment(until), at_most(limit)], |row| row.get::<_, [u8; 32]>(0))?;
        Ok(found.into_iter().map(|key| EntryKey(Digest::from(key))).collect())
    }

    fn lane(&self, key: LaneKey) -> Stored<Lane> {
        let sql = "SELECT version, needed_until, holder FROM lanes WHERE key = ?1";
        let found: Option<(i64, i64, Option<[u8; 32]>)> =
            self.one(sql, params![key.as_bytes()], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        let Some((version, needed_until, holder)) = found else { return Ok(Lane::default()) };
        let holder = holder.map(|key| EntryKey(Digest::from(key)));
        Ok(Lane { version: natural(version)?, needed_until: Millis(natural(needed_until)?), holder })
    }

    fn put_lane(&mut self, key: LaneKey, lane: Lane) -> Stored<()> {
        self.run(
            "INSERT INTO lanes (key, version, needed_until, holder) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (key) DO UPDATE SET version = excluded.version, needed_until = excluded.needed_until,
                holder = excluded.holder",
            params![
                key.as_bytes(),
                integer(lane.version)?,
                moment(lane.needed_until),
                lane.holder.as_ref().map(EntryKey::as_bytes)
            ],
        )
    }

    fn forget_lanes(&mut self, until: Millis, limit: usize) -> Stored<usize> {
        let sql = "DELETE FROM lanes WHERE rowid IN
                   (SELECT rowid FROM lanes WHERE holder IS NULL AND needed_until <= ?1 LIMIT ?2)";
        Ok(self.0.prepare_cached(sql)?.execute(params![moment(until), at_most(limit)])?)
    }

    fn counted(&self, counter: CounterKey, window: Millis) -> Stored<u64> {
        let sql = "SELECT count FROM counts WHERE key = ?1 AND window = ?2";
        let found = self.one(sql, params![counter.as_bytes(), moment(window)], |row| row.get::<_, i64>(0))?;
        found.map_or(Ok(0), natural)
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
                   (SELECT key, window FROM counts WHERE needed_until <= ?1 LIMIT ?2)";
        Ok(self.0.prepare_cached(sql)?.execute(params![moment(until), at_most(limit)])?)
    }

    fn high_water(&self) -> Stored<Mark> {
        let sql = "SELECT at, boot, uptime FROM high_water";
        let found: Option<(i64, String, i64)> = self.one(sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        let Some((at, boot, uptime)) = found else { return Ok(Mark::default()) };
        Ok(Mark { at: Millis(natural(at)?), boot, uptime: Millis(natural(uptime)?) })
    }

    fn put_high_water(&mut self, mark: &Mark) -> Stored<()> {
        self.run(
            "INSERT INTO high_water (one, at, boot, uptime) VALUES (1, ?1, ?2, ?3)
             ON CONFLICT (one) DO UPDATE SET at = excluded.at, boot = excluded.boot, uptime = excluded.uptime",
            params![moment(mark.at), mark.boot, moment(mark.uptime)],
        )
    }

    fn salt(&self, subject: Subject) -> Stored<Option<Salt>> {
        let sql = "SELECT salt FROM salts WHERE subject = ?1";
        Ok(self.one(sql, params![subject.as_bytes()], |row| row.get::<_, [u8; 32]>(0))?.map(Salt))
    }

    fn put_salt(&mut self, subject: Subject, salt: &Salt) -> Stored<()> {
        self.run("INSERT OR REPLACE INTO salts (subject, salt) VALUES (?1, ?2)", params![subject.as_bytes(), salt.0])
    }

    fn erase_salt(&mut self, subject: Subject) -> Stored<bool> {
        let sql = "DELETE FROM salts WHERE subject = ?1";
        Ok(self.0.prepare_cached(sql)?.execute(params![subject.as_bytes()])? > 0)
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

    fn approvals_of_call(&self, call: &GrantKey) -> Stored<Vec<Approval>> {
        self.approvals(
            "SELECT body FROM approvals WHERE call = ?1 AND principal = ?2 AND tenant = ?3 ORDER BY number DESC",
            params![call.call_digest.as_bytes(), call.principal, call.tenant],
        )
    }

    fn approvals_of_tenant(&self, tenant: &str) -> Stored<Vec<Approval>> {
        self.approvals("SELECT body FROM approvals WHERE tenant = ?1 ORDER BY number DESC", params![tenant])
    }

    fn count_pending(&self, tenant: &str, principal: &str, now: Millis) -> Stored<usize> {
        let sql = "SELECT count(*) FROM approvals
                   WHERE state = 'pending' AND tenant = ?1 AND principal = ?2 AND expires_at > ?3";
        let count = self.one(sql, params![tenant, principal, moment(now)], |row| row.get::<_, i64>(0))?;
        usize::try_from(count.unwrap_or_default()).map_err(|_| damaged())
    }

    fn head(&self) -> Stored<Head> {
        let sql = "SELECT seq, hash FROM records ORDER BY seq DESC LIMIT 1";
        let found: Option<(i64, [u8; 32])> = self.one(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let Some((seq, hash)) = found else { return Ok(Head::empty()) };
        Ok(Head { seq: natural(seq)?, hash: Digest::from(hash) })
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
        )
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
}

fn text(row: &Row<'_>) -> rusqlite::Result<String> {
    row.get(0)
}

fn sealed(row: &Row<'_>) -> rusqlite::Result<Sealed> {
    let seq = row.get::<_, i64>(0)?;
    Ok(Sealed {
        seq: u64::try_from(seq).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(0, seq))?,
        reference: row.get(1)?,
        // What is no hash links to nothing, so that the chain names this entry.
        previous: Digest::from(row.get::<_, [u8; 32]>(2).unwrap_or_default()),
        hash: Digest::from(row.get::<_, [u8; 32]>(3).unwrap_or_default()),
        body: row.get(4)?,
    })
}

fn print(value: &impl Serialize) -> Stored<String> {
    serde_json::to_string(value).map_err(|_| unstorable())
}

fn parse<T: DeserializeOwned>(body: &str) -> Stored<T> {
    let value = json::read(body.as_bytes(), &BODY).map_err(|_| damaged())?;
    serde_json::from_value(value).map_err(|_| damaged())
}

/// A moment beyond what fits is as good as never, and so is the last that fits.
fn moment(moment: Millis) -> i64 {
    i64::try_from(moment.0).unwrap_or(i64::MAX)
}

fn at_most(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

fn integer(number: u64) -> Stored<i64> {
    i64::try_from(number).map_err(|_| unstorable())
}

fn natural(number: i64) -> Stored<u64> {
    u64::try_from(number).map_err(|_| damaged())
}

fn unstorable() -> StoreError {
    broken("a value cannot be stored, so nothing was")
}

fn damaged() -> StoreError {
    broken("it holds a row that cannot be read; it was changed by another program or is damaged")
}
