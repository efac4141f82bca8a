//! A gate that may die at any moment, in the real binary: nothing happens twice, nothing that was told is lost, and
//! nothing stays unknown.
//!
//! Clients send writes to a `toolgate serve`, each with an identity of its own, and ask again as long as they have no
//! answer. Meanwhile the gate is killed, at random moments and at each crash point (`crates/toolgate/src/crash.rs`), and
//! started again; or its backend is killed, or the connection to it is cut. The backend does whatever it is asked, as
//! often as it is asked, and writes it to a log that outlives everybody. Between death and life the descriptions of the
//! contracts and an unrelated policy change.
//!
//! `TOOLGATE_CRASH_KILLS` says how often the gate is killed, `TOOLGATE_CRASH_SEED` what is drawn by chance. The table is
//! printed: `cargo test -p toolgate-gateway --test crash -- --nocapture`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a test may panic, start processes, read the environment and JSON, wait, and print its table"
)]

#[path = "crash/book.rs"]
mod book;
#[path = "crash/chance.rs"]
mod chance;
#[path = "crash/folder.rs"]
mod folder;
#[path = "crash/gateway.rs"]
mod gateway;
#[path = "crash/tally.rs"]
mod tally;
#[path = "crash/yard.rs"]
mod yard;

use std::sync::{Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use folder::Between;
use tally::{Row, Tally};
use yard::{Death, Yard};

/// Everything that kills a gate.
const DEATHS: [Death; 7] = [
    Death::AtRandom,
    Death::At("before_open"),
    Death::At("after_open"),
    Death::At("after_send"),
    Death::At("after_effect"),
    Death::At("before_close"),
    Death::At("after_close"),
];
/// How often the gate is killed where nothing is said.
const KILLS: usize = 112;
/// Folders in which that goes on at a time.
const YARDS: usize = 2;

/// The tests take turns: the gates of one are as many as the processors of a small machine.
static TURN: Mutex<()> = Mutex::new(());

#[test]
fn killed_at_any_moment_a_gate_does_nothing_twice_loses_nothing_and_finds_everything_out() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let (kills, begun) = (number("TOOLGATE_CRASH_KILLS").unwrap_or(KILLS), Instant::now());
    let seed = seed();
    let tallies = std::thread::scope(|scope| {
        let yards: Vec<_> = (0..YARDS)
            .map(|yard| {
                scope.spawn(move || {
                    let mut here = Yard::new(Between::Nothing, seed.wrapping_add(u64::try_from(yard).unwrap()));
                    (yard..kills).step_by(YARDS).for_each(|kill| here.live(DEATHS[(kill / YARDS) % DEATHS.len()]));
                    here.settle()
                })
            })
            .collect();
        yards.into_iter().map(|yard| yard.join().unwrap()).collect::<Vec<_>>()
    });
    let mut all = Tally::default();
    tallies.into_iter().for_each(|tally| all.add(tally));
    println!("{all}\n{kills} kills in {:.0?}, seed {seed}", begun.elapsed());
    assert_nothing_is_lost(&all);
    assert_eq!(all.all().kills, kills);
    if kills >= YARDS * DEATHS.len() {
        for death in DEATHS {
            assert!(all.row(death.name()).cut_off > 0, "{}: it cut nothing off", death.name());
        }
    }
}

#[test]
fn a_backend_that_is_killed_in_the_middle_is_asked_what_it_did_before_it_is_asked_to_do_it() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    go_on_without(Between::Nothing, Death::OfTheBackend);
}

#[test]
fn a_connection_that_is_cut_after_a_call_went_through_makes_no_second_call() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    go_on_without(Between::Wire, Death::OfTheConnection);
}

/// Lives of a gate that is not killed itself.
fn go_on_without(between: Between, death: Death) {
    let lives = number("TOOLGATE_CRASH_KILLS").unwrap_or(KILLS).div_ceil(40);
    let (seed, begun) = (seed(), Instant::now());
    let mut yard = Yard::new(between, seed);
    (0..lives).for_each(|_| yard.live(death));
    let tally = yard.settle();
    println!("{tally}\n{lives} lives in {:.0?}, seed {seed}", begun.elapsed());
    assert_nothing_is_lost(&tally);
    let row = tally.row(death.name());
    assert!(row.kills >= lives && row.cut_off > 0, "it cut nothing off: {row:?}");
}

fn assert_nothing_is_lost(tally: &Tally) {
    let Row { duplicates, lost, stuck, .. } = tally.all();
    assert_eq!((duplicates, lost, stuck, tally.entries_stuck), (0, 0, 0, 0), "{tally}");
    assert_eq!(tally.wrong, [""; 0]);
}

fn number(name: &str) -> Option<usize> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|error| panic!("{name}: {error}")))
}

fn seed() -> u64 {
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    number("TOOLGATE_CRASH_SEED").map_or_else(now, |seed| u64::try_from(seed).unwrap())
}
