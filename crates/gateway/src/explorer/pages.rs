//! The files of the page, for everybody, and the headers that keep other pages away from it and it away from others.
//!
//! The page may load scripts, styles, fonts and pictures of its own only, talk to this server only, and be framed by nobody; a script
//! that somebody slips into a value that is shown does not run.

use crate::answer::{Answer, fixed_header};
use crate::request::header;
use crate::wire::headers;
use astrarium_explorer::Asset;
use http::request::Parts;
use http::{HeaderValue, Method, StatusCode};

const POLICY_HEADER: http::HeaderName = http::header::CONTENT_SECURITY_POLICY;

/// What the page may do.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; \
                           connect-src 'self'; manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; \
                           frame-ancestors 'none'; require-trusted-types-for 'script'";
/// What everything else may do, if somebody takes it for a page.
const DATA_POLICY: &str = "default-src 'none'; frame-ancestors 'none'; sandbox";

/// A file of the page, by its path below `/_explorer`.
pub(super) fn answer(parts: &Parts, path: &str) -> Answer {
    if parts.method != Method::GET && parts.method != Method::HEAD {
        return plain(StatusCode::METHOD_NOT_ALLOWED, "The explorer's page is read with GET.\n");
    }
    let name = match path {
        "" | "/" | "/index.html" => Some("index.html"),
        _ => path.strip_prefix("/assets/").filter(|name| *name != "index.html"),
    };
    let Some(asset) = name.and_then(Asset::find) else {
        return plain(StatusCode::NOT_FOUND, "There is no such file of the explorer's page.\n");
    };
    let mut answer = if is_known(parts, asset.etag) {
        Answer::empty(StatusCode::NOT_MODIFIED)
    } else if takes_gzip(parts) {
        let mut answer = Answer::content(asset.content_type, asset.gzip);
        answer.set_static("content-encoding", "gzip");
        answer
    } else {
        Answer::content(asset.content_type, asset.content())
    };
    answer.headers.insert(http::header::ETAG, HeaderValue::from_static(asset.etag));
    let caching = if asset.is_immutable() { "public, max-age=31536000, immutable" } else { "no-cache" };
    answer.set_static(headers::CACHE_CONTROL, caching);
    answer.set_static("vary", "Accept-Encoding");
    answer.headers.insert(POLICY_HEADER, HeaderValue::from_static(PAGE_POLICY));
    answer
}

/// A short text.
pub(super) fn plain(status: StatusCode, text: &'static str) -> Answer {
    let mut answer = Answer::content("text/plain; charset=utf-8", text);
    answer.status = status;
    answer
}

/// Adds the headers that all answers of the explorer have.
pub(crate) fn protect(answer: &mut Answer) {
    let policy = answer.headers.entry(POLICY_HEADER);
    policy.or_insert(HeaderValue::from_static(DATA_POLICY));
    fixed_header!(answer, "x-frame-options", "DENY");
    fixed_header!(answer, "x-content-type-options", "nosniff");
    fixed_header!(answer, "referrer-policy", "no-referrer");
    fixed_header!(answer, "cross-origin-opener-policy", "same-origin");
    fixed_header!(answer, "cross-origin-resource-policy", "same-origin");
}

/// Whether the client has this very content.
fn is_known(parts: &Parts, etag: &str) -> bool {
    let known = header(&parts.headers, headers::IF_NONE_MATCH).unwrap_or_default();
    known.split(',').map(|one| one.trim().trim_start_matches("W/")).any(|one| one == etag || one == "*")
}

/// Whether a client takes gzip: it says so, and not that it does so in no case.
fn takes_gzip(parts: &Parts) -> bool {
    let accepted = header(&parts.headers, "accept-encoding").unwrap_or_default();
    accepted.split(',').any(|one| {
        let (name, parameters) = one.split_once(';').unwrap_or((one, ""));
        let weight = parameters.trim().strip_prefix("q=").map_or(1.0, |q| q.trim().parse().unwrap_or(0.0));
        matches!(name.trim(), "gzip" | "x-gzip" | "*") && weight > 0.0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(path: &str, headers: &[(&str, &str)]) -> Answer {
        let mut request = http::Request::builder();
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        answer(&request.body(()).unwrap().into_parts().0, path)
    }

    #[test]
    fn the_page_is_there_under_its_names() {
        let page = get("", &[]);
        assert_eq!(page.status, StatusCode::OK);
        for path in ["/", "/index.html"] {
            assert_eq!(get(path, &[]).body, page.body);
        }
        for path in
            ["/assets/index.html", "/assets/", "/index", "/assets/../index.html", "/x", "/assets/%2e%2e/x"]
        {
            assert_eq!(get(path, &[]).status, StatusCode::NOT_FOUND, "{path}");
        }
    }

    #[test]
    fn it_is_compressed_for_those_who_take_it() {
        let plain = get("/", &[]).body;
        for (accepted, is_packed) in [
            ("gzip, deflate, br", true),
            ("gzip;q=0", false),
            ("*", true),
            ("br", false),
            ("x;q=1, gzip; q=0.5", true),
        ] {
            let answer = get("/", &[("accept-encoding", accepted)]);
            assert_eq!(answer.headers.contains_key("content-encoding"), is_packed, "{accepted}");
            assert_eq!(answer.body != plain, is_packed, "{accepted}");
        }
    }

    #[test]
    fn what_a_browser_has_is_not_sent_again() {
        let page = get("/", &[]);
        let etag = page.headers.get("etag").unwrap().to_str().unwrap().to_owned();
        let again = get("/", &[("if-none-match", &format!("\"x\", W/{etag}"))]);
        assert!(again.status == StatusCode::NOT_MODIFIED && again.body.is_empty());
        assert_eq!(get("/", &[("if-none-match", "\"x\"")]).status, StatusCode::OK);
    }
}
