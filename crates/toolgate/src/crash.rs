//! Where a test lets the process die. In a debug build `TOOLGATE_CRASH_AT` names a point of the line, `after_open` or
//! `after_open:3` for its third passing, and the process is killed there as if by `kill -9`: nothing is flushed, closed
//! or said. A release build has nothing of this; `tests/crash` of the gateway drives it.

/// A point between a reservation and its end.
#[cfg_attr(not(debug_assertions), expect(dead_code, reason = "only a debug build dies at one"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Point {
    /// Everything is decided, and nothing of it is durable.
    BeforeOpen,
    /// The intent is durable, and nothing was sent.
    AfterOpen,
    /// The backend has the call, and may or may not have done it.
    AfterSend,
    /// The backend has answered.
    AfterEffect,
    /// The answer is read, and the entry still open.
    BeforeClose,
    /// The outcome is durable, and nobody has been told.
    AfterClose,
}

#[cfg(debug_assertions)]
pub(crate) use armed::{at, started};

/// Passes a point.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub(crate) fn at(_: Point) {}

/// Passes [`Point::AfterSend`] once a backend had the time to send what it runs.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub(crate) fn started<F: Future>(running: F) -> F {
    running
}

#[cfg(debug_assertions)]
mod armed {
    use std::pin::pin;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use rustix::process::{Signal, getpid, kill_process};
    use tokio::time::sleep;

    use super::Point;

    /// The one point at which this process dies.
    struct Crash {
        point: Point,
        /// How often it is still passed before.
        left: AtomicU32,
    }

    /// How long a backend has to send a call before it counts as sent: enough for a pipe, too little for most effects.
    const SENT: Duration = Duration::from_millis(3);

    /// Passes a point.
    pub(crate) fn at(point: Point) {
        let Some(crash) = armed() else { return };
        if crash.point == point && crash.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            // It does not come back from this; where it does, the test that asked for it fails.
            let _ = kill_process(getpid(), Signal::KILL);
        }
    }

    /// Passes [`Point::AfterSend`] once a backend had the time to send what it runs.
    pub(crate) async fn started<F: Future>(running: F) -> F::Output {
        if armed().is_none_or(|crash| crash.point != Point::AfterSend) {
            return running.await;
        }
        let mut running = pin!(running);
        let ended = tokio::select! {
            biased;
            ended = &mut running => Some(ended),
            () = sleep(SENT) => None,
        };
        at(Point::AfterSend);
        match ended {
            Some(ended) => ended,
            None => running.await,
        }
    }

    fn armed() -> Option<&'static Crash> {
        static CRASH: OnceLock<Option<Crash>> = OnceLock::new();
        CRASH.get_or_init(|| named(&asked()?)).as_ref()
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "a debug build is told by its test, and no configuration may tell it"
    )]
    fn asked() -> Option<String> {
        std::env::var("TOOLGATE_CRASH_AT").ok()
    }

    /// `NAME` or `NAME:N`.
    fn named(text: &str) -> Option<Crash> {
        let (name, passing) = text.split_once(':').unwrap_or((text, "1"));
        let point = match name {
            "before_open" => Point::BeforeOpen,
            "after_open" => Point::AfterOpen,
            "after_send" => Point::AfterSend,
            "after_effect" => Point::AfterEffect,
            "before_close" => Point::BeforeClose,
            "after_close" => Point::AfterClose,
            _ => return None,
        };
        let left = passing.parse().ok().filter(|left| *left > 0)?;
        Some(Crash { point, left: AtomicU32::new(left) })
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_point_is_named_with_the_passing_that_is_meant() {
            let point = |text: &str| named(text).map(|crash| (crash.point, crash.left.into_inner()));
            assert_eq!(point("before_open"), Some((Point::BeforeOpen, 1)));
            assert_eq!(point("after_close:3"), Some((Point::AfterClose, 3)));
            assert_eq!((point("after_close:0"), point("nowhere"), point("")), (None, None, None));
        }
    }
}
