//! What every store must do: one set of stories, told to each of them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test may panic"
)]

use serde_json::{Map, json};

use super::*;
use crate::approval::{Approval, ApprovalState, Approvers, Asked, Capacity, Decision, NotDecided, Reason};
use crate::audit::{Head, Kind, Record};
use crate::session::{Principal, Session};
use crate::stoppage::{Spot, Stoppage, Target};

#[cfg(feature = "sqlite")]
mod on_disk;

const NOW: Millis = Millis(1_000_000);
const LEASE: u64 = 10_000;
const RETAIN: u64 = 60_000;
const DAY: u64 = 24 * 60 * 60 * 1000;

macro_rules! stories {
    ($($of:ident: $($story:ident)*;)*) => {
        $(mod $of;)*

        mod memory {
            use super::*;
            $($(#[tokio::test]
            async fn $story() {
                let store = Store::memory();
                super::$of::$story(&store).await;
                verify(&store).await;
            })*)*
        }

        #[cfg(feature = "sqlite")]
        mod sqlite {
            use super::*;
            $($(#[tokio::test]
            async fn $story() {
                let folder = tempfile::tempdir().unwrap();
                let store = Store::sqlite(folder.path().join("ledger.db")).unwrap();
                super::$of::$story(&store).await;
                verify(&store).await;
            })*)*
        }
    };
}

stories! {
    actions:
        a_closed_action_is_replayed_byte_for_byte
        a_duplicate_finds_the_action_open
        a_failed_action_reopens_as_the_same_occurrence
        a_failed_action_may_be_taken_over_by_another_call_as_another_occurrence
        an_action_comes_anew_as_another_occurrence
        an_earlier_attempt_cannot_close_a_later_one
        a_refused_opening_leaves_nothing
        a_value_is_read_back_as_it_was_written;
    unknown:
        a_call_that_lost_its_lease_closes_while_nobody_knows_more
        a_call_that_learns_late_that_nothing_happened_gives_everything_back
        a_call_whose_outcome_was_found_out_cannot_close_and_is_recorded
        a_call_that_learns_late_is_believed_before_whoever_is_finding_out
        an_unknown_action_is_claimed_and_resolved
        an_action_found_undone_can_run_again
        only_one_of_two_claims_is_given_until_it_ends
        an_operator_says_what_became_of_an_unknown_action
        an_operator_says_nothing_of_what_is_known_or_runs_or_is_being_found_out
        nothing_is_decided_by_a_clock_that_is_behind_what_the_store_has_seen;
    lanes:
        an_unknown_action_keeps_its_lane_where_it_must
        an_unknown_action_without_a_lane_to_keep_frees_only_its_own
        a_lane_that_moved_moves_the_decision;
    limits:
        what_is_counted_never_exceeds_its_limit
        what_did_not_happen_gives_its_part_back_and_what_is_unknown_keeps_it
        a_part_goes_back_into_the_window_that_it_was_taken_from
        several_limits_are_taken_together_or_not_at_all
        a_limit_refuses_nothing_whose_ground_has_moved
        a_read_takes_its_part_for_good
        what_takes_nothing_fits_a_limit_that_was_lowered;
    grants:
        a_grant_is_used_once
        a_read_uses_its_grant_once
        a_grant_of_another_slice_or_past_its_time_is_not_used
        a_failed_action_gives_its_grant_back_with_its_time
        a_proposal_is_made_once_and_their_number_is_bounded
        a_granted_approval_is_preferred_and_never_proposed
        a_pending_approval_of_other_policies_does_not_stand
        a_decision_that_does_not_count_leaves_nothing
        approvals_are_listed_newest_first_by_tenant
        what_waits_is_found_however_much_was_asked_since;
    standing:
        a_standing_grant_covers_no_more_than_it_says
        what_did_not_happen_is_given_back_to_a_standing_grant_and_what_is_unknown_is_not
        of_two_calls_one_draws_the_last_of_a_standing_grant
        a_standing_grant_that_is_over_or_revoked_or_of_other_policies_covers_nothing
        a_standing_grant_is_found_by_whose_calls_it_covers
        the_number_of_standing_grants_is_bounded
        a_read_draws_for_good;
    asked:
        as_many_wait_of_one_tenant_as_may_whoever_asked
        an_edit_takes_the_place_of_what_waited_or_leaves_nothing
        an_edit_to_what_waits_already_asks_nothing_anew
        what_is_to_be_told_is_kept_with_what_is_asked_and_told_by_one_alone
        what_was_answered_or_has_expired_is_told_no_more
        what_is_new_is_told_before_what_nobody_took_in;
    notes:
        a_note_is_found_by_its_kind_and_key_and_listed_by_its_scope
        a_note_is_forgotten_from_its_end_on;
    stops:
        nothing_opens_where_an_operator_has_stopped_it
        a_stop_is_lifted_once_and_only_by_whom_it_concerns
        the_stops_of_one_tenant_leave_room_for_those_of_others
        a_call_looks_at_no_stop_of_another_tenant;
    runs:
        a_run_grows_with_each_call_and_only_its_own_principal_has_it
        a_run_that_rests_for_a_day_is_as_good_as_new
        what_a_call_adds_to_its_run_is_written_with_its_outcome_or_not_at_all
        a_write_that_is_found_out_later_is_completed_in_its_run
        a_run_that_was_ended_is_not_renewed_by_who_saw_it_before
        a_refusal_is_counted_in_its_window_alone;
    erasing:
        nothing_is_erased_while_an_action_of_theirs_is_in_doubt_unless_that_is_said
        what_comes_of_an_action_that_was_erased_while_it_ran_is_not_kept;
    purging:
        a_lapsed_entry_is_as_good_as_absent_and_later_forgotten
        a_failed_entry_is_forgotten_in_its_time_too
        what_is_open_or_unknown_is_never_forgotten
        a_lane_is_forgotten_with_its_last_entry_and_never_has_a_version_twice
        a_count_is_forgotten_after_its_window_and_what_comes_back_later_is_nothing
        approvals_are_forgotten_some_days_after_their_time
        a_sweep_forgets_a_bounded_part_at_a_time;
    lists:
        records_are_found_by_attempt_and_read_in_pages
        actions_are_listed_newest_first_by_tenant
        a_list_of_actions_passes_over_those_of_others_in_pages
        a_list_of_what_failed_looks_through_a_bounded_part_at_once
        records_are_listed_newest_first_by_tenant
        a_page_of_large_records_is_short;
}

/// One action of a test.
#[derive(Clone)]
struct Act {
    name: &'static str,
    tenant: &'static str,
    lane: &'static str,
    keeps_lane: bool,
    grant: Option<&'static str>,
    anew: bool,
    takings: Vec<Taking>,
    drawings: Vec<Drawing>,
}

impl Act {
    fn new(name: &'static str) -> Self {
        Self {
            name,
            tenant: "acme",
            lane: "ord_1",
            keeps_lane: true,
            grant: None,
            anew: false,
            takings: Vec::new(),
            drawings: Vec::new(),
        }
    }

    /// The same, which takes of these limits.
    fn taking(self, takings: impl Into<Vec<Taking>>) -> Self {
        Self { takings: takings.into(), ..self }
    }

    fn key(&self) -> EntryKey {
        EntryKey::of(&json!([self.tenant, self.name]))
    }

    fn question(&self) -> Question {
        Question { action: Some((self.key(), LaneKey::of(&json!([self.lane])))), ..Question::default() }
    }

    /// What opens the action on the ground of what the store knows now.
    async fn opening(&self, store: &Store) -> Opening {
        self.opening_as(store, &Ref::fresh()).await
    }

    async fn opening_as(&self, store: &Store, reference: &Ref) -> Opening {
        let stamp = store.recall(self.question(), NOW).await.unwrap().stamp;
        let action = Action {
            tool: "create_refund".into(),
            tenant: self.tenant.into(),
            principal: Principal::new("local", "alice"),
            run: "default".into(),
            args_digest: Digest::of(self.name.as_bytes()),
            arguments: json!({"name": self.name}),
            facts: json!({}),
            lane: LaneKey::of(&json!([self.lane])),
            keeps_lane: self.keeps_lane,
            retain_ms: RETAIN,
            grant: None,
            holds: Vec::new(),
            subject: None,
        };
        let entry = NewEntry {
            key: self.key(),
            action,
            owner: store.owner().clone(),
            since: NOW,
            lease_end: later(LEASE),
            reference: reference.clone(),
            anew: self.anew,
            stamp,
        };
        Opening {
            entry: Some(entry),
            grant: self.grant.map(|id| (id.to_owned(), slice())),
            takings: self.takings.clone(),
            drawings: self.drawings.clone(),
            intent: Record::new(Kind::Intent, NOW, reference.clone(), Map::new()),
            spot: Spot { tool: "create_refund".into(), tenant: self.tenant.into() },
        }
    }
}

async fn open(store: &Store, act: &Act) -> Ref {
    match store.open(act.opening(store).await, NOW).await.unwrap() {
        Opened::Open { first, .. } => first,
        Opened::Moved | Opened::Limited { .. } | Opened::Stopped(_) => panic!("{} did not open", act.name),
    }
}

async fn close(store: &Store, act: &Act, attempt: u32, verdict: Verdict) -> bool {
    close_at(store, act, attempt, verdict, NOW).await
}

async fn close_at(store: &Store, act: &Act, attempt: u32, verdict: Verdict, now: Millis) -> bool {
    let closing = Closing { key: act.key(), owner: store.owner().clone(), attempt, verdict, marking: None };
    store.close(closing, record(Kind::Outcome), record(Kind::Late), now).await.unwrap()
}

/// What comes of opening the action on the ground of what the store knows then.
async fn open_at(store: &Store, act: &Act, now: Millis) -> Opened {
    let mut opening = act.opening(store).await;
    let new = opening.entry.as_mut().unwrap();
    new.stamp = store.recall(act.question(), now).await.unwrap().stamp;
    new.lease_end = Millis(now.0 + LEASE);
    store.open(opening, now).await.unwrap()
}

/// An amount of a limit of a day.
fn take(limit: &str, amount: u64, max: u64) -> Taking {
    let per = std::time::Duration::from_millis(DAY);
    Taking { counter: CounterKey::of(&json!([limit])), amount, max, per }
}

async fn sweep(store: &Store, now: Millis) -> usize {
    store.sweep(Box::new(|entry| Record::new(Kind::Lost, NOW, entry.first.clone(), Map::new())), now).await.unwrap()
}

async fn resolve(store: &Store, act: &Act, token: &str, finding: Finding) -> bool {
    store.resolve(act.key(), token.into(), finding, record(Kind::Reconciled), NOW).await.unwrap()
}

async fn entry(store: &Store, act: &Act) -> Entry {
    entry_at(store, act, NOW).await.unwrap()
}

async fn entry_at(store: &Store, act: &Act, now: Millis) -> Option<Entry> {
    store.recall(act.question(), now).await.unwrap().entry
}

/// At most so many pending of a person.
fn within(most_of_user: usize) -> Asking {
    Asking { most_of_user, most_of_tenant: usize::MAX, tell: false }
}

/// Proposes an approval that lives for an hour; the id of the one that stands.
async fn propose(store: &Store, id: &str, cap: usize) -> Option<String> {
    match store.propose(asked(id), within(cap), Box::new(|_| record(Kind::Proposal)), NOW).await.unwrap() {
        Proposed::Pending(approval) => Some(approval.id),
        Proposed::TooMany(_) => None,
    }
}

async fn decide(store: &Store, id: &str, by: &str) -> Result<Approval, NotDecided> {
    let by = Session::new(Principal::new("local", by), "acme").role("manager");
    let record = |approval: &Approval| {
        assert_ne!(approval.state, ApprovalState::Pending);
        record(Kind::Decision)
    };
    let answer = Answer { by, capacity: Capacity::Any, decision: Decision::Approve, granted_until: later(7_200_000) };
    store.decide(id.into(), answer, Box::new(record), NOW).await.unwrap()
}

async fn granted(store: &Store, id: &str) {
    propose(store, id, 9).await.unwrap();
    decide(store, id, "mia").await.unwrap();
}

async fn approval(store: &Store, id: &str) -> Approval {
    store.approvals("acme".into()).await.unwrap().into_iter().find(|approval| approval.id == id).unwrap()
}

/// Follows the whole chain and compares its end.
async fn verify(store: &Store) {
    let records = store.records(0, usize::MAX).await.unwrap();
    let end = records.iter().try_fold(Head::empty(), Head::follow).unwrap();
    assert_eq!(end, store.head().await.unwrap());
}

pub(super) fn asked(id: &str) -> Approval {
    let manager = Reason {
        rule: "big".into(),
        message: "m".into(),
        approvers: Approvers::Role("manager".into()),
        approved_by: None,
    };
    Approval {
        id: id.into(),
        tool: "create_refund".into(),
        requester: Principal::new("local", "alice"),
        tenant: "acme".into(),
        preview: "Refund".into(),
        worded: true,
        arguments: "{}".into(),
        leniencies: Vec::new(),
        call_digest: Digest::of(id.as_bytes()),
        told_digest: None,
        slice: slice(),
        reasons: vec![manager],
        state: ApprovalState::Pending,
        created_at: NOW,
        expires_at: later(3_600_000),
        asked: Asked::default(),
        edited: None,
        instead: None,
    }
}

/// The question for the approval that `asked` made.
fn asking(id: &str) -> Question {
    Question { grant: Some(GrantKey::of(&asked(id))), ..Question::default() }
}

pub(super) fn slice() -> Digest {
    Digest::of(b"policies")
}

pub(super) fn record(kind: Kind) -> Record {
    Record::new(kind, NOW, Ref::fresh(), Map::new())
}

fn claim(token: &str, until: u64) -> Claim {
    Claim { token: token.into(), until: later(until) }
}

fn done(answer: &str) -> Verdict {
    Verdict::Done { answer: answer.into() }
}

fn later(ms: u64) -> Millis {
    Millis(NOW.0 + ms)
}

fn ran(opened: &Opened) -> bool {
    matches!(opened, Opened::Open { .. })
}
