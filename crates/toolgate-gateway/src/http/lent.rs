//! The body of a request, lent to whoever answers it: what is left unread afterwards must not be taken for the next
//! request, nor the connection be closed under an answer that is still on its way.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::time::timeout;

/// The body, as the one who answers sees it.
pub(super) struct Lent(Arc<Mutex<Incoming>>);

/// The same body, to be taken back.
pub(super) struct Lender(Arc<Mutex<Incoming>>);

/// How much of a body that nobody wants is read all the same, and for how long.
const MOST: usize = 256 * 1024;
const PATIENCE: Duration = Duration::from_millis(250);

/// Lends a body out.
pub(super) fn lend(body: Incoming) -> (Lent, Lender) {
    let body = Arc::new(Mutex::new(body));
    (Lent(Arc::clone(&body)), Lender(body))
}

impl Lender {
    /// Whether the body has been read to its end, now at the latest.
    pub(super) async fn spent(self) -> bool {
        // Whoever answered is done with it, so nobody else holds it.
        let Some(mut body) =
            Arc::into_inner(self.0).map(|body| body.into_inner().unwrap_or_else(PoisonError::into_inner))
        else {
            return false;
        };
        if body.is_end_stream() {
            return true;
        }
        let rest = async {
            let mut read = 0;
            while let Some(frame) = body.frame().await {
                let Ok(frame) = frame else { return false };
                read += frame.data_ref().map_or(0, Bytes::len);
                if read > MOST {
                    return false;
                }
            }
            true
        };
        timeout(PATIENCE, rest).await.unwrap_or(false)
    }
}

impl Lent {
    /// Nothing panics while it is held.
    fn body(&self) -> MutexGuard<'_, Incoming> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Body for Lent {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        Pin::new(&mut *self.body()).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body().is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body().size_hint()
    }
}
