//! The ports of the service's emulator: what each of them answers besides, or instead of, the account.
//!
//! In: a request and the role of the port that its connection came in by. Out: an answer, or none where the account answers as on its own port.
//! Invariants
//! - No port allows what the account's own port refuses: it answers less, or says nothing about the data.
//!
//! Not here: which ports there are, and their listeners (`server`); host names, which are checked on every port (`host`).

use crate::answer::Answer;
use crate::request::header;
use http::header::{AUTHORIZATION, CACHE_CONTROL, LOCATION, VARY};
use http::request::Parts;
use http::{HeaderValue, Method, StatusCode};

/// Which port a connection came in by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PortRole {
    /// The account's, as every server has it.
    #[default]
    Account,
    /// The account's in the emulator's place: tools ask `/` without a signature whether the server is there.
    Emulator,
    /// For probes: whether the server is alive and ready, and nothing else.
    Health,
    /// For browsers: the explorer, and nothing else.
    Explorer,
}

/// How the `Accept` begins that Java's `HttpURLConnection` sends by itself.
const JAVA_ACCEPT: &str = "text/html, image/gif, image/jpeg,";

/// What a port reports of the server's state.
pub(crate) struct PortState {
    /// Why the server takes no writes, if it does not.
    pub(crate) refusal: Option<String>,
}

/// What the port answers by itself. An unsigned request of a browser for the root is redirected to the explorer, if there is one.
pub(crate) fn answer(
    role: PortRole,
    parts: &Parts,
    has_explorer: bool,
    state: impl FnOnce() -> PortState,
) -> Option<Answer> {
    let path = parts.uri.path();
    let is_read = matches!(parts.method, Method::GET | Method::HEAD);
    let is_unsigned_root = is_read && path == "/" && !parts.headers.contains_key(AUTHORIZATION);
    match role {
        PortRole::Account | PortRole::Emulator if is_unsigned_root && has_explorer && wants_a_page(parts) => {
            Some(to_explorer())
        }
        PortRole::Account => None,
        PortRole::Emulator => {
            is_unsigned_root.then(|| Answer::content("text/plain", "Astrarium is ready.\n"))
        }
        PortRole::Health => Some(match path {
            "/alive" if is_read => health(&state(), false),
            "/ready" | "/status" if is_read => health(&state(), true),
            _ => absent("Only /alive and /ready are here; the account is at the server's other port.\n"),
        }),
        PortRole::Explorer => match path {
            "/" if is_read => Some(to_explorer()),
            _ if path == "/_explorer" || path.starts_with("/_explorer/") => None,
            _ => Some(absent("Only /_explorer/ is here; the account is at the server's other port.\n")),
        },
    }
}

/// The emulator names its storage after PostgreSQL, and probes look for that name.
fn health(state: &PortState, must_write: bool) -> Answer {
    let word = if state.refusal.is_some() { "unhealthy" } else { "healthy" };
    let mut body = serde_json::json!({"status": word, "checks": {"gateway": "healthy", "postgres": word}});
    if let Some(refusal) = &state.refusal {
        body["reason"] = refusal.clone().into();
    }
    let mut answer = Answer::content("application/json", body.to_string());
    if must_write && state.refusal.is_some() {
        answer.status = StatusCode::SERVICE_UNAVAILABLE;
    }
    answer
}

/// Whether a client takes HTML by its own wish. Java's clients name it in every request unless they are told otherwise, and are probes
/// and programs.
fn wants_a_page(parts: &Parts) -> bool {
    let accepted = header(&parts.headers, "accept").unwrap_or_default();
    let mut kinds = accepted.split(',').map(|one| one.split(';').next().unwrap_or_default().trim());
    !accepted.starts_with(JAVA_ACCEPT) && kinds.any(|kind| kind.eq_ignore_ascii_case("text/html"))
}

fn to_explorer() -> Answer {
    let mut answer = Answer::content("text/plain", "The explorer is at /_explorer/\n");
    answer.status = StatusCode::TEMPORARY_REDIRECT;
    answer.headers.insert(LOCATION, HeaderValue::from_static("/_explorer/"));
    // What this address answers depends on who asks.
    answer.headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer.headers.insert(VARY, HeaderValue::from_static("Accept, Authorization"));
    answer
}

fn absent(text: &'static str) -> Answer {
    let mut answer = Answer::content("text/plain", text);
    answer.status = StatusCode::NOT_FOUND;
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(role: PortRole, method: &str, path: &str, refusal: Option<&str>, expected: Option<(u16, &str)>) {
        let request = http::Request::builder().method(method).uri(path).body(()).expect("a request");
        let state = || PortState { refusal: refusal.map(str::to_owned) };
        let answer = answer(role, &request.into_parts().0, true, state);
        let found =
            answer.map(|answer| (answer.status.as_u16(), String::from_utf8_lossy(&answer.body).into_owned()));
        match (found, expected) {
            (None, None) => {}
            (Some((status, body)), Some((expected, part))) => {
                assert_eq!(status, expected, "{role:?} {path}");
                assert!(body.contains(part), "{part} in {body}");
            }
            (found, expected) => panic!("{role:?} {path}: {found:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn each_port_answers_what_its_role_says() {
        let healthy = r#""checks":{"gateway":"healthy","postgres":"healthy"}"#;
        check(PortRole::Health, "GET", "/alive", None, Some((200, healthy)));
        check(PortRole::Health, "GET", "/ready", None, Some((200, healthy)));
        check(PortRole::Health, "GET", "/alive", Some("full"), Some((200, r#""postgres":"unhealthy""#)));
        check(PortRole::Health, "GET", "/ready", Some("full"), Some((503, r#""reason":"full""#)));
        check(PortRole::Health, "GET", "/dbs", None, Some((404, "/alive")));
        check(PortRole::Health, "POST", "/alive", None, Some((404, "/alive")));
        check(PortRole::Explorer, "GET", "/", None, Some((307, "/_explorer/")));
        check(PortRole::Explorer, "GET", "/_explorer/index.html", None, None);
        check(PortRole::Explorer, "POST", "/dbs", None, Some((404, "/_explorer/")));
        check(PortRole::Explorer, "GET", "/_explorerx", None, Some((404, "/_explorer/")));
        check(PortRole::Emulator, "GET", "/", None, Some((200, "ready")));
        check(PortRole::Emulator, "GET", "/dbs", None, None);
        check(PortRole::Account, "GET", "/", None, None);
    }

    #[test]
    fn who_signs_is_answered_by_the_account() {
        let signed = http::Request::get("/").header(AUTHORIZATION, "x").body(()).expect("a request");
        let answer = answer(PortRole::Emulator, &signed.into_parts().0, true, || PortState { refusal: None });
        assert!(answer.is_none());
    }

    #[test]
    fn browsers_are_led_to_the_explorer_and_nobody_else_is() {
        const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
        let leads =
            |role: PortRole, method: &str, path: &str, headers: &[(&str, &str)], has_explorer: bool| {
                let request = http::Request::builder().method(method).uri(path);
                let request =
                    headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
                let parts = request.body(()).expect("a request").into_parts().0;
                answer(role, &parts, has_explorer, || PortState { refusal: None })
                    .is_some_and(|answer| answer.status == StatusCode::TEMPORARY_REDIRECT)
            };
        for role in [PortRole::Account, PortRole::Emulator] {
            for accept in [BROWSER, "text/html", "application/json, Text/HTML;q=0.5"] {
                assert!(leads(role, "GET", "/", &[("accept", accept)], true), "{accept}");
            }
            assert!(leads(role, "HEAD", "/?x=1", &[("accept", BROWSER)], true));
            assert!(!leads(role, "GET", "/", &[("accept", BROWSER)], false), "there is no explorer");
            assert!(!leads(role, "GET", "/", &[("accept", BROWSER), ("authorization", "x")], true));
            assert!(!leads(role, "POST", "/", &[("accept", BROWSER)], true));
            assert!(!leads(role, "GET", "/dbs", &[("accept", BROWSER)], true));
            for accept in ["*/*", "application/json", "text/plain", "", "text/htmlx"] {
                assert!(!leads(role, "GET", "/", &[("accept", accept)], true), "{accept}");
            }
            assert!(!leads(role, "GET", "/", &[], true));
            for java in ["*; q=.2, */*; q=.2", "*/*; q=0.2"] {
                let accept = format!("text/html, image/gif, image/jpeg, {java}");
                assert!(!leads(role, "GET", "/", &[("accept", &accept)], true), "{accept}");
            }
        }
        assert!(!leads(PortRole::Health, "GET", "/", &[("accept", BROWSER)], true));
    }
}
