//! Many actors on one store, in any order, while the store fails after any of its writes and processes die: compared,
//! transaction by transaction, with a model that is small enough to be read.
//!
//! Transactions of a store come one after the other, so an order of transactions is all that an interleaving is. Between
//! looking and opening, opening and closing, claiming and resolving, anybody else may do anything.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test may panic"
)]

mod failing;

use std::time::Duration;

use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;
use serde_json::json;

use super::suite::{asked, record, slice};
use super::transact;
use super::*;
use crate::approval::{Approval, ApprovalState};
use crate::audit::Kind;
use crate::session::Principal;
use failing::Failing;

const ACTORS: usize = 6;
const ACTIONS: usize = 6;
const LANES: usize = 3;
/// What a day has room for.
const MAX: u64 = 100;
const HOUR: u64 = 60 * 60 * 1000;
const DAY: u64 = 24 * HOUR;
const LEASE: u64 = 2 * HOUR;
/// Longer than any story lasts.
const RETAIN: u64 = 1000 * DAY;

/// What happens next.
#[derive(Clone, Debug)]
enum Move {
    /// An actor asks what is known of an action, and decides.
    Look {
        actor: usize,
        action: usize,
        amount: u64,
    },
    Open {
        actor: usize,
    },
    Close {
        actor: usize,
        verdict: Verdict,
    },
    Claim {
        actor: usize,
        action: usize,
    },
    Resolve {
        actor: usize,
        finding: Finding,
    },
    Rule {
        action: usize,
        finding: Finding,
    },
    Sweep {
        actor: usize,
    },
    Wait {
        hours: u64,
    },
    /// A process dies, and another one starts.
    Die {
        actor: usize,
    },
}

/// Something happens, and perhaps the store fails after so many of its writes.
type Step = (Move, Option<usize>);

fn moves() -> impl Strategy<Value = Step> {
    let verdict = prop_oneof![
        2 => Just(Verdict::Done { answer: "done".into() }),
        2 => Just(Verdict::Failed),
        1 => Just(Verdict::Unknown),
    ];
    let finding = || prop_oneof![Just(Finding::Done { answer: "found".into() }), Just(Finding::NotDone)];
    let what = prop_oneof![
        8 => (0..ACTORS, 0..ACTIONS, 0..60_u64).prop_map(|(actor, action, amount)| Move::Look { actor, action, amount }),
        8 => (0..ACTORS).prop_map(|actor| Move::Open { actor }),
        5 => (0..ACTORS, verdict).prop_map(|(actor, verdict)| Move::Close { actor, verdict }),
        2 => (0..ACTORS, 0..ACTIONS).prop_map(|(actor, action)| Move::Claim { actor, action }),
        2 => (0..ACTORS, finding()).prop_map(|(actor, finding)| Move::Resolve { actor, finding }),
        1 => (0..ACTIONS, finding()).prop_map(|(action, finding)| Move::Rule { action, finding }),
        2 => (0..ACTORS).prop_map(|actor| Move::Sweep { actor }),
        2 => (0..9_u64).prop_map(|hours| Move::Wait { hours }),
        1 => (0..ACTORS).prop_map(|actor| Move::Die { actor }),
    ];
    (what, weighted(0.3, 0..6_usize))
}

/// What somebody is about.
#[derive(Clone, Debug)]
enum Doing {
    Nothing,
    /// It decided on the ground of this, when so much had changed.
    Looked {
        action: usize,
        amount: u64,
        stamp: Stamp,
        changes: usize,
    },
    Runs {
        action: usize,
        attempt: u32,
    },
    FindsOut {
        action: usize,
        token: String,
    },
}

/// What is true of an action.
#[derive(Clone, Debug)]
struct Truth {
    state: Is,
    attempt: u32,
    owner: Option<Owner>,
    lease_end: Millis,
    /// What it holds of the limit, and in which window.
    holds: Option<(Millis, u64)>,
    claim: Option<(String, Millis)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Is {
    Absent,
    Running,
    Unknown,
    Done,
    Failed,
}

struct Bench<'s> {
    stores: Vec<Store>,
    /// Starts another process of the store, where it may have several.
    start: &'s dyn Fn() -> Option<Store>,
    now: Millis,
    truths: Vec<Truth>,
    actors: Vec<Doing>,
    /// How many transactions changed something.
    changes: usize,
    /// The action that used up the one approval.
    spent_by: Option<usize>,
    ran: usize,
    failed: usize,
}

impl<'s> Bench<'s> {
    async fn new(stores: Vec<Store>, start: &'s dyn Fn() -> Option<Store>) -> Self {
        let granted = Approval { state: ApprovalState::Granted, expires_at: Millis(RETAIN), ..asked("ap_1") };
        stores[0].write(move |rows| rows.put_approval(&granted)).await.unwrap();
        let absent =
            Truth { state: Is::Absent, attempt: 0, owner: None, lease_end: Millis(0), holds: None, claim: None };
        Self {
            stores,
            start,
            now: Millis(DAY),
            truths: vec![absent; ACTIONS],
            actors: vec![Doing::Nothing; ACTORS],
            changes: 0,
            spent_by: None,
            ran: 0,
            failed: 0,
        }
    }

    fn store(&self, actor: usize) -> &Store {
        &self.stores[actor % self.stores.len()]
    }

    /// A transaction that may fail on the way, and then has left nothing.
    async fn write<T: Send + 'static>(
        &mut self,
        actor: usize,
        fails_after: Option<usize>,
        job: impl FnOnce(&mut dyn rows::Rows) -> rows::Stored<T> + Send + 'static,
    ) -> Option<T> {
        let before = self.dump().await;
        match self.store(actor).write(move |rows| job(&mut Failing::new(rows, fails_after))).await {
            Ok(answer) => {
                self.changes += usize::from(self.dump().await != before);
                Some(answer)
            }
            Err(error) => {
                assert!(fails_after.is_some() && error.to_string().contains(failing::WORDS), "{error}");
                assert_eq!(self.dump().await, before, "a transaction that failed has left something");
                self.failed += 1;
                None
            }
        }
    }

    async fn make(&mut self, (what, fails_after): Step) {
        match what {
            Move::Look { actor, action, amount } => {
                if let Doing::Runs { .. } = self.actors[actor] {
                    return;
                }
                let question = Question { action: Some((key(action), lane(action))), ..Question::default() };
                let stamp = self.store(actor).recall(question, self.now).await.unwrap().stamp;
                self.actors[actor] = Doing::Looked { action, amount, stamp, changes: self.changes };
            }
            Move::Open { actor } => self.open(actor, fails_after).await,
            Move::Close { actor, verdict } => self.close(actor, verdict, fails_after).await,
            Move::Claim { actor, action } => self.claim(actor, action, fails_after).await,
            Move::Resolve { actor, finding } => self.resolve(actor, finding, fails_after).await,
            Move::Rule { action, finding } => self.rule(action, finding, fails_after).await,
            Move::Sweep { actor } => self.sweep(actor, fails_after).await,
            Move::Wait { hours } => self.now = Millis(self.now.0 + hours * HOUR),
            Move::Die { actor } => {
                let place = actor % self.stores.len();
                let Some(other) = (self.start)() else { return };
                self.stores[place] = other;
                let processes = self.stores.len();
                let own = self.actors.iter_mut().enumerate().filter(|(actor, _)| actor % processes == place);
                own.for_each(|(_, doing)| *doing = Doing::Nothing);
            }
        }
        self.compare().await;
    }

    async fn open(&mut self, actor: usize, fails_after: Option<usize>) {
        let Doing::Looked { action, amount, stamp, changes } = self.actors[actor].clone() else { return };
        let (owner, now) = (self.store(actor).owner().clone(), self.now);
        let lease_end = Millis(now.0 + LEASE);
        let opening = opening(action, amount, stamp, owner.clone(), lease_end);
        let wants_grant = opening.grant.is_some();
        let Some(opened) = self.write(actor, fails_after, move |rows| transact::open(rows, opening, now)).await else {
            return;
        };
        self.actors[actor] = Doing::Nothing;

        let may_run = matches!(self.truths[action].state, Is::Absent | Is::Failed);
        let lane_is_free =
            (0..ACTIONS).all(|other| other == action || !self.holds_lane(other) || lane(other) != lane(action));
        let granted = !wants_grant || self.spent_by.is_none();
        let window = Millis(now.0 - now.0 % DAY);
        let counted = self.counted(window);
        let room = counted + amount <= MAX || amount == 0;
        match opened {
            Opened::Open { attempt, .. } => {
                assert!(may_run, "{action} ran twice");
                assert!(lane_is_free, "two hold a lane");
                assert!(granted, "an approval was used twice");
                assert!(room, "a limit was exceeded");
                assert_eq!(attempt, self.truths[action].attempt + 1);
                let holds = (amount > 0).then_some((window, amount));
                self.truths[action] =
                    Truth { state: Is::Running, attempt, owner: Some(owner), lease_end, holds, claim: None };
                if wants_grant {
                    self.spent_by = Some(action);
                }
                self.actors[actor] = Doing::Runs { action, attempt };
                self.ran += 1;
            }
            Opened::Limited { which, left, until } => {
                assert!(may_run && lane_is_free && !room, "refused without a reason");
                assert_eq!((which, left, until), (0, MAX - counted, Millis(window.0 + DAY)));
            }
            Opened::Moved => {
                let stands = changes == self.changes;
                assert!(!(stands && may_run && lane_is_free && granted && room), "turned back for nothing");
            }
        }
    }

    async fn close(&mut self, actor: usize, verdict: Verdict, fails_after: Option<usize>) {
        let Doing::Runs { action, attempt } = self.actors[actor].clone() else { return };
        let (owner, now) = (self.store(actor).owner().clone(), self.now);
        let closing =
            Closing { key: key(action), owner: owner.clone(), attempt, verdict: verdict.clone(), marking: None };
        let job = move |rows: &mut dyn rows::Rows| transact::close(rows, closing, |_| record(Kind::Outcome), now);
        let Some(closed) = self.write(actor, fails_after, job).await else { return };
        let truth = &self.truths[action];
        let is_its_own = truth.attempt == attempt && truth.owner == Some(owner);
        let expected = is_its_own
            && match truth.state {
                Is::Running => true,
                Is::Unknown => verdict != Verdict::Unknown,
                Is::Absent | Is::Done | Is::Failed => false,
            };
        assert_eq!(closed, expected, "{truth:?}");
        // Who said that it does not know may still learn it.
        if verdict != Verdict::Unknown {
            self.actors[actor] = Doing::Nothing;
        }
        if closed {
            match verdict {
                Verdict::Done { .. } => self.ends(action, &Finding::Done { answer: String::new() }),
                Verdict::Failed => self.ends(action, &Finding::NotDone),
                Verdict::Unknown => self.truths[action].state = Is::Unknown,
            }
        }
    }

    async fn claim(&mut self, actor: usize, action: usize, fails_after: Option<usize>) {
        if !matches!(self.actors[actor], Doing::Nothing) {
            return;
        }
        let (token, now) = (Ref::fresh().to_string(), self.now);
        let claim = Claim { token: token.clone(), until: Millis(now.0 + HOUR) };
        let standing = Some((token.clone(), claim.until));
        let job = move |rows: &mut dyn rows::Rows| transact::claim(rows, key(action), claim, now);
        let Some(claimed) = self.write(actor, fails_after, job).await else { return };
        let expected = self.truths[action].state == Is::Unknown && !self.is_claimed(action);
        assert_eq!(claimed.is_some(), expected);
        if expected {
            self.truths[action].claim = standing;
            self.actors[actor] = Doing::FindsOut { action, token };
        }
    }

    async fn resolve(&mut self, actor: usize, finding: Finding, fails_after: Option<usize>) {
        let Doing::FindsOut { action, token } = self.actors[actor].clone() else { return };
        let (now, found, asked) = (self.now, finding.clone(), token.clone());
        let job = move |rows: &mut dyn rows::Rows| {
            transact::resolve(rows, key(action), asked, found, record(Kind::Reconciled), now)
        };
        let Some(resolved) = self.write(actor, fails_after, job).await else { return };
        self.actors[actor] = Doing::Nothing;
        let truth = &self.truths[action];
        let is_standing = truth.claim.as_ref().is_some_and(|(standing, _)| *standing == token);
        assert_eq!(resolved, truth.state == Is::Unknown && is_standing);
        if resolved {
            self.ends(action, &finding);
        }
    }

    async fn rule(&mut self, action: usize, finding: Finding, fails_after: Option<usize>) {
        let (now, said) = (self.now, finding.clone());
        let job =
            move |rows: &mut dyn rows::Rows| transact::rule(rows, key(action), said, |_| record(Kind::Ruling), now);
        let Some(ruled) = self.write(action, fails_after, job).await else { return };
        assert_eq!(ruled.is_ok(), self.truths[action].state == Is::Unknown && !self.is_claimed(action));
        if ruled.is_ok() {
            self.ends(action, &finding);
        }
    }

    async fn sweep(&mut self, actor: usize, fails_after: Option<usize>) {
        let (store, now) = (self.store(actor), self.now);
        let owners = store.read(move |rows| transact::survey(rows, now)).await.unwrap().owners;
        let others = owners.into_iter().filter(|owner| owner != store.owner()).collect();
        let dead = store.dead(others).await.unwrap();
        let gone = dead.clone();
        let job = move |rows: &mut dyn rows::Rows| transact::sweep(rows, &dead, &|_| record(Kind::Lost), now);
        let Some(lost) = self.write(actor, fails_after, job).await else { return };
        let is_due = |truth: &&mut Truth| {
            let owner = truth.owner.as_ref();
            truth.state == Is::Running && (truth.lease_end <= now || owner.is_some_and(|owner| gone.contains(owner)))
        };
        let due = self.truths.iter_mut().filter(is_due);
        assert_eq!(due.map(|truth| truth.state = Is::Unknown).count(), lost);
    }

    fn ends(&mut self, action: usize, finding: &Finding) {
        let truth = &mut self.truths[action];
        match finding {
            Finding::Done { .. } => truth.state = Is::Done,
            Finding::NotDone => {
                truth.state = Is::Failed;
                truth.holds = None;
                self.spent_by.take_if(|by| *by == action);
            }
        }
    }

    fn is_claimed(&self, action: usize) -> bool {
        self.truths[action].claim.as_ref().is_some_and(|(_, until)| self.now < *until)
    }

    fn holds_lane(&self, action: usize) -> bool {
        match self.truths[action].state {
            Is::Running => true,
            Is::Unknown => keeps_lane(action),
            Is::Absent | Is::Done | Is::Failed => false,
        }
    }

    /// What was taken in a window, and not given back: also by what is unknown.
    fn counted(&self, window: Millis) -> u64 {
        let held = self.truths.iter().filter_map(|truth| truth.holds);
        held.filter(|(taken, _)| *taken == window).map(|(_, amount)| amount).sum()
    }

    /// The store says of everything what is true.
    async fn compare(&self) {
        let now = self.now;
        let (entries, holders, counts, approval) = self.stores[0]
            .read(move |rows| {
                let entries: Vec<_> = (0..ACTIONS).map(|action| rows.entry(key(action)).unwrap()).collect();
                let holders: Vec<_> = (0..ACTIONS).map(|action| rows.lane(lane(action)).unwrap().holder).collect();
                let days = (0..=now.0 / DAY).map(|day| Millis(day * DAY));
                let counts: Vec<_> = days.map(|window| (window, rows.counted(counter(), window).unwrap())).collect();
                Ok((entries, holders, counts, rows.approval("ap_1")?.unwrap()))
            })
            .await
            .unwrap();
        for (action, (truth, entry)) in self.truths.iter().zip(entries).enumerate() {
            let is = match entry.map(|entry| entry.state) {
                None => Is::Absent,
                Some(State::Open { .. }) => Is::Running,
                Some(State::Unknown { .. }) => Is::Unknown,
                Some(State::Done { .. }) => Is::Done,
                Some(State::Failed { .. }) => Is::Failed,
            };
            assert_eq!(is, truth.state, "{action}");
            let holder = (0..ACTIONS).find(|other| lane(*other) == lane(action) && self.holds_lane(*other));
            assert_eq!(holders[action], holder.map(key), "the lane of {action}");
        }
        for (window, counted) in counts {
            assert!(counted <= MAX, "a limit was exceeded");
            if window.0 + DAY + HOUR > now.0 {
                assert_eq!(counted, self.counted(window), "the window of {window}");
            }
        }
        assert_eq!(matches!(approval.state, ApprovalState::Used { .. }), self.spent_by.is_some());
    }

    /// Everything that the store keeps of the actions.
    async fn dump(&self) -> String {
        let now = self.now;
        let dump = self.stores[0].read(move |rows| {
            let actions: Vec<_> = (0..ACTIONS).map(|n| (rows.entry(key(n)), rows.lane(lane(n)))).collect();
            let counts: Vec<_> = (0..=now.0 / DAY).map(|day| rows.counted(counter(), Millis(day * DAY))).collect();
            Ok(format!("{actions:?} {counts:?} {:?} {:?}", rows.approval("ap_1"), rows.head()))
        });
        dump.await.unwrap()
    }
}

fn key(action: usize) -> EntryKey {
    EntryKey::of(&json!(["action", action]))
}

fn lane(action: usize) -> LaneKey {
    LaneKey::of(&json!(["lane", action % LANES]))
}

fn counter() -> CounterKey {
    CounterKey::of(&json!(["cents"]))
}

fn keeps_lane(action: usize) -> bool {
    action.is_multiple_of(2)
}

fn opening(action: usize, amount: u64, stamp: Stamp, owner: Owner, lease_end: Millis) -> Opening {
    // Two of them need the one approval that there is.
    let grant = (action < 2).then(|| ("ap_1".to_owned(), slice()));
    let reference = Ref::fresh();
    let taking = Taking { counter: counter(), amount, max: MAX, per: Duration::from_millis(DAY) };
    let entry = NewEntry {
        key: key(action),
        action: Action {
            tool: "pay".into(),
            tenant: "acme".into(),
            principal: Principal::new("local", "alice"),
            run: "default".into(),
            args_digest: Digest::of(b"{}"),
            arguments: json!({}),
            facts: json!({}),
            lane: lane(action),
            keeps_lane: keeps_lane(action),
            retain_ms: RETAIN,
            grant: None,
            holds: Vec::new(),
            subject: None,
        },
        owner,
        since: Millis(lease_end.0 - LEASE),
        lease_end,
        reference,
        anew: false,
        stamp,
    };
    Opening { entry: Some(entry), grant, takings: vec![taking], intent: record(Kind::Intent) }
}

fn played(steps: Vec<Step>, stores: Vec<Store>, start: &dyn Fn() -> Option<Store>) -> (usize, usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let mut bench = Bench::new(stores, start).await;
        for step in steps {
            bench.make(step).await;
        }
        (bench.ran, bench.failed)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn in_memory_nothing_runs_twice_and_no_limit_is_exceeded(steps in vec(moves(), 0..150)) {
        // What is in memory is undone by nobody, and nothing in it fails.
        let steps = steps.into_iter().map(|(what, _)| (what, None)).collect();
        played(steps, vec![Store::memory()], &|| None);
    }
}

#[cfg(feature = "sqlite")]
proptest! {
    #![proptest_config(ProptestConfig {
        cases: 24, failure_persistence: None, max_shrink_iters: 64, ..ProptestConfig::default()
    })]

    #[test]
    fn on_disk_nothing_runs_twice_though_transactions_fail_and_processes_die(steps in vec(moves(), 0..120)) {
        let folder = tempfile::tempdir().unwrap();
        let start = || Store::sqlite(folder.path().join("ledger.db")).ok();
        played(steps, vec![start().unwrap(), start().unwrap()], &start);
    }
}

/// A story in which nothing runs, or nothing fails, proves nothing.
#[test]
#[cfg(feature = "sqlite")]
fn the_stories_are_full_of_runs_and_of_failures() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let (mut ran, mut failed) = (0, 0);
    for _ in 0..8 {
        let steps = vec(moves(), 120).new_tree(&mut runner).unwrap().current();
        let folder = tempfile::tempdir().unwrap();
        let start = || Store::sqlite(folder.path().join("ledger.db")).ok();
        let (more, failures) = played(steps, vec![start().unwrap(), start().unwrap()], &start);
        ran += more;
        failed += failures;
    }
    assert!(ran >= 20 && failed >= 10, "{ran} runs, {failed} failures");
}
