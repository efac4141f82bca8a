//! One folder, its clients, and the lives of its gate.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use toolgate::ledger::Store;

use crate::book::{Book, Write};
use crate::chance::Chance;
use crate::folder::{Between, Folder};
use crate::gateway::{Gateway, call, send_signal};
use crate::tally::Tally;

/// How one life of the gate ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Death {
    /// Killed at some moment.
    AtRandom,
    /// Killed at a crash point.
    At(&'static str),
    /// It lives on: its backend is killed, some times.
    OfTheBackend,
    /// It lives on: the connection to its backend is cut, some times.
    OfTheConnection,
}

/// A folder in which gates die.
pub(crate) struct Yard {
    folder: Folder,
    book: Mutex<Book>,
    chance: Chance,
    tally: Tally,
    lives: usize,
}

const CLIENTS: u64 = 4;
/// How often a crash point is passed at most before it kills.
const PASSINGS: u64 = 8;
/// How often the backend ends in one life of the gate: it is started again more slowly each time.
const ENDS: usize = 2;
/// How long a gate whose connection is cut waits for that.
const LONG_ENOUGH: Duration = Duration::from_secs(8);
/// How often a client asks again before it calls a write stuck, and how long it waits in between.
const TRIES: usize = 80;
const PAUSE: Duration = Duration::from_millis(250);

impl Death {
    /// The row of the table.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::AtRandom => "at random",
            Self::At(point) => point,
            Self::OfTheBackend => "backend killed",
            Self::OfTheConnection => "connection cut",
        }
    }
}

impl Yard {
    pub(crate) fn new(between: Between, seed: u64) -> Self {
        let (folder, chance) = (Folder::new(between), Chance::from(seed));
        Self { folder, book: Mutex::default(), chance, tally: Tally::default(), lives: 0 }
    }

    /// One life of the gate, from its start to its death, with clients all the while. The contracts are described in
    /// other words each time.
    pub(crate) fn live(&mut self, death: Death) {
        self.lives += 1;
        self.folder.edit(self.lives);
        let passing = 1 + self.chance.below(PASSINGS);
        let gateway = match death {
            Death::At(point) => Gateway::start(self.folder.path(), Some(&format!("{point}:{passing}"))),
            Death::AtRandom | Death::OfTheBackend | Death::OfTheConnection => Gateway::start(self.folder.path(), None),
        };
        let (over, address) = (AtomicBool::new(false), gateway.address());
        let again = Mutex::new(self.book.lock().unwrap().take_unfinished());
        let book = &self.book;
        scope(|scope| {
            for _ in 0..CLIENTS {
                let mut chance = Chance::from(self.chance.below(u64::MAX));
                let (over, again) = (&over, &again);
                scope.spawn(move || {
                    while !over.load(Ordering::SeqCst) {
                        let unfinished = again.lock().unwrap().pop();
                        let write = unfinished.unwrap_or_else(|| book.lock().unwrap().next(&mut chance));
                        let heard = call(address, write.tool, &write.arguments());
                        if !book.lock().unwrap().heard(&write, heard, Some(death.name())) {
                            break;
                        }
                    }
                });
            }
            match death {
                Death::AtRandom => {
                    sleep(self.chance.between(20, 300));
                    gateway.kill();
                }
                Death::At(_) => gateway.dies(),
                Death::OfTheBackend => {
                    for _ in 0..ENDS {
                        sleep(self.chance.between(200, 900));
                        let backend = self.folder.backend().expect("a backend runs");
                        send_signal("-KILL", backend);
                        self.tally.kills(death.name(), 1);
                    }
                    sleep(self.chance.between(200, 900));
                }
                Death::OfTheConnection => {
                    let before = self.folder.times_cut();
                    let begun = Instant::now();
                    while self.folder.times_cut() < before + ENDS && begun.elapsed() < LONG_ENOUGH {
                        sleep(Duration::from_millis(20));
                    }
                    self.tally.kills(death.name(), self.folder.times_cut() - before);
                }
            }
            over.store(true, Ordering::SeqCst);
        });
        if matches!(death, Death::AtRandom | Death::At(_)) {
            self.tally.kills(death.name(), 1);
        }
        let mut book = self.book.lock().unwrap();
        again.into_inner().unwrap().iter().for_each(|write| book.give_back(write));
    }

    /// A last gate that nobody kills: what is without an answer is asked for until it has one, and what has one is asked
    /// for again. Then what the clients were told is held against what happened.
    pub(crate) fn settle(mut self) -> Tally {
        let gateway = Gateway::start(self.folder.path(), None);
        for _ in 0..TRIES {
            let unfinished = self.book.lock().unwrap().take_unfinished();
            if unfinished.is_empty() {
                break;
            }
            self.ask(&gateway, unfinished);
            sleep(PAUSE);
        }
        let again = self.book.lock().unwrap().to_ask_again();
        self.ask(&gateway, again);
        gateway.stop();
        let book = self.book.into_inner().unwrap();
        let effects = self.folder.effects();
        for write in book.writes() {
            self.tally.write(write, effects.get(&write.identity).map_or(&[], Vec::as_slice));
        }
        let asked: BTreeSet<&str> = book.writes().map(|write| write.identity.as_str()).collect();
        assert!(effects.keys().all(|identity| asked.contains(identity.as_str())), "an effect that nobody asked for");
        let states = states(&self.folder);
        assert_eq!(states.len(), asked.len(), "an entry for each write");
        self.tally.wrong.extend(book.wrong);
        self.tally.entries_stuck = states.iter().filter(|state| matches!(**state, "open" | "unknown")).count();
        self.tally
    }

    fn ask(&self, gateway: &Gateway, writes: Vec<Write>) {
        let (left, address) = (Mutex::new(writes), gateway.address());
        scope(|scope| {
            for _ in 0..CLIENTS {
                scope.spawn(|| {
                    while let Some(write) = { left.lock().unwrap().pop() } {
                        let heard = call(address, write.tool, &write.arguments());
                        assert!(self.book.lock().unwrap().heard(&write, heard, None), "the last gate died");
                    }
                });
            }
        });
    }
}

/// The states of all entries in the ledger of a folder. Its record must hold.
fn states(folder: &Folder) -> Vec<&'static str> {
    let store = Store::sqlite_to_read(folder.ledger()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let head = store.verify(None).await.unwrap().expect("the record holds");
        assert!(head.seq > 0, "it is not empty");
        let (mut states, mut before) = (Vec::new(), None);
        loop {
            let page = store.actions("acme", before, 1000).await.unwrap();
            states.extend(page.items.iter().map(|entry| entry.state.as_str()));
            before = page.next;
            if before.is_none() {
                return states;
            }
        }
    })
}
