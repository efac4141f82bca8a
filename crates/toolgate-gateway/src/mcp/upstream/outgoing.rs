//! Frames on their way to a server, and how far each has come: what provably never arrived had no effect.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::process::ChildStdin;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// A frame on its way to the server.
pub(super) struct Outgoing {
    pub(super) frame: String,
    pub(super) ticket: Option<Arc<Ticket>>,
}

/// How far a request has come. INVARIANT (written at most once): whoever takes it from `QUEUED` alone decides.
pub(super) struct Ticket(AtomicU8);

const QUEUED: u8 = 0;
/// The writer has it: some of it may have reached the server.
const WRITING: u8 = 1;
/// Nobody waits any more, and it is not written.
const ABANDONED: u8 = 2;
/// The pipe broke before the last byte of the message itself: what reached the server can't be read as one. The line end
/// does not count, since a reader takes the end of its input for one.
const BROKEN_OFF: u8 = 3;

impl Ticket {
    /// A request that nobody has taken yet.
    pub(super) fn queued() -> Arc<Self> {
        Arc::new(Self(AtomicU8::new(QUEUED)))
    }

    /// Takes the request to write it.
    fn take(&self) -> bool {
        self.0.compare_exchange(QUEUED, WRITING, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Gives the request up; false where it may have been written.
    pub(super) fn abandon(&self) -> bool {
        match self.0.compare_exchange(QUEUED, ABANDONED, Ordering::SeqCst, Ordering::SeqCst) {
            Ok(_) => true,
            Err(now) => now != WRITING,
        }
    }

    fn broke_off(&self) {
        self.0.store(BROKEN_OFF, Ordering::SeqCst);
    }
}

/// Writes frames one after the other, each with its line end.
pub(super) async fn write(mut stdin: ChildStdin, mut queue: mpsc::Receiver<Outgoing>, stop: CancellationToken) {
    loop {
        let next = tokio::select! {
            next = queue.recv() => next,
            () = stop.cancelled() => return,
        };
        let Some(Outgoing { mut frame, ticket }) = next else { return };
        if ticket.as_ref().is_some_and(|ticket| !ticket.take()) {
            continue;
        }
        let message = frame.len();
        frame.push('\n');
        let written = tokio::select! {
            written = write_whole(&mut stdin, frame.as_bytes()) => written,
            () = stop.cancelled() => return,
        };
        if let Err(written) = written {
            if let Some(ticket) = ticket.filter(|_| written < message) {
                ticket.broke_off();
            }
            return;
        }
    }
}

/// Writes all of a frame, or tells how many bytes of it went out.
async fn write_whole(pipe: &mut (impl AsyncWrite + Unpin), frame: &[u8]) -> Result<(), usize> {
    let mut written = 0;
    while let Some(rest) = frame.get(written..).filter(|rest| !rest.is_empty()) {
        match pipe.write(rest).await {
            Ok(some) if some > 0 => written += some,
            Ok(_) | Err(_) => return Err(written),
        }
    }
    pipe.flush().await.map_err(|_| written)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use tokio::io::duplex;

    use super::*;

    #[tokio::test]
    async fn it_is_known_how_much_of_a_frame_went_out_before_the_pipe_broke() {
        for room in [3, 5] {
            let (mut ours, theirs) = duplex(room);
            let mut writing = Box::pin(write_whole(&mut ours, b"12345\n"));
            assert!((&mut writing).now_or_never().is_none(), "it waits for room");
            drop(theirs);
            assert_eq!(writing.await, Err(room));
        }
    }
}
