//! The trace that a request belongs to (W3C Trace Context).

use axum::http::header::{HeaderMap, HeaderName};
use toolgate::call::TraceContext;

use super::guard::only;

const PARENT: HeaderName = HeaderName::from_static("traceparent");
const STATE: HeaderName = HeaderName::from_static("tracestate");

/// The context that the headers give. What is malformed, or given twice, is none (section 3.2.2.3); a state may stand on
/// several lines (section 3.3.1.1).
pub(super) fn context(headers: &HeaderMap) -> Option<TraceContext> {
    let parent = only(headers, &PARENT).ok()??.to_str().ok()?;
    let lines: Result<Vec<&str>, _> = headers.get_all(STATE).iter().map(|line| line.to_str()).collect();
    let state = lines.ok().filter(|lines| !lines.is_empty()).map(|lines| lines.join(","));
    TraceContext::parse(parent, state.as_deref())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    const ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

    fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    #[test]
    fn a_context_is_taken_from_its_headers_or_there_is_none() {
        let parent = format!("00-{ID}-00f067aa0ba902b7-01");
        let given = context(&headers(&[("traceparent", &parent), ("tracestate", "a=1"), ("tracestate", "b=2")]));
        assert_eq!(given.unwrap().trace_id(), ID);
        assert!(context(&headers(&[("tracestate", "a=1")])).is_none());
        assert!(context(&headers(&[("traceparent", "00-0-0-01")])).is_none());
        assert!(context(&headers(&[("traceparent", &parent), ("traceparent", &parent)])).is_none());
    }
}
