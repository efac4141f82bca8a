//! Where the keys of an issuer come from: a file of the folder, or an address that is asked when it must be.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use ureq::Agent;
use ureq::http::Uri;

use super::super::watched::{Kind, Watched};
use super::keys::{Keys, SIZE};
use super::shown::Wanted;
use crate::checkpoints::agent;
use crate::cli::{Failure, FailureCode, Said, Say};
use crate::config::Finding;

/// Where the keys of one issuer come from.
pub(super) enum Source {
    /// A file, which is read again when it is another one.
    File(Box<InFile>),
    /// An address.
    Url(Arc<Fetched>),
}

/// Keys that stand in a file.
pub(super) struct InFile {
    name: PathBuf,
    path: PathBuf,
    watched: Watched<Keys>,
}

/// Keys that are fetched.
pub(super) struct Fetched {
    issuer: String,
    address: Uri,
    /// Made when it is needed: it reads the authorities that this system trusts.
    agent: OnceLock<Agent>,
    state: Mutex<State>,
    /// INVARIANT (one at a time): whoever fetches holds it.
    fetching: tokio::sync::Mutex<()>,
    say: Say,
}

/// What is at hand.
#[derive(Default)]
struct State {
    keys: Option<(Instant, Arc<Keys>)>,
    tried: Option<Instant>,
    /// Why there are no newer ones, as it was told.
    trouble: Option<String>,
    /// How often in a row they could not be fetched.
    failed: u32,
    /// Whether somebody is fetching them.
    fetching: bool,
}

/// INVARIANT (fails closed): keys that are older are used no more, so that a key that an issuer takes back is of no use
/// after this.
const OLDEST: Duration = Duration::from_secs(600);
/// From this age on they are fetched anew while they are still used, so that an issuer that is away for a moment is not
/// missed.
const DUE: Duration = Duration::from_secs(300);
/// INVARIANT (bounded): whatever is shown, an issuer is asked no more often than this.
const APART: Duration = Duration::from_secs(30);
/// Where there are no keys that are young enough nobody is admitted: then a failure is tried again this soon, each time
/// after twice as long, up to [`APART`].
const AGAIN: Duration = Duration::from_secs(2);

impl Source {
    pub(super) fn file(dir: &Path, name: &str, say: Say) -> Self {
        let (name, path) = (PathBuf::from(name), dir.join(name));
        let kind = Kind {
            parse: in_file,
            absent: None,
            code: FailureCode::KeysUnavailable,
            without: "nobody is admitted by the tokens of an issuer",
            again: "the keys of an issuer can be read again",
        };
        let watched = Watched::new(&name, &path, kind, say);
        Self::File(Box::new(InFile { name, path, watched }))
    }

    pub(super) fn url(issuer: &str, address: Uri, say: Say) -> Self {
        let (agent, issuer) = (OnceLock::new(), issuer.to_owned());
        let (state, fetching) = (Mutex::default(), tokio::sync::Mutex::default());
        Self::Url(Arc::new(Fetched { issuer, address, agent, state, fetching, say }))
    }

    /// The keys as far as they are known now; `None` where they are not.
    pub(super) fn at_hand(&self) -> Option<Arc<Keys>> {
        match self {
            Self::File(file) => file.watched.now(),
            Self::Url(fetched) => fetched.state().fresh(Instant::now()),
        }
    }

    /// Waits until the key that is wanted is at hand, or cannot be had.
    pub(super) async fn prepare(&self, wanted: &Wanted) {
        let Self::Url(fetched) = self else { return };
        let need = fetched.state().need(wanted, Instant::now());
        // Whoever hangs up does not end it: the next would only begin again.
        let fetch = |wanted: Option<Wanted>| tokio::spawn(Arc::clone(fetched).fetch_alone(wanted));
        match need {
            Need::Nothing => {}
            Need::Soon => drop(fetch(None)),
            Need::Now => drop(fetch(Some(wanted.clone())).await),
        }
    }

    /// As [`Source::prepare`], on the thread of whoever has nothing else to do.
    pub(super) fn prepare_here(&self, wanted: &Wanted) {
        let Self::Url(fetched) = self else { return };
        if fetched.state().need(wanted, Instant::now()) == Need::Now {
            fetched.fetch();
        }
    }

    /// What is wrong with the file.
    pub(super) fn faults(&self) -> Vec<Finding> {
        match self {
            Self::File(file) => match std::fs::read_to_string(&file.path) {
                Ok(text) => in_file(&file.name, &text).err().unwrap_or_default(),
                Err(error) => vec![super::super::file::unreadable(&file.name, &error)],
            },
            Self::Url(_) => Vec::new(),
        }
    }
}

fn in_file(name: &Path, text: &str) -> Result<Keys, Vec<Finding>> {
    Keys::parse(text.as_bytes()).map_err(|why| vec![Finding::of_file(name, "format", why)])
}

/// Whether keys must be fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    Nothing,
    /// They are used meanwhile.
    Soon,
    /// Before anything can be told.
    Now,
}

impl State {
    fn fresh(&self, now: Instant) -> Option<Arc<Keys>> {
        let young = |at: &Instant| now.saturating_duration_since(*at) < OLDEST;
        self.keys.as_ref().filter(|(at, _)| young(at)).map(|(_, keys)| Arc::clone(keys))
    }

    /// Whether the issuer may be asked again.
    fn may_ask(&self, now: Instant) -> bool {
        let apart = match self.fresh(now) {
            None if self.failed > 0 => AGAIN.saturating_mul(1 << (self.failed - 1).min(4)).min(APART),
            Some(_) | None => APART,
        };
        self.tried.is_none_or(|tried| now.saturating_duration_since(tried) >= apart)
    }

    fn need(&self, wanted: &Wanted, now: Instant) -> Need {
        // What is on its way is waited for, where there is nothing to go by meanwhile.
        if self.fetching && self.fresh(now).is_none() {
            return Need::Now;
        }
        let may = self.may_ask(now);
        let known = self.fresh(now).is_some_and(|keys| keys.know(wanted));
        let due = self.keys.as_ref().is_none_or(|(at, _)| now.saturating_duration_since(*at) >= DUE);
        match (may, known, due) {
            (false, _, _) | (true, true, false) => Need::Nothing,
            (true, true, true) => Need::Soon,
            (true, false, _) => Need::Now,
        }
    }
}

impl Fetched {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fetches, unless somebody else did meanwhile.
    async fn fetch_alone(self: Arc<Self>, wanted: Option<Wanted>) {
        let _alone = self.fetching.lock().await;
        let now = Instant::now();
        let needed = match &wanted {
            Some(wanted) => self.state().need(wanted, now) == Need::Now,
            None => self.state().may_ask(now),
        };
        if needed {
            let own = Arc::clone(&self);
            // A thread that cannot be had leaves the keys as they were.
            let _ = tokio::task::spawn_blocking(move || own.fetch()).await;
        }
    }

    /// Asks the address once.
    fn fetch(&self) {
        {
            let mut state = self.state();
            (state.tried, state.fetching) = (Some(Instant::now()), true);
        }
        let fetched = self.ask();
        let mut state = self.state();
        state.fetching = false;
        state.failed = if fetched.is_ok() { 0 } else { state.failed.saturating_add(1) };
        let before = state.trouble.take();
        match fetched {
            Ok(keys) => {
                state.keys = Some((Instant::now(), Arc::new(keys)));
                drop(state);
                if before.is_some() {
                    (self.say)(Said::Note(format!("the keys of {} can be fetched again", self.issuer)));
                }
            }
            Err(why) => {
                let told = before.as_ref() == Some(&why);
                state.trouble = Some(why.clone());
                drop(state);
                if !told {
                    (self.say)(Said::Failure(self.failure(&why)));
                }
            }
        }
    }

    fn ask(&self) -> Result<Keys, String> {
        let agent = self.agent.get_or_init(|| agent(&self.address));
        let answer = agent.get(&self.address).header("accept", "application/json").call();
        let mut answer = answer.map_err(|error| error.to_string())?;
        // A redirect is an answer like any other that is none.
        if answer.status().as_u16() != 200 {
            return Err(format!("it answered with status {}", answer.status().as_u16()));
        }
        let most = u64::try_from(SIZE).unwrap_or(u64::MAX);
        let text = answer.body_mut().with_config().limit(most).read_to_vec().map_err(|error| error.to_string())?;
        Keys::parse(&text)
    }

    fn failure(&self, why: &str) -> Failure {
        let told = format!("the keys of {} cannot be fetched: {why}", self.issuer);
        Failure::new(FailureCode::KeysUnavailable, told)
            .hint("those at hand are used for ten minutes; without any, nobody is admitted by this issuer's tokens")
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]
mod tests {
    use jsonwebtoken::Algorithm;

    use super::*;

    const KEY: &str = r#"{"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "a",
        "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;

    fn wanted(id: &str) -> Wanted {
        Wanted { algorithm: Algorithm::EdDSA, key_id: Some(id.to_owned()) }
    }

    /// The state a while after keys were fetched, and when it was last tried.
    fn state(fetched: Instant, tried: Instant) -> State {
        let keys = Arc::new(Keys::parse(KEY.as_bytes()).unwrap());
        State { keys: Some((fetched, keys)), tried: Some(tried), ..State::default() }
    }

    #[test]
    fn an_issuer_is_asked_for_unknown_keys_and_old_ones_and_never_more_than_twice_a_minute() {
        let now = Instant::now();
        let (second, begun) = (Duration::from_secs(1), now);
        let of = |id: &str, since: Duration| state(begun, begun).need(&wanted(id), begun + since);
        assert_eq!(State::default().need(&wanted("a"), now), Need::Now);
        assert_eq!(of("a", APART), Need::Nothing);
        assert_eq!(of("b", APART - second), Need::Nothing, "however often an unknown key is shown");
        assert_eq!(of("b", APART), Need::Now);
        assert_eq!(of("a", DUE - second), Need::Nothing);
        assert_eq!(of("a", DUE), Need::Soon);
        assert_eq!(of("a", OLDEST), Need::Now);
        let failing = State { tried: Some(begun + OLDEST), failed: 1, ..state(begun, begun) };
        assert_eq!(failing.need(&wanted("a"), begun + OLDEST + second), Need::Nothing, "a failure counts as well");
    }

    #[test]
    fn keys_that_are_fetched_for_the_first_time_are_waited_for_by_everybody() {
        let now = Instant::now();
        let first = State { tried: Some(now), fetching: true, ..State::default() };
        assert_eq!(first.need(&wanted("a"), now), Need::Now);
        let quiet = State { fetching: true, ..state(now, now + OLDEST) };
        assert_eq!(quiet.need(&wanted("a"), now + OLDEST), Need::Now, "after ten quiet minutes as well");
        assert_eq!(quiet.need(&wanted("a"), now), Need::Nothing, "young ones are used meanwhile");
    }

    #[test]
    fn a_first_fetch_that_fails_is_tried_again_soon_and_then_less_and_less_often() {
        let now = Instant::now();
        for (failed, seconds) in [(1, 2), (2, 4), (3, 8), (4, 16), (5, 30), (u32::MAX, 30)] {
            let failing = State { tried: Some(now), failed, ..State::default() };
            let after = now + Duration::from_secs(seconds);
            assert_eq!(failing.need(&wanted("a"), after), Need::Now, "{failed}");
            assert_eq!(failing.need(&wanted("a"), after - Duration::from_millis(1)), Need::Nothing, "{failed}");
        }
    }

    #[test]
    fn keys_that_could_not_be_fetched_anew_are_used_for_ten_minutes_and_no_longer() {
        let begun = Instant::now();
        let state = state(begun, begun);
        assert!(state.fresh(begun + OLDEST - Duration::from_millis(1)).is_some());
        assert!(state.fresh(begun + OLDEST).is_none());
    }
}
