//! The ports of the service's emulator: what each of them answers besides, or instead of, the account.
//!
//! In: a request and the door that its connection came in by. Out: an answer, or nothing where the account answers as ever.
//! Invariants
//! - A door never lets in what the account's own port would refuse: it answers less, or what says nothing about the data.
//!
//! Not here: which ports there are, and their listeners (`server`); host names, which are checked at every door (`host`).

use crate::answer::Answer;
use http::header::{AUTHORIZATION, LOCATION};
use http::request::Parts;
use http::{HeaderValue, Method, StatusCode};

/// Which port a connection came in by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Door {
    /// The account's, as every server has it.
    #[default]
    Account,
    /// The account's in the emulator's place: tools ask `/` without a signature whether somebody is there.
    Emulator,
    /// For probes: whether the server is alive and ready, and nothing else.
    Health,
    /// For browsers: the explorer, and nothing else.
    Explorer,
}

/// What a door says of the server's state.
pub(crate) struct DoorState {
    /// Why the server takes no writes, if it does not.
    pub(crate) refusal: Option<String>,
}

/// What the door answers by itself.
pub(crate) fn answer(door: Door, parts: &Parts, state: impl FnOnce() -> DoorState) -> Option<Answer> {
    let path = parts.uri.path();
    let is_read = matches!(parts.method, Method::GET | Method::HEAD);
    match door {
        Door::Account => None,
        Door::Emulator => {
            let is_probe = is_read && path == "/" && !parts.headers.contains_key(AUTHORIZATION);
            is_probe.then(|| Answer::content("text/plain", "Astrarium is ready.\n"))
        }
        Door::Health => Some(match path {
            "/alive" if is_read => health(&state(), false),
            "/ready" | "/status" if is_read => health(&state(), true),
            _ => absent("Only /alive and /ready are here; the account is at the server's other port.\n"),
        }),
        Door::Explorer => match path {
            "/" if is_read => Some(to_explorer()),
            _ if path == "/_explorer" || path.starts_with("/_explorer/") => None,
            _ => Some(absent("Only /_explorer/ is here; the account is at the server's other port.\n")),
        },
    }
}

/// The emulator names its storage after PostgreSQL, and probes look for that name.
fn health(state: &DoorState, must_write: bool) -> Answer {
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

fn to_explorer() -> Answer {
    let mut answer = Answer::content("text/plain", "The explorer is at /_explorer/\n");
    answer.status = StatusCode::TEMPORARY_REDIRECT;
    answer.headers.insert(LOCATION, HeaderValue::from_static("/_explorer/"));
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
    fn check(door: Door, method: &str, path: &str, refusal: Option<&str>, expected: Option<(u16, &str)>) {
        let request = http::Request::builder().method(method).uri(path).body(()).expect("a request");
        let state = || DoorState { refusal: refusal.map(str::to_owned) };
        let answer = answer(door, &request.into_parts().0, state);
        let found =
            answer.map(|answer| (answer.status.as_u16(), String::from_utf8_lossy(&answer.body).into_owned()));
        match (found, expected) {
            (None, None) => {}
            (Some((status, body)), Some((expected, part))) => {
                assert_eq!(status, expected, "{door:?} {path}");
                assert!(body.contains(part), "{part} in {body}");
            }
            (found, expected) => panic!("{door:?} {path}: {found:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn doors_answer_what_is_theirs() {
        let healthy = r#""checks":{"gateway":"healthy","postgres":"healthy"}"#;
        check(Door::Health, "GET", "/alive", None, Some((200, healthy)));
        check(Door::Health, "GET", "/ready", None, Some((200, healthy)));
        check(Door::Health, "GET", "/alive", Some("full"), Some((200, r#""postgres":"unhealthy""#)));
        check(Door::Health, "GET", "/ready", Some("full"), Some((503, r#""reason":"full""#)));
        check(Door::Health, "GET", "/dbs", None, Some((404, "/alive")));
        check(Door::Health, "POST", "/alive", None, Some((404, "/alive")));
        check(Door::Explorer, "GET", "/", None, Some((307, "/_explorer/")));
        check(Door::Explorer, "GET", "/_explorer/index.html", None, None);
        check(Door::Explorer, "POST", "/dbs", None, Some((404, "/_explorer/")));
        check(Door::Explorer, "GET", "/_explorerx", None, Some((404, "/_explorer/")));
        check(Door::Emulator, "GET", "/", None, Some((200, "ready")));
        check(Door::Emulator, "GET", "/dbs", None, None);
        check(Door::Account, "GET", "/", None, None);
    }

    #[test]
    fn who_signs_is_answered_by_the_account() {
        let signed = http::Request::get("/").header(AUTHORIZATION, "x").body(()).expect("a request");
        let answer = answer(Door::Emulator, &signed.into_parts().0, || DoorState { refusal: None });
        assert!(answer.is_none());
    }
}
