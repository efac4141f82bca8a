//! All that can happen to one action, walked through exhaustively over the real [`step`].
//!
//! Two processes are asked for the same action, over and over. Each opens the entry, sends a request, hears an answer or
//! none, and closes; each can die between any two of these and be started again under another name, and its last write
//! can be lost. A request lands, is refused, or is lost on the way, and so is its answer; it can land until the lease is
//! over and what the contract grants beyond it (`absent_after`). A sweep marks entries of dead owners and of ended leases,
//! also where only its own clock, which is ahead, says that the lease of a living owner is over. A
//! reconciler claims, looks, and resolves, and can die in between; so can a second one. An operator rules by what is true.
//! Time passes at any moment.
//!
//! What is taken as given, because it holds outside of the machine: a process sends nothing after its own deadline, which
//! it measures on a clock that nobody can move; the death of an owner is seen only where it is true; absence proves nothing
//! before `absent_after`; an operator who says that nothing happened waits as long.
//!
//! Each state is checked as it is reached (see [`World::check`]), and at last that from each of them the action can still
//! come to an end: nothing is stuck.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test may panic"
)]

use std::collections::{HashMap, VecDeque};

use serde_json::json;

use super::*;

/// When a process sends no more, counted from the opening.
const DEADLINE: u64 = 1;
/// The end of the lease.
const LEASE: u64 = 2;
/// From when on absence is proof.
const PROOF: u64 = LEASE + 1;
/// Nothing changes any more by waiting longer, but what is counted from a later moment comes nearer.
const LATEST: u64 = PROOF;
/// By how much the clock of a sweep may be ahead.
const AHEAD: u64 = 100;
/// How often the action is opened at most.
const ATTEMPTS: u32 = 2;
/// How often each of the processes is started.
const STARTS: [u8; 2] = [2, 1];

/// Everything at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    /// Since the last opening: nothing of the past acts by a clock.
    now: u64,
    entry: Option<Stands>,
    processes: [Process; 2],
    /// The requests that are on their way.
    requests: Vec<Request>,
    /// How often the action happened.
    effects: u8,
    reconcilers: [Reconciler; 2],
}

/// What of an entry the machine decides by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Stands {
    attempt: u32,
    state: State,
    /// Who opened it.
    opener: Name,
}

/// A process, by its place and by how often it was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Name(u8, u8);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Process {
    name: Name,
    alive: bool,
    run: Option<Run>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Run {
    attempt: u32,
    phase: Phase,
    /// Its own clock says that it sends no more.
    over: bool,
    /// It said already that it does not know; it only waits for what it may still learn.
    told: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Phase {
    Opened,
    Sent,
    Knows(Verdict),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Request {
    sender: Name,
    attempt: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Reconciler {
    Idle,
    Claimed,
    Found(Finding),
}

impl Name {
    fn owner(self) -> Owner {
        Owner(format!("{}.{}", self.0, self.1))
    }
}

impl World {
    fn first() -> Self {
        let process = |place| Process { name: Name(place, 1), alive: true, run: None };
        Self {
            now: 0,
            entry: None,
            processes: [process(0), process(1)],
            requests: Vec::new(),
            effects: 0,
            reconcilers: [Reconciler::Idle, Reconciler::Idle],
        }
    }

    /// What must hold whatever has happened.
    fn check(&self) {
        assert!(self.effects <= 1, "it happened twice: {self:?}");
        match self.entry.as_ref().map(|entry| &entry.state) {
            Some(State::Done { .. }) => assert_eq!(self.effects, 1, "done, but it did not happen: {self:?}"),
            Some(State::Failed { .. }) => {
                assert_eq!(self.effects, 0, "it happened, and would run again: {self:?}");
                assert!(self.is_quiet(), "it may still happen, and would run again: {self:?}");
            }
            Some(State::Open { .. } | State::Unknown { .. }) => {}
            None => assert!(self.is_quiet() && self.effects == 0),
        }
    }

    /// Whether nothing that was opened can still have an effect.
    fn is_quiet(&self) -> bool {
        let sends = |run: &Run| run.phase == Phase::Opened && !run.over;
        self.requests.is_empty() && !self.processes.iter().any(|p| p.run.as_ref().is_some_and(sends))
    }

    fn is_dead(&self, owner: &Owner) -> bool {
        !self.processes.iter().any(|process| process.alive && process.name.owner() == *owner)
    }

    /// Whether nothing of the action is open or unknown.
    fn has_ended(&self) -> bool {
        match self.entry.as_ref().map(|entry| &entry.state) {
            None | Some(State::Done { .. } | State::Failed { .. }) => true,
            Some(State::Open { .. } | State::Unknown { .. }) => false,
        }
    }

    /// What the machine makes of a command.
    fn step(&self, opener: Option<Name>, command: Command) -> Result<Self, Rejected> {
        let whole = self.entry.as_ref().map(Stands::whole);
        let (entry, _) = step(key(), whole.as_ref(), command)?;
        let before = self.entry.as_ref().map(|entry| &entry.state);
        if let Some(State::Done { .. }) = before {
            panic!("what was done is lost: {self:?}");
        }
        let opener = opener.or(self.entry.as_ref().map(|entry| entry.opener)).unwrap();
        let entry = Stands { attempt: entry.attempt, state: undated(entry.state), opener };
        Ok(Self { entry: Some(entry), ..self.clone() })
    }

    /// Every world that can come next. What is done stays as it is, whatever still comes.
    fn next(&self) -> Vec<Self> {
        if let Some(State::Done { .. }) = self.entry.as_ref().map(|entry| &entry.state) {
            self.refuses_everything();
            return Vec::new();
        }
        let mut next = vec![self.tick()];
        for place in 0..self.processes.len() {
            self.lives_or_dies(place, &mut next);
            self.calls(place, &mut next);
            self.runs(place, &mut next);
            self.closes(place, &mut next);
        }
        for number in 0..self.requests.len() {
            self.travels(number, &mut next);
        }
        self.swept(&mut next);
        for which in 0..self.reconcilers.len() {
            self.reconciles(which, &mut next);
        }
        next.extend(self.ruled());
        next
    }

    fn refuses_everything(&self) {
        let now = Millis(self.now);
        for name in [0, 1].into_iter().flat_map(|place| (1..=2).map(move |start| Name(place, start))) {
            let owner = || name.owner();
            for attempt in 1..=ATTEMPTS {
                for verdict in [done(), Verdict::Failed, Verdict::Unknown] {
                    let close = Command::Close { owner: owner(), attempt, verdict, lane_version: 0, now };
                    assert!(self.step(None, close).is_err());
                }
            }
            let (reference, action) = (reference(), action());
            let (since, lease_end) = (Millis(0), Millis(LEASE));
            let open = Command::Open { owner: owner(), since, lease_end, reference, action, anew: false };
            assert!(self.step(Some(name), open).is_err());
        }
        for finding in [Finding::Done { answer: String::new() }, Finding::NotDone] {
            for token in [0, 1].map(|which| format!("token_{which}")) {
                let claim = Claim { token: token.clone(), until: now };
                assert!(self.step(None, Command::Claim { claim, now }).is_err());
                let resolve = Command::Resolve { token, finding: finding.clone(), lane_version: 0, now };
                assert!(self.step(None, resolve).is_err());
            }
            assert!(self.step(None, Command::Rule { finding, lane_version: 0, now }).is_err());
        }
        assert!(self.step(None, Command::Lose { owner_dead: true, now }).is_err());
    }

    fn tick(&self) -> Self {
        let mut next = Self { now: (self.now + 1).min(LATEST), ..self.clone() };
        if next.now >= DEADLINE {
            next.processes.iter_mut().filter_map(|process| process.run.as_mut()).for_each(|run| run.over = true);
        }
        if next.now >= PROOF {
            next.requests.clear();
        }
        if self.now == LATEST {
            next.move_lease_end(|end| if end > LEASE { end - 1 } else { end });
        }
        next
    }

    fn with(&self, place: usize, change: impl FnOnce(&mut Process)) -> Self {
        let mut next = self.clone();
        change(&mut next.processes[place]);
        next
    }

    fn lives_or_dies(&self, place: usize, next: &mut Vec<Self>) {
        let process = &self.processes[place];
        if process.alive {
            next.push(self.with(place, |process| {
                process.alive = false;
                process.run = None;
            }));
        } else if process.name.1 < STARTS[place] {
            next.push(self.with(place, |process| {
                process.alive = true;
                process.name.1 += 1;
            }));
        }
    }

    fn calls(&self, place: usize, next: &mut Vec<Self>) {
        let process = &self.processes[place];
        if !process.alive || process.run.is_some() {
            return;
        }
        let name = process.name;
        let command = Command::Open {
            owner: name.owner(),
            since: Millis(0),
            lease_end: Millis(LEASE),
            reference: reference(),
            action: action(),
            anew: false,
        };
        let opened = self.step(Some(name), command);
        match self.entry.as_ref().map(|entry| &entry.state) {
            Some(State::Open { .. } | State::Unknown { .. } | State::Done { .. }) => {
                assert!(opened.is_err(), "it ran while it may have happened: {self:?}");
            }
            None | Some(State::Failed { .. }) => {
                let mut opened = opened.unwrap();
                let attempt = opened.entry.as_ref().unwrap().attempt;
                if attempt > ATTEMPTS {
                    return;
                }
                // Whoever ran it before is provably lost, and had no effect.
                assert!(self.is_quiet() && self.effects == 0, "two runs at once: {self:?}");
                opened.now = 0;
                opened.processes[place].run = Some(Run { attempt, phase: Phase::Opened, over: false, told: false });
                next.push(opened);
            }
        }
    }

    fn runs(&self, place: usize, next: &mut Vec<Self>) {
        let process = &self.processes[place];
        let Some(run) = &process.run else { return };
        let knows = |verdict| self.with(place, |process| process.run.as_mut().unwrap().phase = Phase::Knows(verdict));
        match &run.phase {
            Phase::Opened => {
                next.push(knows(Verdict::Failed));
                if !run.over {
                    let mut sent = self.with(place, |process| process.run.as_mut().unwrap().phase = Phase::Sent);
                    sent.requests.push(Request { sender: process.name, attempt: run.attempt });
                    next.push(sent);
                }
            }
            Phase::Sent if run.told => next.push(self.with(place, |process| process.run = None)),
            Phase::Sent => next.push(knows(Verdict::Unknown)),
            Phase::Knows(_) => {}
        }
    }

    fn closes(&self, place: usize, next: &mut Vec<Self>) {
        let process = &self.processes[place];
        let Some(Run { attempt, phase: Phase::Knows(verdict), over, told }) = &process.run else { return };
        let ended = |world: &Self| world.with(place, |process| process.run = None);
        if *told || self.now >= LEASE {
            // The store could not be written until the lease was over.
            next.push(ended(self));
        }
        let (owner, lane_version, now) = (process.name.owner(), 0, Millis(self.now));
        let command = Command::Close { owner, attempt: *attempt, verdict: verdict.clone(), lane_version, now };
        let Ok(closed) = self.step(None, command) else {
            next.push(ended(self));
            return;
        };
        let entry = closed.entry.as_ref().unwrap();
        assert_eq!((entry.attempt, entry.opener), (*attempt, process.name), "a stale owner closed it: {self:?}");
        next.push(match verdict {
            Verdict::Unknown => {
                let run = Run { attempt: *attempt, phase: Phase::Sent, over: *over, told: true };
                closed.with(place, |process| process.run = Some(run))
            }
            Verdict::Done { .. } | Verdict::Failed => ended(&closed),
        });
    }

    /// A request lands, is refused, or is lost, and its sender learns of it or does not.
    fn travels(&self, number: usize, next: &mut Vec<Self>) {
        let mut without = self.clone();
        let request = without.requests.remove(number);
        let landed = Self { effects: self.effects + 1, ..without.clone() };
        let waits = |process: &Process| {
            let waits = |run: &Run| run.attempt == request.attempt && run.phase == Phase::Sent;
            process.alive && process.name == request.sender && process.run.as_ref().is_some_and(waits)
        };
        for (world, verdict) in [(landed, done()), (without, Verdict::Failed)] {
            if let Some(place) = self.processes.iter().position(waits) {
                let phase = Phase::Knows(verdict);
                next.push(world.with(place, |process| process.run.as_mut().unwrap().phase = phase));
            }
            next.push(world);
        }
    }

    fn swept(&self, next: &mut Vec<Self>) {
        let Some(State::Open { owner, lease_end, .. }) = self.entry.as_ref().map(|entry| &entry.state) else { return };
        let owner_dead = self.is_dead(owner);
        let lost = |now| self.step(None, Command::Lose { owner_dead, now: Millis(now) }).unwrap();
        if owner_dead || *lease_end <= Millis(self.now) {
            next.push(lost(self.now));
        }
        if !owner_dead {
            // From then on every clock of the store is as far ahead.
            let mut lost = lost(self.now + AHEAD);
            lost.move_lease_end(|end| end - AHEAD);
            next.push(lost);
        }
    }

    /// Moves the end of the lease of an action that is unknown.
    fn move_lease_end(&mut self, to: impl FnOnce(u64) -> u64) {
        if let Some(State::Unknown { lease_end, .. }) = self.entry.as_mut().map(|entry| &mut entry.state) {
            *lease_end = Millis(to(lease_end.0));
        }
    }

    fn reconciles(&self, which: usize, next: &mut Vec<Self>) {
        let token = format!("token_{which}");
        let become_ = |world: &Self, reconciler| {
            let mut next = world.clone();
            next.reconcilers[which] = reconciler;
            next
        };
        match &self.reconcilers[which] {
            Reconciler::Idle => {
                let claim = Claim { token, until: Millis(PROOF) };
                let claimed = self.step(None, Command::Claim { claim, now: Millis(self.now) });
                next.extend(claimed.map(|world| become_(&world, Reconciler::Claimed)));
            }
            Reconciler::Claimed => {
                next.push(become_(self, Reconciler::Idle));
                next.extend(self.truth().map(|finding| become_(self, Reconciler::Found(finding))));
            }
            Reconciler::Found(finding) => {
                next.push(become_(self, Reconciler::Idle));
                let (finding, lane_version, now) = (finding.clone(), 0, Millis(self.now));
                let resolved = self.step(None, Command::Resolve { token, finding, lane_version, now });
                next.extend(resolved.map(|world| become_(&world, Reconciler::Idle)));
            }
        }
    }

    fn ruled(&self) -> Option<Self> {
        let finding = self.truth()?;
        self.step(None, Command::Rule { finding, lane_version: 0, now: Millis(self.now) }).ok()
    }

    /// What can be found out: that it happened at any time, that it did not only when it cannot any more.
    fn truth(&self) -> Option<Finding> {
        let proof = match self.entry.as_ref().map(|entry| &entry.state) {
            Some(State::Open { lease_end, .. } | State::Unknown { lease_end, .. }) => lease_end.0 + PROOF - LEASE,
            Some(State::Done { .. } | State::Failed { .. }) | None => PROOF,
        };
        match self.effects {
            0 => (self.now >= proof).then_some(Finding::NotDone),
            _ => Some(Finding::Done { answer: String::new() }),
        }
    }
}

impl Stands {
    fn whole(&self) -> Entry {
        Entry {
            key: key(),
            revision: 0,
            attempt: self.attempt,
            first: reference(),
            action: action(),
            state: self.state.clone(),
            erased: false,
        }
    }
}

#[test]
fn an_action_happens_at_most_once_and_always_comes_to_an_end() {
    let mut numbers: HashMap<World, usize> = HashMap::from([(World::first(), 0)]);
    let mut worlds = vec![World::first()];
    // Which worlds lead to each.
    let mut before: Vec<Vec<usize>> = vec![Vec::new()];
    let mut kinds = [0_usize; 4];
    let mut here = 0;
    while here < worlds.len() {
        assert!(worlds.len() < 3_000_000, "too many worlds to walk through");
        let world = worlds[here].clone();
        world.check();
        if let Some(entry) = &world.entry {
            match entry.state {
                State::Open { .. } => kinds[0] += 1,
                State::Done { .. } => kinds[1] += 1,
                State::Failed { .. } => kinds[2] += 1,
                State::Unknown { .. } => kinds[3] += 1,
            }
        }
        for next in world.next() {
            let number = *numbers.entry(next).or_insert_with_key(|next| {
                worlds.push(next.clone());
                before.push(Vec::new());
                worlds.len() - 1
            });
            before[number].push(here);
        }
        here += 1;
    }
    // Backwards from every end: what is not reached that way is stuck.
    let mut ends = vec![false; worlds.len()];
    let mut open: VecDeque<usize> = (0..worlds.len()).filter(|number| worlds[*number].has_ended()).collect();
    while let Some(number) = open.pop_front() {
        if !std::mem::replace(&mut ends[number], true) {
            open.extend(&before[number]);
        }
    }
    let stuck = ends.iter().position(|end| !end).map(|number| &worlds[number]);
    assert!(stuck.is_none(), "no way to an end: {stuck:?}");
    // Of each kind there are many: open, done, failed, unknown.
    assert!(worlds.len() > 100_000 && kinds.iter().all(|kind| *kind > 100), "{} {kinds:?}", worlds.len());
}

/// Without the moments that nothing is decided by.
fn undated(state: State) -> State {
    let never = Millis(0);
    match state {
        State::Open { .. } => state,
        State::Done { answer, lane_version, .. } => State::Done { answer, lane_version, at: never },
        State::Failed { .. } => State::Failed { at: never },
        State::Unknown { owner, lease_end, claim, .. } => State::Unknown { owner, since: never, lease_end, claim },
    }
}

fn done() -> Verdict {
    Verdict::Done { answer: String::new() }
}

fn key() -> EntryKey {
    EntryKey(Digest::from([7; 32]))
}

/// The same for all: which attempt it was is told by its number.
fn reference() -> Ref {
    static FIRST: std::sync::OnceLock<Ref> = std::sync::OnceLock::new();
    FIRST.get_or_init(Ref::fresh).clone()
}

fn action() -> Action {
    Action {
        tool: String::new(),
        tenant: String::new(),
        principal: Principal::new("", ""),
        run: String::new(),
        args_digest: Digest::from([0; 32]),
        arguments: json!(null),
        facts: json!(null),
        lane: LaneKey(Digest::from([0; 32])),
        keeps_lane: true,
        retain_ms: 0,
        grant: None,
        holds: Vec::new(),
        subject: None,
    }
}
