//! Signing in with a key or a link, asking who one is, and signing out.

use super::refusal::ApiRefusal;
use super::sessions::Session;
use super::{ExplorerCall, doors};
use crate::account_document;
use crate::answer::Answer;
use crate::wire::authorization::{KeyAccess, MasterKey};
use http::{Method, StatusCode};
use serde_json::{Value, json};

/// Begins a session for whoever has a key of the account, or a link.
pub(super) fn sign_in(call: &ExplorerCall<'_>, body: &[u8]) -> Result<Answer, ApiRefusal> {
    let body: Value = serde_json::from_slice(body)
        .map_err(|_| ApiRefusal::bad_request("The body of a sign-in is {\"key\": ..} or {\"link\": ..}."))?;
    let now = call.gateway.shared.account.env().now_seconds();
    let access = match (body.get("key"), body.get("link")) {
        (Some(Value::String(key)), None) => access_of_key(call, key, now)?,
        (None, Some(Value::String(link))) => {
            if !call.explorer.sessions.use_link(link, now) {
                return Err(ApiRefusal::wrong_link());
            }
            KeyAccess::Full
        }
        _ => return Err(ApiRefusal::bad_request("A sign-in has a key or a link, as text.")),
    };
    let access = match body.get("readOnly") {
        None | Some(Value::Bool(false) | Value::Null) => access,
        Some(Value::Bool(true)) => KeyAccess::ReadOnly,
        Some(_) => return Err(ApiRefusal::bad_request("readOnly is true or false.")),
    };
    let (token, session) = call.explorer.sessions.begin(access, now);
    let mut answer = describe(call, session);
    set_cookie(call, &mut answer, &token, session.expires.saturating_sub(now));
    Ok(answer)
}

fn access_of_key(call: &ExplorerCall<'_>, text: &str, now: u64) -> Result<KeyAccess, ApiRefusal> {
    let (sessions, address) = (&call.explorer.sessions, call.peer.address);
    sessions.take_attempt(address, now).map_err(ApiRefusal::too_many)?;
    let key = MasterKey::from_base64(text).map_err(|_| ApiRefusal::wrong_key())?;
    let access = call.gateway.shared.settings.keys.access_of_key(&key).ok_or_else(ApiRefusal::wrong_key)?;
    sessions.give_attempt_back(address, now);
    Ok(access)
}

/// What a session asks about itself, and its end.
pub(super) fn session(call: &ExplorerCall<'_>, token: &str, session: Session) -> Result<Answer, ApiRefusal> {
    match call.parts.method {
        Method::GET | Method::HEAD => Ok(describe(call, session)),
        Method::DELETE => {
            call.explorer.sessions.end(token);
            let mut answer = Answer::empty(StatusCode::NO_CONTENT);
            set_cookie(call, &mut answer, "", 0);
            Ok(answer)
        }
        _ => Err(ApiRefusal::method("GET, POST, DELETE")),
    }
}

fn describe(call: &ExplorerCall<'_>, session: Session) -> Answer {
    let (settings, parts) = (&call.gateway.shared.settings, call.parts);
    let authority = parts.uri.authority().map(http::uri::Authority::as_str);
    let role = match session.access {
        KeyAccess::Full => "read-write",
        KeyAccess::ReadOnly => "read-only",
    };
    let body = json!({
        "role": role,
        "expires": session.expires,
        "account": {
            "name": settings.server_name.as_deref().unwrap_or(account_document::ACCOUNT),
            "endpoint": account_document::endpoint(settings, &parts.headers, authority, call.peer.scheme),
            "version": env!("CARGO_PKG_VERSION"),
        },
    });
    Answer::json(StatusCode::OK, body.to_string().into_bytes())
}

fn set_cookie(call: &ExplorerCall<'_>, answer: &mut Answer, token: &str, seconds: u64) {
    let name = doors::cookie_name(call.parts);
    let secure = if doors::is_secure(call) { "; Secure" } else { "" };
    let cookie =
        format!("{name}={token}; Path={}; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}", super::ROOT);
    answer.set_text("set-cookie", cookie);
}
