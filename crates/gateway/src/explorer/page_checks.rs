//! What a request to the explorer's API must show besides its session: that it comes from the explorer's own page.
//!
//! Other sites can have a browser send requests here, with cookies in some cases. They cannot add a header of their own without
//! asking first, which is never granted below `/_explorer`; they cannot choose what the browser writes into `Origin` and
//! `Sec-Fetch-Site`; and under a name of theirs (DNS rebinding) they cannot choose `Host`.
//! Invariants
//! - Names that somebody could own on the public network are refused whatever the key is, unless the operator named them.
//! - An origin, where one is sent, is the one that the page was loaded from, scheme and port included.
//! - Names that a proxy of ours passes on are names of the request, too.
//!
//! Not here: which names are private (`host`), who has a session (`sessions`).

use super::ExplorerCall;
use super::refusal::ApiRefusal;
use crate::account_document;
use crate::request::{excerpt, header};
use crate::service::Scheme;
use crate::wire::headers;
use http::HeaderMap;
use http::request::Parts;

/// The header that only the page sends: the half of its session that browsers send by themselves nowhere.
pub(super) const OWN_HEADER: &str = "x-astrarium-explorer";
/// What the cookie of a session is called, before the port.
const COOKIE: &str = "astrarium-explorer";
/// Cookies of that name that are tried: a browser sends one, and another program of the machine may have set others.
const COOKIES_TRIED_MAX: usize = 4;

/// Refuses what comes from another site, or under another name.
pub(super) fn check_origin(call: &ExplorerCall<'_>) -> Result<(), ApiRefusal> {
    let (shared, parts) = (&call.gateway.shared, call.parts);
    shared.hosts.check_names(parts)?;
    for name in account_document::forwarded_hosts(&shared.settings, &parts.headers) {
        shared.hosts.check_name(name)?;
    }
    for name in ["origin", "sec-fetch-site", OWN_HEADER] {
        if parts.headers.get_all(name).iter().count() > 1 {
            return Err(ApiRefusal::bad_request(format!("The header {name} was sent more than once.")));
        }
    }
    if header(&parts.headers, "sec-fetch-site").is_some_and(|site| site != "same-origin") {
        return Err(ApiRefusal::forbidden("The explorer's API answers to the explorer's own page only."));
    }
    let Some(origin) = parts.headers.get("origin") else { return Ok(()) };
    let origin = origin.to_str().unwrap_or_default();
    let authority = parts.uri.authority().map(http::uri::Authority::as_str);
    let told = account_document::endpoint(&shared.settings, &parts.headers, authority, call.peer.scheme);
    let used = used_endpoint(&parts.headers, authority, call.peer.scheme);
    if [Some(told), used].into_iter().flatten().any(|own| is_same_origin(&own, origin)) {
        return Ok(());
    }
    Err(ApiRefusal::forbidden(format!(
        "The explorer's API answers to the explorer's own page only, and {} is not where that is. Behind a proxy, start the server \
         with --public-endpoint or --trust-forwarded.",
        excerpt(origin)
    )))
}

/// The address that the client connected to, whatever clients are told.
fn used_endpoint(headers: &HeaderMap, authority: Option<&str>, scheme: Scheme) -> Option<String> {
    let host = header(headers, headers::HOST).or(authority)?;
    Some(format!("{}://{host}/", scheme.name()))
}

/// Whether an origin is that of a URL. The port of a scheme may be left out.
fn is_same_origin(url: &str, origin: &str) -> bool {
    let Some((scheme, rest)) = url.split_once("://") else { return false };
    let host = rest.split('/').next().unwrap_or_default();
    let Some((origin_scheme, origin_host)) = origin.split_once("://") else { return false };
    let port = if scheme.eq_ignore_ascii_case("https") { ":443" } else { ":80" };
    let bare = |host: &str| host.strip_suffix(port).unwrap_or(host).to_ascii_lowercase();
    scheme.eq_ignore_ascii_case(origin_scheme) && !host.is_empty() && bare(host) == bare(origin_host)
}

/// What the page says in its own header; what lacks that is refused.
pub(super) fn page_token(parts: &Parts) -> Result<&str, ApiRefusal> {
    header(&parts.headers, OWN_HEADER).ok_or_else(|| {
        ApiRefusal::forbidden(format!(
            "The explorer's API needs the header {OWN_HEADER} with the pageToken of the sign-in."
        ))
    })
}

/// Refuses a sign-in that a form of another site could send.
pub(super) fn check_json(parts: &Parts) -> Result<(), ApiRefusal> {
    let content_type = header(&parts.headers, headers::CONTENT_TYPE).unwrap_or_default();
    let kind = content_type.split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    Err(ApiRefusal::bad_request(
        "The body of a sign-in is JSON, and says so: Content-Type: application/json.",
    ))
}

/// Whether the browser sees the server over TLS, be it that of a proxy.
pub(super) fn is_secure(call: &ExplorerCall<'_>) -> bool {
    match header(&call.parts.headers, "origin") {
        Some(origin) => origin.starts_with("https://"),
        None => call.peer.scheme == Scheme::Https,
    }
}

/// What the cookie is called: cookies do not know ports, and two servers of one machine are two explorers.
pub(super) fn cookie_name(parts: &Parts) -> String {
    let host =
        header(&parts.headers, headers::HOST).or(parts.uri.authority().map(http::uri::Authority::as_str));
    let port = host.and_then(|host| host.rsplit_once(':')?.1.parse::<u16>().ok());
    port.map_or_else(|| COOKIE.to_owned(), |port| format!("{COOKIE}-{port}"))
}

/// The tokens that a request may mean.
pub(super) fn cookies(parts: &Parts) -> impl Iterator<Item = &str> {
    let name = cookie_name(parts);
    let lines = parts.headers.get_all(http::header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(move |(own, _)| *own == name).map(|(_, value)| value).take(COOKIES_TRIED_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins() {
        let check = |url: &str, origin: &str, same: bool| {
            assert_eq!(is_same_origin(url, origin), same, "{url} {origin}");
        };
        check("http://127.0.0.1:8081/", "http://127.0.0.1:8081", true);
        check("http://LocalHost:8081/", "http://localhost:8081", true);
        check("https://db.example.org/", "https://db.example.org", true);
        check("https://db.example.org:443/", "https://db.example.org", true);
        check("http://db.example.org:80", "http://db.example.org", true);
        check("http://[::1]:8081/", "http://[::1]:8081", true);
        check("http://127.0.0.1:8081/", "https://127.0.0.1:8081", false);
        check("http://127.0.0.1:8081/", "http://127.0.0.1:8082", false);
        check("http://127.0.0.1:8081/", "http://127.0.0.1", false);
        check("http://127.0.0.1:8081/", "http://127.0.0.1:80810", false);
        check("http://127.0.0.1:8081/", "http://localhost:8081", false);
        check("http://127.0.0.1:8081/", "null", false);
        check("http://127.0.0.1:8081/", "", false);
        check("http:///", "http://", false);
        check("http://127.0.0.1:8081/", "http://127.0.0.1:8081.evil.example", false);
        check("http://127.0.0.1:8081/", "http://evil.example/127.0.0.1:8081", false);
    }

    #[test]
    fn tokens_of_cookies() {
        let request = http::Request::builder().header("host", "localhost:8081");
        let request =
            request.header("cookie", "a=b; astrarium-explorer-8081=one; astrarium-explorer-8082=two");
        let request = request.header("cookie", "astrarium-explorer-8081=three;astrarium-explorer=four");
        let parts = request.body(()).unwrap().into_parts().0;
        assert_eq!(cookies(&parts).collect::<Vec<_>>(), ["one", "three"]);
    }
}
