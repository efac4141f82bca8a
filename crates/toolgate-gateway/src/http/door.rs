//! One door to one gate: its routes, who may pass, and how a request is answered.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue, REFERRER_POLICY,
    TRANSFER_ENCODING, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{Request, Response};
use axum::response::IntoResponse;
use axum::routing::{delete, get, post};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use serde::Serialize;
use tokio::sync::{Semaphore, SemaphorePermit, TryAcquireError};
use tokio_util::sync::CancellationToken;
use toolgate::fault::Fault;
use toolgate::session::Session;
use toolgate::{Gate, Reply};

use super::guard::{Guard, Twice, only};
use super::health::Readiness;
use super::lent::lend;
use super::problem::{Kind, Problem};
use super::{Bounds, Watch, approvals, audit, calls, grants, health, ledger, mcp, protected, sessions, stops, tools};
use crate::identity::{Caller, Doorkeeper, NotAdmitted, Protected, Scope, WELL_KNOWN};

/// What all requests share.
pub(super) struct Door {
    gate: Gate,
    doorkeeper: Doorkeeper,
    guard: Guard,
    bounds: Bounds,
    /// A place for each call that may run at once.
    running: Semaphore,
    /// A place for each request that waits for a person.
    waiting: Semaphore,
    readiness: Readiness,
    draining: CancellationToken,
    watch: Box<dyn Watch>,
}

/// A door with its routes.
#[derive(Clone)]
pub(super) struct Answering {
    door: Arc<Door>,
    routes: TowerToHyperService<Router>,
}

/// Room for the bytes of most answers.
const ANSWER: usize = 2048;

/// What a turn may take beyond the longest deadline of a tool: its records, and a store that is busy.
const MARGIN: Duration = Duration::from_secs(15);

impl Door {
    pub(super) fn new(
        gate: Gate,
        doorkeeper: Doorkeeper,
        guard: Guard,
        bounds: Bounds,
        draining: CancellationToken,
        watch: Box<dyn Watch>,
    ) -> Self {
        let running = Semaphore::new(bounds.calls.min(Semaphore::MAX_PERMITS));
        // Half of the connections are left to those who do not wait.
        let waiting = Semaphore::new((bounds.connections / 2).clamp(1, Semaphore::MAX_PERMITS));
        Self { gate, doorkeeper, guard, bounds, running, waiting, readiness: Readiness::default(), draining, watch }
    }

    pub(super) fn gate(&self) -> &Gate {
        &self.gate
    }

    pub(super) fn readiness(&self) -> &Readiness {
        &self.readiness
    }

    pub(super) fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    pub(super) fn is_draining(&self) -> bool {
        self.draining.is_cancelled()
    }

    /// How many calls are running.
    pub(super) fn open_calls(&self) -> usize {
        self.bounds.calls.saturating_sub(self.running.available_permits())
    }

    /// How long the calls of one message may take: every deadline ends before.
    pub(super) fn longest_turn(&self) -> Duration {
        self.gate.longest_deadline() + MARGIN
    }

    /// Who is asking, if they may ask for this.
    ///
    /// INVARIANT (first of all): each route under `/v1` begins with this or with `caller`, before it reads a body or looks anything up.
    pub(super) fn admit(&self, headers: &HeaderMap, scope: Scope) -> Result<Session, Problem> {
        let caller = self.caller(headers)?;
        match caller.may(scope) {
            true => Ok(caller.session_from(self.gate.now())),
            false => Err(self.missing(scope)),
        }
    }

    /// Who is asking, whatever they may ask for.
    pub(super) fn caller(&self, headers: &HeaderMap) -> Result<Caller, Problem> {
        let shown = token(headers)?;
        self.doorkeeper.admit(shown).map_err(|not| self.unadmitted(not, shown.is_some()))
    }

    /// What whoever lacks a scope is told.
    pub(super) fn missing(&self, scope: Scope) -> Problem {
        let detail = format!("this needs the scope `{}`, which the caller does not have", scope.as_str());
        let mut told = vec![("error", "insufficient_scope"), ("scope", scope.as_str())];
        let address = self.doorkeeper.protected().map(Protected::address);
        told.extend(address.as_deref().map(|address| ("resource_metadata", address)));
        Problem::new(Kind::MissingScope, detail).challenge(&told)
    }

    fn unadmitted(&self, not: NotAdmitted, shown: bool) -> Problem {
        if not == NotAdmitted::Unknowable {
            return Problem::new(Kind::Unavailable, not.to_string()).hint("the operator reads why on stderr");
        }
        let problem = match self.doorkeeper {
            Doorkeeper::Local(_) => {
                let detail = "a token was shown, and this door knows none: all who pass it are one and the same user";
                Problem::new(Kind::Unauthenticated, detail).hint("send no Authorization")
            }
            Doorkeeper::Tokens(_) => {
                Problem::new(Kind::Unauthenticated, not.to_string()).hint("`toolgate token new` makes a token")
            }
            Doorkeeper::Jwt(_) => Problem::new(Kind::Unauthenticated, not.to_string())
                .hint("a token that an issuer of this gate signed for it, and that has not ended"),
        };
        let protected = self.doorkeeper.protected();
        let address = protected.map(Protected::address);
        let scoped = protected.is_some_and(Protected::is_scoped);
        let told = [
            shown.then_some(("error", "invalid_token")),
            address.as_deref().map(|address| ("resource_metadata", address)),
            scoped.then_some(("scope", Scope::Calls.as_str())),
        ];
        problem.challenge(&told.into_iter().flatten().collect::<Vec<_>>())
    }

    /// The document for clients that can log in, where there is one.
    pub(super) fn protected(&self) -> Option<&Protected> {
        self.doorkeeper.protected()
    }

    /// The whole body, under its bounds.
    pub(super) async fn read(&self, headers: &HeaderMap, body: Body) -> Result<Bytes, Problem> {
        let most = self.bounds.body;
        let too_large = || Problem::new(Kind::BodyTooLarge, format!("a body has at most {most} bytes here"));
        let said = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        if said.is_some_and(|said| usize::try_from(said).map_or(true, |said| said > most)) {
            return Err(too_large());
        }
        match tokio::time::timeout(self.bounds.body_within, Limited::new(body, most).collect()).await {
            Ok(Ok(whole)) => Ok(whole.to_bytes()),
            Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
            Ok(Err(_)) => Err(Problem::new(Kind::BrokenBody, "the body broke off")),
            Err(_) => Err(Problem::new(Kind::BodyTooSlow, "the body did not come in time")),
        }
    }

    /// Room for so many calls, until it is dropped. A message with more calls than there is room for takes all of it.
    pub(super) fn take(&self, calls: usize) -> Result<SemaphorePermit<'_>, Problem> {
        let calls = u32::try_from(calls.min(self.bounds.calls)).unwrap_or(u32::MAX);
        self.running.try_acquire_many(calls).map_err(|error| match error {
            TryAcquireError::NoPermits | TryAcquireError::Closed => {
                Problem::new(Kind::Overloaded, "too many calls are running; nothing of this message was run")
                    .hint("send it again in a moment")
            }
        })
    }

    /// Room to wait for a person, until it is dropped.
    pub(super) fn wait(&self) -> Result<SemaphorePermit<'_>, Problem> {
        self.waiting.try_acquire().map_err(|_| {
            Problem::new(Kind::Overloaded, "too many requests wait for a person").hint("ask again without `wait`")
        })
    }

    /// Comes back once the door is to be drained.
    pub(super) async fn drained(&self) {
        self.draining.cancelled().await;
    }

    /// Lets whoever watches the door know what became of a call.
    pub(super) fn saw(&self, answer: &Result<Reply, Fault>) {
        self.watch.answered(answer);
    }

    /// What a program learns of a fault. What it was is for the operator.
    pub(super) fn unavailable(&self, fault: &Fault) -> Problem {
        self.watch.failed(fault);
        Problem::new(Kind::Unavailable, told(fault))
    }
}

/// What is told of a fault to those who are not the operator.
pub(super) fn told(fault: &Fault) -> &'static str {
    match fault {
        Fault::Store(_) => "the store failed, so nothing ran",
        Fault::Record(_) => "the record of earlier calls could not be written, so nothing runs until it is",
        Fault::Closing => "the gate is closing and takes no more calls",
        Fault::Lost => "the call ended without an answer before anything was changed",
    }
}

/// The token of `Authorization: Bearer TOKEN`.
fn token(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    let bad = || {
        Problem::new(Kind::BadHeader, "the header Authorization is not as it must be")
            .hint("send it once, as `Authorization: Bearer TOKEN`")
    };
    let Some(value) = only(headers, &AUTHORIZATION).map_err(|Twice| bad())? else { return Ok(None) };
    let (scheme, token) = value.to_str().ok().and_then(|value| value.split_once(' ')).ok_or_else(bad)?;
    let fits =
        scheme.eq_ignore_ascii_case("bearer") && !token.is_empty() && token.bytes().all(|b| b.is_ascii_graphic());
    if fits { Ok(Some(token)) } else { Err(bad()) }
}

/// A response whose body is this value.
pub(super) fn json_response(value: &impl Serialize) -> axum::response::Response {
    let mut body = Vec::with_capacity(ANSWER);
    // What is answered is made of strings, numbers and JSON text, which always print.
    let _ = serde_json::to_writer(&mut body, value);
    ([(CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response()
}

impl Answering {
    pub(super) fn new(door: Arc<Door>) -> Self {
        let routes = Router::new()
            .route("/mcp", post(mcp::answer))
            .route("/mcp/tags/{tag}", post(mcp::answer_within))
            .route("/v1/calls", post(calls::answer))
            .route("/v1/tools", get(tools::list))
            .route("/v1/approvals", get(approvals::list))
            .route("/v1/approvals/{id}", get(approvals::show).post(approvals::decide))
            .route("/v1/grants", get(grants::list).post(grants::give))
            .route("/v1/grants/{id}", delete(grants::revoke))
            .route("/v1/ledger", get(ledger::list))
            .route("/v1/ledger/{key}", post(ledger::rule))
            .route("/v1/stops", get(stops::list).post(stops::set))
            .route("/v1/stops/{id}", delete(stops::lift))
            .route("/v1/audit", get(audit::list))
            .route("/v1/sessions", post(sessions::begin))
            .route("/v1/sessions/{handle}", delete(sessions::end))
            .route("/healthz", get(health::lives))
            .route("/readyz", get(health::ready))
            .route(WELL_KNOWN, get(protected::document))
            .route(&format!("{WELL_KNOWN}/{{*path}}"), get(protected::document_of))
            .fallback(|| async { Problem::new(Kind::NotFound, "there is nothing at this path") })
            .method_not_allowed_fallback(|| async {
                Problem::new(Kind::MethodNotAllowed, "the path does not have this method").hint("see the header Allow")
            })
            .with_state(Arc::clone(&door));
        Self { door, routes: TowerToHyperService::new(routes) }
    }

    pub(super) fn door(&self) -> &Door {
        &self.door
    }

    /// The response to a request. `ambiguous`: its length was said twice.
    pub(super) async fn answer(&self, request: Request<Incoming>, ambiguous: bool) -> Response<Body> {
        let chunked = request.headers().contains_key(TRANSFER_ENCODING);
        let looked = self.look(&request, ambiguous);
        let (parts, body) = request.into_parts();
        let (lent, lender) = lend(body);
        let mut response = match looked {
            // Routes answer every request: their error is one that does not exist.
            Ok(()) => {
                // What it takes to judge a token may have to be waited for, and no route does that for itself.
                self.door.doorkeeper.prepare(token(&parts.headers).ok().flatten()).await;
                let request = Request::from_parts(parts, Body::new(lent));
                self.routes.call(request).await.unwrap_or_else(|never| match never {})
            }
            Err(problem) => {
                drop(lent);
                problem.into_response()
            }
        };
        let spent = lender.spent().await;
        let headers = response.headers_mut();
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        // Whoever goes on using a connection of a door that closes would find it closed in the middle of a request. And
        // where chunks end is not followed beside the HTTP layer, so nothing is read after them.
        if chunked || !spent || self.door.is_draining() {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }

    fn look(&self, request: &Request<Incoming>, ambiguous: bool) -> Result<(), Problem> {
        if ambiguous {
            return Err(Problem::new(Kind::AmbiguousRequest, "the length of the body is said more than once"));
        }
        self.door.guard.check(request)
    }
}

impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Door").finish_non_exhaustive()
    }
}
