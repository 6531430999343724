//! The explorer: its page, the sessions of people who signed in to it, and what it asks of the server.
//!
//! In: requests below `/_explorer`. Out: the page's files for everybody; everything below `/_explorer/api` for sessions only.
//! Invariants
//! - The page's files hold nothing secret. A session is two opaque numbers: one in a cookie that no script can read, one that the page
//!   sends in a header of its own, since browsers send cookies to every port of a machine. They count together, below `/_explorer/api`
//!   only, and only from the page's own origin (`page_checks`).
//! - What a session asks of the protocol (`/_explorer/api/wire/..`) goes the way of every request: the session takes the place of the
//!   signature and of nothing else, so a read-only session can do what a read-only key can.
//! - Answers here are never shared between origins (no CORS), never framed, and of the type that they say.
//!
//! Not here: the page itself (`crates/explorer`), which operation needs what (`operation`, `authorize`).

mod api;
mod page_checks;
mod pages;
mod refusal;
mod requests;
mod sessions;
mod sign_in;
mod this_machine;

pub(crate) use pages::protect;

use crate::answer::Answer;
use crate::authenticate::{AccessProof, SenderAccess, SessionSender};
use crate::database::{self, Account, Env};
use crate::error::ErrorAnswer;
use crate::request::header;
use crate::request_log::Note;
use crate::service::{Gateway, Peer, Settings};
use crate::wire::authorization::KeyAccess;
use crate::wire::headers;
use bytes::Bytes;
use http::request::Parts;
use http::{Method, StatusCode};
use refusal::ApiRefusal;
use requests::RequestRing;
use sessions::{Session, Sessions};
use std::pin::Pin;
use std::time::Duration;

/// What everything of the explorer is below.
const ROOT: &str = "/_explorer";
/// Below it the protocol's own paths.
const WIRE: &str = "wire";
/// What comes before them.
const WIRE_PREFIX: &str = "/api/wire";
/// Longest body of what the explorer asks besides the protocol: a query's text, a script with its arguments.
const BODY_BYTES_MAX: usize = 1 << 20;
/// Longest body of a sign-in, which is read of strangers.
const SIGN_IN_BYTES_MAX: usize = 8 << 10;

/// How the explorer behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExplorerSettings {
    /// How long a session lasts, from signing in.
    pub session_seconds: u64,
    /// Whether the server listens on this machine only.
    pub is_local: bool,
}

impl Default for ExplorerSettings {
    /// A working day.
    fn default() -> ExplorerSettings {
        ExplorerSettings { session_seconds: 12 * 3600, is_local: false }
    }
}

/// What the explorer keeps.
pub(crate) struct Explorer {
    sessions: Sessions,
    requests: RequestRing,
}

impl Explorer {
    /// Nothing yet; nothing ever, where there is no explorer.
    pub(crate) fn new(settings: &Settings) -> Option<Explorer> {
        let explorer = settings.explorer?;
        let sessions = Sessions::new(settings.keys.primary.clone(), explorer.session_seconds);
        Some(Explorer { sessions, requests: RequestRing::default() })
    }

    /// Whether requests are noted: a session is open. Without one nobody can look at them, and requests should not pay for it,
    /// nor what clients sent be kept in memory.
    pub(crate) fn is_watched(&self, env: &Env) -> bool {
        let Some(until) = self.sessions.open_until() else { return false };
        until > env.now_seconds()
    }

    /// Remembers a request that was answered, for the inspector; not what the explorer asks for itself, nor what probes ask.
    pub(crate) fn note(&self, env: &Env, parts: &Parts, note: &Note, answer: &Answer, elapsed: Duration) {
        let path = parts.uri.path();
        if note.is_probe {
            return;
        }
        if !self.is_watched(env) {
            self.requests.forget();
            return;
        }
        let wire = path.strip_prefix(ROOT).and_then(|path| path.strip_prefix(WIRE_PREFIX));
        let own = is_ours(path).then(|| wire.filter(|path| path.starts_with('/')));
        match own {
            None => self.requests.add(env, parts, (path, false), note, answer, elapsed),
            Some(Some(path)) => self.requests.add(env, parts, (path, true), note, answer, elapsed),
            Some(None) => {}
        }
    }

    /// A token to sign in with once.
    pub(crate) fn make_link(&self, account: &Account) -> String {
        self.sessions.make_link(account.env().now_seconds())
    }
}

/// Whether a path is of the explorer.
pub(crate) fn is_ours(path: &str) -> bool {
    path.strip_prefix(ROOT).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Answers a request below `/_explorer`.
pub(crate) async fn serve<B>(
    gateway: &Gateway,
    parts: &Parts,
    body: Pin<&mut B>,
    peer: &Peer,
    note: &mut Note,
) -> Result<Answer, ErrorAnswer>
where
    B: http_body::Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let path = parts.uri.path().strip_prefix(ROOT).unwrap_or_default();
    let Some(explorer) = &gateway.shared.explorer else {
        return Ok(pages::plain(
            StatusCode::NOT_FOUND,
            "The explorer of this server is turned off (--explorer).\n",
        ));
    };
    let Some(path) = path.strip_prefix("/api/") else {
        return Ok(pages::answer(parts, path));
    };
    let call = ExplorerCall { gateway, explorer, parts, peer };
    let served = match path.split_once('/') {
        Some((WIRE, rest)) => call.wire(rest, body, note).await,
        _ => call.api(path, body).await.map_err(CallFailure::Explorer),
    };
    match served {
        Ok(answer) => Ok(answer),
        Err(CallFailure::Explorer(refusal)) => Ok(refusal.answer()),
        Err(CallFailure::Wire(failure)) => Err(failure),
    }
}

/// Why a call got no answer.
enum CallFailure {
    /// The explorer refused it.
    Explorer(ApiRefusal),
    /// It was passed on, and failed as it fails for everybody.
    Wire(ErrorAnswer),
}

/// A request to the explorer's API.
struct ExplorerCall<'a> {
    gateway: &'a Gateway,
    explorer: &'a Explorer,
    parts: &'a Parts,
    peer: &'a Peer,
}

impl ExplorerCall<'_> {
    /// What is asked besides the protocol.
    async fn api<B>(&self, path: &str, body: Pin<&mut B>) -> Result<Answer, ApiRefusal>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        if path == "session" && self.parts.method == Method::POST {
            page_checks::check_origin(self)?;
            page_checks::check_json(self.parts)?;
            let body = self.body(body, SIGN_IN_BYTES_MAX).await?;
            return sign_in::sign_in(self, &body);
        }
        if path == "sign-in" && self.parts.method == Method::GET {
            page_checks::check_origin(self)?;
            return sign_in::ways(self);
        }
        let (cookie, session) = self.session()?;
        if path == "session" {
            return sign_in::session(self, &cookie, session);
        }
        let body = self.body(body, api::body_bytes_max(path)).await?;
        api::answer(self, session, path, &body).await
    }

    /// The protocol, by the right of a session.
    async fn wire<B>(&self, path: &str, body: Pin<&mut B>, note: &mut Note) -> Result<Answer, CallFailure>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (_, session) = self.session().map_err(CallFailure::Explorer)?;
        let query = self.parts.uri.query().map_or_else(String::new, |query| format!("?{query}"));
        let target = format!("/{path}{query}").parse();
        let mut parts = self.parts.clone();
        // What shows who asks ends here: whatever comes after this goes by what he may do.
        parts.headers.remove(http::header::COOKIE);
        parts.headers.remove(page_checks::OWN_HEADER);
        parts.uri = target
            .map_err(|_| ApiRefusal::bad_request("The path after wire/ is not one."))
            .map_err(CallFailure::Explorer)?;
        self.gateway
            .serve_for(&parts, body, self.peer, note, Some(session.sender()))
            .await
            .map_err(CallFailure::Wire)
    }

    /// The session of the request, with its cookie, if it has one and comes from the explorer's own page.
    fn session(&self) -> Result<(String, Session), ApiRefusal> {
        page_checks::check_origin(self)?;
        let page_token = page_checks::page_token(self.parts)?;
        let now = self.gateway.shared.account.env().now_seconds();
        let sessions = &self.explorer.sessions;
        let alive = |cookie: &str| Some((cookie.to_owned(), sessions.find(cookie, page_token, now)?));
        page_checks::cookies(self.parts).find_map(alive).ok_or_else(ApiRefusal::sign_in)
    }

    /// Reads the body of a call; one that says it is too long is not waited for.
    async fn body<B>(&self, body: Pin<&mut B>, bytes_max: usize) -> Result<Bytes, ApiRefusal>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let length = header(&self.parts.headers, headers::CONTENT_LENGTH).and_then(|text| text.parse().ok());
        if length.is_some_and(|length: usize| length > bytes_max) {
            return Err(database::Error::TooLarge.into());
        }
        Ok(self.gateway.read_body(self.parts, body, &self.peer.memory, bytes_max).await?)
    }
}

impl Session {
    /// What its holder may do of the protocol, and for how long.
    fn sender(self) -> SessionSender {
        let access = match self.access {
            KeyAccess::Full => SenderAccess::Full,
            KeyAccess::ReadOnly => SenderAccess::ReadOnly(AccessProof::Session),
        };
        SessionSender { access, ends_at_seconds: self.expires }
    }
}
