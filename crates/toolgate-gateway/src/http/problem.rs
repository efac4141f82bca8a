//! What the door says no to, as RFC 9457 problems. INVARIANT (no echo): a problem holds no value that somebody sent.

use std::borrow::Cow;

use axum::http::header::{CONNECTION, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use toolgate::json::Flaw;
use toolgate::refusal::Pages;

/// A request that was not done, and why.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    kind: Kind,
    detail: Cow<'static, str>,
    hint: Option<Cow<'static, str>>,
    /// The line and the column of the body, from 1.
    place: Option<(usize, usize)>,
    problems: Vec<toolgate::schema::Problem>,
    /// What the header `WWW-Authenticate` says behind `Bearer`.
    challenge: Option<Box<str>>,
}

/// The kinds of problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    AmbiguousRequest,
    WrongHost,
    ForeignOrigin,
    NotFound,
    MethodNotAllowed,
    WrongContentType,
    Unauthenticated,
    MissingScope,
    BadHeader,
    BadQuery,
    BadTag,
    BodyTooLarge,
    BodyTooSlow,
    BrokenBody,
    BrokenEnvelope,
    BrokenMessage,
    NoSuchApproval,
    NoSuchSession,
    ApprovalClosed,
    NotYours,
    NoSuchAction,
    NotUnknown,
    BeingReconciled,
    ResultUnfit,
    NoSuchStop,
    TooManyStops,
    UnfitGrant,
    GrantNotYours,
    NoSuchGrant,
    TooManyGrants,
    TooManySessions,
    EditRefused,
    Overloaded,
    Unavailable,
    TimedOut,
}

/// What the table says of a kind.
struct Row {
    code: &'static str,
    status: StatusCode,
    title: &'static str,
    /// INVARIANT (nothing is read on): after it the connection is closed, since what follows on it has no sure beginning.
    closes: bool,
}

/// The pages of the codes that are of this door alone.
pub(crate) const PROBLEMS: Pages = Pages::of(include_str!("problems.md"));

impl Kind {
    fn row(self) -> Row {
        use StatusCode as S;
        let row = |code, status, title| Row { code, status, title, closes: false };
        let last = |code, status, title| Row { code, status, title, closes: true };
        match self {
            Self::AmbiguousRequest => last("ambiguous_request", S::BAD_REQUEST, "The request can be read in two ways"),
            Self::WrongHost => row("wrong_host", S::MISDIRECTED_REQUEST, "The request is for another host"),
            Self::ForeignOrigin => row("foreign_origin", S::FORBIDDEN, "The request comes from a foreign page"),
            Self::NotFound => row("not_found", S::NOT_FOUND, "There is nothing at this path"),
            Self::MethodNotAllowed => row("method_not_allowed", S::METHOD_NOT_ALLOWED, "Not with this method"),
            Self::WrongContentType => {
                row("wrong_content_type", S::UNSUPPORTED_MEDIA_TYPE, "The body is not plain application/json")
            }
            Self::Unauthenticated => row("unauthenticated", S::UNAUTHORIZED, "Nobody is known to be asking"),
            Self::MissingScope => row("missing_scope", S::FORBIDDEN, "The caller may not ask for this"),
            Self::BadHeader => row("bad_header", S::BAD_REQUEST, "A header is not as it must be"),
            Self::BadQuery => row("bad_query", S::BAD_REQUEST, "The query is not as it must be"),
            Self::BadTag => row("bad_tag", S::BAD_REQUEST, "A tag is not as it must be"),
            Self::BodyTooLarge => last("body_too_large", S::PAYLOAD_TOO_LARGE, "The body is too large"),
            Self::BodyTooSlow => last("body_too_slow", S::REQUEST_TIMEOUT, "The body did not come in time"),
            Self::BrokenBody => last("broken_body", S::BAD_REQUEST, "The body broke off"),
            Self::BrokenEnvelope => row("broken_envelope", S::BAD_REQUEST, "The body is not as it must be"),
            Self::BrokenMessage => row("broken_message", S::BAD_REQUEST, "The message is none of its dialect"),
            Self::NoSuchApproval => row("no_such_approval", S::NOT_FOUND, "There is no such approval"),
            Self::NoSuchSession => row("no_such_session", S::NOT_FOUND, "There is no such session"),
            Self::ApprovalClosed => row("approval_closed", S::CONFLICT, "The approval is not pending any more"),
            Self::NotYours => row("not_yours", S::FORBIDDEN, "Somebody else must answer this approval"),
            Self::NoSuchAction => row("no_such_action", S::NOT_FOUND, "There is no such action"),
            Self::NotUnknown => row("not_unknown", S::CONFLICT, "It is known what became of the action, or it runs"),
            Self::BeingReconciled => row("being_reconciled", S::CONFLICT, "Somebody looks for what became of it"),
            Self::ResultUnfit => row("result_unfit", S::UNPROCESSABLE_ENTITY, "The result cannot be one of the tool"),
            Self::NoSuchStop => row("no_such_stop", S::NOT_FOUND, "There is no such stop"),
            Self::TooManyStops => row("too_many_stops", S::CONFLICT, "As many stops stand as may"),
            Self::UnfitGrant => row("unfit_grant", S::UNPROCESSABLE_ENTITY, "Such a standing grant cannot be given"),
            Self::GrantNotYours => row("grant_not_yours", S::FORBIDDEN, "Somebody else gives this standing grant"),
            Self::NoSuchGrant => row("grant_missing", S::NOT_FOUND, "There is no such standing grant"),
            Self::TooManyGrants => row("too_many_grants", S::CONFLICT, "There are too many standing grants"),
            Self::TooManySessions => row("too_many_sessions", S::CONFLICT, "Too many sessions of the caller go on"),
            Self::EditRefused => row("edit_refused", S::UNPROCESSABLE_ENTITY, "The edited call cannot be asked for"),
            Self::Overloaded => row("overloaded", S::SERVICE_UNAVAILABLE, "The gate has too much to do"),
            Self::Unavailable => row("unavailable", S::SERVICE_UNAVAILABLE, "The gate cannot take calls now"),
            Self::TimedOut => row("timed_out", S::GATEWAY_TIMEOUT, "The request took too long"),
        }
    }
}

impl Problem {
    pub(crate) fn new(kind: Kind, detail: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, detail: detail.into(), hint: None, place: None, problems: Vec::new(), challenge: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<Cow<'static, str>>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn at(mut self, line: usize, column: usize) -> Self {
        self.place = Some((line, column));
        self
    }

    pub(crate) fn problems(mut self, problems: Vec<toolgate::schema::Problem>) -> Self {
        self.problems = problems;
        self
    }

    /// The same, with what a client that can log in is told (RFC 6750, RFC 9728): values that nobody sent.
    pub(crate) fn challenge(mut self, parameters: &[(&str, &str)]) -> Self {
        let told: Vec<String> = parameters.iter().map(|(name, value)| format!("{name}=\"{value}\"")).collect();
        self.challenge = Some(told.join(", ").into_boxed_str()).filter(|told| !told.is_empty());
        self
    }

    /// A body that is no strict JSON.
    pub(crate) fn flawed(flaw: &Flaw) -> Self {
        let problem = Self::new(Kind::BrokenEnvelope, flaw.message.clone()).at(flaw.line, flaw.column);
        match flaw.hint() {
            Some(hint) => problem.hint(hint),
            None => problem,
        }
    }

    /// The response whose body says this problem, and perhaps more.
    pub(crate) fn respond(&self, body: Vec<u8>) -> Response {
        let row = self.kind.row();
        let mut response = (row.status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if row.closes {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        if row.status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        let told = self.challenge.as_ref().and_then(|told| HeaderValue::try_from(format!("Bearer {told}")).ok());
        if let Some(told) = told {
            headers.insert(WWW_AUTHENTICATE, told);
        } else if row.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl Serialize for Problem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let row = self.kind.row();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", &format_args!("urn:toolgate:problem:{}", row.code))?;
        map.serialize_entry("title", row.title)?;
        map.serialize_entry("status", &row.status.as_u16())?;
        map.serialize_entry("detail", &self.detail)?;
        map.serialize_entry("code", row.code)?;
        if let Some(hint) = &self.hint {
            map.serialize_entry("hint", hint)?;
        }
        if let Some((line, column)) = self.place {
            map.serialize_entry("line", &line)?;
            map.serialize_entry("column", &column)?;
        }
        if !self.problems.is_empty() {
            map.serialize_entry("problems", &self.problems)?;
        }
        map.end()
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        // A problem is made of strings and numbers, which always print.
        self.respond(serde_json::to_vec(&self).unwrap_or_default())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use serde_json::json;

    use super::*;

    const ALL: [Kind; 35] = [
        Kind::AmbiguousRequest,
        Kind::WrongHost,
        Kind::ForeignOrigin,
        Kind::NotFound,
        Kind::MethodNotAllowed,
        Kind::WrongContentType,
        Kind::Unauthenticated,
        Kind::MissingScope,
        Kind::BadHeader,
        Kind::BadQuery,
        Kind::BadTag,
        Kind::BodyTooLarge,
        Kind::BodyTooSlow,
        Kind::BrokenBody,
        Kind::BrokenEnvelope,
        Kind::BrokenMessage,
        Kind::NoSuchApproval,
        Kind::NoSuchSession,
        Kind::ApprovalClosed,
        Kind::NotYours,
        Kind::NoSuchAction,
        Kind::NotUnknown,
        Kind::BeingReconciled,
        Kind::ResultUnfit,
        Kind::NoSuchStop,
        Kind::TooManyStops,
        Kind::UnfitGrant,
        Kind::GrantNotYours,
        Kind::NoSuchGrant,
        Kind::TooManyGrants,
        Kind::TooManySessions,
        Kind::EditRefused,
        Kind::Overloaded,
        Kind::Unavailable,
        Kind::TimedOut,
    ];

    #[test]
    fn a_problem_is_written_as_rfc_9457_has_it() {
        let problem = Problem::new(Kind::BrokenEnvelope, "a trailing comma").at(3, 7).hint("remove the comma");
        assert_eq!(
            json!(problem),
            json!({
                "type": "urn:toolgate:problem:broken_envelope",
                "title": "The body is not as it must be",
                "status": 400,
                "detail": "a trailing comma",
                "code": "broken_envelope",
                "hint": "remove the comma",
                "line": 3,
                "column": 7,
            })
        );
        let response = problem.into_response();
        assert_eq!(response.headers()[CONTENT_TYPE], "application/problem+json");
        assert!(!response.headers().contains_key(CONNECTION));
    }

    #[test]
    fn whoever_is_turned_away_for_now_learns_when_to_come_again() {
        let overloaded = Problem::new(Kind::Overloaded, "too much").into_response();
        assert_eq!(overloaded.headers()[RETRY_AFTER], "1");
        let nobody = Problem::new(Kind::Unauthenticated, "nobody").into_response();
        assert_eq!(nobody.headers()[WWW_AUTHENTICATE], "Bearer");
        let ambiguous = Problem::new(Kind::AmbiguousRequest, "two lengths").into_response();
        assert_eq!(ambiguous.headers()[CONNECTION], "close");
    }

    #[test]
    fn every_code_of_this_door_has_a_page() {
        for kind in ALL {
            let code = kind.row().code;
            let page = crate::cli::page(code).unwrap_or_default();
            assert!(page.starts_with(&format!("# {code}\n")), "{code} has no page");
        }
        for code in PROBLEMS.codes() {
            assert!(ALL.iter().any(|kind| kind.row().code == code), "nothing is refused as {code}");
        }
    }
}
