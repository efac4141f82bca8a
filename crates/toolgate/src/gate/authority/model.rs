//! What authority is, in the fewest words: laws, roles, approvals, and what is done.

use std::collections::{BTreeMap, BTreeSet};

/// How long an approval can be answered, and a grant used, in milliseconds.
pub(super) const ASKED_FOR: u64 = 60 * 60 * 1000;
pub(super) const GRANTED_FOR: u64 = 30 * 60 * 1000;

pub(super) const TENANTS: usize = 2;
pub(super) const TOOLS: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Person {
    Alice,
    Bob,
    Mia,
    /// Nobody lists this person's roles: they are as the person's own token says.
    Guest,
}

pub(super) const PEOPLE: [Person; 4] = [Person::Alice, Person::Bob, Person::Mia, Person::Guest];
pub(super) const ROLES: [&str; 3] = ["support", "manager", "auditor"];
pub(super) const GUEST_ROLES: [&str; 2] = ["support", "manager"];

impl Person {
    /// The roles that each has to begin with, in every tenant.
    pub(super) fn first_roles(self) -> &'static [&'static str] {
        match self {
            Self::Alice => &["support"],
            Self::Bob => &["support", "manager"],
            Self::Mia => &["manager", "auditor"],
            Self::Guest => &GUEST_ROLES,
        }
    }
}

/// Who may answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    Requester,
    Another(&'static str),
}

/// What one set of policies says.
pub(super) struct Law {
    /// The role that may pay, and up to how much.
    permit: (&'static str, i64),
    /// Above this a rule says no.
    cap: i64,
    /// What is asked above which amount.
    asks: &'static [(&'static str, i64, Who)],
}

const ALL: i64 = i64::MAX;
const MANAGER: Who = Who::Another("manager");

/// The laws, whose texts stand in the same order in [`super::world::TEXTS`].
pub(super) const LAWS: [Law; 6] = [
    Law { permit: ("support", 9000), cap: ALL, asks: &[("large", 5000, MANAGER)] },
    Law { permit: ("support", 9000), cap: ALL, asks: &[("large", 5000, MANAGER)] },
    Law {
        permit: ("support", 9000),
        cap: ALL,
        asks: &[("large", 1000, MANAGER), ("huge", 5000, Who::Another("auditor"))],
    },
    Law { permit: ("support", 9000), cap: 8000, asks: &[("large", 5000, MANAGER)] },
    Law { permit: ("manager", ALL), cap: ALL, asks: &[("large", 5000, MANAGER)] },
    Law { permit: ("support", 9000), cap: ALL, asks: &[("large", 5000, MANAGER), ("sure", 1000, Who::Requester)] },
];

/// A call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Proposal {
    pub(super) who: Person,
    pub(super) tenant: usize,
    pub(super) tool: usize,
    pub(super) cents: i64,
}

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Ran {
        /// The approval that it used up.
        by: Option<usize>,
    },
    /// It ran, and nothing has happened.
    Failed,
    Replayed,
    Denied,
    Rule,
    Asked(usize),
    Invalid,
}

impl Outcome {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ran { .. } => "ran",
            Self::Failed => "failed",
            Self::Replayed => "replayed",
            Self::Denied => "denied",
            Self::Rule => "rule",
            Self::Asked(_) => "asked",
            Self::Invalid => "approval invalid",
        }
    }
}

/// A reason for an approval, and who gave it.
#[derive(Clone, Debug)]
struct Reason {
    rule: &'static str,
    who: Who,
    given_by: Option<Person>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Pending,
    Granted,
    Denied,
    Used,
}

#[derive(Clone, Debug)]
struct Approval {
    of: Proposal,
    law: usize,
    edition: usize,
    reasons: Vec<Reason>,
    state: State,
    expires: u64,
}

/// All that there is to know.
pub(super) struct Model {
    pub(super) law: usize,
    pub(super) edition: usize,
    pub(super) now: u64,
    pub(super) fails: bool,
    roles: BTreeMap<(Person, usize), BTreeSet<&'static str>>,
    approvals: Vec<Approval>,
    done: BTreeSet<Proposal>,
}

/// What the law says of a call.
enum Verdict {
    Yes,
    Denied,
    Rule,
    Asks(Vec<(&'static str, Who)>),
}

impl Model {
    pub(super) fn new(now: u64) -> Self {
        let roles = PEOPLE
            .iter()
            .flat_map(|who| (0..TENANTS).map(|tenant| ((*who, tenant), who.first_roles().iter().copied().collect())));
        Self {
            law: 0,
            edition: 0,
            now,
            fails: false,
            roles: roles.collect(),
            approvals: Vec::new(),
            done: BTreeSet::new(),
        }
    }

    pub(super) fn set_role(&mut self, who: Person, tenant: usize, role: &'static str, has: bool) {
        // What a token says, nobody takes back here.
        if who == Person::Guest {
            return;
        }
        let roles = self.roles.get_mut(&(who, tenant)).unwrap();
        if has {
            roles.insert(role);
        } else {
            roles.remove(role);
        }
    }

    fn has(&self, who: Person, tenant: usize, role: &str) -> bool {
        self.roles[&(who, tenant)].contains(role)
    }

    /// The call that an approval was asked for.
    pub(super) fn asked(&self, place: usize) -> Proposal {
        self.approvals[place].of
    }

    pub(super) fn state(&self, place: usize) -> &'static str {
        let approval = &self.approvals[place];
        match approval.state {
            State::Pending | State::Granted if approval.expires <= self.now => "expired",
            State::Pending => "pending",
            State::Granted => "granted",
            State::Denied => "denied",
            State::Used => "used",
        }
    }

    fn verdict(&self, call: Proposal) -> Verdict {
        let law = &LAWS[self.law];
        let (role, up_to) = law.permit;
        if !self.has(call.who, call.tenant, role) || call.cents > up_to {
            return Verdict::Denied;
        }
        if call.cents > law.cap {
            return Verdict::Rule;
        }
        let asks: Vec<_> =
            law.asks.iter().filter(|(_, floor, _)| call.cents > *floor).map(|(rule, _, who)| (*rule, *who)).collect();
        if asks.is_empty() { Verdict::Yes } else { Verdict::Asks(asks) }
    }

    /// The approval that goes with a call: the newest grant, else the newest that waits.
    fn newest(&self, call: Proposal) -> Option<usize> {
        let in_state = |state| {
            self.approvals.iter().rposition(|approval| {
                approval.of == call
                    && approval.edition == self.edition
                    && approval.state == state
                    && self.now < approval.expires
            })
        };
        in_state(State::Granted).or_else(|| in_state(State::Pending))
    }

    pub(super) fn call(&mut self, call: Proposal, named: Option<usize>) -> Outcome {
        let verdict = self.verdict(call);
        // Whom no law permits the tool is told nothing else, not even of an approval.
        if !self.has(call.who, call.tenant, LAWS[self.law].permit.0) {
            return Outcome::Denied;
        }
        if self.done.contains(&call) {
            return match verdict {
                Verdict::Denied => Outcome::Denied,
                Verdict::Rule => Outcome::Rule,
                Verdict::Yes | Verdict::Asks(_) => Outcome::Replayed,
            };
        }
        let newest = self.newest(call);
        if named.is_some() && named != newest {
            return Outcome::Invalid;
        }
        match verdict {
            Verdict::Denied => Outcome::Denied,
            Verdict::Rule => Outcome::Rule,
            Verdict::Yes => self.run(call, None),
            Verdict::Asks(asks) => match newest.filter(|place| self.consents(*place, &asks)) {
                Some(place) => self.run(call, Some(place)),
                // Whoever names a grant means that one.
                None if named.is_some_and(|place| self.approvals[place].state == State::Granted) => Outcome::Invalid,
                None => Outcome::Asked(self.ask(call, asks)),
            },
        }
    }

    fn run(&mut self, call: Proposal, by: Option<usize>) -> Outcome {
        // What had no effect gives its approval back.
        if self.fails {
            return Outcome::Failed;
        }
        if let Some(place) = by {
            self.approvals[place].state = State::Used;
        }
        self.done.insert(call);
        Outcome::Ran { by }
    }

    /// Whether an approval is a grant under today's law, by people who have the roles today.
    fn consents(&self, place: usize, asks: &[(&'static str, Who)]) -> bool {
        let approval = &self.approvals[place];
        approval.state == State::Granted
            && approval.law == self.law
            && asks.iter().all(|(rule, who)| {
                approval.reasons.iter().any(|given| {
                    given.rule == *rule && given.given_by.is_some_and(|by| self.may(by, *who, approval.of))
                })
            })
    }

    fn ask(&mut self, of: Proposal, asks: Vec<(&'static str, Who)>) -> usize {
        let waits = self.approvals.iter().rposition(|approval| {
            approval.of == of
                && approval.edition == self.edition
                && approval.law == self.law
                && approval.state == State::Pending
                && self.now < approval.expires
        });
        waits.unwrap_or_else(|| {
            let reasons = asks.into_iter().map(|(rule, who)| Reason { rule, who, given_by: None }).collect();
            let (law, edition, expires) = (self.law, self.edition, self.now + ASKED_FOR);
            self.approvals.push(Approval { of, law, edition, reasons, state: State::Pending, expires });
            self.approvals.len() - 1
        })
    }

    /// The first person whose answer would count.
    pub(super) fn who_may_answer(&self, place: usize) -> Option<Person> {
        let approval = &self.approvals[place];
        let open = || approval.reasons.iter().filter(|reason| reason.given_by.is_none());
        PEOPLE.into_iter().find(|who| open().any(|reason| self.may(*who, reason.who, approval.of)))
    }

    /// Whether `by` is among those who are asked.
    fn may(&self, by: Person, who: Who, of: Proposal) -> bool {
        match who {
            Who::Requester => by == of.who,
            Who::Another(role) => by != of.who && self.has(by, of.tenant, role),
        }
    }

    /// Whether somebody's answer counts.
    pub(super) fn answer(&mut self, place: usize, by: Person, yes: bool) -> bool {
        let Approval { of, state, expires, .. } = self.approvals[place];
        if state != State::Pending || expires <= self.now {
            return false;
        }
        let may: Vec<bool> = self.approvals[place]
            .reasons
            .iter()
            .map(|reason| reason.given_by.is_none() && self.may(by, reason.who, of))
            .collect();
        if !may.contains(&true) {
            return false;
        }
        let approval = &mut self.approvals[place];
        if !yes {
            approval.state = State::Denied;
            return true;
        }
        for (reason, _) in approval.reasons.iter_mut().zip(may).filter(|(_, may)| *may) {
            reason.given_by = Some(by);
        }
        if approval.reasons.iter().all(|reason| reason.given_by.is_some()) {
            approval.state = State::Granted;
            approval.expires = self.now + GRANTED_FOR;
        }
        true
    }
}
