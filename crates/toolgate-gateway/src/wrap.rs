//! One MCP server behind a gate: its tools are imported, pinned and judged, and nothing has to be configured.
//!
//! ```text
//! list, call -> fresh? -> start, if the files are as pinned -> list -> import -> pins -> a gate in memory     (desk)
//!                                                                          the call passes it
//! ```
//!
//! What is offered is compared with the pins at each list of the server: at its start, after each restart, when it says that
//! its list changed, and every ten minutes before a call.

mod desk;
mod pins;
mod policy;
mod state;
mod status;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;
use toolgate::Reply;
use toolgate::fault::Fault;
use toolgate::ledger::StoreError;
use toolgate::session::{Principal, Session};
use toolgate::wire::Proposed;

pub(crate) use policy::Writes;
pub(crate) use state::State;

use crate::cli::{Failure, FailureCode, Said, Say};
use crate::import::import;
use crate::mcp::server::Tools;
use crate::mcp::upstream::{FRESH, Flight, LONGEST_LIST, MOST_COMPARISONS, Mark, Program, Upstream};
use desk::{Desk, Makings, Sorted};
use pins::Pins;
use status::{STATUS, Status};

/// How a server is wrapped.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) writes: Writes,
    /// Accept what the server is now.
    pub(crate) repin: bool,
}

/// One MCP server behind a gate.
pub(crate) struct Wrapped {
    me: Weak<Self>,
    upstream: Upstream,
    program: Program,
    writes: Writes,
    state: Arc<State>,
    session: Session,
    status: Arc<Status>,
    say: Say,
    files: Vec<PathBuf>,
    desk: Mutex<Option<Arc<Desk>>>,
    /// Desks that were replaced, while calls may still be on their way through them.
    retired: Mutex<Vec<Arc<Desk>>>,
    /// Why nothing could be compared at last.
    problem: Mutex<Option<String>>,
    /// INVARIANT (suspended first): a comparison begins by keeping calls back, and nobody who goes away ends it.
    comparing: Flight<bool>,
    memory: tokio::sync::Mutex<Memory>,
    pinned: Pinned,
    changed: watch::Sender<()>,
}

/// What is pinned, once that is known. The program is not started while its files are others.
type Pinned = Arc<Mutex<Option<Pins>>>;

/// What is known from one comparison to the next.
struct Memory {
    repin: bool,
    /// INVARIANT (off stays off): a tool that once was not what was pinned does not come back in this process.
    off_for_good: BTreeMap<String, String>,
    /// When something that failed is tried again.
    not_before: Option<Instant>,
}

/// How long a list or a call waits for a comparison before it takes the gate that there is. That one keeps the call back,
/// until its deadline if need be.
const PATIENCE: Duration = LONGEST_LIST;
/// How soon something that failed is tried again.
const PAUSE: Duration = Duration::from_secs(2);
/// Quarantined tools that are named on stderr.
const MOST_NAMED: usize = 20;

impl Wrapped {
    /// The server that `program` is, behind a gate. Nothing is started and nothing written.
    pub(crate) fn new(program: Program, state: State, options: Options, say: Say) -> Result<Arc<Self>, Failure> {
        let mut random = [0; 16];
        getrandom::fill(&mut random)
            .map_err(|_| Failure::new(FailureCode::NoRandom, "the system gives no random numbers"))?;
        let run = format!("{:032x}", u128::from_ne_bytes(random));
        let files = pins::files_of(&program).map_err(no_program)?;
        let pinned = Pinned::default();
        let check = {
            let (program, pinned) = (program.clone(), Arc::clone(&pinned));
            move || files_hold(&program, locked(&pinned).as_ref())
        };
        let wrapped = Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            upstream: Upstream::checked(program.clone(), Arc::clone(&say), Box::new(check)),
            program,
            writes: options.writes,
            state: Arc::new(state),
            session: Session::new(Principal::new("local", "local"), "local").in_run(run),
            status: Arc::default(),
            say,
            files,
            desk: Mutex::default(),
            retired: Mutex::default(),
            problem: Mutex::default(),
            memory: tokio::sync::Mutex::new(Memory {
                repin: options.repin,
                off_for_good: BTreeMap::new(),
                not_before: None,
            }),
            comparing: Flight::default(),
            pinned,
            changed: watch::Sender::new(()),
        });
        wrapped.status.bind(&wrapped);
        Ok(wrapped)
    }

    /// Lets what runs come to its end, and ends the server.
    pub(crate) async fn close(&self) -> Result<(), Fault> {
        let desks: Vec<Arc<Desk>> = locked(&self.retired).drain(..).chain(self.desk()).collect();
        let mut finished = Ok(());
        for desk in desks {
            if let Some(gate) = desk.opened() {
                finished = finished.and(gate.finish().await);
            }
        }
        self.upstream.close().await;
        finished
    }

    fn desk(&self) -> Option<Arc<Desk>> {
        locked(&self.desk).clone()
    }

    fn problem(&self) -> Option<String> {
        locked(&self.problem).clone()
    }

    /// The desk as it is now, compared with the pins where there was time for it. One that was not keeps its calls back.
    async fn fresh(&self) -> Result<Arc<Desk>, Fault> {
        self.compare_until(Instant::now() + PATIENCE).await;
        if let Some(desk) = self.desk() {
            return Ok(desk);
        }
        let makings = self.makings();
        let bare = blocking(move || Desk::bare(&makings)).await;
        let bare = bare.map_err(|why| Fault::Store(StoreError::Broken(why)))?;
        Ok(Arc::clone(locked(&self.desk).get_or_insert_with(|| Arc::new(bare))))
    }

    /// Compares the server with its pins where it may list something else by now, as long as there is time.
    async fn compare_until(&self, until: Instant) {
        for _ in 0..MOST_COMPARISONS {
            if self.desk().is_some_and(|desk| desk.stands(&self.upstream)) {
                return;
            }
            let Some(me) = self.me.upgrade() else { return };
            let compared = self.comparing.join(until, || async move { me.compare_anew().await }).await;
            if compared != Some(true) {
                return;
            }
        }
    }

    /// Tells whether a comparison was made, and came to its end.
    async fn compare_anew(&self) -> bool {
        let mut memory = self.memory.lock().await;
        if let Some(desk) = self.desk() {
            desk.suspend();
        }
        if memory.not_before.is_some_and(|not_before| Instant::now() < not_before) {
            return false;
        }
        let compared = self.compare(&mut memory).await;
        memory.not_before = compared.is_err().then(|| Instant::now() + PAUSE);
        let is_compared = compared.is_ok();
        self.note(compared.err());
        is_compared
    }

    /// Compares the server with its pins, and makes a desk of what holds.
    async fn compare(&self, memory: &mut Memory) -> Result<(), Failure> {
        let unwritable = |why| Failure::new(FailureCode::Unwritable, why);
        self.state.make().map_err(unwritable)?;
        if self.pins().is_none() && !memory.repin {
            let pins = Pins::read(self.state.dir()).map_err(|why| Failure::new(FailureCode::LockUnreadable, why))?;
            *locked(&self.pinned) = pins;
        }
        // The start holds them to it as well; here it is told by its own code.
        if self.upstream.mark().is_none() {
            let (program, pins) = (self.program.clone(), self.pins());
            let held = blocking(move || files_hold(&program, pins.as_ref())).await;
            held.map_err(|why| Failure::new(FailureCode::NotAsPinned, why))?;
        }
        let listing = self.upstream.list(Instant::now() + LONGEST_LIST).await;
        let listing = listing.map_err(|not_ready| {
            Failure::new(FailureCode::ServerFailed, format!("the server cannot be used: {}", not_ready.why))
        })?;
        let mark = listing.mark;
        let import = blocking(move || Ok(import(&listing.definitions, &[STATUS]))).await.map_err(Failure::fault)?;
        let pins = match self.pins() {
            Some(pins) => pins,
            None => {
                let files = self.files.clone();
                let tools = import.tools.iter().map(|tool| (tool.name.clone(), tool.digest)).collect();
                let pins = blocking(move || Pins::of(&files, tools)).await.map_err(no_program)?;
                // Nothing is pinned of a server that lists nothing yet.
                if import.tools.is_empty() && import.quarantined.is_empty() {
                    pins
                } else {
                    let pins = match memory.repin {
                        true => pins.replace(self.state.dir()).map(|()| pins),
                        false => pins.keep(self.state.dir()),
                    }
                    .map_err(unwritable)?;
                    memory.repin = false;
                    *locked(&self.pinned) = Some(pins.clone());
                    pins
                }
            }
        };
        let sorted = Sorted::of(import, &pins, &mut memory.off_for_good);
        let makings = self.makings();
        let desk = blocking(move || Desk::new(&makings, sorted)).await.map_err(Failure::fault)?;
        self.place(desk, mark);
        Ok(())
    }

    fn pins(&self) -> Option<Pins> {
        locked(&self.pinned).clone()
    }

    /// Puts a desk in the place of the one there was.
    fn place(&self, desk: Desk, mark: Mark) {
        let mut standing = locked(&self.desk);
        let before = standing.take();
        let first = before.is_none();
        let (desk, moved) = match before {
            // The gate that there is stays, and so do the calls that are on their way through it.
            Some(before) if before.offer == desk.offer => (before, false),
            Some(before) => {
                before.suspend();
                self.retire(before);
                (Arc::new(desk), true)
            }
            None => (Arc::new(desk), false),
        };
        desk.clear(mark, Instant::now() + FRESH);
        *standing = Some(Arc::clone(&desk));
        drop(standing);
        if first || moved {
            self.tell(&desk, first);
        }
        if moved {
            self.changed.send_replace(());
        }
    }

    /// Keeps a desk that was replaced until nobody is on it.
    fn retire(&self, desk: Arc<Desk>) {
        let mut retired = locked(&self.retired);
        retired.push(desk);
        let left = retired.extract_if(.., |desk| Arc::strong_count(desk) == 1);
        for desk in left {
            tokio::spawn(async move {
                if let Some(gate) = desk.opened() {
                    // What cannot be recorded makes the gate that there is now fail too, and loudly.
                    let _ = gate.finish().await;
                }
            });
        }
    }

    fn makings(&self) -> Makings {
        let me = Weak::clone(&self.me);
        let compare = move |until| -> Pin<Box<dyn Future<Output = ()> + Send>> {
            let me = me.upgrade();
            Box::pin(async move {
                if let Some(me) = me {
                    me.compare_until(until).await;
                }
            })
        };
        Makings {
            upstream: self.upstream.clone(),
            state: Arc::clone(&self.state),
            writes: self.writes.clone(),
            session: self.session.clone(),
            status: Arc::clone(&self.status),
            compare: Arc::new(compare),
        }
    }

    /// Keeps what went wrong, and tells it once.
    fn note(&self, problem: Option<Failure>) {
        let message = problem.as_ref().map(|problem| problem.message().to_owned());
        let mut known = locked(&self.problem);
        let is_new = message != *known;
        *known = message;
        if let Some(problem) = problem.filter(|_| is_new) {
            (self.say)(Said::Failure(problem));
        }
    }

    /// Tells a person what is offered now.
    fn tell(&self, desk: &Desk, first: bool) {
        let offer = &desk.offer;
        let now = if first { "" } else { "now " };
        let total = offer.offered.len() + offer.off.len();
        let offered = offer.offered.len();
        (self.say)(Said::Note(format!("{now}offered: {offered} of {total} tools; {STATUS} tells the rest")));
        for off in offer.off.iter().take(MOST_NAMED) {
            (self.say)(Said::Note(format!("off: {}: {}", off.name, off.reason)));
        }
        for remark in &offer.remarks {
            (self.say)(Said::Warning(remark.clone()));
        }
    }
}

impl Tools for Wrapped {
    async fn list(&self) -> Result<Vec<Value>, Fault> {
        Ok(self.fresh().await?.definitions(&self.session))
    }

    async fn call(&self, proposed: Proposed) -> Result<Reply, Fault> {
        let desk = self.fresh().await?;
        let gate = desk.gate().await.map_err(Fault::from);
        let outcome = match gate {
            Ok(gate) => gate.turn(vec![proposed], &self.session).await.pop().unwrap_or(Err(Fault::Lost)),
            Err(fault) => Err(fault),
        };
        outcome.inspect_err(|fault| (self.say)(Said::Failure(fault.into())))
    }

    fn changes(&self) -> Option<watch::Receiver<()>> {
        Some(self.changed.subscribe())
    }
}

/// The error of whatever looked for the files that are run.
fn no_program(why: String) -> Failure {
    Failure::new(FailureCode::NoProgram, why)
}

/// Whether the files of a program are those that were pinned. The error is for a person.
fn files_hold(program: &Program, pins: Option<&Pins>) -> Result<(), String> {
    let Some(pins) = pins else { return Ok(()) };
    pins::files_of(program)
        .and_then(|files| pins.check_files(&files))
        .map_err(|why| format!("{why}, so it is not started; --repin accepts what there is now"))
}

/// Works where it may block.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, String> + Send + 'static) -> Result<T, String> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|lost| Err(lost.to_string()))
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
