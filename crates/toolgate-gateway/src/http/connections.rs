//! The connections of a door: how many there are, which of them give way, and how each is attended to.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::door::Answering;
use super::heads::Ambiguous;
use super::stream::Stream;

/// The largest head of a request, in bytes.
const HEAD: usize = 16 * 1024;

/// How long a connection that is being drained may still begin a request. Its answer says that the connection closes: so
/// whoever is busy on it learns of it before it closes.
const LINGER: Duration = Duration::from_millis(250);

/// The connections of one door.
pub(super) struct Connections {
    places: Arc<Semaphore>,
    /// Those that wait for a request, by how long they have.
    idle: Mutex<BTreeMap<u64, CancellationToken>>,
    next: AtomicU64,
}

/// A place for one connection. INVARIANT (known from the start): it can be told to give way before it is attended to, so
/// that no burst of connections takes every place unseen.
pub(super) struct Place {
    _place: OwnedSemaphorePermit,
    connections: Arc<Connections>,
    gives_way: CancellationToken,
    idle: Idle,
}

/// A connection that waits for a request; it counts as such until this is dropped.
struct Idle {
    connections: Arc<Connections>,
    number: u64,
}

/// The files that the store, the tools and the process itself may need beside the connections.
const OWN_FILES: usize = 256;

/// After this time without a place the next connection is asked to give way: the one before may have begun a request.
const PATIENCE: Duration = Duration::from_millis(20);

impl Connections {
    /// At most so many, and never so many that the tools of the gate could open no file any more.
    pub(super) fn new(most: usize) -> Self {
        let room = open_files().map_or(usize::MAX, |files| files.saturating_sub(OWN_FILES).max(1));
        let places = Arc::new(Semaphore::new(most.min(room).min(Semaphore::MAX_PERMITS)));
        Self { places, idle: Mutex::default(), next: AtomicU64::new(0) }
    }

    /// A place for one connection more. Where there is none, the one that has waited longest for a request gives
    /// way: connections that only keep places taken do not keep others out.
    pub(super) async fn place(self: &Arc<Self>) -> Place {
        let place = loop {
            if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
                break place;
            }
            self.give_way();
            if let Ok(Ok(place)) = timeout(PATIENCE, Arc::clone(&self.places).acquire_owned()).await {
                break place;
            }
        };
        let gives_way = CancellationToken::new();
        let idle = self.waits(&gives_way);
        Place { _place: place, connections: Arc::clone(self), gives_way, idle }
    }

    pub(super) fn give_way(&self) {
        if let Some((_, longest)) = self.idle().pop_first() {
            longest.cancel();
        }
    }

    /// From now on a connection waits for a request.
    fn waits(self: &Arc<Self>, gives_way: &CancellationToken) -> Idle {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        if !gives_way.is_cancelled() {
            self.idle().insert(number, gives_way.clone());
        }
        Idle { connections: Arc::clone(self), number }
    }

    /// Nothing panics while it is held, and a map that was left in between two changes is whole.
    fn idle(&self) -> MutexGuard<'_, BTreeMap<u64, CancellationToken>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Attends to the connection that has this place, until it ends.
    pub(super) async fn attend(self, stream: TcpStream, answering: &Answering, draining: &CancellationToken) {
        let Self { _place, connections, gives_way, idle } = self;
        let bounds = *answering.door().bounds();
        // Answers are small and whole; waiting to put two together only delays them.
        let _ = stream.set_nodelay(true);
        let ambiguous = Ambiguous::new();
        let io = TokioIo::new(Stream::new(stream, ambiguous.clone(), bounds.body_within));
        let idle = Mutex::new(Some(idle));
        let waits = |idle_now: Option<Idle>| *idle.lock().unwrap_or_else(PoisonError::into_inner) = idle_now;
        let requests = AtomicU64::new(0);
        let service = service_fn(|request| {
            waits(None);
            let number = requests.fetch_add(1, Ordering::Relaxed) + 1;
            let ambiguous = ambiguous.reaches(number);
            let (waits, connections, gives_way) = (&waits, &connections, &gives_way);
            async move {
                let response = answering.answer(request, ambiguous).await;
                waits(Some(connections.waits(gives_way)));
                Ok::<_, Infallible>(response)
            }
        });
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(bounds.head_within).max_buf_size(HEAD);
        let mut connection = pin!(http.serve_connection(io, service));
        let (mut asked, mut told) = (false, false);
        loop {
            tokio::select! {
                // A peer that breaks off, or is too slow, gets no answer; there is nobody to tell.
                _ = connection.as_mut() => return,
                () = gives_way.cancelled(), if !asked => {
                    asked = true;
                    // INVARIANT (no lost reply): a request that has begun meanwhile is answered; then the connection closes.
                    match requests.load(Ordering::Relaxed) {
                        0 => return,
                        _ => connection.as_mut().graceful_shutdown(),
                    }
                }
                () = lingering(draining), if !told => {
                    told = true;
                    connection.as_mut().graceful_shutdown();
                }
            }
        }
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        self.connections.idle().remove(&self.number);
    }
}

/// How many files this process may have open, where the system says so.
fn open_files() -> Option<usize> {
    soft_limit(&std::fs::read_to_string("/proc/self/limits").ok()?)
}

fn soft_limit(limits: &str) -> Option<usize> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

async fn lingering(draining: &CancellationToken) {
    draining.cancelled().await;
    sleep(LINGER).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_on_open_files_is_read_as_the_system_prints_it() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units     \n\
                      Max processes             63432                63432                processes \n\
                      Max open files            1024                 524288               files     \n";
        assert_eq!(soft_limit(limits), Some(1024));
        assert_eq!(soft_limit("Max open files            unlimited            unlimited            files"), None);
    }
}
