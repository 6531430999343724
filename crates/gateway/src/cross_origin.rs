//! Cross-origin requests from browsers: answered only for the origins that the operator allows.

use crate::answer::Answer;
use crate::request::header;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

const METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

/// The answer to a preflight request.
pub(crate) fn preflight(allowed: &[String], headers: &HeaderMap) -> Answer {
    let mut answer = Answer::empty(StatusCode::NO_CONTENT);
    if allow(allowed, headers, &mut answer.headers) {
        let wanted = header(headers, "access-control-request-headers").unwrap_or("*");
        answer.set_static("access-control-allow-methods", METHODS);
        answer.set_text("access-control-allow-headers", wanted);
        answer.set_static("access-control-max-age", "86400");
    }
    answer
}

/// Marks an answer as readable by the request's origin, if that is allowed.
pub(crate) fn allow(allowed: &[String], request: &HeaderMap, answer: &mut HeaderMap) -> bool {
    let Some(origin) = header(request, "origin") else {
        return false;
    };
    if !allowed.iter().any(|one| one == "*" || one.eq_ignore_ascii_case(origin)) {
        return false;
    }
    let Ok(value) = HeaderValue::from_str(origin) else {
        return false;
    };
    answer.insert(HeaderName::from_static("access-control-allow-origin"), value);
    answer.insert(HeaderName::from_static("access-control-expose-headers"), HeaderValue::from_static("*"));
    answer.insert(HeaderName::from_static("vary"), HeaderValue::from_static("Origin"));
    true
}
