//! Standing grants in the store: given, found by whose calls they cover, drawn on, and taken back.
//!
//! What is taken of a grant is counted like a limit whose one window is the grant's whole life: an action holds its part,
//! keeps it while nobody knows what became of it, and gives it back where it provably did not happen.

use serde_json::json;

use super::rows::{Note, NoteKind, Rows, Stored};
use super::store::Pending;
use super::transact::append;
use super::{CounterKey, Hold, Store};
use crate::audit::Record;
use crate::clock::Millis;
use crate::json::{Digest, canonical};
use crate::standing::{Left, NotGranted, Refused, StandingGrant};

/// Whose standing grants, and for which tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Covered {
    pub(crate) tenant: String,
    /// The canonical principal.
    pub(crate) principal: String,
    pub(crate) tool: String,
}

/// What a call takes of a standing grant, if that still is what the call was permitted by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Drawing {
    pub(crate) id: String,
    /// The digest of the policies under which it covers the call.
    pub(crate) slice: Digest,
    /// The digest of the contract for which it covers the call.
    pub(crate) contract: Digest,
    /// What the call takes of the sum.
    pub(crate) amount: u64,
}

/// Whether somebody may take a grant back.
pub(crate) type May = Box<dyn FnOnce(&StandingGrant) -> Result<(), NotGranted> + Send>;

/// How many standing grants a tenant may have, and one person for one tool.
const IN_TENANT: usize = 1000;
const OF_ONE: usize = 20;
/// All calls ever are counted in one window.
const WHOLE_LIFE: Millis = Millis(0);

impl Store {
    /// Gives a grant, with its record.
    pub(crate) fn grant(
        &self,
        grant: StandingGrant,
        record: Record,
        now: Millis,
    ) -> Pending<'_, Result<StandingGrant, NotGranted>> {
        self.write_at(now, move |rows, _| give(rows, grant, &record))
    }

    /// Takes a grant back, with its record, if `may` says so; what was left of it.
    pub(crate) fn revoke(
        &self,
        id: String,
        may: May,
        record: Box<dyn FnOnce(&StandingGrant) -> Record + Send>,
        now: Millis,
    ) -> Pending<'_, Result<(StandingGrant, Left), NotGranted>> {
        self.write_at(now, move |rows, now| {
            let Some(grant) = found(rows, &id, now)? else { return Ok(Err(NotGranted::missing())) };
            if let Err(not) = may(&grant) {
                return Ok(Err(not));
            }
            rows.remove_note(NoteKind::Standing, &id)?;
            rows.remove_note(NoteKind::Covers, &id)?;
            append(rows, &record(&grant))?;
            with_left(rows, grant).map(Ok)
        })
    }

    /// The grants of a tenant whose time is not over, with what is left of each, in the order in which they were given.
    pub(crate) fn grants(&self, tenant: String, now: Millis) -> Pending<'_, Vec<(StandingGrant, Left)>> {
        self.list(move |rows| {
            let notes = rows.notes(NoteKind::Standing, &tenant, IN_TENANT)?;
            let live = notes.iter().filter(|note| now < note.until);
            live.map(|note| with_left(rows, note.read()?)).collect()
        })
    }
}

fn give(rows: &mut dyn Rows, grant: StandingGrant, record: &Record) -> Stored<Result<StandingGrant, NotGranted>> {
    let scope = Covered::by(&grant).scope();
    let (most, of_one) = (
        rows.notes(NoteKind::Standing, &grant.tenant, IN_TENANT)?.len(),
        rows.notes(NoteKind::Covers, &scope, OF_ONE)?.len(),
    );
    if most >= IN_TENANT || of_one >= OF_ONE {
        let message = format!(
            "there are too many standing grants: a tenant has at most {IN_TENANT}, and a person {OF_ONE} for one tool"
        );
        return Ok(Err(NotGranted::new(Refused::TooMany, message)));
    }
    let until = grant.expires_at;
    rows.put_note(NoteKind::Standing, &Note::new(grant.id.as_str(), &grant.tenant, until, &grant)?)?;
    rows.put_note(NoteKind::Covers, &Note::new(grant.id.as_str(), &scope, until, &())?)?;
    append(rows, record)?;
    Ok(Ok(grant))
}

/// The grant of this id, if its time is not over.
fn found(rows: &dyn Rows, id: &str, now: Millis) -> Stored<Option<StandingGrant>> {
    match rows.note(NoteKind::Standing, id)? {
        Some(note) if now < note.until => note.read().map(Some),
        Some(_) | None => Ok(None),
    }
}

/// The grants that may cover a call, with what is left of each, those that end first before the others.
pub(super) fn covering(rows: &dyn Rows, covered: &Covered, now: Millis) -> Stored<Vec<(StandingGrant, Left)>> {
    let mut grants = Vec::new();
    for note in rows.notes(NoteKind::Covers, &covered.scope(), OF_ONE)? {
        if let Some(grant) = found(rows, &note.key, now)? {
            grants.push(with_left(rows, grant)?);
        }
    }
    grants.sort_by(|(a, _), (b, _)| (a.expires_at, &a.id).cmp(&(b.expires_at, &b.id)));
    Ok(grants)
}

/// What a call holds of the grants that it draws on; `None` where one of them does not cover it any more.
pub(super) fn draw(rows: &dyn Rows, drawings: &[Drawing], now: Millis) -> Stored<Option<Vec<Hold>>> {
    let mut holds: Vec<Hold> = Vec::new();
    for Drawing { id, slice, contract, amount } in drawings {
        let still = |grant: &StandingGrant| grant.slice == *slice && grant.contract == *contract;
        let Some(grant) = found(rows, id, now)?.filter(still) else { return Ok(None) };
        for (counter, amount, max) in parts(&grant, *amount) {
            let of_it = holds.iter().filter(|hold| hold.counter == counter);
            let already = of_it.fold(0_u64, |sum, hold| sum.saturating_add(hold.amount));
            let counted = rows.counted(counter, WHOLE_LIFE)?.saturating_add(already);
            if counted.saturating_add(amount) > max {
                return Ok(None);
            }
            holds.push(Hold { counter, window: WHOLE_LIFE, end: grant.expires_at, amount });
        }
    }
    Ok(Some(holds))
}

/// What a call that takes `amount` of the sum takes of each bound of a grant: of what, how much, and how much there is.
fn parts(grant: &StandingGrant, amount: u64) -> impl Iterator<Item = (CounterKey, u64, u64)> {
    let calls = grant.bounds.calls.map(|max| (calls_of(&grant.id), 1, max));
    let sum = grant.bounds.sum.as_ref().map(|sum| (sum_of(&grant.id), amount, sum.max));
    calls.into_iter().chain(sum)
}

fn with_left(rows: &dyn Rows, grant: StandingGrant) -> Stored<(StandingGrant, Left)> {
    let left =
        |counter: CounterKey, max: u64| -> Stored<u64> { Ok(max.saturating_sub(rows.counted(counter, WHOLE_LIFE)?)) };
    let calls = grant.bounds.calls.map(|max| left(calls_of(&grant.id), max)).transpose()?;
    let sum = grant.bounds.sum.as_ref().map(|sum| left(sum_of(&grant.id), sum.max)).transpose()?;
    Ok((grant, Left { calls, sum }))
}

fn calls_of(id: &str) -> CounterKey {
    CounterKey::of(&json!(["standing", id, "calls"]))
}

fn sum_of(id: &str) -> CounterKey {
    CounterKey::of(&json!(["standing", id, "sum"]))
}

impl Covered {
    /// What a grant covers.
    fn by(grant: &StandingGrant) -> Self {
        Self { tenant: grant.tenant.clone(), principal: grant.to.canonical(), tool: grant.tool.clone() }
    }

    fn scope(&self) -> String {
        canonical(&json!([self.tenant, self.principal, self.tool]))
    }
}
