//! Random histories of what changes who may do what, over a real gate and over a small model of it: a call runs exactly
//! where the model says so.
//!
//! The model ([`model`]) knows laws, roles, approvals and what is done, and nothing of Cedar, stages or stores. The gate
//! ([`world`]) has a store in memory and a clock that is moved by hand. A policy or a contract that changes is another gate
//! over the same store, since a gate goes by one set of policies all its life.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test may panic"
)]

mod model;
mod world;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};
use tokio::runtime::{Builder, Runtime};

use model::{LAWS, Model, Outcome, PEOPLE, Person, Proposal, TENANTS, TOOLS};
use world::World;

/// Which approval is meant.
#[derive(Clone, Copy, Debug)]
enum Which {
    /// The one that was asked so many before the newest.
    Back(usize),
    /// The newest grant that nobody has used.
    Granted,
}

/// One thing that happens.
#[derive(Clone, Debug)]
enum Event {
    /// A call of somebody, out of the blue.
    Call(Proposal),
    /// A call for which an approval was asked is sent again, perhaps with the approval's name.
    Again { approval: Which, named: bool, otherwise: Otherwise },
    /// Somebody answers an approval: whoever may, or anybody.
    Answer { approval: Which, by: Option<Person>, yes: bool },
    /// The policies are others from now on.
    Law(usize),
    /// The contracts are others from now on.
    Edition(usize),
    /// Somebody gets or loses a role in a tenant.
    Role { who: Person, tenant: usize, role: &'static str, has: bool },
    /// Time passes.
    Wait(Duration),
    /// The backend fails from now on, or does not, and each time nothing has happened.
    Fails(bool),
}

/// In what a call differs from the one that was approved.
#[derive(Clone, Copy, Debug)]
enum Otherwise {
    Nothing,
    Person(Person),
    Tenant,
    Tool,
    OneCent,
}

fn event() -> impl Strategy<Value = Event> {
    let person = || select(PEOPLE.to_vec());
    let proposal = (person(), 0..TENANTS, 0..TOOLS, select(vec![500, 2000, 6000, 8500, 9500]));
    let proposal = proposal.prop_map(|(who, tenant, tool, cents)| Proposal { who, tenant, tool, cents });
    let otherwise = prop_oneof![
        6 => Just(Otherwise::Nothing),
        1 => person().prop_map(Otherwise::Person),
        1 => Just(Otherwise::Tenant),
        1 => Just(Otherwise::Tool),
        1 => Just(Otherwise::OneCent),
    ];
    // The newest are the ones that are mostly meant.
    let approval = || prop_oneof![4 => (0..2_usize).prop_map(Which::Back), 1 => (0..12_usize).prop_map(Which::Back)];
    let used = prop_oneof![1 => approval(), 2 => Just(Which::Granted)];
    let minutes = select(vec![1, 10, 30, 59, 60]).prop_map(|minutes| Duration::from_secs(minutes * 60));
    let just_short = Just(Duration::from_millis(model::GRANTED_FOR - 1));
    prop_oneof![
        6 => proposal.prop_map(Event::Call),
        10 => (used, any::<bool>(), otherwise)
            .prop_map(|(approval, named, otherwise)| Event::Again { approval, named, otherwise }),
        10 => (approval(), prop::option::weighted(0.5, person()), prop::bool::weighted(0.9))
            .prop_map(|(approval, by, yes)| Event::Answer { approval, by, yes }),
        2 => (0..LAWS.len()).prop_map(Event::Law),
        1 => (0..world::EDITIONS).prop_map(Event::Edition),
        2 => (person(), 0..TENANTS, select(model::ROLES.to_vec()), prop::bool::weighted(0.7))
            .prop_map(|(who, tenant, role, has)| Event::Role { who, tenant, role, has }),
        2 => prop_oneof![3 => minutes, 1 => just_short].prop_map(Event::Wait),
        1 => prop::bool::weighted(0.4).prop_map(Event::Fails),
    ]
}

const HISTORIES: u32 = 200;
const EVENTS: usize = 60;

/// How often each thing came, so that a run in which nothing was ever granted is no proof.
type Counts = BTreeMap<&'static str, usize>;

#[test]
fn a_call_runs_exactly_where_a_small_model_of_authority_says_so() {
    let runtime = Builder::new_current_thread().enable_time().build().unwrap();
    let (worlds, counts) = (RefCell::new(Vec::new()), RefCell::new(Counts::new()));
    let mut runner = TestRunner::new(Config {
        cases: HISTORIES,
        max_shrink_iters: 500,
        failure_persistence: None,
        ..Config::default()
    });
    let told = runner.run(&vec(event(), EVENTS), |events| {
        // The store in memory looks through all approvals there are, so a world is left once it is full.
        let world = worlds.borrow_mut().pop().filter(World::has_room).unwrap_or_else(World::new);
        let mut history = History::begin(&world, &runtime, &counts);
        for event in events {
            history.take(event);
        }
        history.end();
        worlds.borrow_mut().push(world);
        Ok(())
    });
    told.unwrap_or_else(|failure| panic!("{failure}"));
    let counts = counts.into_inner();
    for (what, at_least) in [
        ("ran", 200),
        ("ran by an approval", 80),
        ("replayed", 30),
        ("failed", 20),
        ("denied", 100),
        ("rule", 15),
        ("asked", 200),
        ("approval invalid", 50),
        ("answered", 200),
        ("not answered", 100),
    ] {
        let times = counts.get(what).copied().unwrap_or_default();
        assert!(times >= at_least, "{what}: {times} times, which proves little\n{counts:#?}");
    }
}

/// One history, told to the gate and to the model alike.
struct History<'w> {
    world: &'w World,
    runtime: &'w Runtime,
    counts: &'w RefCell<Counts>,
    model: Model,
    /// The tenants of this history: nobody else's approvals are in them.
    tenants: [String; TENANTS],
    /// The ids of the model's approvals, in the order in which they were asked.
    ids: Vec<String>,
    told: Vec<String>,
}

impl<'w> History<'w> {
    fn begin(world: &'w World, runtime: &'w Runtime, counts: &'w RefCell<Counts>) -> Self {
        let tenants = world.begin();
        Self { world, runtime, counts, model: Model::new(world.now()), tenants, ids: Vec::new(), told: Vec::new() }
    }

    fn take(&mut self, event: Event) {
        self.told.push(format!("{event:?}"));
        match event {
            Event::Call(proposal) => self.call(proposal, None),
            Event::Again { approval, named, otherwise } => {
                let Some(place) = self.place(approval) else { return };
                let mut proposal = self.model.asked(place);
                match otherwise {
                    Otherwise::Nothing => {}
                    Otherwise::Person(who) => proposal.who = who,
                    Otherwise::Tenant => proposal.tenant = (proposal.tenant + 1) % TENANTS,
                    Otherwise::Tool => proposal.tool = (proposal.tool + 1) % TOOLS,
                    Otherwise::OneCent => proposal.cents += 1,
                }
                self.call(proposal, named.then_some(place));
            }
            Event::Answer { approval, by, yes } => {
                let Some(place) = self.place(approval) else { return };
                let tenant = self.model.asked(place).tenant;
                let by = by.or_else(|| self.model.who_may_answer(place)).unwrap_or(Person::Mia);
                let expected = self.model.answer(place, by, yes);
                let session = self.world.session(by, &self.tenants, tenant);
                let gate = self.world.gate();
                let told = self.runtime.block_on(async {
                    match yes {
                        true => gate.approve(&self.ids[place], &session).await,
                        false => gate.deny(&self.ids[place], &session).await,
                    }
                });
                self.count(if expected { "answered" } else { "not answered" });
                assert_eq!(told.is_ok(), expected, "an answer counts where the model says so: {told:?}{}", self.tale());
            }
            Event::Law(law) => {
                self.model.law = law;
                self.world.set_law(law);
            }
            Event::Edition(edition) => {
                self.model.edition = edition;
                self.world.set_edition(edition);
            }
            Event::Role { who, tenant, role, has } => {
                self.model.set_role(who, tenant, role, has);
                self.world.set_role(who, &self.tenants[tenant], role, has);
            }
            Event::Wait(span) => {
                self.world.wait(span);
                self.model.now = self.world.now();
            }
            Event::Fails(fails) => {
                self.model.fails = fails;
                self.world.set_fails(fails);
            }
        }
    }

    fn call(&mut self, proposal: Proposal, named: Option<usize>) {
        let before = self.world.runs();
        let expected = self.model.call(proposal, named);
        let approval = named.map(|place| self.ids[place].as_str());
        let found = self.runtime.block_on(self.world.call(proposal, approval, &self.tenants));
        let ran = self.world.runs() - before;
        let runs = matches!(expected, Outcome::Ran { .. } | Outcome::Failed);
        assert_eq!(ran, usize::from(runs), "the gate runs what the model permits, and nothing else{}", self.tale());
        let (name, id) = found;
        assert_eq!(name, expected.name(), "the gate says what the model says of {proposal:?}{}", self.tale());
        if let Outcome::Asked(place) = expected {
            let id = id.expect("the approval is named");
            match self.ids.get(place) {
                Some(known) => assert_eq!(*known, id, "the approval that waits already{}", self.tale()),
                None => self.ids.push(id),
            }
        }
        if let Outcome::Ran { by: Some(_) } = expected {
            self.count("ran by an approval");
        }
        self.count(expected.name());
    }

    /// Every approval ends as the model has it.
    fn end(self) {
        for (place, id) in self.ids.iter().enumerate() {
            let tenant = self.model.asked(place).tenant;
            let session = self.world.session(Person::Mia, &self.tenants, tenant);
            let found = self.runtime.block_on(self.world.gate().approval(id, &session)).unwrap().unwrap();
            let (state, expected) = (found.state_at(self.world.gate().now()), self.model.state(place));
            assert_eq!(state, expected, "approval {place}{}", self.tale());
        }
    }

    fn place(&self, which: Which) -> Option<usize> {
        match which {
            Which::Back(back) => self.ids.len().checked_sub(back + 1),
            Which::Granted => (0..self.ids.len()).rev().find(|place| self.model.state(*place) == "granted"),
        }
    }

    fn count(&self, what: &'static str) {
        *self.counts.borrow_mut().entry(what).or_default() += 1;
    }

    fn tale(&self) -> String {
        self.told.iter().fold("\nwhat happened:".to_owned(), |tale, event| tale + "\n  " + event)
    }
}
